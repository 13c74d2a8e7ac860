"""A kernel's symbols in its image: the table of /proc/kallsyms, in each form, torn, and where there is none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from made_kernels import flat_image
from made_symbols import FORMS, TEXT, Symbol, image_with, tables_of

from pdrgate.builds.image_symbols import TypedSymbol, image_symbols


def some_symbols(number: int) -> list[Symbol]:
    names = [f"{'ip6_' if one % 3 else 'skb_'}{'long_' * (one % 90)}{one}" for one in range(number)]
    return [(TEXT, "T", "_text"), *((TEXT + 16 * at, "tTdD"[at % 4], name) for at, name in enumerate(names))]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return tmp_path / "vmlinux"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [600, 767, 3001])
def test_an_image_has_its_symbols_in_each_form(image: Path, form: str, number: int) -> None:
    symbols = some_symbols(number)
    if form == FORMS[0]:  # per-CPU variables are no addresses
        symbols[:0] = [(0, "A", "__per_cpu_start"), (0x2_A000, "A", "softnet_data")]
    image.write_bytes(image_with(symbols, form))
    assert image_symbols(image) == [TypedSymbol(*one) for one in symbols]


@pytest.mark.parametrize("form", FORMS[:2])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(0xFFFF_8000_8000_0000, id="48 bits"),
        pytest.param(0xFFFF_8000_0800_0000, id="48 bits before 6.6"),
        pytest.param(0xFFFF_C000_8000_0000, id="47 bits, pages of 16 KiB"),
        pytest.param(0xFFFF_FFC0_8000_0000, id="39 bits, Android"),
        pytest.param(0xFFFF_FE00_8000_0000, id="42 bits, pages of 64 KiB"),
    ],
)
def test_a_flat_image_has_its_symbols_whatever_the_width_of_its_addresses(image: Path, form: str, text: int) -> None:
    symbols = [(address - TEXT + text, kind, name) for address, kind, name in some_symbols(600)]
    image.write_bytes(flat_image(more=tables_of(symbols, form, text_at=text)))
    assert image_symbols(image) == [TypedSymbol(*one) for one in symbols]


def test_digits_elsewhere_in_the_image_are_no_table(image: Path) -> None:
    digits = b"".join(b"%d\0" % number for number in range(10))
    content = image_with(some_symbols(600), FORMS[1])
    image.write_bytes(content + 100 * digits)
    assert image_symbols(image) is not None


@pytest.mark.parametrize("form", FORMS)
def test_a_torn_table_has_no_symbols(image: Path, form: str) -> None:
    image.write_bytes(image_with(some_symbols(600), form, torn=True))
    assert image_symbols(image) is None


def test_addresses_that_do_not_begin_with_the_image_are_none(image: Path) -> None:
    image.write_bytes(image_with([(at + 4096, kind, name) for at, kind, name in some_symbols(600)], FORMS[1]))
    assert image_symbols(image) is None


@pytest.mark.parametrize("content", [b"", b"no ELF file", b"\x7fELF"], ids=["empty", "no ELF file", "torn"])
def test_what_is_no_kernel_has_no_symbols(image: Path, content: bytes) -> None:
    image.write_bytes(content)
    assert image_symbols(image) is None
    assert image_symbols(image.with_name("nowhere")) is None


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_image_ends_in_no_error(image: Path, form: str) -> None:
    sound, numbers = image_with(some_symbols(600), form), random.Random(7)
    for _ in range(20):
        damaged = bytearray(sound)
        for _ in range(numbers.choice((1, 8, 500))):
            damaged[numbers.randrange(64, len(damaged))] = numbers.randrange(256)
        image.write_bytes(damaged)
        found = image_symbols(image)
        assert found is None or len(found) == 601
