/* SPDX-License-Identifier: Apache-2.0
 *
 * What a relay's ends have in common: where packets come from, and where they go to, by batches.
 */
#ifndef PDRGATE_RELAY_H
#define PDRGATE_RELAY_H

#include <stdint.h>
#include <stddef.h>

#define BATCH 32			/* packets; 192, which come in one burst, are six */
#define ROOM 2048			/* bytes for a packet */

/* Packets, or what is in them. */
struct batch {
	unsigned int count;
	uint8_t *at[BATCH];
	unsigned int length[BATCH];
	uint64_t token[BATCH];		/* what `done` gets */
};

struct source {
	/* Wait for packets, take those that are there, and at most as many as a batch has room for. */
	void (*take)(struct source *, struct batch *);
	/* They are sent. NULL: the memory is the batch's own. */
	void (*done)(struct source *, struct batch *);
	unsigned int before;		/* bytes of headers before what is in a packet */
};

struct sink {
	void (*send)(struct sink *, struct batch *);
};

/* Say what went wrong, with errno's words, and end. */
void die(const char *what) __attribute__((noreturn));
unsigned int device(const char *name);
/* The next word of the command line, which says `what`. */
const char *word(const char *what);
/* Whether the next word is this one; it is taken then. */
int says(const char *wanted);
void read_mac(const char *text, uint8_t *mac);

struct source *from_xdp(void);
/* Out of the same memory that `from_xdp` takes packets into. */
struct sink *to_xdp(void);

#endif
