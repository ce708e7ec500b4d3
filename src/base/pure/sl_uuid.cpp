#include "base/pure/sl_uuid.h"

#include <cstring>

#include "base/pure/sl_words.h"

namespace sl {

void uuid_v7(uint64_t unix_ms, const uint8_t random[kUuidRandomBytes],
             char *text) noexcept
{
    uint8_t bytes[16];

    for (int i = 0; i < 6; i++) {
        bytes[i] = static_cast<uint8_t>(unix_ms >> (40 - 8 * i));
    }

    memcpy(bytes + 6, random, kUuidRandomBytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *text++ = '-';
        }

        text = append_hex(text, bytes[i]);
    }
}

}  // namespace sl
