"""A branch of a git tree, gated and bisected from the command line, with the times that it takes.

    sudo .venv/bin/python tests/bench/git_tree.py TREE [--config FILE]

TREE is a git tree of Linux sources, such as a distribution's source package that was committed. A branch of five
commits is made in a clone of it, of which the third makes IPv6 forwarding slower. Printed are the seconds and the first
lines of: the gate of the whole branch against where it began, the same once more with nothing to compile, `pdrgate
bisect` over the commits, each against the one before, and `git bisect run` with the one line of docs/bisect.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = "net/ipv6/ip6_output.c"
FORWARD = "int ip6_forward(struct sk_buff *skb)\n{\n"
HASHED = 16
SLOWER = f"""\
static noinline u32 hash_of_header(const struct sk_buff *skb)
{{
	const u8 *at = skb_network_header(skb);
	u32 hash = 2166136261u;
	int round, i;

	for (round = 0; round < {HASHED}; round++)
		for (i = 0; i < 8; i++)
			hash = (hash ^ at[i]) * 16777619u;
	return hash;
}}

"""
USED = '\tif (unlikely(hash_of_header(skb) == 1))\n\t\tpr_info_once("seen\\n");\n'


def git(tree: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "bench@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ("git", "-C", str(tree), *words), check=True, capture_output=True, text=True, env=os.environ | names
    ).stdout.strip()


def branch(tree: Path, folder: Path) -> Path:
    """A clone with a branch of five commits, of which the third is slower."""
    clone = folder / "linux"
    subprocess.run(("git", "clone", "--quiet", "--shared", str(tree), str(clone)), check=True)
    git(clone, "checkout", "--quiet", "-b", "topic")
    file = clone / FILE
    for number in range(1, 6):
        text = file.read_text()
        if number == 3:
            text = text.replace(FORWARD, SLOWER + FORWARD)
            end = text.index("\n\n", text.index(FORWARD))  # behind the declarations
            text = f"{text[:end]}\n{USED}{text[end:]}"
        file.write_text(text + f"\n/* {number} */\n")
        git(clone, "commit", "--quiet", "--all", "--message", f"change {number}")
    return clone


def timed(name: str, *command: str, cwd: Path = ROOT) -> None:
    begun = time.monotonic()
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    print(f"\n{name}: {time.monotonic() - begun:.0f} s, exit code {done.returncode}")
    for line in (done.stderr + done.stdout).splitlines():
        if line.strip():
            print(f"  | {line}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--config", type=Path)
    asked = parser.parse_args()
    part = f",config={asked.config.resolve()}" if asked.config else ""
    pdrgate = str(ROOT / ".venv/bin/pdrgate")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tree, results = branch(asked.tree.resolve(), folder), str(folder / "results")
        base = git(tree, "rev-parse", "HEAD~5")
        git(tree, "branch", "--force", "main", base)
        print(f"the tree is {base[:12]}; change 3 is {git(tree, 'rev-parse', 'HEAD~2')[:12]}")
        waits = ("--wait", "1 h", "--output", results)
        gate = (pdrgate, "gate", "--quiet", "--scenario", "default", *waits)
        timed("gate", *gate, "--kernel", f"{tree}@topic{part}")
        timed("gate again", *gate, "--kernel", f"{tree}@topic{part}")
        timed("bisect --each", pdrgate, "bisect", "--each", *waits, f"{tree}@{base}..topic{part}")
        git(tree, "bisect", "start", "topic", base)
        run = (*gate, "--bisect", "--kernel", f".@HEAD{part}", "--against", f".@{base}{part}")
        timed("git bisect run", "git", "bisect", "run", *run, cwd=tree)


if __name__ == "__main__":
    main()
