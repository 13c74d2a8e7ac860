"""Keywords that compare builds, of the kernel or of an eBPF program: both are started several times, in turn."""

from __future__ import annotations

from collections.abc import Mapping

from robot.api.deco import keyword

from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.kernel_build import KernelBuild, named_build
from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.errors import TestbedError
from pdrgate.gate.build_comparison import BuildComparison, Plan, Side, SideName
from pdrgate.gate.run import Run
from pdrgate.keywords.log import show_html, show_picture
from pdrgate.keywords.state import State
from pdrgate.reports import plots, tables
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed, open_testbed, start_guest
from pdrgate.testbeds.rack_build import boot_on_rack
from pdrgate.units import Duration, Ratio


class BuildKeywords:
    """Boots are the replicates."""

    def __init__(self, state: State) -> None:
        self._state = state

    @keyword
    def compare_kernel_builds(
        self,
        candidate: str,
        baseline: str,
        boots: int = 48,
        tolerance: Ratio = Ratio(0.02),  # noqa: B008 - a frozen number
        budget: Duration = Duration(540),  # noqa: B008
    ) -> None:
        """Boots two kernel builds in pairs, at most ``boots`` times each, and measures the scenario in every boot.

        A build is a .deb, a bzImage, a kernel build tree, or the name of a distribution package, which is downloaded
        and unpacked; ``,modules=FOLDER`` and ``,vmlinux=FILE`` may follow it. On the testbed of virtual machines both
        boots of a pair are up at once, and their trials alternate. On a rack the build is installed beside the SUT's
        kernels, started once, and removed after the boot's trials, see docs/bare-metal.md. From the sixth pair on the
        comparison ends as soon as the change is above or below ``tolerance`` beyond doubt (at 99 % confidence); after
        ``budget`` no boot is begun.

        Fails with ERROR when two boots of a build fail (a panic, a hang, no answer). `Measurement Should Be Stable`
        then judges the trials of both builds, `PDR Should Not Have Regressed` compares the PDRs of their boots.
        """
        run = self._state.require_run()
        sides: dict[SideName, Side] = {}
        sources: tuple[tuple[SideName, str], ...] = (("baseline", baseline), ("candidate", candidate))
        for name, source in sources:
            build = named_build(source)

            def boot(journal: Journal, build: KernelBuild = build) -> Testbed:
                if run.config.sut.rack is not None:
                    return boot_on_rack(run.config, build, journal, run.observer.said)
                return start_guest(run.config, build, journal, run.options.folder / "consoles")

            sides[name] = Side(name, f"{build.name} ({build.release})", boot)
        # A rack has one SUT: its boots follow each other.
        together = run.config.sut.rack is None
        run.leave()
        self._compare(run, sides, Plan(boots, float(budget), float(tolerance), together))

    @keyword(name="Compare EBPF Builds")
    def compare_ebpf_builds(
        self,
        candidate: str,
        baseline: str,
        boots: int = 48,
        tolerance: Ratio = Ratio(0.02),  # noqa: B008 - a frozen number
        budget: Duration = Duration(540),  # noqa: B008
    ) -> None:
        """Loads two eBPF objects in turn on one kernel and measures with each; see `Compare Kernel Builds`.

        An object holds one program of the kind that the data path runs, for XDP or tc. Each is loaded anew, on a
        testbed set up anew, at most ``boots`` times: where code and maps come to lie is part of what is compared.
        """
        run = self._state.require_run()
        kind = DATA_PATHS[self._state.scenario.data_path].program
        if kind is None:
            raise TestbedError(
                f"the data path {self._state.scenario.data_path} runs no eBPF program; choose one that does, such as "
                "xdp-ipv6-routing"
            )
        run.leave()
        sides: dict[SideName, Side] = {}
        sources: tuple[tuple[SideName, str], ...] = (("baseline", baseline), ("candidate", candidate))
        for name, source in sources:
            build = bpf_build(source, kind)
            sides[name] = Side(name, build.label, lambda journal: open_testbed(run.config, journal), build.path)
        self._compare(run, sides, Plan(boots, float(budget), float(tolerance)))

    def _compare(self, run: Run, sides: Mapping[SideName, Side], plan: Plan) -> None:
        if self._state.measurement is not None:
            raise TestbedError("the scenario is being measured; compare builds in a test of its own")
        comparison = BuildComparison(run, self._state.scenario, sides, plan)
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
        base, candidate = comparison.pdrs("baseline"), comparison.pdrs("candidate")
        if candidate:
            png = plots.pairs(
                base, candidate, comparison.plan.tolerance,
                title=comparison.scenario.title,
                labels=(comparison.sides["baseline"].label, comparison.sides["candidate"].label),
            )  # fmt: skip
            show_picture(png, f"{comparison.scenario.name}-pairs", folder)
        show_html(tables.boots_table(comparison.boots))
