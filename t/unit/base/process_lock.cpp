/* Locks that processes share: who holds them, and who does not any more. */

#include "base/pure/sl_process_lock.h"

#include "child.h"

namespace {

/* A lock in memory that children share. */
struct SharedLock {
    SharedMemory memory{sizeof(sl::ProcessLock)};
    sl::ProcessLock &lock = *static_cast<sl::ProcessLock *>(memory.get());

    SharedLock() { lock.init(); }

    /* The lock can be had, and had again. */
    void assert_free() const
    {
        for (int i = 0; i < 2; i++) {
            assert_true(lock.lock());
            lock.unlock();
            assert_true(lock.try_lock());
            lock.unlock();
        }
    }
};

void a_lock_is_free_at_first(void **)
{
    SharedLock shared;

    shared.assert_free();
}

void who_holds_a_lock_cannot_have_it_twice(void **)
{
    SharedLock shared;

    assert_true(shared.lock.try_lock());
    assert_false(shared.lock.try_lock());
    shared.lock.unlock();
    shared.assert_free();
}

void a_lock_is_held_by_the_living(void **)
{
    SharedLock shared;
    Child child([&] { shared.lock.lock(); });

    /* and nobody waits for them forever */
    assert_false(shared.lock.try_lock());
    assert_false(shared.lock.lock());
    child.stop();
    assert_false(shared.lock.try_lock());
    assert_false(shared.lock.lock());
    child.die();

    shared.assert_free();
}

void a_lock_is_not_held_by_the_dead_whose_number_is_in_use(void **)
{
    SharedLock shared;
    Child child([&] { shared.lock.try_lock(); });

    assert_false(shared.lock.try_lock());
    child.die_with_number_in_use();
    shared.assert_free();
}

void a_forked_child_neither_holds_nor_releases_a_lock(void **)
{
    SharedLock shared;

    assert_true(shared.lock.lock());

    Child child([&] { shared.lock.unlock(); });

    assert_false(shared.lock.try_lock());
    child.die();
    assert_false(shared.lock.try_lock());
    shared.lock.unlock();
    shared.assert_free();
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_free_at_first),
        cmocka_unit_test(who_holds_a_lock_cannot_have_it_twice),
        cmocka_unit_test(a_lock_is_held_by_the_living),
        cmocka_unit_test(a_lock_is_not_held_by_the_dead_whose_number_is_in_use),
        cmocka_unit_test(a_forked_child_neither_holds_nor_releases_a_lock),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
