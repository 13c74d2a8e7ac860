"""Changes that a bench draws by chance: each kind is found in C sources, and changes what it names."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from made_trees import made_tree

BENCH = Path(__file__).resolve().parents[1] / "bench"
sys.path.insert(0, str(BENCH / "random_changes"))
sys.path.insert(0, str(BENCH / "known_regressions"))

from drawing import KINDS, Place, changed_text, drawn  # noqa: E402
from groups import Group, sources_of  # noqa: E402
from planting import planted  # noqa: E402

FILE = "net/core/sample.c"
TEXT = """\
struct sample {
	u32 first;
	struct sample *next;
	char name[4];
};

static int sample_max __read_mostly = 0;
static DEFINE_STATIC_KEY_FALSE(sample_key);

static inline int half(int whole)
{
	return whole / 2;
}

int sample_rcv(struct sample *sample,
	int length)
{
	return half(length);
}

static int __net_init sample_init(struct net *net)
{
	net->ipv4.sysctl_sample = 300;
	return 0;
}
"""
NAMES = frozenset({"sample_max", "sample_key", "sample_rcv"})


@pytest.mark.parametrize(
    ("kind", "name", "before", "after"),
    [
        ("function", "sample_rcv", "length)\n{\n", "length)\n{\n\tfor (int pdrgate_turn = 0;"),
        ("inlined", "half", "whole)\n{\n", "whole)\n{\n\tfor (int pdrgate_turn = 0;"),
        ("default", "sample_max", "__read_mostly = 0;", "__read_mostly = 1;"),
        ("set at boot", "sysctl_sample", "sysctl_sample = 300;", "sysctl_sample = 600;"),
        ("static key", "sample_key", "KEY_FALSE(sample_key)", "KEY_TRUE(sample_key)"),
        ("fields swapped", "sample.first and .next", "first;\n\tstruct sample *next;", "next;\n\tu32 first;"),
    ],
)
def test_a_place_of_each_kind_is_found_once_and_changed(kind: str, name: str, before: str, after: str) -> None:
    (place,) = KINDS[kind](FILE, TEXT, NAMES)
    assert (place.kind, place.name, place.file) == (kind, name, FILE)
    changed = changed_text(TEXT, [place])
    assert before in TEXT and after in changed
    assert changed.count("\n") >= TEXT.count("\n") and changed != TEXT


@pytest.mark.parametrize("kind", ["function", "default", "static key"])
def test_what_the_kernel_does_not_have_is_not_drawn(kind: str) -> None:
    assert not list(KINDS[kind](FILE, TEXT, frozenset()))


def test_the_same_seed_draws_the_same_places_of_different_files() -> None:
    sources = {f"net/{number}.c": TEXT for number in range(9)}
    wanted = {"function": 2, "static key": 2}
    first, again = (drawn(sources, NAMES, wanted, random.Random(7)) for _ in range(2))
    assert first == again
    assert [place.kind for place in first] == ["function", "function", "static key", "static key"]
    assert len({place.file for place in first}) == 4


def test_too_few_places_are_refused() -> None:
    with pytest.raises(ValueError, match="default: 1 places too few"):
        drawn({FILE: TEXT}, NAMES, {"default": 2}, random.Random(1))


def test_several_places_of_a_file_are_changed_together() -> None:
    places: list[Place] = [place for kind in KINDS.values() for place in kind(FILE, TEXT, NAMES)]
    changed = changed_text(TEXT, places)
    assert "KEY_TRUE" in changed and "= 600;" in changed and changed.count("pdrgate_turn = 0") == 2


def test_a_group_is_a_patch_of_sources_in_the_tree(tmp_path: Path) -> None:
    tree = made_tree(tmp_path / "linux")
    (tree.folder / FILE).parent.mkdir(parents=True)
    (tree.folder / FILE).write_text(TEXT)
    base = tree.commit("a sample")
    assert sources_of(tree.folder, base) == {FILE: TEXT}
    places = tuple(KINDS["default"](FILE, TEXT, NAMES))
    commit = planted(tree.folder, base, Group("random-1-1", places, {FILE: TEXT}))
    assert tree.git("show", f"{commit}:{FILE}") == changed_text(TEXT, places).strip()
    assert tree.git("rev-parse", "pdrgate-known/random-1-1") == commit
