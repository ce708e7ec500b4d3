/* Whether a worker's connections to a server are told to the other workers. */

#include "redis/pure/sl_worker_breaker.h"

#include "unit.h"

namespace {

using sl::Breaker;
using sl::BreakerState;
using sl::WorkerBreaker;

void is_connected_while_any_connection_is(void **)
{
    BreakerState state{};
    WorkerBreaker one(state, 1);

    assert_false(one.is_connected());

    one.connection_up();
    one.connection_up();
    assert_true(one.is_connected());
    assert_true(Breaker(state).is_connected_elsewhere(0));

    one.connection_down();
    assert_true(one.is_connected());
    assert_true(Breaker(state).is_connected_elsewhere(0));

    one.connection_down();
    assert_false(one.is_connected());
    assert_false(Breaker(state).is_connected_elsewhere(0));
}

void knows_of_other_workers(void **)
{
    BreakerState state{};
    WorkerBreaker one(state, 1);
    WorkerBreaker other(state, 2);

    other.connection_up();
    assert_true(one.is_connected());

    other.connection_down();
    assert_false(one.is_connected());
}

void takes_the_place_of_one_that_was_killed(void **)
{
    BreakerState state{};

    Breaker(state).set_connected(1, true);

    WorkerBreaker one(state, 1);

    assert_false(Breaker(state).is_connected_elsewhere(0));
    assert_false(one.is_connected());
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(is_connected_while_any_connection_is),
        cmocka_unit_test(knows_of_other_workers),
        cmocka_unit_test(takes_the_place_of_one_that_was_killed),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
