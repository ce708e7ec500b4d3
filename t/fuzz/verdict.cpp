/*
 * A store's numbers, and what clients are shown because of them. A server may
 * answer anything: what follows from it stays within its bounds.
 */

#include "request/pure/sl_verdict.h"

#include <vector>

#include "base/pure/sl_number.h"
#include "fuzz.h"
#include "request/pure/sl_outcome.h"

namespace {

using sl::LimitState;
using sl::Outcome;
using sl::Verdict;
using sl::ZoneResult;

struct Limit {
    int64_t cost;
    bool has_failed;
    Verdict verdict;
};

/* Limits, with the states that a store's numbers say; empty if they say none.
 */
std::vector<Limit> read_limits(Input &input)
{
    size_t count = input.number<uint8_t>() % (sl::kMaxLimitsInAnswer + 2);
    std::vector<Limit> limits(count);

    for (Limit &limit : limits) {
        auto flags = input.number<uint8_t>();

        limit.verdict.max = input.number<uint32_t>() % (sl::kLargestCount + 1);
        limit.cost = input.number<uint32_t>() % (sl::kLargestCount + 1);
        limit.verdict.dry_run = flags & 1;
        limit.verdict.known = flags & 2;
        limit.has_failed = flags & 4;
    }

    std::vector<int64_t> numbers;

    while (!input.is_empty()) {
        /* small ones are more likely to be an answer */
        auto small = input.number<uint8_t>();

        numbers.push_back(small == 255 ? input.number<int64_t>() : small);
    }

    LimitState states[sl::kMaxLimitsInAnswer];
    int64_t time_us;

    if (!sl::read_answer(numbers.data(), numbers.size(), count, states,
                         &time_us)) {
        return {};
    }

    check(count <= sl::kMaxLimitsInAnswer);
    check(time_us >= 0);

    for (size_t i = 0; i < count; i++) {
        check(states[i].used >= 0 && states[i].wait_us >= 0);
        check(!states[i].is_counted || states[i].admits);
        limits[i].verdict.state = states[i];
    }

    return limits;
}

void check_shown(const Verdict &v)
{
    int64_t left = sl::remaining(v);

    check(v.known ? left >= 0 && left <= v.max : left == -1);
    check(!v.known || left == 0 || left + v.state.used == v.max);
    check(!sl::is_near_limit(v) || v.known);

    int64_t seconds = sl::seconds_to_wait(v.state.wait_us);

    check(seconds >= 1 && seconds * 1000000 >= v.state.wait_us);
    check(seconds == 1 || (seconds - 1) * 1000000 < v.state.wait_us);
}

void check_outcome(const Limit &limit, Outcome of_all)
{
    const Verdict &v = limit.verdict;
    Outcome outcome = sl::outcome_of(v);
    ZoneResult result = sl::result_of(v, limit.has_failed, of_all);

    check(sl::is_refusal(outcome) == sl::is_refusal(v));
    check(!(sl::is_refusal(v) && sl::is_dry_refusal(v)));
    check((outcome == Outcome::kRejectedDryRun) == sl::is_dry_refusal(v));
    check((outcome == Outcome::kNone) == !v.known);
    check(sl::outweighing(outcome, of_all) == of_all);

    /* a zone that refuses says so, and no other does */
    check((result == ZoneResult::kRejected || result == ZoneResult::kBanned)
          == sl::is_refusal(v));
    check((result == ZoneResult::kBanned) == (outcome == Outcome::kBanned));
    check(sl::is_rejection(outcome) == sl::is_refusal(v));
    check(!v.known || !v.state.is_banned || sl::remaining(v) == 0);
    check((result == ZoneResult::kRejectedDryRun) == sl::is_dry_refusal(v));
    check(result != ZoneResult::kPassed || !sl::is_refusal(of_all));

    size_t found = sl::found_by(v, 1, result);

    check((found < sl::kTenths) == (result == ZoneResult::kPassed));
    check(found <= sl::kFoundNothing);
}

/* "Outweighs" puts any limits in an order. */
void check_order(const std::vector<Limit> &limits)
{
    for (const Limit &a : limits) {
        check(!sl::outweighs(a.verdict, a.verdict));

        for (const Limit &b : limits) {
            bool is_first = sl::outweighs(a.verdict, b.verdict);

            check(!is_first || !sl::outweighs(b.verdict, a.verdict));
            check(!is_first || sl::is_refusal(a.verdict)
                  || !sl::is_refusal(b.verdict));

            for (const Limit &c : limits) {
                check(!is_first || !sl::outweighs(b.verdict, c.verdict)
                      || sl::outweighs(a.verdict, c.verdict));
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    std::vector<Limit> limits = read_limits(input);
    Outcome of_all = Outcome::kNone;

    for (const Limit &limit : limits) {
        of_all = sl::outweighing(of_all, sl::outcome_of(limit.verdict));
    }

    for (Limit &limit : limits) {
        check_shown(limit.verdict);
        check_outcome(limit, of_all);

        if (limit.verdict.state.is_counted) {
            Verdict taken_back = limit.verdict;

            taken_back.state = sl::uncounted(taken_back.state, limit.cost);
            check(!taken_back.state.is_counted);
            check_shown(taken_back);
        }
    }

    check_order(limits);

    return 0;
}
