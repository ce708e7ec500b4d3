/* Pieces of which all JSON here is made. */

#pragma once

#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

/* Puts commas between the members of an object or the elements of an array. */
class Commas {
  public:
    explicit Commas(Output &text) noexcept : text_(text), is_first_(true) {}

    Output &next() noexcept
    {
        if (!is_first_) {
            text_ << ",";
        }

        is_first_ = false;

        return text_;
    }

  private:
    Output &text_;
    bool is_first_;
};

/* The max of a zone's limits. */
inline void write_max(const Zone &zone, Output &text) noexcept
{
    if (zone.max == kMaxVaries) {
        text << "\"varies\"";
    } else {
        text << zone.max;
    }
}

}  // namespace sl
