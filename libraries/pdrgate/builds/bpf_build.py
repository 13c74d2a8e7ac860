"""Objects of eBPF: those that come with pdrgate, compiled here, and a user's own, the builds under test.

An object is recognised by its ELF header and sections. The name of a section has the purpose of its programs (libbpf's
convention: ``xdp``, ``tc``, ``tc/ingress``, ``classifier``). Only a kernel can decide whether it loads.
"""

from __future__ import annotations

import hashlib
import io
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pdrgate.builds.elf_file import BPF, EXECUTABLE, GLOBAL_FUNCTION, WEAK_FUNCTION, ElfFile
from pdrgate.builds.handed_over import BuildError, content
from pdrgate.builds.program_hooks import hook_of, measured_otherwise
from pdrgate.builds.program_setup import ATTACHES, ProgramSetup
from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.compiled import NO_BPF_HEADER, compile_to, compiling
from pdrgate.values.errors import SutError, TestbedError

ProgramKind = Literal[
    "xdp", "tc", "tp_btf", "socket", "cgroup_skb", "cgroup", "sock_ops", "sk_lookup", "flow_dissector", "lwt",
    "netfilter", "sk_reuseport", "sk_msg", "sk_skb", "struct_ops",
    "netkit", "any",
]  # fmt: skip

SOURCES = Path(__file__).parents[1] / "resources" / "bpf"
"""pdrgate's own programs."""

_LARGEST = 64 << 20
_MOST_PROGRAMS = 64
"""Names that a message lists."""
_SECTIONS: Mapping[str, ProgramKind] = {
    "xdp": "xdp", "xdp.frags": "xdp", "tc": "tc", "tcx": "tc", "classifier": "tc", "action": "tc",
    "tp_btf": "tp_btf",
}  # fmt: skip
"""The purpose of a program, by the part of its section's name before the first slash (libbpf's section_defs)."""

_RUN_ON_PACKETS: Mapping[str, ProgramKind] = {
    "socket": "socket", "cgroup_skb": "cgroup_skb", "cgroup/skb": "cgroup_skb", "sk_lookup": "sk_lookup",
    "flow_dissector": "flow_dissector", "lwt_in": "lwt", "lwt_out": "lwt", "lwt_xmit": "lwt", "lwt_seg6local": "lwt",
    "netfilter": "netfilter", "xdp/cpumap": "xdp", "xdp/devmap": "xdp", "xdp.frags/cpumap": "xdp",
    "xdp.frags/devmap": "xdp",
}  # fmt: skip
"""Kinds that no port takes and that BPF_PROG_RUN runs on a packet, by a section, or by its part before the slash."""

_NOT_ON_PACKETS = ("tp_btf", "cgroup", "sock_ops", "sk_reuseport", "sk_msg", "sk_skb", "struct_ops", "netkit")
"""Kinds that BPF_PROG_RUN runs on no packet."""
_SAY_KIND = "; say it with --set attach=xdp, or attach=tc-ingress"
"""The end of a message on sections that nobody knows, which older loaders took."""
_NO_PORT_PROGRAMS = ("xdp/cpumap", "xdp/devmap", "xdp.frags/cpumap", "xdp.frags/devmap")
"""XDP programs that no interface takes."""


class BpfBuildError(SutError):
    """The file is no eBPF object that could be measured, or a kernel refuses it."""


class BpfRefusedError(BpfBuildError):
    """A kernel refuses to load an eBPF program."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of an eBPF object."""

    name: str
    section: str

    @property
    def kind(self) -> ProgramKind | None:
        """The kind by the program's section; None if nothing here runs such programs."""
        if self.section in _NO_PORT_PROGRAMS:
            return None
        section = self.section.removeprefix("?")
        hook = hook_of(section)
        return hook.kind if hook is not None else _SECTIONS.get(section.partition("/")[0])

    @property
    def kind_on_packets(self) -> ProgramKind | None:
        """The kind as which BPF_PROG_RUN runs it on a packet; None if it does not."""
        section = self.section.removeprefix("?")
        found = _RUN_ON_PACKETS.get(section) or _RUN_ON_PACKETS.get(section.partition("/")[0]) or self.kind
        return None if found in _NOT_ON_PACKETS else found

    @property
    def replaces(self) -> str | None:
        """The function that its section says it replaces, which may be empty; None if it replaces none."""
        first, _, function = self.section.removeprefix("?").partition("/")
        return function if first == "freplace" else None

    @property
    def by_default(self) -> bool:
        """Whether it is meant where nobody names one. libbpf leaves out what stands in a section that begins with ?."""
        return not self.section.startswith("?")

    def __str__(self) -> str:
        return f"{self.name} in {self.section}"


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """A program that ports run, and the function of it that the build under test replaces (freplace)."""

    build: BpfBuild
    function: str


