"""Kernels that are made up, in files, folders and packages; also packages that no tool would make."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

RELEASE = "6.1.0-9-test"
VERSION = "#1 SMP PREEMPT_DYNAMIC Test 6.1.99-1 (2026-01-01)"


def image(release=RELEASE, version=VERSION):
    """The beginning of a bzImage."""
    text = f"{release} (builder@host) {version}\0".encode()
    head = bytearray(0x400 + len(text))
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x200)
    head[0x400:] = text
    return bytes(head)


def vmlinux(kind=18, owner=b"Xen\0", size=5000):
    """A 64-bit ELF file with one note: by default where PVH enters it."""
    note = struct.pack("<III", len(owner), 8, kind) + owner.ljust(4, b"\0") + struct.pack("<Q", 0x1000000)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0x1000000, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 120, 120, len(note), len(note), 4)
    return (head + segment + note).ljust(size, b"k")


def image_around(kernel, size, release=RELEASE):
    """A bzImage with a packed kernel of that size."""
    head = bytearray(image(release))
    sectors = -(-len(head) // 512)
    head[0x1F1] = sectors - 1
    struct.pack_into("<H", head, 0x206, 0x20F)
    struct.pack_into("<H", head, 0x236, 1)
    packed = kernel + struct.pack("<I", size)
    struct.pack_into("<II", head, 0x248, 0, len(packed))
    return bytes(head).ljust(512 * sectors, b"\0") + packed


def flat_image(release=RELEASE, version=VERSION, flags=0xA, more=b""):
    """An Image of arm64."""
    banner = f"Linux version {release} (builder@host) (gcc) {version}\n\0".encode()
    head = bytearray(b"MZ".ljust(64, b"\0"))
    struct.pack_into("<QQ", head, 0x10, 0x1000, flags)
    head[0x38:0x3C] = b"ARMd"
    return bytes(head) + more + banner


def zboot_image(kernel, pack, method):
    """An EFI program that unpacks an Image of arm64, packed by zstd or gzip."""
    packed = pack(kernel)
    payload = packed if method == b"gzip" else packed + struct.pack("<I", len(kernel))
    head = b"MZ\0\0zimg" + struct.pack("<II", 64, len(payload)) + bytes(8) + method
    return head.ljust(64, b"\0") + payload + bytes(100)


def module(name, depends="", release=RELEASE, alias=()):
    """A 64-bit ELF file with nothing but a .modinfo section."""
    info = [
        f"depends={depends}",
        f"name={name}",
        f"vermagic={release} SMP preempt mod_unload ",
        *(f"alias={a}" for a in alias),
    ]
    modinfo, names = "\0".join(info).encode() + b"\0", b"\0.modinfo\0.shstrtab\0"
    body = modinfo + names
    table = 64 + len(body)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2
    )
    sections = [(0, 0, 0), (1, 64, len(modinfo)), (10, 64 + len(modinfo), len(names))]
    return head + body + b"".join(struct.pack("<IIQQQQIIQQ", n, 1, 0, 0, o, s, 0, 0, 1, 0) for n, o, s in sections)


def modules_folder(folder, release=RELEASE, pack=lambda content: content, suffix=""):
    folder.mkdir(parents=True)
    made = {
        "kernel/drivers/virtio/virtio_ring.ko": module("virtio_ring", release=release),
        "kernel/drivers/virtio/virtio.ko": module("virtio", "virtio_ring", release),
        "kernel/drivers/virtio/virtio_pci.ko": module("virtio_pci", "virtio_ring,virtio", release, ("pci:v1AF4d*",)),
        "kernel/drivers/net/virtio-net.ko": module("virtio_net", "virtio,virtio_ring", release),
    }
    for path, content in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / (path + suffix)).write_bytes(pack(content))
    (folder / "modules.order").write_text("\n".join(made) + "\n")
    (folder / "modules.builtin").write_text("kernel/drivers/char/virtio_console.ko\n")
    return folder


def tree(folder, modern=True):
    """A kernel build tree, as it is since Linux 6.3, or before."""
    (folder / "arch/x86/boot").mkdir(parents=True)
    (folder / "arch/x86/boot/bzImage").write_bytes(image())
    (folder / ".config").write_text("CONFIG_X86_64=y\n")
    (folder / "drivers/virtio").mkdir(parents=True)
    (folder / "drivers/virtio/virtio_pci.ko").write_bytes(module("virtio_pci"))
    (folder / "modules.order").write_text(f"drivers/virtio/virtio_pci.{'o' if modern else 'ko'}\n")
    (folder / "modules.builtin").write_text(
        "kernel/drivers/virtio/virtio_console.ko\nkernel/drivers/net/virtio_net.ko\n"
    )
    return folder


def deb(folder, name, files, fields="", architecture="amd64"):
    root = folder / f"root-{name}"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1.2-3\nArchitecture: {architecture}\nMaintainer: a <a@b.c>\nDescription: x\n"
        + fields
    )
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    # Which a umask may not give: dpkg-deb takes no other.
    (root / "DEBIAN").chmod(0o755)
    package = folder / f"{name}.deb"
    subprocess.run(
        ("dpkg-deb", "-Znone", "--build", "--root-owner-group", root, package), check=True, capture_output=True
    )
    shutil.rmtree(root)
    return package


def split_kernel(folder, release=RELEASE, beside=True):
    """A kernel as Debian packs it since Linux 6.19: its image beside the modules (since 7.2), or in boot."""
    folder.mkdir()
    place = f"usr/lib/modules/{release}"
    base = f"Depends: kmod, linux-base-{release} (= 1.2-3)\n"
    needs = ", ".join(f"linux-{part}-{release} (= 1.2-3)" for part in ("base", "binary", "modules"))
    where = f"{place}/{{}}" if beside else f"boot/{{}}-{release}"
    modules = modules_folder(folder / "m", release)
    lists = ("modules.order", "modules.builtin")
    packages = [
        deb(folder, "linux-image-cloud-amd64", {}, f"Depends: linux-image-{release} (= 1.2-3)\n"),
        deb(folder, f"linux-image-{release}", {}, f"Depends: dracut | initramfs-tools (>= 0.120), {needs}\n"),
        deb(folder, f"linux-base-{release}", {
            where.format("config"): b"CONFIG_VIRTIO_NET=m\n",
            where.format("System.map"): b"ffffffffffffffff B The real System.map is in a package of its own\n",
            **{f"{place}/{name}": (modules / name).read_bytes() for name in lists},
        }),
        deb(folder, f"linux-binary-{release}", {where.format("vmlinuz"): image(release)}, base),
        deb(folder, f"linux-modules-{release}", {
            f"{place}/{path.relative_to(modules)}": path.read_bytes() for path in modules.rglob("*.ko")
        }, base),
    ]  # fmt: skip
    shutil.rmtree(modules)
    return packages


def archived(package, version="1.2-3"):
    """The same file under the name that archives give it."""
    return package.rename(package.with_name(f"{package.stem}_{version}_amd64.deb"))


needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")


def tar_file(name: str, content: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in fields.items():
        setattr(member, key, value)
    return member, content


def tar_link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return tar_file(name, b"", type=kind, linkname=target)


Members = list[tuple[tarfile.TarInfo, bytes]]


def tarred(members: Members, form: int = tarfile.GNU_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def archive_deb(path: Path, members: Members, suffix: str = "", pack: Callable[[bytes], bytes] = bytes) -> Path:
    """A .deb with these files, as deb(5) has it, made by no tool that would refuse them."""
    control = tarred([tar_file("./control", b"Package: linux-image-x\nVersion: 1\n")])
    made = b"!<arch>\n"
    for name, content in (
        ("debian-binary", b"2.0\n"), ("control.tar", control), (f"data.tar{suffix}", pack(tarred(members))),
    ):  # fmt: skip
        made += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        made += b"\n" * (len(content) % 2)
    path.write_bytes(made)
    return path


def by(*command: str) -> Callable[[bytes], bytes]:
    return lambda content: subprocess.run(command, input=content, capture_output=True, check=True).stdout
