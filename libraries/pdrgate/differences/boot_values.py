"""Which variables have another value after boot: code that runs at boot sets what packets read later.

Two boots of each kernel show what changes from boot to boot by itself: clocks, random numbers, counters. Addresses are
no values, for what they lead to lies elsewhere in each kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

BootValues = Mapping[str, bytes]
"""The content of variables after a boot, by name."""
_Bytes = npt.NDArray[np.uint8]
_POINTER, _NUMBER = 8, 4
_KERNEL = np.uint64(0xFFFF_8000_0000_0000)
"""The first address of a kernel's half of an address space."""
_NEGATIVE = np.uint64(0xFFFF_FFF0_0000_0000)
"""Words from here on hold a small negative number in their upper half, and are no address."""


def values_that_differ(before: Sequence[BootValues], after: Sequence[BootValues]) -> frozenset[str]:
    """The names of variables that have one value on all boots of a kernel, and another on all of the other kernel.

    One that could be read on some boots only differs, too.

    Args:
        before: two or more boots of the baseline.
        after: the same of the candidate.
    """
    names = frozenset().union(*before, *after)
    return frozenset(
        name for name in names if _differ([one.get(name) for one in before], [one.get(name) for one in after])
    )


def _differ(before: Sequence[bytes | None], after: Sequence[bytes | None]) -> bool:
    contents = [one for one in (*before, *after) if one is not None]
    if len(contents) < len(before) + len(after) or len(set(map(len, contents))) != 1:
        return True
    boots = [np.frombuffer(one, np.uint8) for one in contents]
    (old, *others), (new, *more) = boots[: len(before)], boots[len(before) :]
    steady = np.ones(len(old), np.bool_)
    for one, same in (*((old, one) for one in others), *((new, one) for one in more)):
        steady &= _by_numbers(one == same)
    return bool(np.any(steady & ~(_addresses(old) & _addresses(new)) & (old != new)))


def _by_numbers(equal: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """For each byte whether all of its number of four bytes is equal; a rest counts byte by byte."""
    whole = len(equal) // _NUMBER * _NUMBER
    numbers = equal[:whole].reshape(-1, _NUMBER).all(axis=1)
    return np.concatenate((np.repeat(numbers, _NUMBER), equal[whole:]))


def _addresses(content: _Bytes) -> npt.NDArray[np.bool_]:
    """For each byte whether it belongs to an address of the kernel."""
    whole = len(content) // _POINTER * _POINTER
    words = content[:whole].view(np.uint64)
    found = np.repeat((words >= _KERNEL) & (words < _NEGATIVE), _POINTER)
    # The kernel's own image lies at the end of the address space, where negative numbers are.
    image = np.repeat((words >= _IMAGE) & (words < _IMAGE_END), _POINTER)
    return np.concatenate((found | image, np.zeros(len(content) - whole, np.bool_)))


_IMAGE, _IMAGE_END = np.uint64(0xFFFF_FFFF_8000_0000), np.uint64(0xFFFF_FFFF_FF00_0000)
"""Address ranges of a kernel's image and of its modules, from the first address to the one behind the last."""
