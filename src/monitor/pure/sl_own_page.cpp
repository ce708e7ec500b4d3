#include "monitor/pure/sl_own_page.h"

#include "base/pure/sl_words.h"

namespace sl {

namespace {

struct Scheme {
    std::string_view prefix;
    std::string_view default_port;
};

constexpr Scheme kSchemes[] = {
    {"http://", ":80"},
    {"https://", ":443"},
};

bool ends_with(std::string_view text, std::string_view end)
{
    return text.size() >= end.size()
           && text.substr(text.size() - end.size()) == end;
}

std::string_view without_port(std::string_view authority, std::string_view port)
{
    return ends_with(authority, port)
               ? authority.substr(0, authority.size() - port.size())
               : authority;
}

/* Letters, digits, "-" and "_", and single dots between them. */
bool is_host_name(std::string_view text)
{
    bool after_dot = true;

    for (char ch : text) {
        bool is_dot = ch == '.';

        if ((is_dot && after_dot)
            || !(is_dot || is_letter_or_digit(ch) || ch == '-' || ch == '_'))
        {
            return false;
        }

        after_dot = is_dot;
    }

    return !after_dot;
}

/* Whether `is_true` holds for each name of a list. */
template <typename Predicate>
bool all_names(std::string_view list, Predicate is_true)
{
    for (;;) {
        size_t comma = list.find(',');

        if (!is_true(list.substr(0, comma))) {
            return false;
        }

        if (comma == std::string_view::npos) {
            return true;
        }

        list.remove_prefix(comma + 1);
    }
}

}  // namespace

bool is_json_type(std::string_view content_type) noexcept
{
    std::string_view type = content_type.substr(0, content_type.find(';'));
    size_t end = type.find_last_not_of(" \t");

    type = type.substr(0, end == std::string_view::npos ? 0 : end + 1);

    return is_same_word(type, "application/json");
}

bool is_own_origin(std::string_view origin, std::string_view host) noexcept
{
    for (const Scheme &scheme : kSchemes) {
        if (!is_same_word(origin.substr(0, scheme.prefix.size()),
                          scheme.prefix)) {
            continue;
        }

        std::string_view authority = origin.substr(scheme.prefix.size());
        std::string_view own = without_port(host, scheme.default_port);

        return !own.empty()
               && is_same_word(without_port(authority, scheme.default_port),
                               own);
    }

    return false;
}

bool is_name_of(std::string_view name, std::string_view host) noexcept
{
    if (name == host) {
        return !host.empty() && host != "_";
    }

    if (name.substr(0, 1) == "*") {
        name.remove_prefix(1);
    } else if (name.substr(0, 1) == "." && name.substr(1) == host) {
        return true;
    }

    return name.substr(0, 1) == "." && host.size() > name.size()
           && ends_with(host, name);
}

bool is_list_of_names(std::string_view list) noexcept
{
    return all_names(list, is_host_name);
}

bool is_listed(std::string_view list, std::string_view host) noexcept
{
    return !all_names(list,
                      [&](std::string_view name) { return name != host; });
}

}  // namespace sl
