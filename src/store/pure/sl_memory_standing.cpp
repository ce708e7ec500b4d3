#include "store/pure/sl_memory_standing.h"

#include "store/pure/sl_limit_state.h"
#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_stamp.h"

namespace sl {

namespace {

int64_t count_buckets(Cells cells, const KeyCell *key)
{
    int64_t count = 0;

    for (BackwardReader reader(cells, key); !reader.at_end(); reader.next()) {
        count++;
    }

    return count;
}

/* Until the oldest one leaves, which stands in front; kNoWait if there is none.
 */
int64_t until_anything_leaves(Cells cells, const LimitQuery &client,
                              const KeyCell *key, int64_t now_us)
{
    ChainReader reader(cells, key);

    return reader.at_end() ? kNoWait
                           : leaves_at(client, reader.stamp()) - now_us;
}

/* When a request was counted, or when its bucket began. */
int64_t begin_of(const LimitQuery &client, int64_t stamp)
{
    return client.buckets ? stamp - bucket_width(client) : stamp;
}

void show_newest(Cells cells, const LimitQuery &client, const KeyCell *key,
                 int64_t now_us, Standing *standing)
{
    BackwardReader newest(cells, key);

    standing->shown = 0;

    while (standing->shown < Standing::kMostShown && !newest.at_end()) {
        CountedRequest &request = standing->requests[standing->shown++];

        request.ago_us = now_us - begin_of(client, newest.stamp());
        request.cost = newest.cost();
        request.id_size = 0;
        newest.next();
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

void read_standing(Cells cells, const LimitQuery &client, const KeyCell *key,
                   const Ruling &ruling, int64_t now_us,
                   Standing *standing) noexcept
{
    standing->used = key != nullptr ? key->used : 0;
    standing->wait_us = until_anything_leaves(cells, client, key, now_us);
    standing->entries =
        client.buckets ? count_buckets(cells, key) : standing->used;

    show_ruling(ruling, now_us, standing);
    show_newest(cells, client, key, now_us, standing);
}

}  // namespace sl
