/*
 * What the random requests of the tests are made of: one mix after the other,
 * all that there is to test.
 */

#pragma once

#include <cstdint>
#include <vector>

namespace sl_model {

enum class Checks {
    /* Every number of every answer. */
    kAll,

    /* The same of long logs. If their entries are of various costs, a wait may
     * be too short: not all of more than 1000 have to be added up for it. */
    kLongWaits,

    /* Only what follows from the answers themselves. */
    kInvariants,
};

/* What the requests of a test are made of. */
struct Mix {
    const char *title;
    int share; /* of 1000 requests */
    int keys = 3;
    int limits = 1; /* most of a request */
    int64_t max = 60;
    int requests = 500; /* of a round, which has keys of its own */
    bool logs = false;
    bool packed = false;
    bool buckets = false;
    bool costs = false;
    bool tiers = false; /* max varies from request to request */
    bool counts_refused = false;
    bool dry_runs = false;
    bool take_backs = false;
    bool settles = false; /* and not only to nothing */
    bool steps_back = false;
    bool rulings = false; /* operators step in */
    bool hammers = false; /* asks much more often than is allowed */
    bool alike = false;   /* clients of the same limits come at a time */
    bool changes = false; /* of the algorithm, as by another configuration */
    Checks checks = Checks::kAll;

