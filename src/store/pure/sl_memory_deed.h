/*
 * What an operator does about one client of a MemoryTable: looks where it
 * stands, rules about it, or forgets what was counted. Nothing is counted by
 * it, and it makes nobody more wanted than before.
 */

#pragma once

#include <cstdint>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_memory_cells.h"
#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_standing.h"

namespace sl {

class Deed {
  public:
    Deed(Cells cells, const LimitQuery &client, int64_t now_us) noexcept
        : cells_(cells), keys_(cells), client_(client), now_us_(now_us),
          ruling_(ruled())
    {}

    /* False if there is more to drop than may be at a time. */
    bool drop_expired() const noexcept;

    /* False if there is no room to rule about another client. */
    bool rule(const Intervention &intervention) noexcept;

    void forget_counts() const noexcept;
    void tell(Standing *standing) const noexcept;

  private:
    Ruling ruled() const noexcept;
    int64_t end_of(const Intervention &intervention) const noexcept;

    CellNumber find() const noexcept
    {
        return keys_.find(keys_.name_of(client_, KeyOf::kCounted));
    }

    Cells cells_;
    Keys keys_;
    const LimitQuery &client_;
    int64_t now_us_;
    Ruling ruling_;
};

}  // namespace sl
