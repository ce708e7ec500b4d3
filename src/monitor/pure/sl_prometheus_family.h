/* Pieces of which the text for Prometheus is made. */

#pragma once

#include <string_view>

namespace sl {

/*
 * One family: its help and type, and then its samples. Names of zones and
 * stores need no escaping: the configuration allows nothing else than letters,
 * digits and a few signs.
 */
template <typename Text>
class Family {
  public:
    Family(Text &text, std::string_view name, std::string_view type,
           std::string_view help) noexcept
        : text_(text), name_(name)
    {
        text << "# HELP nginx_sliding_limit_" << name << " " << help
             << "\n# TYPE nginx_sliding_limit_" << name << " " << type << "\n";
    }

    template <typename Value>
    void sample(std::string_view labels, Value value) noexcept
    {
        text_ << "nginx_sliding_limit_" << name_ << labels << " " << value
              << "\n";
    }

    template <typename Value>
    void sample(std::string_view label, std::string_view of,
                Value value) noexcept
    {
        text_ << "nginx_sliding_limit_" << name_ << "{" << label << "=\"" << of
              << "\"} " << value << "\n";
    }

    template <typename Value>
    void sample(std::string_view label, std::string_view of,
                std::string_view second_label, std::string_view of_second,
                Value value) noexcept
    {
        text_ << "nginx_sliding_limit_" << name_ << "{" << label << "=\"" << of
              << "\"," << second_label << "=\"" << of_second << "\"} " << value
              << "\n";
    }

  private:
    Text &text_;
    std::string_view name_;
};

}  // namespace sl
