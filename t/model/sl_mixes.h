/*
 * What the random requests of the tests are made of: one mix after the other,
 * all that there is to test.
 */

#pragma once

#include <cstdint>
#include <vector>

namespace sl_model {

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
    bool is_long = false; /* keys get full, and then empty at a time */
};

/* Of all formats. */
inline Mix mix_of_all(const char *title, int share)
{
    Mix mix{title, share};

    mix.logs = mix.packed = mix.buckets = mix.costs = mix.tiers = true;
    return mix;
}

inline std::vector<Mix> mixes()
{
    std::vector<Mix> list;
    Mix mix;

    mix = Mix{"a log is exact", 40};
    mix.logs = true;
    list.push_back(mix);

    mix.title = "with costs, too";
    mix.costs = true;
    list.push_back(mix);

    mix = Mix{"so is a packed one", 40};
    mix.packed = true;
    list.push_back(mix);

    mix.title = "and that with costs";
    mix.costs = true;
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
    mix.costs = mix.counts_refused = mix.dry_runs = true;
    mix.take_backs = mix.rulings = true;
    mix.keys = 9;
    mix.limits = 3;
    list.push_back(mix);

    mix.title = "wherever the clock goes meanwhile";
    mix.rulings = false;
    mix.steps_back = true;
    list.push_back(mix);

    mix = mix_of_all("max may vary and requests be taken back", 60);
    mix.take_backs = true;
    mix.max = 200;
    list.push_back(mix);

    mix = mix_of_all("several limits count all or nothing", 50);
    mix.dry_runs = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix.title = "everything goes together";
    mix.take_backs = mix.counts_refused = true;
    list.push_back(mix);

    mix.title = "operators step in, whatever else goes on";
    mix.rulings = true;
    list.push_back(mix);

    mix.title = "everything goes together when the clock steps back";
    mix.rulings = false;
    mix.steps_back = true;
    list.push_back(mix);

    mix = mix_of_all("which admits nothing early and locks nobody out", 50);
    mix.steps_back = mix.dry_runs = true;
    mix.keys = mix.limits = 2;
    list.push_back(mix);

    mix = mix_of_all("operators ban clients, and give them another max", 50);
    mix.rulings = true;
    list.push_back(mix);

    mix = Mix{"of refused units the newest decide", 40};
    mix.logs = mix.packed = mix.counts_refused = mix.hammers = mix.take_backs =
        true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    list.push_back(mix);

    mix.title = "also of costs, with operators";
    mix.costs = mix.rulings = true;
    list.push_back(mix);

    mix.title = "wherever the clock goes";
    mix.share = 20;
    mix.rulings = false;
    mix.steps_back = true;
    list.push_back(mix);

    mix = mix_of_all("costs are settled when requests end", 50);
    mix.take_backs = mix.settles = true;
    mix.max = 200;
    list.push_back(mix);

    mix = mix_of_all("costs are settled, whatever else goes on", 50);
    mix.take_backs = mix.settles = mix.dry_runs = mix.counts_refused = true;
    mix.rulings = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix.title = "and wherever the clock goes";
    mix.steps_back = true;
    mix.rulings = false;
    list.push_back(mix);

    mix.title = "also of those who come at a time";
    mix.costs = mix.tiers = false;
    mix.alike = true;
    mix.keys = 6;
    mix.limits = 2;
    mix.max = 30;
    list.push_back(mix);

    mix = Mix{"costs may be as large as they get", 30};
    mix.buckets = mix.costs = mix.tiers = mix.take_backs = mix.dry_runs = true;
    mix.keys = mix.limits = 2;
    mix.max = 1000000000000000;
    list.push_back(mix);

    mix.title = "so may what is settled";
    mix.settles = mix.rulings = true;
    list.push_back(mix);

    mix.title = "wherever the clock goes with it";
    mix.rulings = false;
    mix.steps_back = true;
    list.push_back(mix);

    mix = Mix{"a long log is exact, however much of it leaves at a time", 10};
    mix.logs = mix.is_long = true;
    mix.keys = 1;
    mix.max = 8000;
    mix.requests = 12000;
    list.push_back(mix);

    mix.title = "with costs, and what is settled";
    mix.costs = mix.take_backs = mix.settles = true;
    list.push_back(mix);

    mix.title = "so is a packed one";
    mix.logs = false;
    mix.packed = true;
    list.push_back(mix);

    mix.title = "wherever the clock goes";
    mix.steps_back = true;
    list.push_back(mix);

    mix.title = "and several, of which refused units count";
    mix.logs = mix.counts_refused = mix.rulings = true;
    mix.settles = mix.steps_back = false;
    mix.share = 30;
    mix.keys = mix.limits = 2;
    mix.max = 2000;
    mix.requests = 6000;
    list.push_back(mix);

    return list;
}

}  // namespace sl_model
