"""How long does a verdict on a commit take by `--paths affected`, by how much of what paths run it touches?

    sudo .venv/bin/python tests/bench/affected_seconds.py TREE RESULTS [--base REV] [options of pdrgate gate]

TREE is a git tree of Linux. RESULTS has a history in which all paths were measured on REV. Each function of `FUNCTIONS`
gets more work, in a commit of its own on top of REV, on a branch that is called pdrgate-known/NAME. A row has the
seconds that its build takes, those of the gate, the paths that were measured, and the verdict. The first row compares
REV with itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "known_regressions"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "random_changes"))

from drawing import KINDS
from groups import Group
from planting import git, planted

from pdrgate.history.results import RESULT_FILE, read_result

PDRGATE = Path(sys.executable).parent / "pdrgate"
FUNCTIONS = {
    "ipmr_cache_report": ("net/ipv4/ipmr.c", "no path runs it: multicast"),
    "wg_xmit": ("drivers/net/wireguard/device.c", "one path runs it: WireGuard"),
    "skb_release_head_state": ("net/core/skbuff.c", "nearly all paths run it"),
}
"""The file of each function that gets more work, and who runs it."""
HEAD = ("what differs", "compiling, s", "gate, s", "measured", "verdict")


def commit_of(tree: Path, base: str, name: str) -> str:
    """The commit with more work in a function."""
    file, _ = FUNCTIONS[name]
    text = git(tree, "show", f"{base}:{file}") + "\n"
    return planted(tree, base, Group(name, list(KINDS["function"](file, text, {name})), {file: text}))


def row(tree: Path, base: str, candidate: str, what: str, results: Path, more: list[str]) -> tuple[str, ...]:
    """Compile and judge a commit; the cells below `HEAD`."""
    begun = time.monotonic()
    subprocess.run(
        (str(PDRGATE), "build", f"{tree}@{candidate}", "--into", str(results / "kernels" / candidate)), check=True
    )
    compiled = time.monotonic()
    folder = results / f"affected-{candidate[:12]}"
    command = (
        str(PDRGATE), "gate", "--quiet", "--paths", "affected", "--history", str(results / "history.db"), "--output",
        str(folder), "--kernel", f"{tree}@{candidate}", "--against", f"{tree}@{base}", *more,
    )  # fmt: skip
    subprocess.run(command, check=False)
    ended = time.monotonic()
    result = read_result(max(folder.glob(f"*/{RESULT_FILE}")).parent)
    asked = len(result.selection.paths) if result.selection else len(result.scenarios)
    measured = f"{len(result.scenarios)} of {asked}"
    return what, f"{compiled - begun:.0f}", f"{ended - compiled:.0f}", measured, str(result.verdict)


def main() -> None:
    """Print a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--base", default="HEAD", help="what branches are on top of")
    asked, more = parser.parse_known_args()
    tree, results = asked.tree.resolve(), asked.results.resolve()
    base = git(tree, "rev-parse", "--verify", f"{asked.base}^{{commit}}")
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    commits = {
        base: "nothing",
        **{commit_of(tree, base, name): f"`{name}`: {FUNCTIONS[name][1]}" for name in FUNCTIONS},
    }
    for commit, what in commits.items():
        print(f"| {' | '.join(row(tree, base, commit, what, results, more))} |", flush=True)


if __name__ == "__main__":
    main()
