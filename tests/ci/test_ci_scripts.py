"""The scripts in ci/ and the lock they install: run on a small checkout, without network or a real package."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import http.server
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pdrgate.launch import listed

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    *(
        ROOT / "ci" / name
        for name in (
            "bootstrap",
            "build-from-env",
            "gate",
            "gate-from-env",
            "github/gate",
            "hand-on",
            "release",
            "lock",
            "merge-from-env",
            "test",
        )
    ),
    ROOT / ".ci" / "run",
]
IS_ROOT = os.geteuid() == 0
NOBODY = 65534


# --- A checkout as small as can be, that the real bootstrap sets up -------------------------------------------------

BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "pdrgate-1-py3-none-any.whl"
    info = "pdrgate-1.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("pdrgate.pth", LIBRARIES)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: pdrgate\\nVersion: 1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\npdrgate = pdrgate.cli:main\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name

import pathlib
LIBRARIES = str(pathlib.Path(__file__).parent)
"""

FILES = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["libraries"]\n',
    "libraries/backend.py": BACKEND,
    "libraries/pdrgate/__init__.py": "",
    "libraries/pdrgate/values/errors.py": "class PdrGateError(Exception): pass\n",
    "libraries/pdrgate/cli.py": "import sys\ndef main():\n    print(*sys.argv[1:])\n    return len(sys.argv) - 2\n",
    "libraries/pdrgate/builds/__init__.py": "",
    "libraries/pdrgate/builds/bpf_build.py": "def compile_own_builds(): pass\n",
    "resources/bpf/xdp_router.bpf.c": "",
    "resources/bpf/counters.h": "",
    "libraries/pdrgate/traffic/__init__.py": "",
    "libraries/pdrgate/traffic/native/worker.c": "",
    "libraries/pdrgate/traffic/native/wire.h": "",
    "libraries/pdrgate/traffic/native/__init__.py": """
import os, types
from pathlib import Path
def build():
    worker = Path(os.environ["HOME"], ".cache/pdrgate/worker")
    worker.parent.mkdir(parents=True, exist_ok=True)
    worker.touch(0o755)
    return types.SimpleNamespace(worker=worker)
""",
}
TOOLS = ("ip", "ethtool", "gcc", "clang", "modprobe", "bpftool", "iperf3")


