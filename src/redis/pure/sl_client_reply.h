/*
 * What Redis says about one client to an operator: the parts of an answer of
 * lua/client.lua, and a ruling as it is written down. None of it is believed
 * before it was looked at.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/pure/sl_standing.h"

namespace sl {

/* What such an answer begins with: used, wait, how long it is still banned, its
 * max and for how long that holds, and how many entries there are. */
constexpr size_t kStandingNumbers = 6;

/* What follows for each request that is shown: how long ago, how many units,
 * and its id. */
constexpr size_t kWordsPerRequest = 3;

/*
 * How many requests an answer of so many words shows. False: there is no such
 * answer.
 */
bool requests_in_answer(size_t words, size_t *requests) noexcept;

/* The first numbers; requests are to be read on their own, `shown` of them.
 * False: that cannot be. */
bool read_standing(const int64_t (&numbers)[kStandingNumbers], size_t shown,
                   Standing *standing) noexcept;

bool read_request(int64_t ago_us, int64_t cost, std::string_view id,
                  CountedRequest *request) noexcept;

/*
 * "BAN_UNTIL:MAX:MAX_UNTIL", of which 0 means that there is none. False: it is
 * something else.
 */
bool read_ruling(std::string_view text, Ruling *ruling) noexcept;

/* A time of Redis's clock, in microseconds. False: it is something else. */
bool read_time(std::string_view text, int64_t *time_us) noexcept;

/* What is left of a ruling at a time of Redis's clock. False: nothing is. */
bool ruled_now(const Ruling &ruling, int64_t now_us,
               RuledClient *client) noexcept;

}  // namespace sl
