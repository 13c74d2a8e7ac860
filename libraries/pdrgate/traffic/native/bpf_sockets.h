/* SPDX-License-Identifier: Apache-2.0 */
/* Places of programs that sockets call, see bpf_sockets.c. */
#ifndef PDRGATE_BPF_SOCKETS_H
#define PDRGATE_BPF_SOCKETS_H

#include <bpf/libbpf.h>

/* Print what is wrong with an order; -1. */
int wrong(const char *what, const char *name, const char *why);
/* Keep a link, which is its descriptor or negative, until its pin goes. */
int kept(int link, const char *folder, const char *name, const char *where);

/* Whether a program has to be loaded beside the chosen one, which would do nothing without it. */
int goes_with(const struct bpf_program *each, const struct bpf_program *chosen);
int linked_to_reuseport(struct bpf_object *object, int program, const char *port);
int linked_to_sockets(struct bpf_object *object, struct bpf_program *program, const char *folder, const char *cgroup);
int registered(struct bpf_object *object, const char *folder);

#endif