def make_wheel(folder: Path, name: str) -> str:
    """A wheel with nothing in it; returns the line that requires it."""
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        info = f"{name}-1.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def write_script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # never through a link to the machine's own tool
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@dataclass
class Checkout:
    """A small project with the real ci/ scripts; all it may install lies in a folder of wheels beside it."""

    home: Path
    root: Path = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.home / "checkout"
        wheels = self.home / "wheels"
        wheels.mkdir(parents=True)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        runtime = make_wheel(wheels, "runtime")
        (self.root / "requirements.txt").write_text(runtime)
        (self.root / "requirements-dev.txt").write_text(runtime + make_wheel(wheels, "testtool"))
        shutil.copytree(ROOT / "ci", self.root / "ci")
        # Tools that a machine with nothing but Python may lack; the tests of missing tools bring their own PATH.
        for tool in TOOLS:
            write_script(self.home / "bin" / tool, "")

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / ".bootstrap-stamp"

    def environment(self, **changes: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "XDG_", "SUDO_"))}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": f"{os.environ['PATH']}:{self.home / 'bin'}",
            "PYTHON": sys.executable,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.home / "wheels"),
            **changes,
        }

    def start(self, script: str, *arguments: str, offline: bool = True, **changes: str) -> subprocess.Popen[str]:
        # A network namespace of its own, with not even a loopback, proves that nothing asks the network.
        prefix = [str(shutil.which("unshare")), "--net"] if offline and IS_ROOT else []
        command = [*prefix, str(self.root / "ci" / script), *arguments]
        return subprocess.Popen(
            command,
            env=self.environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
        )

    def run(self, script: str, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        process = self.start(script, *arguments, **changes)
        stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess([script, *arguments], process.returncode, stdout, stderr)

    def installed(self, package: str) -> bool:
        return any((self.root / ".venv").glob(f"lib/python3*/site-packages/{package}-1.dist-info"))


def headers_are_there() -> bool:
    return all(Path(header).exists() for header in ("/usr/include/stdio.h", "/usr/include/bpf/bpf.h"))


needs_headers = pytest.mark.skipif(
    not headers_are_there(), reason="libc6-dev and libbpf-dev are not installed: run ci/bootstrap"
)


@contextlib.contextmanager
def https_server(folder: Path) -> Iterator[int]:
    """The port of a server on the loopback whose certificate nobody has reason to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout after its first start, which an earlier one without packages must not hinder."""
    checkout = Checkout(tmp_path_factory.mktemp("built"))
    assert checkout.run("bootstrap", "--python-only", PIP_FIND_LINKS="").returncode == 2
    assert not checkout.stamp.exists()
    done = checkout.run("bootstrap", "--python-only")
    assert done.returncode == 0, done.stderr
    return checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


class TestStart:
    def test_the_first_leaves_pdrgate_ready(self, built: Checkout) -> None:
        done = subprocess.run([built.root / ".venv/bin/pdrgate", "ready"], capture_output=True, text=True, check=True)
        assert done.stdout == "ready\n"
        assert built.installed("runtime")
        assert not built.installed("testtool")

    @needs_headers
    def test_the_second_does_nothing_and_says_nothing(self, built: Checkout) -> None:
        built.run("bootstrap")  # builds the generator, which the fixture left out
        before = {path: path.lstat().st_mtime_ns for path in (built.root / ".venv").rglob("*")}
        done = built.run("bootstrap", PIP_FIND_LINKS="", PIP_NO_INDEX="")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert {path: path.lstat().st_mtime_ns for path in (built.root / ".venv").rglob("*")} == before

    @needs_headers
    def test_the_generator_is_built_anew_when_its_sources_change(self, built: Checkout) -> None:
        built.run("bootstrap")
        source = built.root / "libraries/pdrgate/traffic/native/worker.c"
        source.write_text(f"// {source.stat().st_mtime_ns}\n")
        assert built.run("bootstrap").stderr == "ci/bootstrap: building the traffic generator\n"
        assert built.run("bootstrap").stderr == ""

    def test_another_lock_is_installed_into_the_same_environment(self, built: Checkout) -> None:
        made = (built.root / ".venv/pyvenv.cfg").stat().st_mtime_ns
        with (built.root / "requirements.txt").open("a") as lock:
            lock.write("# changed\n")
        done = built.run("bootstrap", "--python-only")
        assert done.stderr == "ci/bootstrap: installing the Python packages of requirements.txt\n"
        assert (built.root / ".venv/pyvenv.cfg").stat().st_mtime_ns == made

    def test_the_test_tools_come_with_dev_and_stay(self, built: Checkout) -> None:
        assert built.run("bootstrap", "--python-only", "--dev").returncode == 0
        assert built.installed("testtool")
        assert built.run("bootstrap", "--python-only").stderr == ""
        assert built.run("bootstrap", "--python-only", "--dev").stderr == ""

    def test_a_copied_checkout_gets_its_own_environment_once(self, built: Checkout, checkout: Checkout) -> None:
        shutil.copytree(built.root / ".venv", checkout.root / ".venv", symlinks=True)
        both = [checkout.start("bootstrap", "--python-only") for _ in range(2)]
        said = "".join(process.communicate(timeout=120)[1] for process in both)
        assert [process.returncode for process in both] == [0, 0]
        assert said.count("making .venv") == 1
        assert str(checkout.root).encode() in (checkout.root / ".venv/bin/pdrgate").read_bytes()[:300]

    def test_an_environment_without_its_python_is_made_anew(self, built: Checkout) -> None:
        python = built.root / ".venv/bin/python"
        python.unlink()
        python.symlink_to("/nowhere/python3")
        done = built.run("bootstrap", "--python-only")
        assert (done.returncode, "making .venv" in done.stderr) == (0, True)

    def test_a_python_without_pip_gives_the_environment_one(self, checkout: Checkout) -> None:
        python = checkout.home / "python"
        write_script(python, f'[[ $* != *" -m pip "* ]] || exit 1; exec {sys.executable} "$@"')
        done = checkout.run("bootstrap", "--python-only", PYTHON=str(python))
        assert done.returncode == 0, done.stderr
        assert checkout.installed("runtime")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_is_told_in_one_line_and_the_next_start_goes_on(
        self, checkout: Checkout, tmp_path: Path, number: signal.Signals
    ) -> None:
        """A terminal's Ctrl-C reaches what bootstrap waits for as well, and so do signals to all of a job."""
        begun = tmp_path / "begun"
        write_script(
            tmp_path / "python",
            f'[[ "$*" != *\\ venv\\ * ]] || {{ touch {begun}; exec sleep 600; }}\nexec {sys.executable} "$@"',
        )
        environment = checkout.environment(PYTHON=str(tmp_path / "python"))
        process = subprocess.Popen(
            (checkout.root / "ci/bootstrap", "--python-only"), env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, number)
        stdout, stderr = process.communicate(timeout=120)
        assert (process.returncode, stdout) == (128 + number, "")
        assert stderr.splitlines()[1:] == ["ci/bootstrap: interrupted; the next start goes on with what is there"]
        assert checkout.run("bootstrap", "--python-only").returncode == 0

    def test_an_unknown_argument_is_a_usage_error(self, built: Checkout) -> None:
        done = built.run("bootstrap", "--fast")
        assert done.returncode == 64
        assert done.stderr == "ci/bootstrap: unknown argument '--fast'; see ci/bootstrap --help\n"


class TestNoNetwork:
    @pytest.mark.parametrize("first", [True, False])
    def test_one_line_says_what_to_do_and_hides_addresses(self, built: Checkout, first: bool) -> None:
        """Whichever of the halves that are installed beside each other it is in."""
        lock = built.root / "requirements.txt"
        before, stamp = lock.read_text(), built.stamp.read_text()
        absent = f"absent==1 --hash=sha256:{'0' * 64}\n"
        lock.write_text(absent + before if first else before + absent)
        try:
            done = built.run(
                "bootstrap", "--python-only", offline=False, PIP_RETRIES="0", PIP_NO_INDEX="", PIP_FIND_LINKS="",
                PIP_INDEX_URL="http://someone:secret@127.0.0.1:9/simple",
            )  # fmt: skip
        finally:
            lock.write_text(before)
        assert done.returncode == 2
        step, last = done.stderr.splitlines()
        assert step == "ci/bootstrap: installing the Python packages of requirements.txt"
        assert last.startswith("ci/bootstrap: pip could not install the Python packages: ")
        assert last.endswith("check the network, or the mirror pip is set up with, and run ci/bootstrap again")
        assert "secret" not in done.stderr
        assert "://" not in done.stderr
        assert built.stamp.read_text() == stamp, "the environment that was there must stay usable"

    def test_a_certificate_that_is_not_trusted_is_the_reason(self, built: Checkout, tmp_path: Path) -> None:
        lock = built.root / "requirements.txt"
        before = lock.read_text()
        lock.write_text(f"{before}absent==1 --hash=sha256:{'0' * 64}\n")
        try:
            with https_server(tmp_path) as port:
                done = built.run(
                    "bootstrap", "--python-only", offline=False, PIP_RETRIES="1", PIP_NO_INDEX="", PIP_CERT="",
                    PIP_INDEX_URL=f"https://127.0.0.1:{port}/simple",
                )  # fmt: skip
        finally:
            lock.write_text(before)
        assert done.returncode == 2
        assert "could not install the Python packages: certificate verify failed: self-signed cert" in done.stderr


class TestMissingPackages:
    """With a PATH of its own: the shell's tools, Python, and what each test adds."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        folder = tmp_path / "path"
        folder.mkdir()
        names = "bash cat cut dirname env grep head id sed sha256sum sleep stat tail tr flock touch"
        for name in names.split():
            (folder / name).symlink_to(str(shutil.which(name)))
        (folder / "python3").symlink_to(sys.executable)
        write_script(folder / "apt-get", f'echo "$*" >>{tmp_path}/apt.log')
        return folder

    def not_root(self, path: Path) -> None:
        write_script(path / "id", "echo 1000")

    def test_a_user_without_sudo_gets_the_line_to_run(self, built: Checkout, path: Path) -> None:
        self.not_root(path)
        done = built.run("bootstrap", PATH=str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(
            r"ci/bootstrap: missing: (.*gcc clang.*); not root and no sudo; run once as root: "
            r"apt-get update && apt-get install -y --no-install-recommends \1\n",
            done.stderr,
        )

    @needs_headers
    @pytest.mark.parametrize(
        ("words", "compiles"),
        [
            ("--kernel linux@main", True), ("--kernel=linux@", True), ("--kernel a.deb --against linux@v6.1", True),
            ("--kernel a.deb --against b.deb", False), ("--kernel built@here", False), ("--commit a@b", False),
        ],
    )  # fmt: skip
    def test_what_compiles_kernels_is_installed_where_a_revision_is_named(
        self, built: Checkout, path: Path, words: str, compiles: bool
    ) -> None:
        self.not_root(path)
        write_script(path / "sudo", "[[ $2 == true ]]")  # what installs fails, and says what it should have
        write_script(path / "sleep", "")
        (built.root / "built@here").mkdir(exist_ok=True)
        for name in ("a.deb", "b.deb"):
            (built.root / name).touch()
        done = subprocess.run(
            [built.root / "ci/gate", *words.split()], env=built.environment(PATH=str(path)), cwd=built.root,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (" flex bison bc" in done.stderr) is compiles, done.stderr

    def test_what_boots_kernels_for_arm64_is_installed_where_it_is_named(self, built: Checkout, path: Path) -> None:
        self.not_root(path)
        done = built.run("bootstrap", "--arch", "arm64", PATH=str(path))
        assert done.returncode == 2
        assert " qemu-system-x86 " in done.stderr
        assert " qemu-system-arm gcc-aarch64-linux-gnu" in done.stderr
        assert " qemu-system-arm" not in built.run("bootstrap", "--vm", PATH=str(path)).stderr
        done = built.run("bootstrap", "--arch", "x", PATH=str(path))
        assert (done.returncode, done.stderr) == (
            64, "ci/bootstrap: --arch takes arm64, and not 'x'; see ci/bootstrap --help\n"
        )  # fmt: skip

    def test_a_user_with_sudo_installs_what_is_missing_trying_twice(
        self, built: Checkout, path: Path, tmp_path: Path
    ) -> None:
        self.not_root(path)
        built.run("bootstrap")
        write_script(path / "sudo", f'[[ $1 != -n ]] || shift; echo "sudo $*" >>{tmp_path}/sudo.log; exec "$@"')
        (path / "true").symlink_to("/bin/true")
        for tool in ("ip", "ethtool", "modprobe", "iperf3"):
            write_script(path / tool, "")
        write_script(
            path / "apt-get",
            f'echo "$*" >>{tmp_path}/apt.log; [[ $1 == install ]] || exit 0\n'
            f"[[ -e {tmp_path}/tried ]] || {{ touch {tmp_path}/tried; echo E: lock; exit 100; }}\n"
            f"for tool in gcc clang; do cp {path}/apt-get {path}/$tool; done",
        )
        (path / "cp").symlink_to("/bin/cp")
        done = built.run("bootstrap", PATH=str(path))
        assert (done.returncode, done.stderr) == (0, "ci/bootstrap: installing distribution packages: gcc clang\n")
        calls = (tmp_path / "apt.log").read_text().splitlines()
        assert [call.split()[0] for call in calls] == ["update", "install"] * 2
        assert all(call.endswith("gcc clang") for call in calls if call.startswith("install"))
        assert "NEEDRESTART_SUSPEND=1" in (tmp_path / "sudo.log").read_text()

    def test_apt_that_fails_twice_is_named_without_its_mirror(self, built: Checkout, path: Path) -> None:
        self.not_root(path)
        write_script(path / "sudo", '[[ $1 != -n ]] || shift; exec "$@"')
        (path / "true").symlink_to("/bin/true")
        write_script(path / "sleep", "")
        write_script(path / "apt-get", "echo 'E: Failed to fetch http://me:secret@mirror/gcc.deb  404'; exit 100")
        done = built.run("bootstrap", PATH=str(path))
        assert done.returncode == 2
        assert "Failed to fetch <address>  404; once that is solved, run as root: apt-get update" in done.stderr
        assert "secret" not in done.stderr

    def test_pip_does_not_wait_for_what_it_does_not_need(self, checkout: Checkout, path: Path) -> None:
        """And what it has installed stays, where apt fails."""
        for tool in ("awk", "mkdir", "mv", "rm"):
            (path / tool).symlink_to(str(shutil.which(tool)))
        write_script(
            path / "apt-get",
            "[[ $1 == install ]] || exit 0\n"
            f"for ((i = 0; i < 600; i++)); do [[ ! -e {checkout.stamp} ]] || {{ echo E: it is there; exit 100; }}\n"
            "sleep 0.1; done; echo E: it was waited for; exit 100",
        )
        done = checkout.run("bootstrap", PATH=str(path))
        assert done.returncode == 2
        assert "apt-get could not install " in done.stderr
        assert ": it is there; once that is solved" in done.stderr
        assert checkout.installed("runtime")

    def test_no_apt_get(self, built: Checkout, path: Path) -> None:
        (path / "apt-get").unlink()
        done = built.run("bootstrap", PATH=str(path))
        assert done.returncode == 2
        assert "this machine has no apt-get: install them with its own package manager" in done.stderr

    def test_debians_python_without_venv(self, checkout: Checkout, path: Path) -> None:
        self.not_root(path)
        write_script(path / "python3", f'[[ $* != *ensurepip* ]] || exit 1; exec {sys.executable} "$@"')
        done = checkout.run("bootstrap", "--python-only", PATH=str(path), PYTHON="")
        assert done.returncode == 2
        assert done.stderr.startswith("ci/bootstrap: missing: python3-venv; not root and no sudo;")

    def test_no_python_at_all(self, checkout: Checkout, path: Path) -> None:
        self.not_root(path)
        (path / "python3").unlink()
        done = checkout.run("bootstrap", "--python-only", PATH=str(path), PYTHON="")
        assert done.stderr.startswith("ci/bootstrap: missing: python3-venv;")

    def test_a_python_that_is_too_old_is_named(self, checkout: Checkout, path: Path) -> None:
        write_script(path / "python3", "[[ $1 == -V ]] && echo Python 3.9.2; exit 1")
        done = checkout.run("bootstrap", PATH=str(path), PYTHON="")
        assert done.returncode == 2
        assert done.stderr.startswith("ci/bootstrap: needs Python 3.11 or newer; python3 is Python 3.9.2; name a newer")


@pytest.mark.skipif(not IS_ROOT, reason="makes files of another user")
class TestOwners:
    @pytest.fixture
    def theirs(self) -> Iterator[Checkout]:
        """A checkout that nobody owns, where nobody can reach it."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            checkout = Checkout(Path(folder) / "home")
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder], check=True)
            yield checkout

    def test_what_root_makes_belongs_to_the_owner_of_the_checkout(self, theirs: Checkout) -> None:
        done = theirs.run("bootstrap", "--python-only")
        assert done.returncode == 0, done.stderr
        assert {path.lstat().st_uid for path in theirs.root.rglob("*")} == {NOBODY}

    def test_so_does_what_it_made_before_it_failed(self, theirs: Checkout) -> None:
        (theirs.root / "requirements.txt").write_text(f"gone==1 --hash=sha256:{'0' * 64}\n")
        done = theirs.run("bootstrap", "--python-only")
        assert done.returncode == 2
        assert (theirs.root / ".venv").is_dir()
        assert {path.lstat().st_uid for path in theirs.root.rglob("*")} == {NOBODY}

    def test_roots_environment_gives_the_line_to_run(self, theirs: Checkout) -> None:
        (theirs.root / ".venv").mkdir()
        write_script(theirs.home / "python3", "exit 0")  # nobody may not reach root's own Python
        done = subprocess.run(
            [
                *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
                *(str(theirs.root / "ci/bootstrap"), "--python-only"),
            ],
            env=theirs.environment(PYTHON=str(theirs.home / "python3"), PATH="/usr/bin:/bin"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"ci/bootstrap: {theirs.root}/.venv belongs to root, not to ")
        assert f"remove it once: sudo rm -rf '{theirs.root}/.venv'" in done.stderr


class TestGate:
    def test_help_of_a_fresh_clone_installs_nothing(self, checkout: Checkout) -> None:
        done = checkout.run("gate", "--kernel", "a.deb", "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert "Usage: pdrgate gate" in done.stdout and "--kernel" in done.stdout
        assert not (checkout.root / ".venv").exists()

    def test_help_needs_neither_root_nor_compilers(self, built: Checkout) -> None:
        done = built.run("gate", "--profile", "quick", "--help")
        assert (done.stdout, done.stderr) == ("gate --profile quick --help\n", "")

    @needs_headers
    def test_arguments_and_exit_code_pass_through(self, built: Checkout) -> None:
        built.run("bootstrap")
        done = built.run("gate", "--scenario", "two words")
        assert (done.stdout, done.returncode) == ("gate --scenario two words\n", 2)

    @needs_headers
    def test_a_user_becomes_root_through_sudo_and_keeps_path_and_cache(self, built: Checkout, tmp_path: Path) -> None:
        built.run("bootstrap")
        write_script(tmp_path / "id", "echo 1000")
        write_script(tmp_path / "sudo", 'case $1 in -n) ;; *) printf "%s\\n" "$@" ;; esac')
        done = built.run("gate", "--scenario", "two words", PATH=f"{tmp_path}:{built.environment()['PATH']}")
        words = done.stdout.splitlines()
        assert words[:2] == ["-E", "env"]
        assert f"PATH={tmp_path}:{built.environment()['PATH']}" in words
        assert f"XDG_CACHE_HOME={built.home}/.cache" in words
        assert words[-4:] == [f"{built.root}/.venv/bin/pdrgate", "gate", "--scenario", "two words"]


class TestTest:
    SUMMARY = "===== 3 passed in 0.10s ====="

    @pytest.fixture
    def stubbed(self, tmp_path: Path) -> Path:
        """A checkout whose pytest only notes how it was called."""
        shutil.copytree(ROOT / "ci", tmp_path / "ci")
        write_script(tmp_path / "ci/bootstrap", "")
        write_script(
            tmp_path / ".venv/bin/python", f'echo "python $*" >>calls; echo "{self.SUMMARY}"; exit ${{CODE:-0}}'
        )
        return tmp_path

    def run(self, root: Path, *arguments: str, **changes: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [root / "ci/test", *arguments],
            env={**os.environ, **changes}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.splitlines()

    def test_arguments_go_to_pytest_whose_summary_is_the_last_line(self, stubbed: Path) -> None:
        code, lines = self.run(stubbed, "--junitxml=out put.xml")
        assert (code, lines[-1]) == (0, self.SUMMARY)
        assert (stubbed / "calls").read_text().splitlines() == [
            "python -m pytest --ignore=tests/bench --numprocesses=3 --dist=loadgroup --junitxml=out put.xml"
        ]

    def test_pytests_exit_code_is_kept(self, stubbed: Path) -> None:
        assert self.run(stubbed, CODE="5")[0] == 5


# --- The files themselves -------------------------------------------------------------------------------------------


def pins(name: str) -> dict[str, tuple[str, int]]:
    """By canonical name: the version, and how many hashes stand for it."""
    found = re.findall(
        r"^([A-Za-z0-9._-]+)==(\S+)(?: ; [^\\\n]*[^\\\n ])?((?: \\\n +--hash=sha256:[0-9a-f]{64})*)",
        (ROOT / name).read_text(), re.M,
    )  # fmt: skip
    return {canonicalize_name(package): (version, hashes.count("--hash")) for package, version, hashes in found}


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
class TestLock:
    def test_every_requirement_has_hashes(self, name: str) -> None:
        requirements = [line for line in (ROOT / name).read_text().splitlines() if re.match(r"[^\s#]", line)]
        assert len(requirements) == len(pins(name)), "a line that is no pin, but an option"
        assert [package for package, (_, hashes) in pins(name).items() if not hashes] == []

    def test_it_names_no_host_and_no_path(self, name: str) -> None:
        text = (ROOT / name).read_text()
        assert not re.search(r"://|--(index|extra|find|trusted)|file:/|@ |(?<![\w.])/(?!/)\w", text)

    def test_it_is_in_step_with_pyproject(self, name: str) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
        if name == "requirements-dev.txt":
            wanted += project["project"]["optional-dependencies"]["dev"]
        locked = pins(name)
        for requirement in map(Requirement, wanted):
            version, _ = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{requirement} is locked at {version}: run ci/lock"


def test_the_test_tools_do_not_change_what_runs() -> None:
    runtime, dev = pins("requirements.txt"), pins("requirements-dev.txt")
    assert {package: dev.get(package) for package in runtime} == runtime


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_executable(script: Path) -> None:
    assert os.access(script, os.X_OK)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(["shellcheck", *SCRIPTS], capture_output=True, text=True, check=False)
    assert done.stdout == ""


# --- What is told before anything is installed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--scenario", "path-natt"],
            "no test has the tag path-natt; did you mean path-nat? ./ci/gate --list-scenarios has all",
        ),
        (["--scenario", "NAT"], "no test has the tag NAT; did you mean path-nat? ./ci/gate --list-scenarios has all"),
        (["--scenario", "path-zzz"], "no test has the tag path-zzz; ./ci/gate --list-scenarios has all"),
        (
            ["-q", "--scenario=path-natt"],
            "no test has the tag path-natt; did you mean path-nat? ./ci/gate --list-scenarios has all",
        ),
        (
            ["--scenaro", "path-nat"],
            "there is no option --scenaro; did you mean --scenario? ./ci/gate --help has all",
        ),
        (
            ["--profile", "standart"],
            "there is no --profile standart; did you mean standard? there are: smoke quick standard pastrami",
        ),
        (["--set", "buget=3"], "--set buget=3: there is no such key; did you mean budget? docs/reference.md has all"),
        (["--quiet", "--scenario"], "--scenario wants a value; ./ci/gate --help says which"),
        (["--testbed", "rak.yaml"], "there is no testbed file rak.yaml"),
        (["--against", "running", "--kernel=../linx@v6.1"], "--kernel: there is no file or folder ../linx@v6.1"),
        (["--against", "running", "--kernel=new.deb"], "--kernel: there is no file or folder new.deb"),
        (["--kernel=new.rpm"], "--kernel: there is no file or folder new.rpm"),
        (["--kernel=sid/linux-6.deb"], "--kernel: there is no file or folder sid/linux-6.deb"),
        (["--kernel=builds/vmlinuz"], "--kernel: there is no file or folder builds/vmlinuz"),
        (["--testbed", "rack"], "there is no testbed file rack"),
        (["--bpf", "router.o:xdp"], "--bpf: there is no file router.o:xdp"),
        (["--scenario", "mine.yaml"], "--scenario: there is no file mine.yaml"),
        (["--suite=mine.robot"], "--suite: there is no file or folder mine.robot"),
        (["--baseline", "old/result.json"], "--baseline: there is no file or folder old/result.json"),
        (["--output=elsewhere", "--resume", "20261127-000000"], "there is no run 20261127-000000 to resume"),
        (["--profile", "fast"], "there is no --profile fast; there are: smoke quick standard pastrami"),
    ],
)
def test_what_is_misspelled_is_told_before_anything_is_installed(
    checkout: Checkout, options: list[str], told: str
) -> None:
    (checkout.root / "robot/gate").mkdir(parents=True)
    (checkout.root / "robot/gate/nat.robot").write_text("Test Tags    portfolio  path-nat\n")
    usual = 2 if re.search("there is no (file|testbed file|run) ", told) else 64
    for more, code in (([], usual), (["--bisect"], 255)):
        done = checkout.run("gate", *more, *options)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", f"ci/gate: {told}\n")
    assert not (checkout.root / ".venv").exists()


