/*
 * What a MemoryTable keeps in mind of other stores' refusals, so that those
 * stores need not be asked again.
 *
 * Invariant: a refusal is a key of its own, named after everything that the
 * request's fate depends on, the store included, with one block that has the
 * RefusalNote; the key expires when the refusal does. Where the memory is
 * short, or after a process was killed, refusals are forgotten: that does no
 * harm.
 */

#pragma once

#include <cstdint>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"
#include "store/pure/sl_memory_cells.h"
#include "store/pure/sl_memory_keys.h"

namespace sl {

/* For recall(): however old the refusal is, as long as it lasts. */
constexpr int64_t kAnyAge = INT64_MAX;

/* For recall(): whenever it was asked. */
constexpr int64_t kNothingVoid = INT64_MIN;

enum class Recalled { kNothing, kRefusal, kAskAgain };

class Refusals {
  public:
    explicit Refusals(Cells cells) noexcept : cells_(cells), keys_(cells) {}

    /*
     * Keeps in mind that another store, asked at `asked_us`, refused. It named
     * the moment before which it will not admit such a request, one of the
     * same key, cost and max; whatever it counts until then only moves that
     * moment further away. Where nothing is ever taken back, it need not be
     * asked again until then.
     */
    void remember(const LimitQuery &limit, const LimitState &state,
                  int64_t asked_us, int64_t clock_us) const noexcept;

    /*
     * Whether such a refusal is known; if so, `state` is what the store would
     * say, with what was used and ruled as of then. If nobody has asked the
     * store for max_age_us, the caller is told to, while for others the refusal
     * goes on being known. What the store was asked up to `void_until_us`, by
     * the clock that callers bring, is not known any more.
     */
    Recalled recall(const LimitQuery &limit, int64_t clock_us,
                    int64_t max_age_us, LimitState *state,
                    int64_t void_until_us = kNothingVoid) const noexcept;

    /* The store has admitted such a request, against expectation. */
    void forget(const LimitQuery &limit) const noexcept;

  private:
    CellNumber add(const KeyName &name, int64_t lasts_us) const noexcept;

    Cells cells_;
    Keys keys_;
};

}  // namespace sl