@dataclass(frozen=True, slots=True)
class BpfBuild:
    """An eBPF object file, and which of its programs is the build under test."""

    name: str
    """The name that a person calls it by: the file's, and the program's where that was chosen."""
    path: Path
    sha256: str
    section: str
    """The section that the program stands in."""
    kind: ProgramKind
    program: str = ""
    """The program's name."""
    setup: ProgramSetup = field(default_factory=ProgramSetup)
    """Set-up of the program: attachment, maps and variables."""
    programs: tuple[Program, ...] = ()
    """All programs of the object."""
    dispatcher: Dispatcher | None = None
    """Dispatcher that ports run in its place; None if they run the program itself."""

    def read(self) -> bytes:
        """The object. Raises BpfBuildError when it is not what it was when it was looked at."""
        try:
            found = content(self.path, self.path, _LARGEST)
        except BuildError as error:
            raise BpfBuildError(f"{error}; it was there when it was looked at") from error
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise BpfBuildError(f"{self.path}: is another one than when it was looked at; start again")
        return found

    @property
    def digest(self) -> str:
        """The digest of the object, and of program and set-up if they were chosen."""
        chosen = "" if self.name == self.path.name else self.program
        if not chosen and not self.setup_digest:
            return self.sha256
        return hashlib.sha256(":".join(filter(None, (self.sha256, chosen, self.setup_digest))).encode()).hexdigest()

    @property
    def setup_digest(self) -> str:
        """The digest of what it is set up with, and of the dispatcher; empty if that is nothing."""
        if (found := self.dispatcher) is None:
            return self.setup.digest
        parts = (self.setup.digest, found.build.sha256, found.build.program, found.function)
        return hashlib.sha256(":".join(parts).encode()).hexdigest()

    @property
    def port_section(self) -> str:
        """The section of the program that ports run."""
        return self.section if self.dispatcher is None else self.dispatcher.build.section

    @property
    def load_as(self) -> str:
        """Purpose to load it for, by libbpf's name; empty if its section has it."""
        if self.kind == "netfilter":
            return self.kind  # a section that older versions of libbpf do not know
        if self.kind == "netkit":
            return self.section.removeprefix("?")  # likewise
        chosen = next((one for one in self.programs if one.name == self.program), None)
        if chosen is not None and chosen.kind is not None:
            return ""
        return {"xdp": "xdp", "tc": "classifier"}.get(self.kind, "")

    @property
    def label(self) -> str:
        """Name and the first digits of the hash: two builds may well have one name."""
        return f"{self.name} ({self.sha256[:8]})"

    def recorded(self) -> dict[str, str]:
        """Entries of result.json on a program that a scenario loads: its identity, and its set-up."""
        entries = {f"program {self.program}": f"of {self.path.name}, SHA-256 {self.sha256}"}
        if (found := self.dispatcher) is not None:
            entries["replaces"] = f"{found.function} of {found.build.name}, SHA-256 {found.build.sha256}"
        return entries | self.setup.recorded()


