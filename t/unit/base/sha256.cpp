/* SHA-256: published digests, and every way a message can end in its last
 * block. */

#include "base/pure/sl_sha256.h"

#include <vector>

#include "unit.h"

namespace {

constexpr std::string_view kDigestOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* The 64 digits; fails if a byte around them is written. */
std::string digest(const void *data, size_t size)
{
    char hex[1 + sl::kSha256HexSize + 1];
    hex[0] = hex[1 + sl::kSha256HexSize] = '!';

    sl::sha256_hex(data, size, hex + 1);

    assert_int_equal(hex[0], '!');
    assert_int_equal(hex[1 + sl::kSha256HexSize], '!');

    return {hex + 1, sl::kSha256HexSize};
}

/* Reads it from memory of just that size, so that reading past its end is
 * noticed. */
std::string digest(std::string_view text)
{
    std::vector<char> copy(text.begin(), text.end());
    return digest(copy.data(), copy.size());
}

void assert_digest_of_as(size_t count, std::string_view expected)
{
    assert_text_equal(digest(std::string(count, 'a')), expected);
}

void nothing_has_the_known_digest(void **)
{
    assert_text_equal(digest(""), kDigestOfNothing);
}

void no_memory_is_as_good_as_nothing(void **)
{
    assert_text_equal(digest(nullptr, 0), kDigestOfNothing);
}

void abc_has_the_published_digest(void **)
{
    assert_text_equal(
        digest("abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

void the_published_message_of_448_bits_has_its_digest(void **)
{
    assert_text_equal(
        digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

void the_published_message_of_896_bits_has_its_digest(void **)
{
    assert_text_equal(
        digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
               "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

void a_million_bytes_have_the_published_digest(void **)
{
    assert_digest_of_as(
        1000000,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

void a_length_that_just_fits_behind_the_rest_stays_in_its_block(void **)
{
    assert_digest_of_as(
        55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_digest_of_as(
        119,
        "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
}

void a_length_that_does_not_fit_goes_to_a_block_of_its_own(void **)
{
    assert_digest_of_as(
        56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    assert_digest_of_as(
        63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
    assert_digest_of_as(
        120,
        "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c");
    assert_digest_of_as(
        127,
        "c57e9278af78fa3cab38667bef4ce29d783787a2f731d4e12200270f0c32320a");
}

void whole_blocks_leave_no_rest(void **)
{
    assert_digest_of_as(
        64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    assert_digest_of_as(
        128,
        "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e");
}

void one_byte_over_a_block_counts(void **)
{
    assert_digest_of_as(
        65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
    assert_digest_of_as(
        129,
        "c12cb024a2e5551cca0e08fce8f1c5e314555cc3fef6329ee994a3db752166ae");
}

/* The bytes 0, 1, 2 ... 255, 0, 1 ... */
std::string counted(size_t size)
{
    std::string text;

    for (size_t i = 0; i < size; i++) {
        text += static_cast<char>(i);
    }

    return text;
}

void bytes_have_no_sign(void **)
{
    assert_text_equal(
        digest(counted(256)),
        "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880");
    assert_text_equal(
        digest(std::string(64, '\xff')),
        "8667e718294e9e0df1d30600ba3eeb201f764aad2dad72748643e4a285e1d1f7");
}

void nul_bytes_count(void **)
{
    assert_text_equal(
        digest(std::string(64, '\0')),
        "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

/* The digests of all these messages in a row, digested once more. */
void every_length_up_to_300_is_right(void **)
{
    std::string digests;

    for (size_t size = 0; size <= 300; size++) {
        digests += digest(counted(size));
    }

    assert_text_equal(
        digest(digests),
        "d64e80cd14d5651b82fc752683de544bebae3046132ed7278785fdd2e9f3c310");
}

void alignment_makes_no_difference(void **)
{
    std::string text = counted(200);
    std::string expected = digest(text);

    for (size_t shift = 1; shift < 8; shift++) {
        std::string shifted = std::string(shift, '!') + text;

        assert_text_equal(digest(shifted.data() + shift, text.size()),
                          expected);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_the_known_digest),
        cmocka_unit_test(no_memory_is_as_good_as_nothing),
        cmocka_unit_test(abc_has_the_published_digest),
        cmocka_unit_test(the_published_message_of_448_bits_has_its_digest),
        cmocka_unit_test(the_published_message_of_896_bits_has_its_digest),
        cmocka_unit_test(a_million_bytes_have_the_published_digest),
        cmocka_unit_test(
            a_length_that_just_fits_behind_the_rest_stays_in_its_block),
        cmocka_unit_test(a_length_that_does_not_fit_goes_to_a_block_of_its_own),
        cmocka_unit_test(whole_blocks_leave_no_rest),
        cmocka_unit_test(one_byte_over_a_block_counts),
        cmocka_unit_test(bytes_have_no_sign),
        cmocka_unit_test(nul_bytes_count),
        cmocka_unit_test(every_length_up_to_300_is_right),
        cmocka_unit_test(alignment_makes_no_difference),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
