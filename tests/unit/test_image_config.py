"""The configuration in a kernel's image, for builds that have none in a file, as Arch's packages."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import random
from pathlib import Path

import pytest
from made_kernels import RELEASE, image, image_around, modules_folder, tar_file, tarred, tree

from pdrgate.builds import image_config as module_under_test
from pdrgate.builds.kernel_build import BuildError, kernel_build
from pdrgate.builds.kernel_modules import modules_asked_for, select_modules

CONFIG = "#\n# Linux/x86 6.14.0 Kernel Configuration\n#\nCONFIG_SMP=y\nCONFIG_VIRTIO_NET=m\n"


def kernel(config: bytes | None, before: int = 3 << 20) -> bytes:
    """A kernel with its configuration as kernel/configs.c has it, behind so many bytes."""
    inside = b"" if config is None else b"IKCFG_ST" + config + b"IKCFG_ED"
    return random.Random(1).randbytes(1 << 16) + bytes(before) + b"IKCFG_ST no configuration" + inside + b"more" * 9


def packed_image(config: bytes | None = gzip.compress(CONFIG.encode()), **options: int) -> bytes:
    content = kernel(config, **options)
    return image_around(lzma.compress(content, check=lzma.CHECK_CRC32), len(content))


def test_an_arch_package_has_its_configuration_in_its_image(tmp_path: Path) -> None:
    where = f"usr/lib/modules/{RELEASE}"
    folder = modules_folder(tmp_path / "m")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    members = [tar_file(f"{where}/vmlinuz", packed_image()), tar_file(f"{where}/pkgbase", b"linux\n"),
               *(tar_file(f"{where}/{name}", content) for name, content in files.items())]  # fmt: skip
    (tmp_path / "linux-6.14.pkg.tar.gz").write_bytes(gzip.compress(tarred(members)))
    build = kernel_build(tmp_path / "linux-6.14.pkg.tar.gz", cache=tmp_path / "cache")
    assert build.config_text() == CONFIG
    assert build.config_sha256 == hashlib.sha256(CONFIG.encode()).hexdigest()
    assert modules_asked_for(build) == 1
    assert build.symbols is None


@pytest.mark.parametrize("before", [0, (1 << 20) - (1 << 16) - 30, (1 << 20) - (1 << 16) - 33, 5 << 20])
def test_it_is_found_wherever_it_lies(tmp_path: Path, before: int) -> None:
    (tmp_path / "bzImage").write_bytes(packed_image(before=before))
    build = kernel_build(tmp_path / "bzImage", cache=tmp_path / "cache")
    assert build.config_text() == CONFIG
    with pytest.raises(BuildError, match="has virtio_net as a module, and no modules were handed over"):
        select_modules(build, ["virtio_net"])


def test_a_file_with_the_configuration_comes_first_and_no_image_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_under_test, "packed_kernel", lambda file: pytest.fail("unpacked"))
    folder = tree(tmp_path / "linux")
    (folder / "arch/x86/boot/bzImage").write_bytes(packed_image())
    assert kernel_build(folder, cache=tmp_path / "cache").config_text() == "CONFIG_X86_64=y\n"


@pytest.mark.parametrize(
    "config",
    [None, b"\x1f\x8b" + b"garbage" * 9, gzip.compress(CONFIG.encode())[:-9], gzip.compress(bytes(80 << 20))],
    ids=["none", "damaged", "torn", "too large"],
)
def test_an_image_without_one_is_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: bytes | None
) -> None:
    (tmp_path / "bzImage").write_bytes(packed_image(config))
    build = kernel_build(tmp_path / "bzImage", cache=tmp_path / "cache")
    assert (build.config, build.config_sha256, build.config_text()) == (None, None, None)
    monkeypatch.setattr(module_under_test, "packed_kernel", lambda file: pytest.fail("unpacked again"))
    assert kernel_build(tmp_path / "bzImage", cache=tmp_path / "cache").config is None


def test_an_image_that_cannot_be_unpacked_is_a_kernel_all_the_same(tmp_path: Path) -> None:
    for content in (
        image(),
        image_around(b"\x28\xb5\x2f\xfdgarbage", 5000),
        image_around(b"\x1f\x8bgarbage", 1 << 40 >> 9),
    ):
        (tmp_path / "bzImage").write_bytes(content)
        assert kernel_build(tmp_path / "bzImage", cache=tmp_path / "cache").config is None
    (tmp_path / "file").touch()
    (tmp_path / "bzImage").write_bytes(packed_image())
    assert kernel_build(tmp_path / "bzImage", cache=tmp_path / "file").config is None
