"""Which variables have another value after boot: code that runs at boot sets what packets read later.

Two boots of each kernel show what changes from boot to boot by itself: clocks, random numbers, counters. Addresses are
no values, for what they lead to lies elsewhere in each kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

BootValues = Mapping[str, bytes]
"""The content of variables after a boot, by name."""
_Words = npt.NDArray[np.uint64]
_WORD = 8
_KERNEL = np.uint64(0xFFFF_8000_0000_0000)
"""The first address of a kernel's half of an address space."""


def values_that_differ(before: Sequence[BootValues], after: Sequence[BootValues]) -> frozenset[str]:
    """The names of variables that have one value on all boots of a kernel, and another on all of the other kernel.

    Args:
        before: two or more boots of the baseline.
        after: the same of the candidate.
    """
    names = frozenset.intersection(*(frozenset(one) for one in (*before, *after)))
    return frozenset(name for name in names if _differ([one[name] for one in before], [one[name] for one in after]))


def _differ(before: Sequence[bytes], after: Sequence[bytes]) -> bool:
    size = min(map(len, (*before, *after))) // _WORD * _WORD
    boots = [np.frombuffer(one[:size], np.uint64) for one in (*before, *after)]
    (old, *others), (new, *more) = boots[: len(before)], boots[len(before) :]
    steady = np.ones(size // _WORD, np.bool_)
    for one, same in (*((old, one) for one in others), *((new, one) for one in more)):
        steady &= one == same
    addresses = (old >= _KERNEL) & (new >= _KERNEL)
    return bool(np.any(steady & ~addresses & (old != new)))


def differing_words(before: bytes, after: bytes) -> Iterator[tuple[int, int, int]]:
    """The offset of each word that differs, with both values."""
    size = min(len(before), len(after)) // _WORD * _WORD
    old, new = (np.frombuffer(one[:size], np.uint64) for one in (before, after))
    for at in np.flatnonzero(old != new).tolist():
        yield at * _WORD, int(old[at]), int(new[at])
