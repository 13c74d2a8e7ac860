/* SPDX-License-Identifier: MIT */
/* The memory that a memory trial's plugin shares with who reads it; memory_meter.py has its layout too. */
#ifndef RECORD_H
#define RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "listed_lines.h"
#include "trace.h"

#define MAGIC 0x386c616972746d65ULL /* "emtrial8" */
enum { PLACES = 1 << 18, LISTED = 1 << 18, MARKS = 256, LEVELS = 4, AREAS = 32, LINE_SHIFT = 6 /* 2^6 bytes */ };

/* What happened at a place; each has a count of its own, in this order. */
enum event {
	EXECUTED = 1 << 0, /* of a block */
	LOADED = 1 << 1,
	STORED = 1 << 2,
	NEW_LINE = 1 << 3, /* one that its window had not touched */
	MISSED_L1 = 1 << 4,
	MISSED_L2 = 1 << 5,
	MISSED_LAST = 1 << 6,
	FIRST_EVER = 1 << 7, /* the model has never seen the line, and cannot say whether a warm cache had it */
	STORED_LOCKED = 1 << 8, /* stored atomically, for no program */
	FILLED_PAGE = 1 << 9, /* stored the last of a page, see filled_pages.h */
};
enum { EVENTS = 10 };

enum kind { INSTRUCTION = 1, BLOCK = 2 };

/* What code does beside touching memory, and where it touches it. */
enum trait {
	ATOMIC = 1 << 0,
	GOES_INDIRECTLY = 1 << 1,
	RETURNS = 1 << 2,
	ON_STACK = 1 << 3, /* it loads or stores by the stack pointer: all that it does, unless a trait below says otherwise */
	OF_CPU = 1 << 4, /* its operand is what the CPU has for itself */
	LOADS_ELSEWHERE = 1 << 5,
	STORES_ELSEWHERE = 1 << 6,
};

/* Kinds of lines of data. Instructions show stacks and what each CPU has for itself, and areas of addresses the rest. */
enum line_kind { UNKNOWN = 0, STACK = 1, PER_CPU = 2 /* others are the reader's */ };
enum { LINE_KINDS = 8 };

/* An instruction, which touches data, or a block of them, which touches lines of code. */
struct place {
	uint64_t address;
	uint16_t kind, traits;
	uint32_t length; /* instructions */
	uint64_t count[EVENTS];
	uint64_t by_program; /* stored atomically in programs' system calls, for all packets */
	uint64_t regions; /* of 256 KiB, in which it touched lines for the first time ever */
	uint32_t lines_of[LINE_KINDS]; /* new lines of data, by what they are */
};

/* Code at which a window ends and the next begins, or where something begins or ends that is no part of a packet's way. */
enum role {
	PACKET = 1, /* a packet is taken up: a window ends */
	INTERRUPT = 2, /* an interrupt begins that no packet has made, */
	RETURN = 3, /* and ends behind this code */
	FOREIGN = 4, /* something else begins, */
	POLL = 5, /* and ends where packets are looked for */
	READ = 9, /* a program reads a datagram, */
	SEND = 10, /* or sends one */
};
struct mark {
	uint64_t address, role;
};

/* Addresses of lines of one kind; the first area that an address is in decides its kind. */
struct area {
	uint64_t first, last, kind;
};

struct level {
	uint64_t sets, ways;
};

struct record {
	uint64_t magic;
	/* Written by the reader, while no trial is under way. */
	_Atomic uint64_t asked; /* odd: a trial is wanted; each has a number of its own */
	uint64_t warm; /* windows that only fill the model */
	uint64_t marks, areas;
	struct level level[LEVELS]; /* L1 of data, L1 of code, L2, the last one */
	struct mark mark[MARKS];
	struct area area[AREAS];
	uint64_t listed_kinds; /* bits of the kinds of lines that are listed one by one */
	uint64_t steps_wanted; /* of the trace; 0: none is made */
	/* Written by the plugin. */
	_Atomic uint64_t heeded; /* what was asked for and is so */
	_Atomic uint64_t places;
	uint64_t packets; /* that were taken up, also while windows only filled the model */
	uint64_t windows; /* those that count */
	uint64_t dropped; /* those that do not, for the CPU had nothing to do meanwhile */
	uint64_t no_room; /* touches that there was no room for */
	uint64_t steps; /* of the trace */
	struct place place[PLACES];
	struct listed_line listed[LISTED];
	struct traced_code code[PLACES];
	struct step step[STEPS];
};

#endif
