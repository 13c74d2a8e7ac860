"""Keywords that compare kernel builds: each is booted in a guest, several times, in turn."""

from __future__ import annotations

from robot.api.deco import keyword

from pdrgate.errors import TestbedError
from pdrgate.gate.builds import BuildComparison, Side, SideName
from pdrgate.keywords.log import show_html, show_picture
from pdrgate.keywords.state import State
from pdrgate.report import plots, tables
from pdrgate.sut.builds import KernelBuild, kernel_build
from pdrgate.sut.journal import Journal
from pdrgate.testbed import Testbed, open_guest
from pdrgate.units import Duration


class BuildKeywords:
    """Boots are the replicates."""

    def __init__(self, state: State) -> None:
        self._state = state

    @keyword
    def compare_kernel_builds(
        self,
        candidate: str,
        baseline: str,
        boots: int = 4,
        rounds: int = 3,
        budget: Duration = Duration(600),  # noqa: B008 - a frozen number
    ) -> None:
        """Boots two kernel builds in turn, ``boots`` times each, and measures the scenario in every boot.

        A build is a .deb, a bzImage, a kernel build tree, or the name of a distribution package, which is downloaded
        and unpacked, never installed. After ``budget`` no boot is begun, once each build has two.

        Fails with ERROR when two boots of a build fail (a panic, a hang, no answer). `Measurement Should Be Stable`
        then judges the trials of both builds, `PDR Should Not Have Regressed` compares the PDRs of their boots.
        """
        run = self._state.require_run()
        if self._state.measurement is not None:
            raise TestbedError("the scenario is being measured; compare builds in a test of its own")
        sides: dict[SideName, Side] = {}
        sources: tuple[tuple[SideName, str], ...] = (("baseline", baseline), ("candidate", candidate))
        for name, source in sources:
            build = kernel_build(source)

            def boot(journal: Journal, build: KernelBuild = build) -> Testbed:
                return open_guest(run.config, build, journal, run.options.folder / "consoles")

            sides[name] = Side(name, f"{build.name} ({build.release})", boot)
        comparison = BuildComparison(run, self._state.scenario, sides, boots=boots, rounds=rounds, budget=float(budget))
        self._state.measurement = comparison
        comparison.measure()
        self._show(comparison)
        if comparison.judgement is not None and not comparison.assessments:
            raise AssertionError(str(comparison.judgement))

    def _show(self, comparison: BuildComparison) -> None:
        folder = comparison.run.options.folder / "plots"
        for name, assessment in comparison.assessments.items():
            title = f"{comparison.scenario.title}: {name}"
            subtitle = comparison.sides[name].label
            picture = f"{comparison.scenario.name}-{name}"
            show_picture(plots.load_loss(assessment, title=title, subtitle=subtitle), f"{picture}-load-loss", folder)
            show_picture(plots.repeats(assessment, title=title), f"{picture}-repeats", folder)
            show_html(tables.checks_table(assessment))
        show_html(tables.boots_table(comparison.boots))
