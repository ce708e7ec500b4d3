"""How exact times are, for whoever judges by them; in microseconds."""

MILLISECOND = 1000
SECOND = 1_000_000

# Clocks are slewed by less than this part; and a moment for rounding.
DRIFT = 0.001
ROUNDING = 1 * MILLISECOND


def at_most(duration):
    return duration + round(duration * DRIFT) + ROUNDING


def at_least(duration):
    return duration - round(duration * DRIFT) - ROUNDING
