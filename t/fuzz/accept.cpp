/* Accept headers: what a client sends chooses between a page and data. */

#include "monitor/pure/sl_accept.h"

#include "fuzz.h"

namespace {

using sl::accepted_quality;

constexpr std::string_view kTypes[] = {"text/html", "application/json",
                                       "text/plain"};

std::string reversed_list(const std::string &accept)
{
    std::string reversed;
    size_t end = accept.size();

    for (size_t i = accept.size(); i-- > 0;) {
        if (accept[i] == ',') {
            reversed += accept.substr(i + 1, end - i - 1) + ",";
            end = i;
        }
    }

    return reversed + accept.substr(0, end);
}

std::string in_upper_case(std::string text)
{
    for (char &ch : text) {
        ch = ch >= 'a' && ch <= 'z' ? static_cast<char>(ch - 32) : ch;
    }

    return text;
}

/* RFC 9110: 0, and a point with digits or not; all else is the best. */
unsigned quality_of(const std::string &text)
{
    if (text.empty() || text[0] != '0' || (text.size() > 1 && text[1] != '.')
        || text.find_first_not_of("0123456789", 2) != std::string::npos)
    {
        return 1000;
    }

    std::string digits = text.size() > 2 ? text.substr(2) : "";

    return static_cast<unsigned>(std::stoi((digits + "000").substr(0, 3)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string accept = Input(data, size).rest();

    for (std::string_view type : kTypes) {
        unsigned quality = accepted_quality(accept, type);

        check(quality <= 1000);
        check(quality == accepted_quality(reversed_list(accept), type));
        check(quality == accepted_quality(in_upper_case(accept), type));
        check(quality == accepted_quality(accept + ",x/y;q=0.5", type));

        /* what fits exactly outweighs what fits otherwise */
        if (in_upper_case(accept).find(in_upper_case(std::string(type)))
            == std::string::npos)
        {
            check(accepted_quality(accept + "," + std::string(type) + ";q=0.3",
                                   type)
                  == 300);
        }
    }

    if (accept.find_first_of(",; \t") == std::string::npos) {
        check(accepted_quality("text/html;q=" + accept, "text/html")
              == quality_of(accept));
    }

    return 0;
}
