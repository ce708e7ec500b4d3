/* Looking at many bytes at once, compared with looking at each of them. */

#include "usage/pure/sl_byte_masks.h"

#include <string>
#include <vector>

#include "unit.h"

namespace {

/* All values of a byte, after some others. */
std::string bytes_from(unsigned first)
{
    std::string bytes(sl::kMaskedBytes, '\0');

    for (size_t i = 0; i < bytes.size(); i++) {
        bytes[i] = static_cast<char>(first + i);
    }

    return bytes;
}

using MasksOf = sl::ByteMasks (*)(const char *) noexcept;

void assert_masks(MasksOf masks_of)
{
    for (unsigned first = 0; first < 256; first++) {
        std::string bytes = bytes_from(first);
        sl::ByteMasks masks = masks_of(bytes.data());

        for (size_t i = 0; i < bytes.size(); i++) {
            char ch = bytes[i];

            assert_int_equal(masks.quotes >> i & 1, ch == '"');
            assert_int_equal(masks.backslashes >> i & 1, ch == '\\');
            assert_int_equal(masks.opening >> i & 1, ch == '{' || ch == '[');
            assert_int_equal(masks.closing >> i & 1, ch == '}' || ch == ']');
        }
    }
}

using FindEither = const char *(*)(const char *, const char *, char,
                                   char) noexcept;

/* Neighbours of what is looked for are not it. Memory of just the size, so that
 * use of more is noticed. */
void assert_finds(FindEither find_either)
{
    for (size_t size = 0; size <= 70; size++) {
        for (size_t at = 0; at <= size; at++) {
            std::vector<char> bytes(size, '#');

            if (at < size) {
                bytes[at] = size % 2 != 0 ? '"' : '\\';
            }

            /* a later one is of no interest */
            if (at + 1 < size) {
                bytes[at + 1] = '"';
            }

            const char *begin = bytes.data();

            assert_ptr_equal(find_either(begin, begin + size, '"', '\\'),
                             begin + at);
        }
    }
}

void every_byte_is_what_it_is(void **)
{
    assert_masks(sl::masks_of);
}

void the_first_of_two_bytes_is_found(void **)
{
    assert_finds(sl::find_either);
}

void the_same_holds_where_there_is_no_sse2(void **)
{
    assert_masks(sl::portable::masks_of);
    assert_finds(sl::portable::find_either);
}

void parity_counts_the_bits_up_to_each(void **)
{
    uint64_t bits = 0x8000'1234'5678'9abd;
    uint64_t parity = sl::parity_up_to(bits);
    uint64_t expected = 0;

    for (unsigned i = 0; i < 64; i++) {
        expected ^= bits >> i & 1;
        assert_int_equal(parity >> i & 1, expected);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_what_it_is),
        cmocka_unit_test(the_first_of_two_bytes_is_found),
        cmocka_unit_test(the_same_holds_where_there_is_no_sse2),
        cmocka_unit_test(parity_counts_the_bits_up_to_each),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
