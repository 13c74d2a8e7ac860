"""A data path that a user's own steps are on top of, whose commands run in one round trip to each host."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.contract import DataPath, Hop
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.network_state import KnownNetworks
from pdrgate.data_paths.replacing import replaced
from pdrgate.data_paths.set_up import SetUp, SetUpStep
from pdrgate.data_paths.standing_base import StandingBase
from pdrgate.data_paths.steps import PathAbove
from pdrgate.hosts.host import NOT_FOUND, Completed, Host
from pdrgate.hosts.piped_program import sent
from pdrgate.hosts.shell import last_line
from pdrgate.traffic import native
from pdrgate.values.errors import SutError, TestbedError, ToolError, UsageError


def commands_at_once(
    host: Host, before: str, commands: Sequence[str], timeout: float, *, go_on: bool = False
) -> list[Completed]:
    """Run commands one after the other, up to the first that fails; what each came to that was begun.

    Each has a shell of its own, so that none changes what the next one finds but by what it does to the host.

    Args:
        before: lines of a script that all commands stand behind; where it ends, the first command has its exit code.
        timeout: seconds for all of them.
        go_on: whether those behind a command that fails are run, too.

    Raises:
        HostError: they did not end in time, or the way to the host broke.
    """
    if not commands:
        return []
    mark = f"pdrgate-{secrets.token_hex(8)}"  # no command knows what to print to look like it
    lines = [before]
    for command in commands:
        lines.append(f"sh -c {shlex.quote(command)}")
        lines.append(f"code=$?; printf '\\n{mark} %d\\n' $code; printf '\\n{mark} %d\\n' $code >&2")
        if not go_on:
            lines.append("[ $code = 0 ] || exit $code")
    whole = host.script("\n".join(lines), timeout)
    (*out, last), (*errors, last_error) = (
        re.split(rf"\n{mark} (\d+)\n", text) for text in (whole.stdout, whole.stderr)
    )  # fmt: skip
    ended = [(int(code), text, error) for text, code, error in zip(out[::2], out[1::2], errors[::2], strict=False)]
    stopped = bool(ended) and bool(ended[-1][0]) and not go_on
    if len(ended) < len(commands) and not stopped:
        ended.append((whole.exit_code or 1, last, last_error))  # the script itself ended, as where a folder is missing
    return [
        Completed(("sh", "-c", command), *each) for command, each in zip(commands, ended, strict=False)
    ]  # fmt: skip


_TIMEOUT = 120.0
_ERROR = re.compile(r"\berror\b", re.IGNORECASE)
_SHOWN = 20
"""Lines of a command's output that are reported."""
_OBJECT = "object-under-test.o"
"""File that ``$BPF`` names. Both builds have one name there, for what is set up is to be the same."""


@dataclass(slots=True)
class _OnHop:
    """The steps on one hop."""

    hop: Hop
    number: int
    """The number of the hop, from 1 on."""
    folder: str = ""
    programs: frozenset[str] = frozenset()
    """The folders of programs of ours that steps start."""
    has_object: bool = False
    """Whether the object under test is in the folder."""
    done: list[tuple[int, SetUpStep]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """What commands find in their environment: the ports, by direction of forward traffic, and who faces them."""
        found = {"HOP": str(self.number)}
        if self.has_object:
            found["BPF"] = f"{self.folder}/{_OBJECT}"
        for name, port, link, side in (
            ("IN", self.hop.ingress, self.number - 1, 2),
            ("OUT", self.hop.egress, self.number, 1),
        ):
            found |= {name: port.interface, f"{name}_MAC": port.mac, f"{name}_PEER_MAC": port.peer_mac}
            for family in (4, 6):
                network = KernelNetwork(family)
                found[f"{name}_IP{family}"] = network.address(link, side)
                found[f"{name}_PEER_IP{family}"] = network.address(link, 3 - side)
        return found

    def run(self, command: str) -> Completed:
        """Run a command of the user's in the folder of the files."""
        # In a shell of its own: one that a user's command breaks is not the host's.
        return self.hop.host.script(f"{self._before}\nexec sh -c {shlex.quote(command)}", _TIMEOUT)

    def run_each(self, commands: Sequence[str], *, go_on: bool = False) -> list[Completed]:
        """Run commands as `run` does, all in one round trip; see `commands_at_once`."""
        return commands_at_once(self.hop.host, self._before, commands, _TIMEOUT * len(commands), go_on=go_on)

    @property
    def _before(self) -> str:
        """The lines of a script that stand before a command."""
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in self.environment().items())
        path = "".join(f"PATH={shlex.quote(folder)}:$PATH\n" for folder in sorted(self.programs))
        return f"cd {shlex.quote(self.folder)} || exit\n{path}{exports}"


