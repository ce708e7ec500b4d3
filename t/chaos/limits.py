"""The limits that a run works with, as nginx's configuration and as the journal has them."""

MILLISECOND = 1000

# Long enough that a busy machine is seldom the reason for a missed answer.
TIMEOUT = 250 * MILLISECOND
CONNECT_TIMEOUT = 250 * MILLISECOND

# Zones with two numbers have the second one from the next reload on, then the first again.
# A request takes 1 of it unless a cost is given; that becomes its true cost when it ends.
# A zone counts in a log unless it has buckets or is packed. No zone is given another algorithm: it
# would begin anew.
ZONES = {
    "half": {"max": [5], "window": 500, "packed": True},
    "one": {"max": [10, 6], "window": 1000},
    "three": {"max": [24, 30], "window": 3000, "buckets": 6},
    "short": {"max": [4], "window": 500},
    "long": {"max": [14], "window": 3000, "buckets": 4},
    "asked": {"max": [12], "window": 1000},
    "local": {"max": [8], "window": 1000},
    "closed": {"max": [8], "window": 1000, "packed": True},
    "user": {"max": [5], "window": 1000, "packed": True},
    "site": {"max": [12], "window": 1000},
    "embedded": {"max": [7], "window": 1000, "store": "memory"},
    "flood": {"max": [1], "window": 3000, "store": "memory"},
    "bans": {"max": [1000], "window": 1000},
    "bans_asked": {"max": [1000], "window": 1000, "buckets": 4},
    "bans_embedded": {"max": [1000], "window": 1000, "store": "memory"},
    "overrides": {"max": [6], "window": 1000},
    "overrides_packed": {"max": [6], "window": 1000, "packed": True},
    "overrides_in_buckets": {"max": [6], "window": 1000, "buckets": 4},
    "overrides_embedded": {"max": [5], "window": 1000, "store": "memory"},
    "settled": {"max": [12], "window": 3000, "cost": 3, "true_cost": 1},
    "settled_packed": {"max": [12], "window": 3000, "packed": True, "cost": 3, "true_cost": 1},
    "settled_in_buckets": {"max": [12], "window": 3000, "buckets": 6, "cost": 3, "true_cost": 1},
    "debts": {"max": [20], "window": 3000, "cost": 1, "true_cost": 4},
    "debts_packed": {"max": [20], "window": 3000, "packed": True, "cost": 1, "true_cost": 4},
    "debts_in_buckets": {"max": [20], "window": 3000, "buckets": 6, "cost": 1, "true_cost": 4},
    "debts_embedded": {"max": [20], "window": 3000, "store": "memory", "cost": 1, "true_cost": 4},
}

# Operators ban the clients of some zones, who never come near the max, and give those of others
# another max. So it is known of each why it is refused.
ZONES_WITH_BANS = ("bans", "bans_asked", "bans_embedded")
ZONES_WITH_OVERRIDES = ("overrides", "overrides_packed", "overrides_in_buckets", "overrides_embedded")

# The memory of a server is little enough to be filled in a second. Where operators change
# something it has room for metrics, and is as large as that needs; a request of a flood takes as
# much of it as so many more clients do.
MEMORY = "256k"
MEMORY_FOR_OPERATORS = "9024k"
FLOOD_BALLAST = 11

DENY_CACHE = 1000  # in milliseconds, unless a location says otherwise

# Each limit of a location: its zone, and which of the request's keys counts.
LOCATIONS = {
    "half": {"limits": [["half", 0]]},
    "one": {"limits": [["one", 0]]},
    "three": {"limits": [["three", 0]]},
    "pair": {"limits": [["short", 0], ["long", 0]]},
    "asked": {"limits": [["asked", 0]], "deny_cache": 0},
    "local": {"limits": [["local", 0]], "on_error": "local"},
    "closed": {"limits": [["closed", 0]], "on_error": "deny"},
    "cross": {"limits": [["user", 0], ["site", 1]]},
    "embedded": {"limits": [["embedded", 0]]},
    "flood": {"limits": [["flood", 0]], "ballast": FLOOD_BALLAST},
    "bans": {"limits": [["bans", 0]], "deny_cache": 300},
    "bans_asked": {"limits": [["bans_asked", 0]], "deny_cache": 0},
    "bans_embedded": {"limits": [["bans_embedded", 0]]},
    "overrides": {"limits": [["overrides", 0]], "deny_cache": 300},
    "overrides_packed": {"limits": [["overrides_packed", 0]]},
    "overrides_in_buckets": {"limits": [["overrides_in_buckets", 0]]},
    "overrides_embedded": {"limits": [["overrides_embedded", 0]]},
    "settled": {"limits": [["settled", 0]]},
    "settled_packed": {"limits": [["settled_packed", 0]]},
    "settled_in_buckets": {"limits": [["settled_in_buckets", 0]]},
    "debts": {"limits": [["debts", 0]]},
    "debts_packed": {"limits": [["debts_packed", 0]]},
    "debts_in_buckets": {"limits": [["debts_in_buckets", 0]]},
    "debts_embedded": {"limits": [["debts_embedded", 0]]},
}


def max_of(zone, generation):
    choices = ZONES[zone]["max"]
    return choices[generation % len(choices)]


def maxima(generation):
    return {zone: max_of(zone, generation) for zone in ZONES}


def for_journal():
    """What a judge has to know of zones and locations; times in microseconds."""
    return {
        "timeout": TIMEOUT,
        "connect_timeout": CONNECT_TIMEOUT,
        "zones": {name: {"window": zone["window"] * MILLISECOND, "buckets": zone.get("buckets", 0),
                         "store": zone.get("store", "redis"), "cost": zone.get("cost", 1),
                         "true_cost": zone.get("true_cost", 1)} for name, zone in ZONES.items()},
        "locations": {name: {"limits": location["limits"], "on_error": location.get("on_error", "pass"),
                             "deny_cache": location.get("deny_cache", DENY_CACHE) * MILLISECOND}
                      for name, location in LOCATIONS.items()},
    }


def _limit(zone, key, generation):
    spec = ZONES[zone]
    words = [f"zone={zone}", f"max={max_of(zone, generation)}", f"window={spec['window']}ms",
             f"key=$arg_k{key}"]
    if "buckets" in spec:
        words.append(f"algorithm=buckets buckets={spec['buckets']}")
    if "packed" in spec:
        words.append("algorithm=packed")
    if "store" in spec:
        words.append(f"store={spec['store']}")
    if "cost" in spec:
        words.append(f"cost={spec['cost']} settle=$true_cost")
        return f"        set $true_cost {spec['true_cost']};\n        sliding_limit {' '.join(words)};\n"
    return f"        sliding_limit {' '.join(words)};\n"


def _ballast(number):
    """A limit that refuses nobody: the judge need not know of it."""
    return f"        sliding_limit zone=ballast{number} max=1000000 window=3s key=$arg_k0 store=memory;\n"


def _time(milliseconds):
    return f"{milliseconds}ms" if milliseconds else "off"


def nginx_locations(generation):
    text = ""
    for name, location in LOCATIONS.items():
        text += f"    location = /{name} {{\n"
        text += "".join(_limit(zone, key, generation) for zone, key in location["limits"])
        text += "".join(_ballast(i) for i in range(location.get("ballast", 0)))
        if "on_error" in location:
            text += f"        sliding_limit_on_error {location['on_error']};\n"
        if "deny_cache" in location:
            text += f"        sliding_limit_deny_cache {_time(location['deny_cache'])};\n"
        text += "        empty_gif;\n    }\n"
    return text