@needs_headers
def test_what_is_there_is_no_reason_to_refuse(built: Checkout) -> None:
    built.run("bootstrap")
    for place in ("rack.yaml", "mine.robot", "old/20261127-000000/result.json", "new.deb", "linux/Makefile"):
        (built.home / place).parent.mkdir(parents=True, exist_ok=True)
        (built.home / place).touch()
    for words in (
        "--testbed rack.yaml --suite mine.robot", "--kernel=new.deb,vmlinux=x --against linux-image-x",
        "--kernel linux --against=running", "--kernel sid/linux-image-x=7.3-1 --against=new-backports/linux-image-y",
        "--baseline=history:main", "--baseline old",
        "--output old --resume 20261127-000000", "--profile=smoke --output not/there/yet",
    ):  # fmt: skip
        done = built.run("gate", *words.split())
        assert "ci/gate: " not in done.stderr, words


def test_who_cannot_become_root_is_told_before_anything_is_installed(checkout: Checkout, tmp_path: Path) -> None:
    write_script(tmp_path / "own/id", "[[ $1 != -un ]] || exec echo somebody; echo 1000")
    write_script(tmp_path / "own/sudo", "exit 1")
    path = f"{tmp_path / 'own'}:{checkout.environment()['PATH']}"
    done = checkout.run("gate", PATH=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ci/gate: guests and namespaces take root, and somebody has no sudo without a password here; run it as root\n"
    )
    assert not (checkout.root / ".venv").exists()


