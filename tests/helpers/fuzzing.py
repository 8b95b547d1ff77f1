"""How many examples a test of properties tries: few by default, EXAMPLES=10000 pytest … for many."""

import os

from hypothesis import HealthCheck, settings


def examples(usual: int) -> settings:
    """So many examples, or as many as $EXAMPLES says.

    Law: a slow example is no fault, since what is tried may be large on purpose. The usual ones are the same
    every time, so that a change makes a test fail and not chance; those of $EXAMPLES are others each time.
    """
    return settings(
        derandomize="EXAMPLES" not in os.environ,
        max_examples=int(os.environ.get("EXAMPLES", usual)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
