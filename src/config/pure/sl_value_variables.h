/*
 * The variables in a value of the configuration: who writes them, and when they
 * are known. A name is given without "$" and braces; nginx does not care for
 * upper and lower case in it.
 */

#pragma once

#include <string_view>

namespace sl {

/*
 * Takes the first piece off `text`, which must not be empty: a variable, whose
 * name is returned, or what stands before the next one; then the name is empty.
 */
std::string_view take_variable(std::string_view *text) noexcept;

/* The first variable in `text` for which is_one(name) holds; empty: none. */
template <typename Predicate>
std::string_view find_variable(std::string_view text, Predicate is_one)
{
    while (!text.empty()) {
        std::string_view name = take_variable(&text);

        if (!name.empty() && is_one(name)) {
            return name;
        }
    }

    return {};
}

bool has_variable(std::string_view text, std::string_view name) noexcept;

/* Whether nginx knows this variable only when it answers the request. */
bool is_of_response(std::string_view name) noexcept;

/* Whether a client alone decides if the value is empty: it is made of nothing
 * but variables that a client can leave out of its request. */
bool can_be_left_out(std::string_view text) noexcept;

/*
 * The first variable with which a client can make up as many values of `text`
 * as it likes, whatever else is in it; empty: there is none. What can be left
 * out is not judged by this: its fallback is where such clients belong.
 */
std::string_view find_made_up(std::string_view text) noexcept;

}  // namespace sl
