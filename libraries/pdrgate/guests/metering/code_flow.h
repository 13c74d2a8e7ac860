/* SPDX-License-Identifier: MIT */
/*
 * What a decoder says of instructions, for whichever architecture. The plugins are compiled with GUEST_CODE, the header of
 * the guest's decoder. It has:
 *
 *	programs_views(first)		a bit for each view of the page tables that is programs', by the first access's
 *	accesses_plainly(code, size)	whether an access of it shows whose it is
 *	changes_privilege(code, size)	whether another privilege may hold after it
 *	string_accesses(code, size)	which accesses show what it moves, where it moves any number of bytes; else 0
 *	flow_after(code, size)		how code goes on after it
 *	goes_to(code, size, end)	where it calls or jumps to by a distance in its code; else 0
 *
 * and GUEST_TRAITS, the header of what instructions are beside what they do to memory:
 *
 *	struct code_state		what is known of registers from the begin of a block on
 *	traits_of(code, size, state)	the traits of record.h
 */
#ifndef CODE_FLOW_H
#define CODE_FLOW_H

#include "qemu_interface.h"

enum flow { GOES_ON, CALLS, ENDS_CALL };

#endif
