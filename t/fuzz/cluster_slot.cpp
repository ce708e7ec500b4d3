/* Slots of keys, compared with the specification's words, taken literally. */

#include "redis/pure/sl_cluster_slot.h"

#include "fuzz.h"

namespace {

/* CRC-16/XMODEM, bit by bit: polynomial 0x1021, from 0, nothing reflected. */
unsigned crc16(const std::string &text)
{
    unsigned crc = 0;

    for (unsigned char byte : text) {
        for (int bit = 7; bit >= 0; bit--) {
            bool is_one = (crc >> 15 & 1) != (byte >> bit & 1u);

            crc = (crc << 1 & 0xffff) ^ (is_one ? 0x1021 : 0);
        }
    }

    return crc;
}

/* What is hashed: that between the first '{' and the first '}' after it, if it
 * is not empty. */
std::string hashed_part(const std::string &key)
{
    size_t open = 0;

    while (open < key.size() && key[open] != '{') {
        open++;
    }

    std::string tag;

    for (size_t i = open + 1; i < key.size(); i++) {
        if (key[i] == '}') {
            return tag.empty() ? key : tag;
        }

        tag += key[i];
    }

    return key;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string key = Input(data, size).rest();
    unsigned slot = sl::cluster_slot(key);

    check(slot < sl::kClusterSlots);
    check(slot == crc16(hashed_part(key)) % sl::kClusterSlots);

    return 0;
}
