"""Drivers in C of QEMU's plugins, and what QEMU gives a plugin, for those that have no QEMU."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.metering.plugin import guest_code

QEMU_STUBS = """
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*told)(plugin_id, struct qemu_plugin_tb *)) {}
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*told)(plugin_id, unsigned)) {}
void qemu_plugin_register_vcpu_resume_cb(plugin_id id, void (*told)(plugin_id, unsigned)) {}
void qemu_plugin_reset(plugin_id id, void (*then)(plugin_id)) { then(id); }
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*told)(unsigned, void *),
                                          enum register_use use, void *data) {}
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*told)(unsigned, plugin_access, uint64_t, void *), enum register_use use,
                                      enum plugin_rw which, void *data) {}
unsigned qemu_plugin_mem_size_shift(plugin_access info) { return 3; }
_Bool qemu_plugin_mem_is_store(plugin_access info) { return info == WRITES; }
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(plugin_access info, uint64_t address) { return NULL; }
_Bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address) { return 0; }
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb) { return 0; }
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb) { return 0; }
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t number) { return NULL; }
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn) { return 0; }
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn) { return 0; }
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn) { return NULL; }
"""
"""Nothing is told, and an access has eight bytes."""


def said_by(driver: str, sources: Path, folder: Path) -> str:
    """What a driver prints that includes a plugin's sources, compiled and run in a folder."""
    source, program = folder / "driver.c", folder / "driver"
    source.write_text(driver)
    options = ("-O1", "-Werror=implicit", "-pthread", "-DPLUGIN_API=1", f"-I{sources}", *guest_code(X86_64))
    subprocess.run(("gcc", *options, source, "-o", program), check=True)
    return subprocess.run((program,), capture_output=True, text=True, check=True).stdout
