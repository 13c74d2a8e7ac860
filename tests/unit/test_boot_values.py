"""Which variables have another value after boot."""

from __future__ import annotations

import struct

import pytest

from pdrgate.differences.boot_values import values_that_differ

ADDRESS, OTHER_ADDRESS = 0xFFFF_8880_0000_1000, 0xFFFF_FFFF_8123_4560


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def differ(before: tuple[bytes, bytes], after: tuple[bytes, bytes]) -> bool:
    return values_that_differ([{"init_net": one} for one in before], [{"init_net": one} for one in after]) == {
        "init_net"
    }


def test_a_value_that_all_boots_of_one_kernel_have_and_none_of_the_other_differs() -> None:
    assert differ((words(7, 1), words(7, 1)), (words(7, 2), words(7, 2)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((words(1), words(1)), (words(1), words(1))),
        ((words(1), words(2)), (words(3), words(3))),
        ((words(3), words(3)), (words(1), words(2))),
        ((words(ADDRESS), words(ADDRESS)), (words(OTHER_ADDRESS), words(OTHER_ADDRESS))),
        ((b"", b""), (words(1), words(1))),
    ],
    ids=["equal", "changes from boot to boot", "changes on the other kernel", "addresses", "no content"],
)
def test_what_changes_by_itself_and_addresses_are_no_difference(
    before: tuple[bytes, bytes], after: tuple[bytes, bytes]
) -> None:
    assert not differ(before, after)


def test_an_address_in_place_of_nothing_differs() -> None:
    assert differ((words(0), words(0)), (words(ADDRESS), words(ADDRESS)))


def test_a_word_that_changes_by_itself_hides_no_other_one() -> None:
    assert differ((words(1, 5), words(2, 5)), (words(3, 6), words(4, 6)))


def test_of_another_size_the_begin_is_compared() -> None:
    assert not differ((words(1), words(1)), (words(1, 2), words(1, 2)))
    assert differ((words(1), words(1)), (words(2, 2), words(2, 2)))


def test_a_variable_that_one_kernel_lacks_is_not_compared() -> None:
    assert values_that_differ([{"a": words(1)}] * 2, [{"b": words(2)}] * 2) == frozenset()
