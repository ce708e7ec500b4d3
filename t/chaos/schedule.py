"""Which faults come when: that depends on the seed, the topology and the time, and on nothing else."""

import collections
import random

from faults import FAULTS

Planned = collections.namedtuple("Planned", "name after seconds seed")

# After the faults of a group, so that it can be seen whether all is well again.
QUIET = (2.4, 3.2)


def _deck(names, dice):
    """All of them, again and again, each time in another order."""
    while True:
        shuffled = sorted(names)
        dice.shuffle(shuffled)
        yield from shuffled


def _group(first, others, dice):
    """One fault, or several of different classes that overlap."""
    names = [first]
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        name = next(others)
        kinds = {FAULTS[other].kind for other in names}
        is_lengthy = any(FAULTS[other].is_long for other in (*names, name))
        if FAULTS[name].kind in kinds or (is_lengthy and "network" in kinds | {FAULTS[name].kind}):
            continue
        names.append(name)

    group = []
    for name in names:
        after = dice.uniform(0, 0.6) if group else 0
        group.append(Planned(name, round(after, 3), round(dice.uniform(*FAULTS[name].seconds), 3),
                             dice.randrange(1 << 62)))
    return group


def groups(seed, topology):
    """Without end: (faults, quiet seconds after them)."""
    dice = random.Random(f"{seed} {topology}")
    possible = [fault for fault in FAULTS.values() if not fault.only or topology in fault.only]
    special = _deck([fault.name for fault in possible if fault.only], dice)
    common = _deck([fault.name for fault in possible if not fault.only], dice)

    while True:
        for first in (special, common, common):
            yield _group(next(first), common, dice), round(dice.uniform(*QUIET), 3)
