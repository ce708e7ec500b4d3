#include "redis/pure/sl_cluster_slot.h"

#include <array>
#include <cstdint>

namespace sl {

namespace {

/* CRC-16/XMODEM, as the specification of Redis Cluster has it. */
constexpr std::array<uint16_t, 256> make_table()
{
    std::array<uint16_t, 256> table{};

    for (unsigned i = 0; i < 256; i++) {
        unsigned crc = i << 8;

        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
        }

        table[i] = static_cast<uint16_t>(crc);
    }

    return table;
}

constexpr std::array<uint16_t, 256> kTable = make_table();

}  // namespace

unsigned cluster_slot(std::string_view key) noexcept
{
    size_t open = key.find('{');

    if (open != std::string_view::npos) {
        size_t close = key.find('}', open);

        if (close != std::string_view::npos && close > open + 1) {
            key = key.substr(open + 1, close - open - 1);
        }
    }

    unsigned crc = 0;

    for (unsigned char ch : key) {
        crc = (crc << 8 & 0xffff) ^ kTable[crc >> 8 ^ ch];
    }

    return crc % kClusterSlots;
}

/*
 * '@' and the letters up to 'O' differ in four bits. A CRC is linear: over all
 * words of four such characters it comes to every slot equally often.
 */
SlotTag tag_of_slot(unsigned slot) noexcept
{
    SlotTag tag;
    unsigned number = 0;

    do {
        for (size_t i = 0; i < sizeof(tag.text); i++) {
            tag.text[i] = static_cast<char>('@' + (number >> 4 * i & 15));
        }
    } while (cluster_slot(tag.view()) != slot && ++number < 1u << 16);

    return tag;
}

}  // namespace sl
