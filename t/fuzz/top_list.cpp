/*
 * Who was there most, compared with counts of everybody; and keys of clients as
 * others may see them.
 */

#include "metrics/pure/sl_top_list.h"

#include <map>
#include <vector>

#include "fuzz.h"
#include "json_reference.h"

namespace {

using sl::TopClient;
using sl::TopList;

/* Enough to fill the list several times. */
constexpr size_t kMostCounted = 512;

/* Nobody is idle in here. */
constexpr int64_t kIdleMs = 1000000;

void check_key(const TopClient &client, const std::string &key)
{
    check(client.text() == key.substr(0, TopClient::kMaxKey));
    check(client.is_cut == (key.size() > TopClient::kMaxKey));

    char masked[sl::kMaxMaskedKey];
    std::string_view shown(masked, sl::mask_key(client, masked));

    check(shown.size() <= sizeof(masked) && shown.size() >= sl::kKeyMark);

    /* a quarter of it at most, and no half of a character */
    std::string_view beginning = shown.substr(0, shown.size() - sl::kKeyMark);

    check(beginning == key.substr(0, beginning.size()));
    check(4 * beginning.size() <= key.size());

    if (json_reference::to_utf8(key) == key) {
        check(json_reference::to_utf8(beginning) == beginning);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    std::string given = input.text_before('\n');

    TopList list{};
    std::map<uint64_t, uint64_t> seen;
    int64_t now_ms = 1;
    uint64_t all = 0;

    for (unsigned char which : input.rest().substr(0, kMostCounted)) {
        uint64_t hash = which + uint64_t{1};
        std::string key = given.substr(0, which) + std::to_string(which);

        const TopClient &client = list.count(hash, key, now_ms++, kIdleMs);

        if (seen[hash]++ == 0) {
            check_key(client, key);
        }

        all++;
    }

    TopClient top[TopList::kPlaces];
    size_t count = list.read(now_ms, kIdleMs, top, TopList::kPlaces);
    std::map<uint64_t, uint64_t> listed;

    check(count == std::min(seen.size(), TopList::kPlaces));

    for (size_t i = 0; i < count; i++) {
        listed[top[i].hash]++;
        check(listed[top[i].hash] == 1);
        check(i == 0 || top[i - 1].count >= top[i].count);
        check(top[i].count <= seen[top[i].hash]);
        check(seen[top[i].hash] <= top[i].count + top[i].missed_at_most);
        check(seen.size() > TopList::kPlaces || top[i].missed_at_most == 0);
    }

    for (auto [hash, times] : seen) {
        check(times <= all / TopList::kPlaces || listed[hash] == 1);
    }

    return 0;
}
