#include "store/pure/sl_memory_standing.h"

#include <algorithm>

#include "store/pure/sl_limit_state.h"
#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_stamp.h"

namespace sl {

namespace {

/* How many blocks of a key are read to know how many entries there are. */
constexpr unsigned kMaxBlocksRead = 512;

int64_t used(const KeyCell *key)
{
    return key != nullptr ? key->used : 0;
}

int64_t count_entries(Cells cells, const KeyCell *key)
{
    BackwardReader reader(cells, key);
    int64_t count = 0;
    int64_t cost = 0;

    while (!reader.at_end() && reader.blocks_read() < kMaxBlocksRead) {
        count++;
        cost += reader.cost();
        reader.next();
    }

    if (reader.at_end()) {
        return count;
    }

    int64_t rest = key->used - cost;

    return cost == count
               ? count + rest
               : count
                     + static_cast<int64_t>(static_cast<double>(rest)
                                            / static_cast<double>(cost)
                                            * static_cast<double>(count));
}

/* Until the oldest one leaves, which stands in front; kNoWait if there is none.
 */
int64_t until_anything_leaves(Cells cells, const LimitQuery &client,
                              CountedKeys keys, int64_t now_us)
{
    int64_t wait_us = kNoWait;

    for (const KeyCell *key : {keys.counted, keys.refused}) {
        ChainReader reader(cells, key);

        if (reader.at_end()) {
            continue;
        }

        int64_t left_us = leaves_at(client, reader.stamp()) - now_us;

        wait_us = wait_us == kNoWait ? left_us : std::min(wait_us, left_us);
    }

    return wait_us;
}

/* When a request was counted, or when its bucket began. */
int64_t begin_of(const LimitQuery &client, int64_t stamp)
{
    return client.buckets ? stamp - bucket_width(client) : stamp;
}

void show_newest(Cells cells, const LimitQuery &client, CountedKeys keys,
                 int64_t now_us, Standing *standing)
{
    BackwardReader counted(cells, keys.counted);
    BackwardReader refused(cells, keys.refused);

    standing->shown = 0;

    while (standing->shown < Standing::kMostShown
           && (!counted.at_end() || !refused.at_end()))
    {
        bool is_refused =
            counted.at_end()
            || (!refused.at_end() && refused.stamp() > counted.stamp());
        BackwardReader &next = is_refused ? refused : counted;
        CountedRequest &request = standing->requests[standing->shown++];

        request.ago_us = now_us - begin_of(client, next.stamp());
        request.cost = next.cost();
        request.was_refused = is_refused;
        request.id_size = 0;
        next.next();
    }
}

void show_ruling(const Ruling &ruling, int64_t now_us, Standing *standing)
{
    bool overrides = ruling.overrides(now_us);

    standing->ban_left_us =
        ruling.bans(now_us) ? ruling.ban_until_us - now_us : 0;
    standing->max = overrides ? ruling.max : kOwnMax;
    standing->max_left_us = overrides ? ruling.max_until_us - now_us : 0;
}

}  // namespace

void read_standing(Cells cells, const LimitQuery &client, CountedKeys keys,
                   const Ruling &ruling, int64_t now_us,
                   Standing *standing) noexcept
{
    standing->used = used(keys.counted) + used(keys.refused);
    standing->wait_us = until_anything_leaves(cells, client, keys, now_us);
    standing->entries =
        count_entries(cells, keys.counted) + count_entries(cells, keys.refused);

    show_ruling(ruling, now_us, standing);
    show_newest(cells, client, keys, now_us, standing);
}

}  // namespace sl
