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
    ],
    ids=["equal", "changes from boot to boot", "changes on the other kernel", "addresses"],
)
def test_what_changes_by_itself_and_addresses_are_no_difference(
    before: tuple[bytes, bytes], after: tuple[bytes, bytes]
) -> None:
    assert not differ(before, after)


def test_an_address_in_place_of_nothing_differs() -> None:
    assert differ((words(0), words(0)), (words(ADDRESS), words(ADDRESS)))


def test_a_word_that_changes_by_itself_hides_no_other_one() -> None:
    assert differ((words(1, 5), words(2, 5)), (words(3, 6), words(4, 6)))


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\x80\0\0\0", b"\0\1\0\0"), (b"\1", b"\0"), (words(5) + b"\1\0\0\0", words(5) + b"\2\0\0\0"),
     (struct.pack("<ii", 1, -1), struct.pack("<ii", 2, -1))],
    ids=["a number of four bytes", "a flag", "the end of twelve bytes", "beside a negative number"],
)  # fmt: skip
def test_a_small_number_differs(before: bytes, after: bytes) -> None:
    assert differ((before, before), (after, after))


def test_a_number_that_changes_by_itself_hides_not_the_one_beside_it() -> None:
    assert differ((struct.pack("<ii", 1, 5), struct.pack("<ii", 2, 5)), (struct.pack("<ii", 1, 6),) * 2)


def test_another_size_and_what_could_not_be_read_differ() -> None:
    assert differ((words(1), words(1)), (words(1, 2), words(1, 2)))
    assert differ((words(1), words(1)), (words(1), b""))
    assert values_that_differ([{"a": words(1)}] * 2, [{"b": words(2)}] * 2) == {"a", "b"}
    assert values_that_differ([{"a": words(1)}] * 2, [{"a": words(1)}, {}]) == {"a"}


def test_an_address_of_the_image_is_none_either() -> None:
    assert not differ((words(0xFFFF_FFFF_8100_0000),) * 2, (words(0xFFFF_FFFF_8200_0000),) * 2)
