/* Stands for QEMU: hands blocks of code to the plugin that it is linked with, and says which of them is executed. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The plugin's thread looks for waits of QEMU, of which there is none. One for each test that loads a plugin would wake
 * up a hundred times a second until the tests end. */
__attribute__((visibility("hidden"))) int pthread_create(void *thread, const void *wanted, void *(*run)(void *), void *data)
{
	return 0;
}

struct qemu_plugin_tb;
typedef void (*executed)(unsigned, void *);
typedef void (*accessed)(unsigned, uint32_t, uint64_t, void *);
#if PLUGIN_API >= 7
typedef void (*translates)(struct qemu_plugin_tb *, void *);
#else
typedef void (*translates)(uint64_t, struct qemu_plugin_tb *);
#endif
static translates translate;
typedef void (*idles)(uint64_t, unsigned);
static idles idle;

struct qemu_plugin_insn {
	uint64_t address;
	size_t size;
	uint8_t code[16];
	accessed told;
	int which;
	void *data;
};
static struct qemu_plugin_insn other = { .size = 1, .code = { 0x90 } };

static struct qemu_plugin_tb {
	uint64_t address, length;
	struct qemu_plugin_insn last;
	executed told;
	void *data;
} made[256];
static int count;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translates told) { translate = told; }

void qemu_plugin_reset(uint64_t id, void (*then)(uint64_t), void *data) { then(id); }

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed told, int registers, void *data)
{
	block->told = told;
	block->data = data;
}

void qemu_plugin_register_vcpu_idle_cb(uint64_t id, void *told) { idle = (idles)told; }
void qemu_plugin_register_vcpu_resume_cb(uint64_t id, void *told) {}
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block) { return block->length; }
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block) { return block->address; }
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *block, size_t at)
{
	return at + 1 == block->length ? &block->last : &other;
}
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, accessed told, int registers, int which, void *data)
{
	insn->told = told;
	insn->which = which;
	insn->data = data;
}
unsigned qemu_plugin_mem_size_shift(uint32_t access) { return access >> 4; }
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn) { return insn->size; }
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn) { return insn->address; }

#if PLUGIN_API >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size)
{
	size = size < insn->size ? size : insn->size;
	memcpy(to, insn->code, size);
	return size;
}
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn) { return insn->code; }
#endif

__attribute__((visibility("default"))) int driver_block(uint64_t address, uint64_t length, uint64_t last,
							 const uint8_t *code, size_t size)
{
	struct qemu_plugin_tb *block = &made[count];
	*block = (struct qemu_plugin_tb){ .address = address, .length = length, .last = { last, size } };
	memcpy(block->last.code, code, size);
#if PLUGIN_API >= 7
	translate(block, NULL);
#else
	translate(1, block);
#endif
	return count++;
}

__attribute__((visibility("default"))) void driver_execute(unsigned cpu, int block, int times)
{
	while (times--)
		if (made[block].told != NULL)
			made[block].told(cpu, made[block].data);
}

/* Accesses of the last instruction of a block: 1 << shift bytes are read (1) or written (2). */
__attribute__((visibility("default"))) void driver_access(unsigned cpu, int block, unsigned shift, int which, int times)
{
	struct qemu_plugin_insn *insn = &made[block].last;
	while (times--)
		if (insn->told != NULL && insn->which & which)
			insn->told(cpu, shift << 4, 0, insn->data);
}

/* The same of eight bytes, with the number of the page tables' view that the access goes by. */
__attribute__((visibility("default"))) void driver_access_by(unsigned cpu, int block, unsigned view, int which)
{
	struct qemu_plugin_insn *insn = &made[block].last;
	if (insn->told != NULL && insn->which & which)
		insn->told(cpu, 3 << 4 | view, 0, insn->data);
}

__attribute__((visibility("default"))) void driver_idle(unsigned cpu)
{
#if PLUGIN_API >= 7
	((void (*)(unsigned, void *))idle)(cpu, NULL);
#else
	idle(1, cpu);
#endif
}
