"""A git tree that is no kernel: what its Makefile compiles is one C file, and its image is made up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from made_kernels import RELEASE, flat_image, image

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
alldefconfig olddefconfig:
\tif [ -n "$(KCONFIG_ALLCONFIG)" ]; then cp -n $(KCONFIG_ALLCONFIG) $(O)/.config || true; fi
\techo LAST=$@ >>$(O)/.config
bzImage: FOLDER = x86
Image: FOLDER = arm64
bzImage Image:
\t@mkdir -p $(O)/arch/$(FOLDER)/boot $(O)/include/config
\t@echo "  CC      net.o"
\t@$(CC) -c net.c -o $(O)/vmlinux
\t@cp image-$(ARCH) $(O)/arch/$(FOLDER)/boot/$@
\t@echo "$(KBUILD_BUILD_USER) $(KBUILD_BUILD_TIMESTAMP)" >$(O)/System.map
\t@echo %s >$(O)/include/config/kernel.release
modules:
\t@touch $(O)/some.ko
modules_install:
\t@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/%s/kernel
\t@touch $(INSTALL_MOD_PATH)/lib/modules/%s/modules.order
\t@printf 'virtio.license=GPL\\0' >$(INSTALL_MOD_PATH)/lib/modules/%s/modules.builtin.modinfo
"""


class Tree:
    """A git tree in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ("git", "-C", str(self.folder), *words), capture_output=True, text=True, check=True,
            env=os.environ | names | {"GIT_CONFIG_GLOBAL": os.devnull},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, line: str) -> str:
        """Commit a file of that line, and return the commit's digest."""
        (self.folder / "net.c").write_text(f"{line}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", line[:40])
        return self.git("rev-parse", "HEAD")


def made_tree(folder: Path) -> Tree:
    """A tree with a first commit on main, which has the tag v1."""
    (folder / "arch").mkdir(parents=True)
    (folder / "arch/Kconfig").write_text("")
    (folder / "Kbuild").write_text("")
    (folder / "Makefile").write_text(MAKEFILE % ((RELEASE,) * 4))
    (folder / "image-x86_64").write_bytes(image())
    (folder / "image-arm64").write_bytes(flat_image())
    made = Tree(folder)
    made.commit("int a;")
    made.git("tag", "v1")
    return made