def bpf_build(
    source: BpfBuild | str | Path,
    kind: ProgramKind | None = None,
    setup: ProgramSetup | None = None,
    *,
    on_packets: bool = False,
    by_steps: bool = False,
) -> BpfBuild:
    """The build in an object file; with ``kind``, it must be for such a data path.

    Args:
        source: the file; of an object with several programs ``FILE:PROGRAM``; or a build that was made of one.
        setup: its set-up; `pdrgate.bpf.filling.check_setup` checks whether its maps have room for that.
        on_packets: whether it is to be run on packets by BPF_PROG_RUN, so that programs of more kinds will do.
        by_steps: whether steps of a scenario load it, so that programs of all kinds will do.

    Raises:
        BpfBuildError: there is no such file, it is no eBPF object, has no such program, or several to choose from.
    """
    if isinstance(source, BpfBuild):
        _check_kind(source.path, source.section, source.kind, kind)
        return source
    path, wanted = _named(source)
    setup = setup or ProgramSetup()
    if setup.attach != "auto":
        attached = ATTACHES[setup.attach]
        if kind is not None and kind != attached:
            raise BpfBuildError(
                f"{path}: {setup.attach} takes a program for {attached}, and this data path runs one for {kind}; "
                "choose another --set attach=WHERE, or a data path that goes with it"
            )
        kind = attached
    dispatcher = None
    if setup.replaces:
        dispatcher = _dispatcher(setup, kind)
        kind = dispatcher.build.kind
    try:
        read = content(path, path.resolve(), _LARGEST)
    except BuildError as error:
        raise BpfBuildError(f"{error}; name an eBPF object file") from error
    try:
        programs = _programs(read)
    except ValueError as error:
        raise BpfBuildError(f"{path}: is no eBPF object ({error}); compile one with clang -target bpf") from error
    digest = hashlib.sha256(read).hexdigest()
    if by_steps:
        if setup != ProgramSetup():
            raise BpfBuildError(
                f"{path}: steps of the scenario load it ($BPF); leave out attach, maps, rodata and replaces, and have "
                "the steps do it"
            )
        return BpfBuild(path.name, path.resolve(), digest, "", "any", wanted, programs=tuple(programs))
    if not wanted and setup.attach != "auto" and len(programs) == 1 and programs[0].kind is None:
        wanted = programs[0].name  # of an old section, or of none: there is no other, and what it is for was said
    if dispatcher is not None and not wanted and (own := [one for one in programs if one.replaces is not None]):
        if len(own) > 1:
            has = ", ".join(map(str, own))
            raise BpfBuildError(f"{path}: holds several programs ({has}); name one of them: {path.name}:{own[0].name}")
        wanted = own[0].name
    program, found = _chosen(path, programs, wanted, kind, on_packets)
    _check_kind(path, program.section, found, kind)
    name = f"{path.name}:{program.name}" if wanted else path.name
    if dispatcher is not None and not dispatcher.function:
        dispatcher = replace(dispatcher, function=program.replaces or "")
        if not dispatcher.function:
            raise BpfBuildError(
                f"{path}: its section {program.section} does not name what it replaces of {dispatcher.build.name}; "
                f"name it: {setup.replaces}/FUNCTION"
            )
    return BpfBuild(
        name, path.resolve(), digest, program.section, found, program.name, setup, tuple(programs), dispatcher
    )


def _dispatcher(setup: ProgramSetup, kind: ProgramKind | None) -> Dispatcher:
    """Dispatcher that a set-up names, with the function if it is named. Raises BpfBuildError."""
    source, slash, function = setup.replaces.rpartition("/")
    if not slash or ":" in function or ":" not in Path(source).name:
        source, function = setup.replaces, ""
    return Dispatcher(bpf_build(source, kind, ProgramSetup(setup.attach)), function)


def _check_kind(path: Path, section: str, found: ProgramKind, kind: ProgramKind | None) -> None:
    """Raises BpfBuildError when a program is not of the kind that is wanted, if any is."""
    if kind is not None and kind != found:
        raise BpfBuildError(
            f"{path}: holds a program for {found} (section {section}), and this data path runs one for {kind}; choose "
            "the data path that goes with it"
        )


def _named(source: str | Path) -> tuple[Path, str]:
    """The file and the program of a source. A file whose own name has a colon is that file."""
    path = Path(source)
    if path.exists() or ":" not in path.name:
        return path, ""
    file, _, program = path.name.rpartition(":")
    return path.with_name(file) if file else path, program if file else ""


