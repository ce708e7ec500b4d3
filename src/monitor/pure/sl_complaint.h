/*
 * What is wrong with a request of an operator's, as a sentence in three pieces:
 * what was given stands between the other two, in quotes, as far as there is
 * such a thing. Whoever writes the sentence escapes it.
 */

#pragma once

#include <string_view>

namespace sl {

struct Complaint {
    std::string_view before;
    std::string_view given;
    std::string_view after;
    bool has_given = false;

    static Complaint of(std::string_view sentence) noexcept
    {
        return {sentence, {}, {}, false};
    }

    static Complaint about(std::string_view before, std::string_view given,
                           std::string_view after) noexcept
    {
        return {before, given, after, true};
    }
};

}  // namespace sl
