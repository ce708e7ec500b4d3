/* How many different clients there were: close to the truth at any size. */

#include "metrics/pure/sl_distinct.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/pure/sl_siphash.h"
#include "unit.h"

namespace {

using sl::Distinct;

uint64_t hash_of(uint64_t number, uint8_t seed)
{
    uint8_t key[sl::kSipHashKeySize] = {seed};
    uint8_t hash[sl::kSipHashSize];
    uint64_t word;

    sl::siphash128(nullptr, 0,
                   {reinterpret_cast<const char *>(&number), sizeof(number)},
                   key, hash);
    memcpy(&word, hash, sizeof(word));

    return word;
}

void nobody_is_none(void **)
{
    auto distinct = std::make_unique<Distinct>();

    assert_int_equal(distinct->estimate(), 0);
}

void the_same_client_counts_once(void **)
{
    auto distinct = std::make_unique<Distinct>();

    for (int i = 0; i < 1000; i++) {
        distinct->add(hash_of(7, 0));
    }

    assert_int_equal(distinct->estimate(), 1);
}

void after_clearing_it_starts_anew(void **)
{
    auto distinct = std::make_unique<Distinct>();

    for (uint64_t i = 0; i < 1000; i++) {
        distinct->add(hash_of(i, 0));
    }

    distinct->clear();
    assert_int_equal(distinct->estimate(), 0);
    distinct->add(hash_of(1, 0));
    assert_int_equal(distinct->estimate(), 1);
}

/* The root mean square over 40 seeds is the 2.3 % that the header states, and
 * no bias hides in it. */
void the_error_is_as_stated_at_any_size(void **)
{
    for (uint64_t size :
         {1u, 10u, 100u, 1000u, 3000u, 5000u, 10000u, 100000u, 500000u})
    {
        constexpr int kSeeds = 40;
        double squares = 0;
        double sum = 0;

        for (uint8_t seed = 0; seed < kSeeds; seed++) {
            auto distinct = std::make_unique<Distinct>();

            for (uint64_t i = 0; i < size; i++) {
                distinct->add(hash_of(i, seed));
            }

            double error = distinct->estimate() / double(size) - 1;

            sum += error;
            squares += error * error;
        }

        /* a root mean square of 40 is itself uncertain by a ninth */
        assert_true(std::sqrt(squares / kSeeds) < 0.023 * 1.4);
        assert_true(std::abs(sum / kSeeds) < 3 * 0.023 / std::sqrt(kSeeds));
    }
}

void extreme_hashes_do_no_harm(void **)
{
    auto distinct = std::make_unique<Distinct>();

    distinct->add(0);
    distinct->add(UINT64_MAX);
    assert_int_equal(distinct->estimate(), 2);

    for (uint64_t i = 0; i < 2048; i++) {
        distinct->add(i << 53);
    }

    assert_true(distinct->estimate() > 2048);
}

void threads_lose_nothing_to_each_other(void **)
{
    auto together = std::make_unique<Distinct>();
    auto alone = std::make_unique<Distinct>();
    std::vector<std::thread> threads;

    for (uint64_t t = 0; t < 4; t++) {
        threads.emplace_back([&together, t] {
            for (uint64_t i = t; i < 20000; i += 4) {
                together->add(hash_of(i, 1));
            }
        });
    }

    for (std::thread &thread : threads) {
        thread.join();
    }

    for (uint64_t i = 0; i < 20000; i++) {
        alone->add(hash_of(i, 1));
    }

    assert_int_equal(together->estimate(), alone->estimate());
}

void no_register_counts_for_more_than_it_can_say(void **)
{
    alignas(Distinct) uint8_t memory[sizeof(Distinct)];

    for (int left_by_a_killed_process : {55, 127, 255}) {
        memset(memory, left_by_a_killed_process, sizeof(memory));
        assert_true(reinterpret_cast<Distinct *>(memory)->estimate()
                    == UINT32_MAX);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_none),
        cmocka_unit_test(the_same_client_counts_once),
        cmocka_unit_test(after_clearing_it_starts_anew),
        cmocka_unit_test(the_error_is_as_stated_at_any_size),
        cmocka_unit_test(extreme_hashes_do_no_harm),
        cmocka_unit_test(threads_lose_nothing_to_each_other),
        cmocka_unit_test(no_register_counts_for_more_than_it_can_say),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