def _chosen(
    path: Path, programs: Sequence[Program], wanted: str, kind: ProgramKind | None, on_packets: bool
) -> tuple[Program, ProgramKind]:
    """The program that is meant, and its kind. Raises BpfBuildError."""
    kinds = {one: one.kind_on_packets if on_packets else one.kind for one in programs}
    has = ", ".join(map(str, programs)) or "nothing to run"
    if wanted:
        named = [one for one in programs if one.name == wanted]
        if not named:
            raise BpfBuildError(f"{path}: has no program {wanted}, but {has}; name one of these")
        # A section that nobody knows, as older loaders took them, says nothing: the data path says what it is for.
        if (found := kinds[named[0]] or kind) is None:
            if not on_packets and (otherwise := measured_otherwise([named[0].section])):
                raise BpfBuildError(f"{path}: no port takes its program {named[0]}; {otherwise}")
            raise BpfBuildError(
                f"{path}: its program {named[0]} is of no kind that BPF_PROG_RUN runs on packets{_SAY_KIND}"
                if on_packets
                else f"{path}: its section does not say what its program {named[0]} is for{_SAY_KIND}"
            )
        return named[0], found
    possible = [(one, known) for one in programs if one.by_default and (known := kinds[one]) is not None]
    fitting = (
        [(one, known) for one, known in possible if known == kind]
        or [(one, known) for one, known in possible if known in ("xdp", "tc")]
        or possible
    )
    if not fitting and on_packets:
        raise BpfBuildError(f"{path}: has no program that BPF_PROG_RUN runs on packets, but {has}{_SAY_KIND}")
    if not fitting and (otherwise := measured_otherwise([one.section for one in programs])):
        raise BpfBuildError(f"{path}: no port takes its programs ({has}); {otherwise}")
    if not programs:
        raise BpfBuildError(f'{path}: holds no program; put one into SEC("xdp") or SEC("tc")')
    if not fitting:
        raise BpfBuildError(
            f"{path}: its sections do not say what its programs are for ({has}){_SAY_KIND}"
            f"{f', and name one: {path.name}:{programs[0].name}' if len(programs) > 1 else ''}"
        )
    if all(known == "struct_ops" for _, known in fitting):
        return fitting[0]  # they are registered together
    if len(fitting) > 1:
        raise BpfBuildError(
            f"{path}: holds several programs ({has}); name one of them: {path.name}:{fitting[0][0].name}"
        )
    return fitting[0]


def own_build(name: str, defines: Sequence[str] = (), cache: Path | None = None) -> BpfBuild:
    """A program that comes with pdrgate, ``xdp_router`` for one, compiled unless this version of it is there already.

    Args:
        defines: macros for the compiler, such as ``LOOKUPS=3``.

    Raises:
        TestbedError: the sources, the compiler or a header are missing, or compiling failed.
    """
    source = SOURCES / f"{name}.bpf.c"
    if not source.is_file():
        raise TestbedError(f"{source} is not there; it is a part of pdrgate: install pdrgate again")
    text = b"\0".join(path.read_bytes() for path in (source, *sorted(SOURCES.glob("*.h"))))
    digest = hashlib.sha256("\0".join((platform.machine(), *defines)).encode() + b"\0" + text)
    folder = (cache or cache_folder()) / f"bpf-{digest.hexdigest()}"
    output = folder / f"{name}.bpf.o"
    if not output.exists():
        command = (
            "clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I/usr/include/{platform.machine()}-linux-gnu",
            *(f"-D{define}" for define in defines), "-c", str(source),
        )  # fmt: skip
        with compiling(str(source), folder, {"clang": "clang libbpf-dev"}, NO_BPF_HEADER):
            compile_to(output, command)
    return bpf_build(output)


OWN_BUILDS = ("xdp_router", "xdp_steer", "tc_redirect", "drop_reasons")


def compile_own_builds() -> None:
    """Compile all programs that come with pdrgate, for set-up. Raises as `own_build` does."""
    for name in OWN_BUILDS:
        own_build(name)


def _programs(read: bytes) -> list[Program]:
    """The programs of an object, in the file's order. Raises ValueError when it is no eBPF object.

    Programs are the global functions of executable sections; those in ``.text`` are only called by them.
    """
    elf = ElfFile(io.BytesIO(read))
    if elf.machine != BPF:
        raise ValueError(f"it is for machine {elf.machine} and not for BPF, {BPF}")
    found = []
    for symbol in (*elf.symbols(GLOBAL_FUNCTION), *elf.symbols(WEAK_FUNCTION)):
        if symbol.section >= len(elf.sections):
            continue  # a reserved index, for what stands in no section
        section = elf.sections[symbol.section]
        if section.flags & EXECUTABLE and section.name != ".text":
            found.append((symbol.section, symbol.value, Program(symbol.name, section.name)))
        if len(found) > _MOST_PROGRAMS:
            raise ValueError(f"it has more than {_MOST_PROGRAMS} programs")
    return [program for _, _, program in sorted(found, key=lambda one: one[:2])]
