/* SPDX-License-Identifier: MIT */
/* A model of a cache: sets of so many ways, the line that was used longest ago goes first. It prefetches nothing. */
#ifndef CACHE_MODEL_H
#define CACHE_MODEL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct cache {
	uint64_t sets, ways;
	uint64_t *line; /* by set, the one that was used last first; 0: none */
};

static inline int cache_make(struct cache *cache, uint64_t sets, uint64_t ways)
{
	cache->sets = sets;
	cache->ways = ways;
	cache->line = sets == 0 || ways == 0 ? NULL : calloc(sets * ways, sizeof *cache->line);
	return cache->line != NULL;
}

static inline void cache_free(struct cache *cache)
{
	free(cache->line);
	cache->line = NULL;
}

/* Whether the line is there; it is afterwards. */
static inline int cache_touch(struct cache *cache, uint64_t line)
{
	uint64_t *set = cache->line + (line % cache->sets) * cache->ways, way = 0;
	while (way < cache->ways && set[way] != line)
		way++;
	int hit = way < cache->ways;
	if (way != 0) {
		memmove(set + 1, set, (hit ? way : cache->ways - 1) * sizeof *set);
		set[0] = line;
	}
	return hit;
}

#endif
