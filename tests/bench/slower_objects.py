"""eBPF programs that others wrote: each against itself, and against what it becomes when one thing of it is slower.

    sudo .venv/bin/python tests/bench/slower_objects.py FOLDER RESULTS [--only PATTERN] [--compared slower|equal]

Nothing is fetched: FOLDER has checkouts of the programs' sources by their projects' names, and folders of compiled
objects, and the table says with which options of `pdrgate gate` each is measured, and what is made slower in a copy of
its source. What is equal shall PASS, and what is slower be a REGRESSION that names the function; a line for each tells.
RESULTS keeps the runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

PDRGATE = Path(sys.executable).parent / "pdrgate"
_CLANG = (
    "clang", "-O2", "-g", "-target", "bpf", "-Wno-everything", "-Dbool=_Bool", f"-D__{platform.machine()}__",
    f"-I/usr/include/{platform.machine()}-linux-gnu",
)  # fmt: skip


def compiled(told: Mapping[str, Any], checkouts: Path, output: Path, edits: Mapping[str, Any]) -> Path:
    """The object of a program's source, in which texts were replaced. Raises ValueError when one is not there."""
    project, _, source = str(told["source"]).partition("/")
    tree = output.parent / f"{output.stem}-source"
    shutil.copytree(checkouts / project, tree, symlinks=True)
    for name, replacements in edits.items():
        text = (tree / name).read_text()
        for before, after in replacements:
            if before not in text:
                raise ValueError(f"{tree / name} has no {before!r}; is it another version?")
            text = text.replace(before, after, 1)
        (tree / name).write_text(text)
    includes = [f"-I{tree / folder}" for folder in told.get("include", ())]
    defines = [f"-D{one}" for one in told.get("defines", ())]
    command = (*_CLANG, *includes, *defines, "-c", str(tree / source), "-o", str(output))
    subprocess.run(command, check=True)
    return output


def gated(told: Mapping[str, Any], candidate: Path, baseline: Path, folder: Path, results: Path) -> dict[str, Any]:
    """The result of a run."""
    words = ["--bpf", str(candidate), "--against", str(baseline), "--afresh", "--wait", "1 h", "--output", str(results)]
    for name, value in told.get("options", {}).items():
        words += [f"--{name}", str(value)]
    if "maps" in told:
        (folder / "maps.yaml").write_text(yaml.safe_dump(told["maps"]))
        words += ["--set", f"maps={folder / 'maps.yaml'}"]
    command = (str(PDRGATE), "gate", "--quiet", "--format", "json", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        return {"verdict": f"exit {done.returncode}", "reason": done.stderr.strip().splitlines()[-1]}


def compared(
    told: Mapping[str, Any], checkouts: Path, results: Path, ways: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """With what a program was compared, and the result."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        good = checkouts / told["object"] if "object" in told else compiled(told, checkouts, folder / "good.o", {})
        if "equal" in ways:
            yield "itself", gated(told, good, good, folder, results)
        if "slower" in ways and "slower" in told:
            slow = compiled(told, checkouts, folder / "slow.o", told["slower"])
            yield told["what"], gated(told, slow, good, folder, results)


def line(result: Mapping[str, Any]) -> str:
    """Verdict, changes and the sentence."""
    changes = [
        f"{change['measurand']} {100 * change['change']:+.1f} %"
        for entry in result.get("scenarios", ())
        for change in (entry["comparison"] or {}).get("changes", ())
    ]
    return f"{result['verdict']}: {', '.join(changes) or 'nothing compared'}: {result['reason']}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("results", type=Path)
    asked.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".yaml"))
    asked.add_argument("--only", default="*")
    asked.add_argument("--compared", choices=("equal", "slower"))
    given = asked.parse_args()
    ways = (given.compared,) if given.compared else ("equal", "slower")
    counts: Counter[str] = Counter()
    for told in yaml.safe_load(given.table.read_text()):
        if not fnmatch(told["name"], given.only):
            continue
        for what, result in compared(told, given.folder, given.results, ways):
            named = [name for name in told.get("named", ()) if name in result["reason"]]
            print(f"{told['name']}, {what}: {line(result)}", flush=True)
            sort = "equal" if what == "itself" else f"slower, {'named' if named else 'not named'}"
            counts[f"{sort}: {result['verdict']}"] += 1
    print("; ".join(f"{what} {count}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
