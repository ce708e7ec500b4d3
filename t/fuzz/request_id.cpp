/* A request's id: it has the form of RFC 9562, and says what it was made of. */

#include <vector>

#include "base/pure/sl_uuid.h"
#include "base/pure/sl_words.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    auto unix_ms = input.number<uint64_t>();
    uint8_t random[sl::kUuidRandomBytes];

    for (uint8_t &byte : random) {
        byte = input.number<uint8_t>();
    }

    std::string text(sl::kUuidSize, '\0');

    sl::uuid_v7(unix_ms, random, text.data());

    std::vector<unsigned> digits;

    for (size_t i = 0; i < text.size(); i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            check(text[i] == '-');
            continue;
        }

        check(sl::hex_digit(text[i]) >= 0
              && !(text[i] >= 'A' && text[i] <= 'F'));
        digits.push_back(static_cast<unsigned>(sl::hex_digit(text[i])));
    }

    uint64_t time = 0;

    for (size_t i = 0; i < 12; i++) {
        time = time << 4 | digits[i];
    }

    check(time == (unix_ms & 0xffffffffffff));
    check(digits[12] == 7);
    check(digits[16] >> 2 == 2);

    for (size_t i = 0; i < sl::kUuidRandomBytes; i++) {
        unsigned byte = digits[12 + 2 * i] << 4 | digits[13 + 2 * i];
        unsigned kept = i == 0 ? 0x0f : i == 2 ? 0x3f : 0xff;

        check((byte & kept) == (random[i] & kept));
    }

    return 0;
}