class SetUpPath(PathAbove):
    """A data path with a user's own steps set up on top of it, on every hop.

    Only the user knows what comes of a frame. No frame is wrong by itself, but it may differ from the other build's.

    Args:
        networks: what the hosts have without the scenario, which they outlive; None: what steps made goes with them.
        base: keeps the data path beneath set up for the next scenario; None: it is taken away.
        report: gets lines of what commands printed, of the first hop.
        build: the object that steps load by its name ``$BPF``; None where they load none.
    """

    def __init__(
        self, beneath: DataPath, set_up: SetUp, *, networks: KnownNetworks | None = None,
        base: StandingBase | None = None, report: Callable[[str], None] = lambda line: None,
        build: BpfBuild | None = None,
    ) -> None:  # fmt: skip
        super().__init__(beneath)
        self._build = build
        self._set_up = set_up
        self._networks = networks
        self._base = base
        self._report = report
        self._hops: list[_OnHop] = []

    def sentence(self) -> str:
        """The data path beneath and the number of steps, in words."""
        count = len(self._set_up.steps)
        return f"{self._beneath.sentence()}, with {count} step{'s' * (count != 1)} of the scenario's"

    def describe(self) -> Mapping[str, str]:
        """What the steps were made of is part of the fingerprint."""
        return {**self._beneath.describe(), "set_up": self._set_up.digest}

    def apply(self, hops: Sequence[Hop]) -> None:
        if self._build is None and self._set_up.loads_program:
            raise UsageError("steps of the scenario load $BPF, and there is none; name an object with --bpf OBJECT")
        if self._networks is not None:
            for hop in hops:
                self._networks.of(hop.host)
        if self._base is not None:
            self._beneath = self._base.stand(self._beneath, hops)
        else:
            self._beneath.apply(hops)
        for number, hop in enumerate(hops, 1):
            one = _OnHop(hop, number)
            self._hops.append(one)
            self._put_files(one)
            self._run(one)

    def replace(self) -> Mapping[str, int]:
        asked = self._set_up.replacement
        assert asked is not None
        completed = self._hops[0].run(asked.script)
        if completed.exit_code:
            raise _failed(self._hops[0].hop.host, "the replacement", asked.command, completed)
        return replaced(completed.stdout, asked.times)

    def restore(self) -> list[str]:
        if self._networks is None:
            self._hops.clear()
            return self._beneath.restore()
        sentences = [sentence for one in reversed(self._hops) for sentence in _undone(one)]
        if self._base is not None and not sentences and not self._restored(self._base.networks):
            self._hops.clear()
            return []
        sentences += self._beneath.restore() if self._base is None else self._base.leave()
        sentences += self._restored(self._networks)
        self._hops.clear()
        return sentences

    def _restored(self, networks: KnownNetworks) -> list[str]:
        """Have the hosts what they had; sentences on what they have not."""
        sentences: list[str] = []
        for one in reversed(self._hops):
            try:
                sentences += networks.restore(one.hop.host)
            except TestbedError as error:
                sentences.append(str(error))
        return sentences

    def _put_files(self, one: _OnHop) -> None:
        host = one.hop.host
        one.folder = host.folder("set-up")
        if wanted := [program for name, program in native.build().for_steps.items() if name in self._set_up.programs]:
            where = (sent(host, program, one.folder, "steps") for program in wanted)
            one.programs = frozenset(str(PurePosixPath(path).parent) for path in where)
        if self._build is not None:
            host.put(f"{one.folder}/{_OBJECT}", self._build.read(), 0o600)
            one.has_object = True
        for file in self._set_up.files:
            host.put(f"{one.folder}/{file.name}", file.content, 0o700 if file.executable else 0o600)

    def _run(self, one: _OnHop) -> None:
        """Run all steps on a hop, up to the first that fails. Raises TestbedError."""
        one.done = [*enumerate(self._set_up.steps, 1)]  # where the host does not answer, nobody knows which
        ended = one.run_each([step.command for step in self._set_up.steps])
        del one.done[len(ended) :]
        for (position, step), completed in zip(one.done, ended, strict=True):
            output = [*completed.stdout.splitlines(), *completed.stderr.splitlines()]
            if one.number == 1 or completed.exit_code:
                self._report(f"step {position} on {one.hop.host.name}, exit code {completed.exit_code}: {step.command}")
                for line in output[-_SHOWN:]:
                    self._report(f"    {line}")
            if completed.exit_code:
                raise _failed(one.hop.host, _step(position), step.command, completed)


def _step(position: int) -> str:
    return f"step {position} of the set-up"


def _failed(host: Host, what: str, command: str, completed: Completed) -> TestbedError:
    """What failed, as an error: the tool's where there is no such program, else the SUT's."""
    kind = ToolError if completed.exit_code == NOT_FOUND else SutError
    return kind(_failure(host, what, command, completed))


def _failure(host: Host, what: str, command: str, completed: Completed) -> str:
    said = completed.stderr.strip() or completed.stdout.strip()
    why = next((line.strip() for line in said.splitlines() if _ERROR.search(line)), last_line(said))
    short = command if len(command) <= 80 else f"{command[:77]}…"
    hint = (
        "is that program installed, or put on the SUT?" if completed.exit_code == NOT_FOUND
        else "has this kernel what the step needs?"
    )  # fmt: skip
    return f"{what}, `{short}`, failed on {host.name} with exit code {completed.exit_code}{why and f': {why}'}; {hint}"


def _undone(one: _OnHop) -> list[str]:
    """Undo the steps on a hop, the last first; sentences on what could not be done."""
    sentences: list[str] = []
    try:
        undone = [(position, step.undo) for position, step in reversed(one.done) if step.undo]
        one.done.clear()
        for (position, undo), completed in zip(
            undone, one.run_each([undo for _, undo in undone], go_on=True), strict=False
        ):
            if completed.exit_code:
                sentences.append(_failure(one.hop.host, _step(position), undo, completed))
        one.hop.host.run("rm", "-rf", one.folder)
    except TestbedError as error:
        sentences.append(str(error))
    return sentences