@pytest.mark.skipif(not IS_ROOT, reason="hides a device from a process")
@pytest.mark.parametrize("options", [[], ["--kernel", "linux-image-a", "--against", "linux-image-b"]])
def test_a_machine_without_taps_is_told_before_anything_is_installed(
    checkout: Checkout, tmp_path: Path, options: list[str]
) -> None:
    write_script(tmp_path / "own/modprobe", "exit 1")
    done = subprocess.run(
        ("unshare", "--mount", "sh", "-c", 'mkdir -p /dev/net; mount -t tmpfs pdrgate-test /dev/net && exec "$@"', "sh",
         checkout.root / "ci/gate", *options),
        env=checkout.environment(PATH=f"{tmp_path / 'own'}:{checkout.environment()['PATH']}"), cwd=checkout.home,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ci/gate: there is no /dev/net/tun, by which guests get packets: modprobe tun, or ")
    assert not (checkout.root / ".venv").exists()


def test_the_gate_knows_the_tag_of_each_test_before_anything_is_installed() -> None:
    text = "\n".join(file.read_text() for file in (ROOT / "robot/gate").rglob("*.robot"))
    for tag in {tag for test in listed([ROOT / "robot/gate"]) for tag in test.tags}:
        assert re.search(rf"(?m)(^|  ){re.escape(tag)}(  |$)", text), tag


@pytest.mark.skipif(not IS_ROOT, reason="mounts a small disk")
def test_a_full_disk_is_told_before_anything_is_installed(tmp_path: Path) -> None:
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=100m", "pdrgate-test", str(tmp_path)), check=True)
    try:
        checkout = Checkout(tmp_path)
        (tmp_path / "mine.robot").touch()
        done = checkout.run("gate", "--scenario", "default", "--suite", "mine.robot")
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(
            rf"ci/bootstrap: {checkout.root} has \d+ MB free, and the Python environment "
            r"wants 1000 MB: make room there\n",
            done.stderr,
        )
        assert not (checkout.root / ".venv").exists()
    finally:
        # What looks at every mounted disk, such as `df`, may hold this one for a moment.
        subprocess.run(("umount", "--lazy", str(tmp_path)), check=True)
