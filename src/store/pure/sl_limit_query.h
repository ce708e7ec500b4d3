/* What a store is asked about. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

/* Which limits of a request a store can decide about in one question. */
enum class Together { kAll, kSameKey, kNone };

/* How a zone's requests are counted. */
enum class Algorithm {
    kLog,    /* one by one */
    kPacked, /* as a log is, in less room where it is kept in Redis */
    kBuckets /* by parts of the window */
};

/* Names a zone of a certain store, whose refusals the deny cache remembers; see
 * RefusalMarks. */
using RefusalMark = uint64_t;

constexpr RefusalMark kNoMark = UINT64_MAX;

/* One limit of a request, as the store needs to know it. */
struct LimitQuery {
    std::string_view zone;
    std::string_view key;
    int64_t window_us;
    int64_t max;  /* at least 1 */
    int64_t cost; /* at most max, in logs at most 1,000; 0 only looks */

    Algorithm algorithm;

    /* Parts of the window that are counted as wholes; 0 unless the algorithm
     * is kBuckets. */
    unsigned buckets;

    /* Requests that the limit refuses count, too; in logs the newest max units
     * decide. */
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

    /* kNoMark: the deny cache does not remember refusals by this limit. */
    RefusalMark refusal_mark = kNoMark;

    /* When it is settled: what the request has cost after all, instead of
     * `cost`. */
    int64_t true_cost = 0;

    /* That will be known when the request ends: if its asker is gone before the
     * answer comes, it is nothing, and the store takes the count back. */
    bool is_settled_later = false;
};

}  // namespace sl
