"""Chooses a host's boot loader, starts a build by it once, and brings the host back to its default kernel."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from pdrgate.bare_metal.grub import Grub
from pdrgate.bare_metal.host_files import FileSink
from pdrgate.bare_metal.installation import InstallError, install, remove
from pdrgate.bare_metal.kexec import Kexec
from pdrgate.bare_metal.layout import InstalledKernel, Layout, running_release
from pdrgate.bare_metal.loader import BootLoader, LoaderError, LoaderName, plain_restart
from pdrgate.bare_metal.systemd_boot import SystemdBoot
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.hosts.host import CommandError, Host
from pdrgate.hosts.kernel_parameters import KernelParameters
from pdrgate.values.errors import PdrGateError, SutError, TestbedError

DEADLINE = 600.0
"""Seconds that a host has from its restart to an answer: servers take minutes to test their memory."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_PAUSE = 2.0
"""Seconds between two attempts to reach a host that restarts."""
_RESTART_TIMEOUT = 30.0


class RestartError(SutError):
    """A host did not come back from a restart, or not with the kernel that it was to start.

    ``back`` says whether the host answers, so that something can be done without a person.
    """

    def __init__(self, message: str, back: bool) -> None:
        self.back = back
        super().__init__(message)


class BareMetal:
    """The kernels of one host without a guest around them.

    Args:
        host: opens its way anew at the next command after it was lost, as `Host.run` promises.
        files: how files get there.
        loader: which boot loader is to start builds; auto takes the first that can do it for once.
        deadline: seconds from a restart to an answer.
        report: gets a sentence on each step.
        pause: waits that many seconds between two attempts to reach the host.

    Raises:
        LoaderError: nothing there can start a kernel for once.
    """

    def __init__(
        self,
        host: Host,
        files: FileSink,
        *,
        loader: LoaderName = "auto",
        layout: Layout | None = None,
        deadline: float = DEADLINE,
        report: Callable[[str], None] = lambda sentence: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._host = host
        self._files = files
        self._layout = layout or Layout()
        self._deadline = deadline
        self._report = report
        self._pause = pause
        self._loader: BootLoader = choose_loader(host, self._layout, loader)
        self.default = running_release(host)
        """The kernel that the host goes back to: the one that ran when this began."""

    def install(self, build: KernelBuild) -> InstalledKernel:
        """Put a build beside the host's kernels and register it with the boot loader, whose default stays.

        Raises:
            InstallError: it cannot be had there; nothing of it is left.
            LoaderError: the boot loader would make it the default; nothing of it is left.
        """
        kernel = install(self._host, self._files, build, self._layout)
        try:
            self._loader.register(kernel)
        except BaseException as error:
            self._undo_install(kernel, error)
            raise
        self._report(
            f"installed {kernel.release} on {self._host.name}, beside {self.default}; started by {self._loader.name}"
        )
        return kernel

    def boot(self, kernel: InstalledKernel) -> str:
        """Start an installed kernel for once and return the id of this boot, once ``uname -r`` prints its release.

        Raises:
            BootError: it does not run. The message says whether the host runs its default kernel or did not come back.
        """
        self._loader.select_once(kernel)
        try:
            self._say_if_a_panic_stays(kernel)
            boot = self._restart(f"{kernel.release}, selected for this start only", self._loader.restart())
        except BaseException as error:
            if not isinstance(error, RestartError) or error.back:
                # It would be started by whoever restarts the host next.
                with contextlib.suppress(PdrGateError):
                    self._loader.deselect()
            raise
        running = running_release(self._host)
        if running == kernel.release:
            self._report(f"{self._host.name} runs {running}")
            return boot
        self.go_back()
        raise RestartError(
            f"{self._host.name} came back with {running} and not with {kernel.release}: it did not start, or ended "
            f"early and the host restarted by itself; see its console; {self.default} runs there now",
            back=True,
        )

    def go_back(self) -> None:
        """Restart the host into its default kernel, unless that runs.

        Raises:
            BootError: it did not come back, or came back with another one.
        """
        try:
            running = running_release(self._host)
        except TestbedError as error:
            raise RestartError(
                f"{self._host.name} cannot be made to go back to {self.default} ({error}); {self._power_cycle}",
                back=False,
            ) from error
        if running == self.default:
            return
        self._restart(f"its default kernel {self.default}", plain_restart(self._host))
        running = running_release(self._host)
        if running != self.default:
            raise RestartError(
                f"{self._host.name} went back to {running} and not to {self.default}, which ran before; look at the "
                "default of its boot loader",
                back=True,
            )
        self._report(f"{self._host.name} is back at {running}")

    def uninstall(self, kernel: InstalledKernel) -> None:
        """Remove an installed kernel. Raises InstallError while it runs."""
        if running_release(self._host) == kernel.release:
            raise InstallError(f"{self._host.name} runs {kernel.release} right now; let it go back first")
        remove(self._host, self._layout, kernel.release)
        self._loader.unregister(kernel)
        self._report(f"removed {kernel.release} from {self._host.name}")

    @contextlib.contextmanager
    def running(self, build: KernelBuild) -> Iterator[str]:
        """The host with a build running, as the id of its boot. Afterwards it has its default kernel alone again.

        Raises:
            InstallError, LoaderError, BootError: as the steps do. A host that did not come back keeps the build's files
                until the next installation of that release.
        """
        kernel = self.install(build)
        away = False
        try:
            yield self.boot(kernel)
        except RestartError as error:
            away = not error.back
            raise
        finally:
            if not away:
                self.go_back()
                self.uninstall(kernel)

    def _restart(self, into: str, command: tuple[str, ...]) -> str:
        before = self._host.read(_BOOT_ID).strip()
        self._report(f"restarting {self._host.name} into {into}")
        try:
            self._host.run(*command, timeout=_RESTART_TIMEOUT)
        except CommandError:
            raise
        except TestbedError:
            pass  # the way to it went with it: its boot id will show whether it restarted
        return wait_for_boot(
            self._host, before, self._deadline, pause=self._pause,
            remedy=self._power_cycle,
        )  # fmt: skip

    @property
    def _power_cycle(self) -> str:
        return f"power-cycle it, by its management controller or by hand: it then starts {self.default}"

    def _say_if_a_panic_stays(self, kernel: InstalledKernel) -> None:
        panic = KernelParameters.parse(self._host.read("/proc/cmdline")).value("panic")
        if self._loader.name != "kexec" and panic in (None, "", "0"):
            self._report(
                f"{self._host.name} starts its kernels without panic=SECONDS: should {kernel.release} panic, it stays "
                "there until it is power-cycled"
            )

    def _undo_install(self, kernel: InstalledKernel, error: BaseException) -> None:
        try:
            remove(self._host, self._layout, kernel.release)
            self._loader.unregister(kernel)
        except PdrGateError as second:
            error.add_note(f"{kernel.release} could not be removed from {self._host.name}: {second}")


def wait_for_boot(
    host: Host, before: str, deadline: float, *, pause: Callable[[float], None] = time.sleep, remedy: str = "look at it"
) -> str:
    """Wait until the host has another boot id than ``before`` and return it.

    Raises:
        BootError: it has not within ``deadline`` seconds: it does not answer, or it never went down.
    """
    end = time.monotonic() + deadline
    silence = ""
    while True:
        try:
            boot = host.read(_BOOT_ID).strip()
            silence = ""
            if boot and boot != before:
                return boot
        except TestbedError as error:
            silence = str(error)
        if time.monotonic() >= end:
            break
        pause(_PAUSE)
    if silence:
        raise RestartError(
            f"{host.name} did not come back within {deadline:g} s of its restart ({silence}); {remedy}", back=False
        )
    raise RestartError(
        f"{host.name} did not restart within {deadline:g} s: its boot id is still {before}; does something there "
        "delay the restart?",
        back=True,
    )


def choose_loader(host: Host, layout: Layout, wanted: LoaderName = "auto") -> BootLoader:
    """The boot loader of a host: the wanted one, else the first that can start a kernel once.

    Kexec comes last: not every driver takes over a network card that another kernel has used.

    Raises:
        LoaderError: there is none; the message says why not for each.
    """
    kinds: tuple[type[BootLoader], ...] = (Grub, SystemdBoot, Kexec)
    problems = []
    for kind in kinds:
        if wanted in ("auto", kind.name):
            loader = kind(host, layout)
            problem = loader.problem()
            if problem is None:
                return loader
            problems.append(f"{kind.name}: {problem}")
    raise LoaderError(f"{host.name} cannot start a kernel for once; {'; '.join(problems)}")
