"""The stored trials of finished comparisons, judged again: values, verdicts and intervals with all their digits.

A refactoring of what compares must change none of them. Print them before and after it:

    .venv/bin/python tests/bench/replayed.py results/20261128-023156 > before.txt
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "libraries"), str(ROOT / "tests/fakes")]

from fake_testbed import CONFIG, Watcher  # noqa: E402

from pdrgate.data_paths.catalogue import DATA_PATHS  # noqa: E402
from pdrgate.gate.comparisons.by_scenario import comparison_of, living_comparison_of  # noqa: E402
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts  # noqa: E402
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask  # noqa: E402
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan  # noqa: E402
from pdrgate.gate.run.options import Options  # noqa: E402
from pdrgate.gate.run.run_record import RunRecord  # noqa: E402
from pdrgate.gate.run.scenario import Scenario  # noqa: E402
from pdrgate.gate.run.session import Session  # noqa: E402
from pdrgate.history.results import read_result  # noqa: E402
from pdrgate.measurands.counted.cost import with_pair_beside  # noqa: E402
from pdrgate.record.trial import by_boot  # noqa: E402
from pdrgate.results.model import ScenarioResult  # noqa: E402


@dataclass(frozen=True)
class Stored(Scenario):
    """A scenario whose name need not be one that can be read again."""

    stored: str = ""

    @property
    def name(self) -> str:
        return self.stored


def replayed(folder: Path) -> None:
    result = read_result(folder / "result.json")
    with tempfile.TemporaryDirectory() as there:
        for name in ("trials.jsonl", "pairs.jsonl", "fingerprints.json"):
            if (folder / name).exists():
                shutil.copy(folder / name, there)
        record = RunRecord(Path(there), result.profile, resume=True)
        session = Session(CONFIG, Options(profile=result.profile), record, Watcher(), state=Path(there))
        for one in result.scenarios:
            _replay(session, one)
        record.close()


def _replay(session: Session, one: ScenarioResult) -> None:
    left = session.record.pairs._left
    steps = [step for step in left if step.scenario == one.name and step.test.endswith(one.origin.test)]
    if not steps:
        return
    test, last = steps[0].test, steps[-1]
    builds = {side: Build(side, last.builds[side], _never, identity=last.identities[side]) for side in SIDES}
    plan = Plan(48, 1e9, float(one.comparison.tolerance) if one.comparison else 0.02)
    scenario = _scenario(one.name)
    living = not last.loads
    if living:
        made: Any = living_comparison_of(
            ComparisonTask(session, scenario, builds, plan, longname=test), LivingSuts(session, builds)
        )
    else:
        made = comparison_of(ComparisonTask(session, scenario, builds, plan, longname=test))
    made.loop._resume()
    boots = by_boot(made.loop.found.trials)
    again = []
    for boot in made.loop.found.boots:
        if boot.failure:
            continue
        others = [trial for trial in made.loop.found.trials if trial.belonging.side != boot.side]
        trials = with_pair_beside(boots[boot.boot], others)
        replication = made.loop.replication
        values = replication._counted.values(trials) if living else replication._values(boot.boot, trials)
        print(one.name, boot.side, boot.pair, "as stored" if values == boot.values else "OTHERWISE", dict(values))
        again.append(replace(boot, values=values))
    made.loop.found.boots[:] = again
    made.loop.replication.failure = None
    made._assess()
    judgement, change = made._by(plan.tolerance)
    print(one.name, judgement)
    print(one.name, change)
    print(made.result(judgement).findings.losses, made.result(judgement).findings.measurands)


def _scenario(name: str) -> Scenario:
    path = max((one for one in DATA_PATHS if name.startswith(f"{one}-")), key=len, default="ipv6-routing")
    plain = Scenario(data_path=path) if path != "bare-ipv4" else Scenario()
    fields = {one: getattr(plain, one) for one in Scenario.__dataclass_fields__}
    return Stored(**fields, stored=name)


def _never(journal: object) -> Any:
    raise AssertionError("nothing is booted")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        replayed(Path(each))