    /* What was counted is lost at times, as only Redis's script loses it. */
    bool starts_anew() const { return changes && buckets; }
};

/* New ones come last: those before them make the same requests as ever. */
inline std::vector<Mix> mixes()
{
    std::vector<Mix> list;
    Mix mix;

    mix = Mix{"a log is exact", 60};
    mix.logs = true;
    list.push_back(mix);

    mix.title = "so is a packed one";
    mix.logs = false;
    mix.packed = true;
    list.push_back(mix);

    mix = Mix{"a log of costs is exact", 50};
    mix.logs = mix.costs = true;
    list.push_back(mix);

    mix.title = "so is a packed one with costs";
    mix.logs = false;
    mix.packed = true;
    list.push_back(mix);

    mix = Mix{"buckets are exact in their way", 50};
    mix.buckets = mix.costs = true;
    list.push_back(mix);

    mix = Mix{"those who come at a time have their turns", 40};
    mix.logs = mix.packed = mix.buckets = mix.alike = true;
    mix.keys = 6;
    mix.max = 30;
    list.push_back(mix);

    mix.title = "also with several limits, and whatever else goes on";
    mix.share = 20;
    mix.take_backs = mix.rulings = true;
    mix.keys = 9;
    mix.limits = 3;
    list.push_back(mix);

    mix.title = "wherever the clock goes meanwhile";
    mix.rulings = false;
    mix.steps_back = true;
    list.push_back(mix);

    mix = Mix{"nothing changes when logs are packed and unpacked", 34};
    mix.logs = mix.packed = mix.changes = mix.costs = true;
    mix.take_backs = mix.counts_refused = mix.rulings = true;
    mix.keys = mix.limits = 2;
    mix.max = 200;
    list.push_back(mix);

    mix.title = "between logs and buckets all is counted anew";
    mix.share = 20;
    mix.buckets = mix.tiers = mix.dry_runs = true;
    list.push_back(mix);

    mix = Mix{"max may vary", 20};
    mix.logs = mix.packed = mix.buckets = mix.tiers = true;
    list.push_back(mix);

    mix = Mix{"max may vary and requests be taken back", 78};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = true;
    mix.max = 200;
    list.push_back(mix);

    mix = Mix{"several limits count all or nothing", 60};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers = mix.dry_runs =
        true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"everything goes together", 60};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = true;
    mix.dry_runs = mix.counts_refused = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"costs may be as large as they get", 30};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = true;
    mix.dry_runs = mix.counts_refused = true;
    mix.keys = mix.limits = 2;
    mix.max = 1000000000000000;
    list.push_back(mix);

    mix = Mix{"also when the clock steps back", 50};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = true;
    mix.dry_runs = mix.counts_refused = mix.steps_back = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"which admits nothing early and locks nobody out", 50};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.steps_back = true;
    mix.dry_runs = true;
    mix.keys = mix.limits = 2;
    list.push_back(mix);

    mix = Mix{"forgotten refused requests make no difference", 40};
    mix.logs = mix.packed = mix.counts_refused = mix.hammers = mix.take_backs =
        true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    list.push_back(mix);

    mix.title = "nor do those with costs, wherever the clock goes";
    mix.share = 4;
    mix.costs = mix.steps_back = true;
    list.push_back(mix);

    mix = Mix{"nor do they when logs are packed and unpacked", 3};
    mix.logs = mix.packed = mix.changes = mix.hammers = true;
    mix.counts_refused = mix.take_backs = true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    list.push_back(mix);

    mix.title = "whatever they cost";
    mix.costs = true;
    list.push_back(mix);

    mix = Mix{"with max varying they at least let nobody pass too early", 2};
    mix.logs = mix.packed = mix.counts_refused = mix.hammers = true;
    mix.costs = mix.tiers = true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    mix.checks = Checks::kInvariants;
    list.push_back(mix);

    mix = Mix{"operators ban clients, and give them another max", 50};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers = mix.rulings =
        true;
    list.push_back(mix);

    mix = Mix{"operators step in, whatever else goes on", 50};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = true;
    mix.dry_runs = mix.counts_refused = mix.rulings = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"who is banned does not count, however often it comes", 8};
    mix.logs = mix.packed = mix.counts_refused = mix.hammers = mix.rulings =
        true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    list.push_back(mix);

    mix.title = "and with another max nobody passes too early";
    mix.share = 2;
    mix.costs = mix.tiers = true;
    mix.checks = Checks::kInvariants;
    list.push_back(mix);

    mix = Mix{"a long log is exact, however much of it leaves at a time", 8};
    mix.logs = true;
    mix.keys = 1;
    mix.max = 8000;
    mix.requests = 12000;
    mix.checks = Checks::kLongWaits;
    list.push_back(mix);

    mix.title = "and so is a packed one";
    mix.logs = false;
    mix.packed = true;
    list.push_back(mix);

    mix.title = "so are several that are asked about at once";
    mix.logs = true;
    mix.keys = mix.limits = 4;
    mix.max = 1500;
    mix.requests = 6000;
    list.push_back(mix);

    mix = Mix{"a long log of costs never names a wait too long", 16};
    mix.logs = mix.costs = true;
    mix.keys = 1;
    mix.max = 8000;
    mix.requests = 12000;
    mix.checks = Checks::kLongWaits;
    list.push_back(mix);

    mix.title = "nor does a packed one";
    mix.logs = false;
    mix.packed = true;
    list.push_back(mix);

    mix.title = "nor do several at a time, with max varying";
    mix.share = 14;
    mix.logs = true;
    mix.tiers = true;
    mix.keys = mix.limits = 2;
    mix.max = 2000;
    mix.requests = 6000;
    list.push_back(mix);

    mix.keys = mix.limits = 1;
    mix.share = 16;
    mix.tiers = false;
    mix.title = "also when the clock steps back, and requests are taken back";
    mix.steps_back = mix.take_backs = true;
    list.push_back(mix);

    mix = Mix{"costs are settled when requests end", 60};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.take_backs =
        mix.settles = true;
    mix.max = 200;
    list.push_back(mix);

    mix.title = "also of requests that cost 1 on arrival";
    mix.share = 20;
    mix.costs = false;
    mix.logs = mix.packed = mix.buckets = mix.alike = true;
    mix.keys = 6;
    mix.max = 30;
    list.push_back(mix);

    mix = Mix{"costs are settled, whatever else goes on", 60};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = mix.settles = true;
    mix.dry_runs = mix.counts_refused = mix.rulings = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix.title = "wherever the clock goes";
    mix.steps_back = true;
    mix.rulings = false;
    list.push_back(mix);

    mix = Mix{"and when logs are packed and unpacked", 30};
    mix.logs = mix.packed = mix.changes = mix.costs = true;
    mix.take_backs = mix.settles = mix.counts_refused = mix.rulings = true;
    mix.keys = mix.limits = 2;
    mix.max = 200;
    list.push_back(mix);

    mix = Mix{"what is settled may be as large as it gets", 40};
    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers =
        mix.take_backs = mix.settles = true;
    mix.dry_runs = mix.rulings = true;
    mix.keys = mix.limits = 2;
    mix.max = 1000000000000000;
    list.push_back(mix);

    mix.title = "wherever the clock goes with it";
    mix.share = 20;
    mix.rulings = false;
    mix.steps_back = true;
    list.push_back(mix);

    mix =
        Mix{"forgotten refused ones make no difference to what is settled", 4};
    mix.logs = mix.packed = mix.counts_refused = mix.hammers = mix.take_backs =
        mix.settles = mix.costs = true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    list.push_back(mix);

    mix =
        Mix{"a long log in which costs are settled names no wait too long", 8};
    mix.logs = mix.packed = mix.costs = mix.take_backs = mix.settles = true;
    mix.keys = 1;
    mix.max = 8000;
    mix.requests = 12000;
    mix.checks = Checks::kLongWaits;
    list.push_back(mix);

    return list;
}

}  // namespace sl_model
