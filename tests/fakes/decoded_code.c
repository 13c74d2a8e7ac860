/* SPDX-License-Identifier: MIT */
/*
 * Reads code of x86 from standard input, has Capstone decode it, and prints each instruction of which our plugins think
 * otherwise, and at last how many there are of each kind.
 *
 *     decoded_code ADDRESS LENGTH...
 *
 * ADDRESS is where the code begins. Lengths of its functions come one a line in the file that the environment names by
 * FUNCTIONS: decoding begins anew with each.
 */
#include <capstone/capstone.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "x86_traits.h"

enum { FLOWS = 1 << 7, JUMPS = 1 << 8, KINDS = 9 };
static const char *const kind_name[KINDS] = {
	"atomic", "indirect", "return", "stack", "cpu", "loads elsewhere", "stores elsewhere", "call", "direct jump",
};

static int is_one_of(const uint16_t *registers, size_t count, unsigned wanted)
{
	for (size_t number = 0; number < count; number++)
		if (registers[number] == wanted)
			return 1;
	return 0;
}

/* By Intel's SDM, whatever Capstone takes a LOCK for. */
static int may_be_locked(const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_ADC:
	case X86_INS_ADD:
	case X86_INS_AND:
	case X86_INS_BTC:
	case X86_INS_BTR:
	case X86_INS_BTS:
	case X86_INS_CMPXCHG:
	case X86_INS_CMPXCHG8B:
	case X86_INS_CMPXCHG16B:
	case X86_INS_DEC:
	case X86_INS_INC:
	case X86_INS_NEG:
	case X86_INS_NOT:
	case X86_INS_OR:
	case X86_INS_SBB:
	case X86_INS_SUB:
	case X86_INS_XADD:
	case X86_INS_XOR:
		return insn->detail->x86.operands[0].type == X86_OP_MEM;
	default:
		return 0;
	}
}

/* A LOCK, or what a kernel on one CPU has in its place. */
static int has_lock(const cs_insn *insn)
{
	for (int at = 0; at < insn->size; at++)
		switch (insn->bytes[at]) {
		case 0xf0:
		case 0x3e:
			return 1;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x64:
		case 0x65:
		case 0x66:
		case 0x67:
		case 0xf2:
		case 0xf3:
			break;
		default:
			if ((insn->bytes[at] & 0xf0) != 0x40)
				return 0;
		}
	return 0;
}

static unsigned decoded_as(csh decoder, const cs_insn *insn)
{
	const cs_detail *detail = insn->detail;
	const cs_x86 *x86 = &detail->x86;
	unsigned kinds = 0;
	int loads = 0, stores = 0, in_memory = 0, of_cpu = 0, given = 0;
	for (int number = 0; number < x86->op_count; number++) {
		const cs_x86_op *operand = &x86->operands[number];
		given |= operand->type == X86_OP_IMM;
		if (operand->type != X86_OP_MEM)
			continue;
		in_memory = 1;
		of_cpu |= operand->mem.segment == X86_REG_GS;
		loads |= operand->access & CS_AC_READ;
		stores |= operand->access & CS_AC_WRITE;
	}
	int calls = insn->id == X86_INS_CALL || insn->id == X86_INS_LCALL;
	int loops = insn->id == X86_INS_LOOP || insn->id == X86_INS_LOOPE || insn->id == X86_INS_LOOPNE;
	int jumps = cs_insn_group(decoder, insn, X86_GRP_JUMP) || loops;
	/* Capstone has the registers that an instruction writes to without naming them, of all but these. */
	int far = insn->id == X86_INS_IRET || insn->id == X86_INS_IRETD || insn->id == X86_INS_IRETQ ||
		  insn->id == X86_INS_RETF || insn->id == X86_INS_RETFQ;
	if ((insn->id == X86_INS_XCHG && in_memory) || (may_be_locked(insn) && has_lock(insn)))
		kinds |= ATOMIC;
	if ((calls || jumps) && !given)
		kinds |= GOES_INDIRECTLY;
	if (insn->id == X86_INS_RET || insn->id == X86_INS_RETF || insn->id == X86_INS_RETFQ)
		kinds |= RETURNS;
	if (is_one_of(detail->regs_write, detail->regs_write_count, X86_REG_RSP) ||
	    is_one_of(detail->regs_write, detail->regs_write_count, X86_REG_ESP) || calls || far ||
	    insn->id == X86_INS_ENTER || insn->id == X86_INS_PUSH || insn->id == X86_INS_POP)
		kinds |= ON_STACK | (loads || far || (calls && in_memory) ? LOADS_ELSEWHERE : 0) | (stores ? STORES_ELSEWHERE : 0);
	return kinds | (of_cpu ? OF_CPU : 0) | (calls ? FLOWS : 0) | (jumps && given ? JUMPS : 0);
}

static unsigned taken_for(const cs_insn *insn)
{
	struct x86_parts parts;
	struct code_state state = { 0 };
	if (!x86_parts_of(insn->bytes, insn->size, &parts))
		return 0;
	return traits_of(insn->bytes, insn->size, &state) | (x86_calls(&parts) ? FLOWS : 0) |
	       (x86_jumps_directly(&parts) ? JUMPS : 0);
}

int main(int argc, char **argv)
{
	enum { MOST = 1 << 26 };
	static uint8_t code[MOST];
	FILE *functions = fopen(getenv("FUNCTIONS"), "r");
	size_t size = fread(code, 1, MOST, stdin), begin = 0, length;
	uint64_t address = argc > 1 ? strtoull(argv[1], NULL, 16) : 0, decoded = 0, undecoded = 0, found[KINDS] = { 0 };
	csh decoder;
	if (functions == NULL || cs_open(CS_ARCH_X86, CS_MODE_64, &decoder) != CS_ERR_OK)
		return 1;
	cs_option(decoder, CS_OPT_DETAIL, CS_OPT_ON);
	cs_insn *insn = cs_malloc(decoder);
	for (; fscanf(functions, "%zu", &length) == 1 && begin + length <= size; begin += length) {
		const uint8_t *next = code + begin;
		size_t left = length;
		uint64_t at = address + begin;
		while (left > 0) {
			if (!cs_disasm_iter(decoder, &next, &left, &at, insn)) {
				undecoded++;
				next++;
				left--;
				at++;
				continue;
			}
			unsigned wanted = decoded_as(decoder, insn), taken = taken_for(insn);
			if (!(wanted & OF_CPU))
				taken &= ~OF_CPU; /* a segment of no operand */
			decoded++;
			for (int kind = 0; kind < KINDS; kind++)
				found[kind] += wanted >> kind & 1;
			if (wanted == taken)
				continue;
			printf("differs: %" PRIx64 " %s %s: %x, not %x:", insn->address, insn->mnemonic, insn->op_str, taken, wanted);
			for (int byte = 0; byte < insn->size; byte++)
				printf(" %02x", insn->bytes[byte]);
			printf("\n");
		}
	}
	printf("decoded: %" PRIu64 "\nundecoded: %" PRIu64 "\n", decoded, undecoded);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s: %" PRIu64 "\n", kind_name[kind], found[kind]);
	return 0;
}
