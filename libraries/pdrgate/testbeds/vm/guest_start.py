"""The start of a testbed's guest: by which accelerator it runs, and which failure is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.emulator.accelerator import AcceleratorChoice, KvmRecord, choose_accelerator
from pdrgate.guests.emulator.qemu import NetworkPort
from pdrgate.guests.guest import Guest, GuestError
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import TestbedError


class GuestStart:
    """A guest from `begin` to `end`, which is up after `wait`.

    Args:
        build: the kernel under test.
        machine: what the guest is given.
        folder: where console logs go.
        namespace: the network namespace that QEMU runs in.
        patience: seconds for which a guest that boots may be silent.
    """

    def __init__(
        self,
        build: KernelBuild,
        machine: GuestConfig,
        journal: Journal,
        folder: Path,
        *,
        ports: Sequence[NetworkPort],
        namespace: str,
        patience: float,
    ) -> None:
        self._build, self._machine, self._journal, self._folder = build, machine, journal, folder
        self._ports = tuple(ports)
        self._namespace = namespace
        self._patience = patience
        self._record = KvmRecord(journal.path.parent)
        self._guest: Guest | None = None

    @property
    def guest(self) -> Guest:
        """The guest. Raises TestbedError before `begin` and after `end`."""
        if self._guest is None:
            raise TestbedError("there is no guest: the testbed is closed")
        return self._guest

    def begin(self) -> None:
        """Start the guest, which boots from here on. Raises TestbedError and BuildError."""
        self._guest = self._started(self._choose())

    def hurry(self) -> None:
        """Let the guest go before other processes. A guest that has ended stays so, as whoever waits for it learns."""
        if self._guest is not None:
            self._guest.hurry()

    def wait(self) -> None:
        """Wait for the guest; only its start is tried again, never a measurement. Raises GuestError.

        Whether KVM boots kernels, the first guest shows that it was chosen for. When that one is silent and the same
        build comes up by emulation, it was KVM, and all guests until the next start of this machine are emulated; once
        one has come up by KVM, a silent one is a fault of its build. So guests of one comparison never run by both.
        """
        choice = self._choose()
        if choice.name != self.guest.accelerator.name:
            # What a guest that was booted at the same time has shown meanwhile.
            self._restart(choice)
        patience = self._patience if choice.patience is None else min(choice.patience, self._patience)
        try:
            self.guest.wait(patience)
        except GuestError as error:
            if choice.patience is None or error.crash is not None:
                self._restart(choice)
                self.guest.wait(self._patience)
                return
            why = f"by KVM, chosen because {choice.why}, {error.brief}"
            self._restart(AcceleratorChoice("tcg", why))
            self.guest.wait(self._patience)
            self._record.write(False, why)
        else:
            if choice.patience is not None:
                self._record.write(True, "it has booted a guest since this machine was started")

    def again(self) -> None:
        """Boot the guest anew, in place of one that is up. Raises TestbedError and BuildError."""
        self._restart(self._choose())

    def end(self) -> None:
        """End the guest. Calling it twice is harmless."""
        if self._guest is not None:
            self._guest.close()
            self._guest = None

    def _choose(self) -> AcceleratorChoice:
        return choose_accelerator(self._build.architecture, self._machine.accelerator, self._record)

    def _restart(self, choice: AcceleratorChoice) -> None:
        before = self.guest
        before.close()
        self._guest = self._started(choice)
        if before.stands_back:
            self._guest.stand_back()

    def _started(self, choice: AcceleratorChoice) -> Guest:
        return Guest(
            self._build, self._machine, self._journal, self._folder,
            ports=self._ports, namespace=self._namespace, accelerator=choice,
        )  # fmt: skip
