"""What QEMU gives a plugin, for a driver in C that has no QEMU: nothing is told, and an access has eight bytes."""

from __future__ import annotations

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
