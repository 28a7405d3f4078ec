"""Whether a test that is run again and again keeps memory: judged by what is held after each run.

Where that is not clear after the runs that were asked for (it grew now and then, or late), the test is run further, so that a leak of every fourth run and a cache that fills
slowly are told apart.
"""

from __future__ import annotations

WARM_UP = 2  # runs in which caches are made that stay
_TIMES_MORE, _MOST_RUNS = 4, 200
GROWS, STAYS, UNCLEAR = "grows", "stays", "unclear"


def further_runs(sizes: list[int]) -> int:
    """How many runs are wanted beside those that were asked for."""
    if _at_first(sizes) != UNCLEAR:
        return 0
    return max(0, min(_TIMES_MORE * len(sizes), _MOST_RUNS) - len(sizes))


def judged(sizes: list[int]) -> str:
    """After all runs."""
    first = _at_first(sizes)
    if first != UNCLEAR:
        return first
    rises, quarter = _rises(sizes), len(sizes) // 4
    last = len(sizes) - quarter
    if rises[-1] < last:
        return STAYS
    begin = sizes[WARM_UP - 1 : WARM_UP + quarter]
    return GROWS if rises[0] < last and min(sizes[last:], default=0) > max(begin) else UNCLEAR


def last_rise(sizes: list[int]) -> int:
    """The run after which more was held than ever before, from 1; 0: none after the first runs."""
    return (_rises(sizes) or [-1])[-1] + 1


def growth(sizes: list[int]) -> int:
    """Since the first runs."""
    return sizes[-1] - sizes[WARM_UP - 1]


def grows_with_each(sizes: list[int]) -> bool:
    return all(after > before for before, after in zip(sizes[WARM_UP - 1 :], sizes[WARM_UP:]))


def _at_first(sizes: list[int]) -> str:
    if _grows_on(sizes):
        return GROWS
    return STAYS if 2 * last_rise(sizes) <= len(sizes) else UNCLEAR


def _grows_on(sizes: list[int]) -> bool:
    """Run after run, up to the last: in both halves of what comes after the first runs, and never back."""
    sizes = sizes[WARM_UP - 1 :]
    steps = [after - before for before, after in zip(sizes, sizes[1:])]
    half = len(steps) // 2
    return (
        bool(steps)
        and min(steps) >= 0
        and 2 * sum(step > 0 for step in steps) >= len(steps)
        and any(step > 0 for step in steps[:half])
        and any(step > 0 for step in steps[-2:])
    )


def _rises(sizes: list[int]) -> list[int]:
    """Where more is held than after any run before; the first runs do not count."""
    found, most = [], max(sizes[:WARM_UP], default=0)
    for at in range(WARM_UP, len(sizes)):
        if sizes[at] > most:
            found.append(at)
            most = sizes[at]
    return found
