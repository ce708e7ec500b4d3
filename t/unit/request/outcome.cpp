/* What came of a request, from what is known of its limits. */

#include "request/pure/sl_outcome.h"

#include "unit.h"

namespace {

using sl::Outcome;
using sl::Verdict;
using sl::ZoneResult;

constexpr Outcome kAll[] = {Outcome::kNone,       Outcome::kExempt,
                            Outcome::kPassed,     Outcome::kRejectedDryRun,
                            Outcome::kFailedOpen, Outcome::kFailedClosed,
                            Outcome::kRejected,   Outcome::kBanned};

constexpr Verdict kAdmits{10, false, true, {true, true, 1, 1}};
constexpr Verdict kRefuses{10, false, true, {false, false, 10, 1}};
constexpr Verdict kWouldRefuse{10, true, true, {false, false, 10, 1}};
/* There would be room, but for the ban. */
constexpr Verdict kBans{
    10, false, true, {false, false, 1, 1, sl::kNoPlace, sl::kOwnMax, true}};
constexpr Verdict kWouldBan{
    10, true, true, {false, false, 1, 1, sl::kNoPlace, sl::kOwnMax, true}};
constexpr Verdict kUnknown{10, false, false, {}};

void a_rejection_outweighs_all_else(void **)
{
    for (Outcome other : kAll) {
        if (other == Outcome::kBanned) {
            continue;
        }

        assert_true(sl::outweighing(other, Outcome::kRejected)
                    == Outcome::kRejected);
        assert_true(sl::outweighing(Outcome::kRejected, other)
                    == Outcome::kRejected);
    }
}

void a_ban_outweighs_even_that(void **)
{
    for (Outcome other : kAll) {
        assert_true(sl::outweighing(other, Outcome::kBanned)
                    == Outcome::kBanned);
        assert_true(sl::outweighing(Outcome::kBanned, other)
                    == Outcome::kBanned);
    }
}

void anything_outweighs_nothing(void **)
{
    for (Outcome other : kAll) {
        assert_true(sl::outweighing(other, Outcome::kNone) == other);
        assert_true(sl::outweighing(Outcome::kNone, other) == other);
    }
}

void a_failure_outweighs_a_pass(void **)
{
    assert_true(sl::outweighing(Outcome::kPassed, Outcome::kFailedOpen)
                == Outcome::kFailedOpen);
    assert_true(sl::outweighing(Outcome::kRejectedDryRun, Outcome::kFailedOpen)
                == Outcome::kFailedOpen);
    assert_true(sl::outweighing(Outcome::kExempt, Outcome::kPassed)
                == Outcome::kPassed);
}

void three_outcomes_are_refusals(void **)
{
    for (Outcome outcome : kAll) {
        assert_int_equal(sl::is_refusal(outcome),
                         outcome == Outcome::kRejected
                             || outcome == Outcome::kBanned
                             || outcome == Outcome::kFailedClosed);
    }
}

void two_of_them_are_the_limits_own(void **)
{
    for (Outcome outcome : kAll) {
        assert_int_equal(sl::is_rejection(outcome),
                         outcome == Outcome::kRejected
                             || outcome == Outcome::kBanned);
    }
}

void a_verdict_leads_to_an_outcome(void **)
{
    assert_true(sl::outcome_of(kAdmits) == Outcome::kPassed);
    assert_true(sl::outcome_of(kRefuses) == Outcome::kRejected);
    assert_true(sl::outcome_of(kWouldRefuse) == Outcome::kRejectedDryRun);
    assert_true(sl::outcome_of(kUnknown) == Outcome::kNone);
}

void a_ban_is_an_outcome_of_its_own_but_for_a_dry_run(void **)
{
    assert_true(sl::outcome_of(kBans) == Outcome::kBanned);
    assert_true(sl::outcome_of(kWouldBan) == Outcome::kRejectedDryRun);
}

void a_zone_that_bans_says_so_whatever_else_happens(void **)
{
    for (Outcome outcome : kAll) {
        for (bool has_failed : {false, true}) {
            assert_true(sl::result_of(kBans, has_failed, outcome)
                        == ZoneResult::kBanned);
            assert_true(sl::result_of(kWouldBan, has_failed, outcome)
                        == ZoneResult::kRejectedDryRun);
        }
    }
}

void a_zone_that_refuses_has_rejected_whatever_else_happens(void **)
{
    for (Outcome outcome : kAll) {
        for (bool has_failed : {false, true}) {
            assert_true(sl::result_of(kRefuses, has_failed, outcome)
                        == ZoneResult::kRejected);
            assert_true(sl::result_of(kWouldRefuse, has_failed, outcome)
                        == ZoneResult::kRejectedDryRun);
        }
    }
}

void a_zone_that_admits_may_be_overruled(void **)
{
    assert_true(sl::result_of(kAdmits, false, Outcome::kPassed)
                == ZoneResult::kPassed);
    assert_true(sl::result_of(kAdmits, false, Outcome::kRejectedDryRun)
                == ZoneResult::kPassed);
    assert_true(sl::result_of(kAdmits, false, Outcome::kRejected)
                == ZoneResult::kRejectedElsewhere);
    assert_true(sl::result_of(kAdmits, false, Outcome::kBanned)
                == ZoneResult::kRejectedElsewhere);
    assert_true(sl::result_of(kAdmits, false, Outcome::kFailedClosed)
                == ZoneResult::kRejectedElsewhere);
}

void a_zone_whose_store_failed_is_what_on_error_says(void **)
{
    assert_true(sl::result_of(kUnknown, true, Outcome::kFailedOpen)
                == ZoneResult::kFailedOpen);
    assert_true(sl::result_of(kUnknown, true, Outcome::kFailedClosed)
                == ZoneResult::kFailedClosed);
    assert_true(sl::result_of(kUnknown, true, Outcome::kRejected)
                == ZoneResult::kRejectedElsewhere);
}

void a_failure_that_memory_made_up_for_is_none(void **)
{
    assert_true(sl::result_of(kAdmits, true, Outcome::kPassed)
                == ZoneResult::kPassed);
    assert_true(sl::result_of(kAdmits, true, Outcome::kFailedClosed)
                == ZoneResult::kRejectedElsewhere);
}

void whoever_did_not_wait_has_aborted(void **)
{
    assert_true(sl::result_of(kUnknown, false, Outcome::kNone)
                == ZoneResult::kAborted);
    assert_true(sl::result_of(kUnknown, false, Outcome::kPassed)
                == ZoneResult::kAborted);
}

void who_was_refused_before_all_were_asked_was_so_elsewhere(void **)
{
    assert_true(sl::result_of(kUnknown, false, Outcome::kRejected)
                == ZoneResult::kRejectedElsewhere);
    assert_true(sl::result_of(kUnknown, false, Outcome::kFailedClosed)
                == ZoneResult::kRejectedElsewhere);
}

/* --- found_by --- */

Verdict admitting(int64_t used, bool is_counted, int64_t max = 10)
{
    return {max, false, true, {true, is_counted, used, 1}};
}

void what_was_used_before_the_request_is_what_it_found(void **)
{
    assert_int_equal(sl::found_by(admitting(1, true), 1, ZoneResult::kPassed),
                     0);
    assert_int_equal(sl::found_by(admitting(2, true), 1, ZoneResult::kPassed),
                     1);
    assert_int_equal(sl::found_by(admitting(10, true), 1, ZoneResult::kPassed),
                     9);
    assert_int_equal(sl::found_by(admitting(10, true), 10, ZoneResult::kPassed),
                     0);
}

/* Not one that only looks, nor one whose status does not count. */
void who_was_not_counted_found_all_that_is_used(void **)
{
    assert_int_equal(sl::found_by(admitting(0, false), 3, ZoneResult::kPassed),
                     0);
    assert_int_equal(sl::found_by(admitting(5, false), 3, ZoneResult::kPassed),
                     5);
    assert_int_equal(sl::found_by(admitting(10, false), 0, ZoneResult::kPassed),
                     9);
}

/* A server that counts wrong may say less than the request cost. */
void nobody_found_less_than_nothing_used(void **)
{
    assert_int_equal(sl::found_by(admitting(1, true), 5, ZoneResult::kPassed),
                     0);
}

void refusals_of_all_kinds_are_one_counter(void **)
{
    for (ZoneResult result : {ZoneResult::kRejected, ZoneResult::kBanned,
                              ZoneResult::kRejectedDryRun})
    {
        assert_int_equal(sl::found_by(kRefuses, 1, result), sl::kFoundRefused);
        assert_int_equal(sl::found_by(kBans, 1, result), sl::kFoundRefused);
    }
}

void who_was_not_judged_by_the_zone_found_nothing(void **)
{
    for (ZoneResult result :
         {ZoneResult::kRejectedElsewhere, ZoneResult::kFailedOpen,
          ZoneResult::kFailedClosed, ZoneResult::kExempt, ZoneResult::kAborted})
    {
        assert_int_equal(sl::found_by(kAdmits, 1, result), sl::kFoundNothing);
        assert_int_equal(sl::found_by(kUnknown, 1, result), sl::kFoundNothing);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_rejection_outweighs_all_else),
        cmocka_unit_test(a_ban_outweighs_even_that),
        cmocka_unit_test(anything_outweighs_nothing),
        cmocka_unit_test(a_failure_outweighs_a_pass),
        cmocka_unit_test(three_outcomes_are_refusals),
        cmocka_unit_test(two_of_them_are_the_limits_own),
        cmocka_unit_test(a_verdict_leads_to_an_outcome),
        cmocka_unit_test(a_ban_is_an_outcome_of_its_own_but_for_a_dry_run),
        cmocka_unit_test(a_zone_that_bans_says_so_whatever_else_happens),
        cmocka_unit_test(
            a_zone_that_refuses_has_rejected_whatever_else_happens),
        cmocka_unit_test(a_zone_that_admits_may_be_overruled),
        cmocka_unit_test(a_zone_whose_store_failed_is_what_on_error_says),
        cmocka_unit_test(a_failure_that_memory_made_up_for_is_none),
        cmocka_unit_test(whoever_did_not_wait_has_aborted),
        cmocka_unit_test(
            who_was_refused_before_all_were_asked_was_so_elsewhere),
        cmocka_unit_test(what_was_used_before_the_request_is_what_it_found),
        cmocka_unit_test(who_was_not_counted_found_all_that_is_used),
        cmocka_unit_test(nobody_found_less_than_nothing_used),
        cmocka_unit_test(refusals_of_all_kinds_are_one_counter),
        cmocka_unit_test(who_was_not_judged_by_the_zone_found_nothing),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
