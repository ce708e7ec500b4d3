/* How much memory the embedded store needs for a client, by its own account. */

#include <cstdio>
#include <cstdlib>
#include <string>

#include "store/pure/sl_memory_table.h"

namespace {

constexpr size_t kSize = 256 << 20;
constexpr int kClients = 10000;

double bytes_per_client(int requests)
{
    void *memory = aligned_alloc(64, kSize);
    const uint8_t secret[sl::MemoryTable::kSecretSize] = {};

    sl::MemoryTable::format(memory, kSize, secret);
    sl::MemoryTable table(memory, kSize);
    uint64_t free_before = table.stats().free_cells;

    for (int i = 0; i < requests; i++) {
        for (int client = 0; client < kClients; client++) {
            std::string key = "client" + std::to_string(client);
            sl::LimitQuery limit{};
            limit.zone = "zone";
            limit.key = key;
            limit.window_us = 3600000000;
            limit.max = 1000000;
            limit.cost = 1;

            sl::LimitState state;
            int64_t time;

            table.ask(&limit, 1, 1 + i, &state, &time);
        }
    }

    /* a share of all memory: with that of the hash table, too */
    sl::TableStats stats = table.stats();
    double used =
        static_cast<double>(free_before - stats.free_cells) / stats.cells;

    free(memory);

    return used * kSize / kClients;
}

}  // namespace

int main()
{
    const char *separator = "{";

    for (int requests : {1, 7, 10, 100, 1000}) {
        printf("%s\"%d\": %.1f", separator, requests,
               bytes_per_client(requests));
        separator = ", ";
    }

    puts("}");
}
