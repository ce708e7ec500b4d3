/* What a store is asked about. */

#pragma once

#include <cstdint>
#include <string_view>

namespace sl {

/* One limit of a request, as the store needs to know it. */
struct LimitQuery {
    std::string_view zone;
    std::string_view key;
    int64_t window_us;
    int64_t max;  /* at least 1 */
    int64_t cost; /* at most max; 0 only looks */

    /* Parts of the window that are counted as wholes; 0: every request. */
    unsigned buckets;

    /* Requests that the limit refuses count, too. */
    bool counts_refused;

    /* The limit does not keep the request from passing. */
    bool dry_run;

    /*
     * The count is final only when the response is known. If the answer comes
     * too late for anybody to receive it, the store takes it back by itself.
     */
    bool provisional;

    /* Where the request was counted, if it is taken back; see LimitState. */
    uint64_t place = 0;
};

}  // namespace sl
