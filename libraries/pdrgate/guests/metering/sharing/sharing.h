/* SPDX-License-Identifier: MIT */
/* The memory that the plugin of several CPUs shares with who reads it; sharing_meter.py has its layout too. */
#ifndef SHARING_H
#define SHARING_H

#include "../memory/record.h"
#include "turns.h"

#define SHARING_MAGIC 0x36676e6972616873ULL /* "sharing6" */
enum { SHARED_LISTED = 1 << 16 };

/* What is counted at a place, by its index. */
enum counted {
	RAN, /* executions of a block */
	LOCKED, /* executions of an atomic instruction */
	SHARED, /* lines that another CPU touches too, one of the two writing: each once for a packet */
	SHARED_FALSELY, /* of them, those of which no other CPU touches the same bytes */
	WROTE, /* stores, whether they count or not */
	FILLED, /* pages, see filled_pages.h; the same */
	KINDS_COUNTED,
};

/* An instruction, which touches data, or a block of them. */
struct counted_place {
	uint64_t address;
	uint16_t kind, traits;
	uint32_t length; /* instructions */
	uint64_t count[KINDS_COUNTED];
	uint32_t shared_of[LINE_KINDS]; /* shared lines, by what they are */
	uint64_t writer; /* where the last of them had been written to last */
};

/* Marks beside those of record.h. */
enum {
	PROGRAM = 6, /* a program begins, perhaps once for each packet */
	STEP = 7, /* a packet's next step begins; kernels take many packets up, and then each of them a step further */
	TICK = 8 /* the kernel's clock goes on */
};

/* A packet that was taken up in a timed trial: by which CPU, and when, by the time of each. */
enum { TAKEN = 1 << 12 };
struct taken {
	uint64_t time[MOST_CPUS], idle[MOST_CPUS], cpu;
};

struct sharing {
	uint64_t magic;
	/* Written by the reader, while no trial is under way. */
	_Atomic uint64_t asked; /* odd: a trial is wanted; each has a number of its own */
	uint64_t cpus; /* of the guest: 2 to MOST_CPUS; stays as it is */
	uint64_t turn; /* instructions that a CPU executes before it is the next one's turn */
	uint64_t window; /* instructions of all CPUs: what another touched longer ago is not shared */
	uint64_t timed; /* whether the trial is to record what the CPUs do in what time, and nothing of memory */
	uint64_t marks, areas;
	struct mark mark[MARKS];
	struct area area[AREAS];
	/* Written by the plugin. */
	_Atomic uint64_t heeded; /* what was asked for and is so */
	_Atomic uint64_t places;
	uint64_t packets; /* those that count */
	uint64_t slips; /* turns that were taken, for the CPU that had one did not end it */
	uint64_t no_room; /* what there was no room for */
	uint64_t ticks; /* of the kernel's clock */
	uint64_t taken_up; /* packets; in a timed trial */
	uint64_t by_programs; /* instructions; the same */
	uint64_t time[MOST_CPUS], idle[MOST_CPUS]; /* instructions so far; idle: those of another CPU */
	struct counted_place place[PLACES];
	struct listed_line listed[SHARED_LISTED];
	struct taken taken[TAKEN];
};

#endif
