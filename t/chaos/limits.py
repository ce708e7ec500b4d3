"""The limits that a run works with, as nginx's configuration and as the journal has them."""

MILLISECOND = 1000

# Long enough that a busy machine is seldom the reason for a missed answer.
TIMEOUT = 250 * MILLISECOND
CONNECT_TIMEOUT = 250 * MILLISECOND

# Zones with two numbers have the second one from the next reload on, then the first again.
ZONES = {
    "half": {"max": [5], "window": 500},
    "one": {"max": [10, 6], "window": 1000},
    "three": {"max": [24, 30], "window": 3000, "buckets": 6},
    "short": {"max": [4], "window": 500},
    "long": {"max": [14], "window": 3000, "buckets": 4},
    "asked": {"max": [12], "window": 1000},
    "local": {"max": [8], "window": 1000},
    "closed": {"max": [8], "window": 1000},
    "user": {"max": [5], "window": 1000},
    "site": {"max": [12], "window": 1000},
    "embedded": {"max": [7], "window": 1000, "store": "memory"},
    "flood": {"max": [1], "window": 3000, "store": "memory"},
}

# Each limit of a location: its zone, and which of the request's keys counts.
LOCATIONS = {
    "half": {"limits": [["half", 0]]},
    "one": {"limits": [["one", 0]]},
    "three": {"limits": [["three", 0]]},
    "pair": {"limits": [["short", 0], ["long", 0]]},
    "asked": {"limits": [["asked", 0]], "deny_cache": "off"},
    "local": {"limits": [["local", 0]], "on_error": "local"},
    "closed": {"limits": [["closed", 0]], "on_error": "deny"},
    "cross": {"limits": [["user", 0], ["site", 1]]},
    "embedded": {"limits": [["embedded", 0]]},
    "flood": {"limits": [["flood", 0]]},
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
                         "store": zone.get("store", "redis")} for name, zone in ZONES.items()},
        "locations": {name: {"limits": location["limits"], "on_error": location.get("on_error", "pass")}
                      for name, location in LOCATIONS.items()},
    }


def _limit(zone, key, generation):
    spec = ZONES[zone]
    words = [f"zone={zone}", f"max={max_of(zone, generation)}", f"window={spec['window']}ms",
             f"key=$arg_k{key}"]
    if "buckets" in spec:
        words.append(f"algorithm=buckets buckets={spec['buckets']}")
    if "store" in spec:
        words.append(f"store={spec['store']}")
    return f"        sliding_limit {' '.join(words)};\n"


def nginx_locations(generation):
    text = ""
    for name, location in LOCATIONS.items():
        text += f"    location = /{name} {{\n"
        text += "".join(_limit(zone, key, generation) for zone, key in location["limits"])
        if "on_error" in location:
            text += f"        sliding_limit_on_error {location['on_error']};\n"
        if "deny_cache" in location:
            text += f"        sliding_limit_deny_cache {location['deny_cache']};\n"
        text += "        empty_gif;\n    }\n"
    return text
