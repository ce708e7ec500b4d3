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

std::string_view without_port(std::string_view authority, std::string_view port)
{
    size_t size = authority.size();

    return size >= port.size() && authority.substr(size - port.size()) == port
               ? authority.substr(0, size - port.size())
               : authority;
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

}  // namespace sl
