"""A .config of one's own: what of it a kernel cannot have, and what a build of it takes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_trees import made_tree

from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.git_tree import tree_build
from pdrgate.builds.git_tree.configuration import KernelConfiguration, kernel_configuration
from pdrgate.builds.git_tree.revision import revision
from pdrgate.builds.git_tree.tree_build import built

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


def whole(*lines: str) -> KernelConfiguration:
    return KernelConfiguration("".join(f"{line}\n" for line in lines), whole=True)


def test_files_that_the_tree_lacks_are_left_out() -> None:
    asked = whole(
        'CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/keys.pem"', 'CONFIG_SYSTEM_REVOCATION_KEYS="certs/own.pem"',
        'CONFIG_MODULE_SIG_KEY="pkcs11:token=x"', 'CONFIG_EXTRA_FIRMWARE="a.bin b.bin"', 'CONFIG_INITRAMFS_SOURCE=""',
        "CONFIG_NET=y",
    )  # fmt: skip
    found, lost = asked.without_lost_files(lambda file: file in ("certs/own.pem", "a.bin"))
    assert found.text == whole(
        'CONFIG_SYSTEM_TRUSTED_KEYS=""', 'CONFIG_SYSTEM_REVOCATION_KEYS="certs/own.pem"',
        'CONFIG_MODULE_SIG_KEY="certs/signing_key.pem"', 'CONFIG_EXTRA_FIRMWARE=""', 'CONFIG_INITRAMFS_SOURCE=""',
        "CONFIG_NET=y",
    ).text  # fmt: skip
    assert lost == (
        'CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/keys.pem"', 'CONFIG_MODULE_SIG_KEY="pkcs11:token=x"',
        'CONFIG_EXTRA_FIRMWARE="a.bin b.bin"',
    )  # fmt: skip
    assert whole('CONFIG_MODULE_SIG_KEY="certs/signing_key.pem"').without_lost_files(lambda _: False)[1] == ()


def test_options_that_a_kernel_has_not_so_are_named() -> None:
    asked = whole(
        "CONFIG_NET=y", "CONFIG_CFI=y", "CONFIG_VETH=m", "CONFIG_HZ=1000", "CONFIG_CC_IS_CLANG=y", "CONFIG_TUN=m",
        'CONFIG_CC_VERSION_TEXT="clang 19"', "CONFIG_CC_HAS_ASM_GOTO=y", "# CONFIG_X is not set", "CONFIG_Y=n",
    )  # fmt: skip
    made = "CONFIG_NET=y\nCONFIG_VETH=y\nCONFIG_HZ=250\nCONFIG_TUN=m\n# CONFIG_CFI is not set\n"
    assert asked.dropped(made) == ("CONFIG_CFI=y", "CONFIG_VETH=m", "CONFIG_HZ=1000", "CONFIG_CC_IS_CLANG=y")


@pytest.mark.parametrize(
    ("option", "tool", "package"),
    [
        ("DEBUG_INFO_BTF", "pahole", "pahole or dwarves"),
        ("KERNEL_ZSTD", "zstd", "zstd"),
        ("KERNEL_XZ", "xz", "xz-utils"),
    ],
)
def test_a_program_that_an_option_takes_is_missing(
    monkeypatch: pytest.MonkeyPatch, option: str, tool: str, package: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == tool else f"/usr/bin/{name}")
    with pytest.raises(MissingToolError) as error:
        tree_build._check_tools_of_options(Path("own.config"), whole(f"CONFIG_{option}=y"))
    assert str(error.value) == (
        f"own.config: CONFIG_{option}=y takes {tool}, which is missing: install the package {package}, or take the "
        "option out"
    )
    tree_build._check_tools_of_options(Path("own.config"), whole(f"# CONFIG_{option} is not set", "CONFIG_NET=y"))


@pytest.mark.skipif(shutil.which("make") is None or shutil.which("gcc") is None, reason="make or gcc is not installed")
def test_a_build_reports_what_it_is_without_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_build, "_check_tools", lambda _: None)
    tree, own, told = made_tree(tmp_path / "linux"), tmp_path / "own.config", list[str]()
    own.write_text('CONFIG_MODULES=y\nCONFIG_CC_IS_CLANG=y\nCONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/a.pem"\n')
    monkeypatch.setattr(KernelConfiguration, "dropped", lambda *_: ("CONFIG_CFI=y",))
    for _ in range(2):
        told.clear()
        built(revision(f"{tree.folder}@"), own, tmp_path / "cache", told.append)
        assert told[-3:] == [
            f"  {own}: names files that the tree does not have, so they are left out: "
            'CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/a.pem"',
            f"  {own}: was made for clang, and the kernel is compiled with gcc",
            f"  {own}: asks for options that the kernel does not have so, as their conditions are not met: "
            "CONFIG_CFI=y",
        ]


LOG = """  LD      .tmp_vmlinux.btf
BTF: .tmp_vmlinux.btf: pahole (pahole) is not available
Failed to generate BTF for vmlinux
make[1]: *** [Makefile:1166: vmlinux] Error 1
make: *** [__sub-make] Error 2
"""


def test_the_words_before_make_gives_up_are_the_reason() -> None:
    found = tree_build._BEFORE_ERROR.search(LOG)
    assert found is not None
    assert found[0] == "BTF: .tmp_vmlinux.btf: pahole (pahole) is not available"
    assert tree_build._BEFORE_ERROR.search("  CC x\nmake[3]: *** No rule to make target 'x'.  Stop.\n") is None


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
def test_configurations_as_they_were_reported() -> None:
    asked = kernel_configuration(CASES / "config-lost-certs/asked.config")
    assert len(asked.without_lost_files(lambda _: False)[1]) == 1
    dropped = kernel_configuration(CASES / "config-dropped-options/asked.config").dropped("CONFIG_64BIT=y\n")
    for name in ("LTO_CLANG_THIN", "CFI", "CC_IS_CLANG", "DEBUG_INFO_BTF", "EXAMPLE_GONE_OPTION"):
        assert f"CONFIG_{name}=y" in dropped
    found = tree_build._BEFORE_ERROR.search((CASES / "config-without-pahole/make.log").read_text())
    assert found is not None
    assert found[0].endswith("pahole (pahole) is not available")
