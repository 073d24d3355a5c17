/* SPDX-License-Identifier: MIT */
/* The hooks at which threads that have slept take samples: which of them this kernel has, and which are used. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "duet_config.h"

struct bpf_link;
struct bpf_program;
struct duet_bpf;

/* The hooks of a recording. */
struct returns {
	enum duet_return first; /* NONE: this kernel has none */
	enum duet_return fallback; /* with RSEQ: for threads without rseq; NONE: there is none */
};

/* Returns the best hooks of this kernel. If `only` is not NONE, that hook is used, or none if the kernel lacks it. */
struct returns returns_choose(enum duet_return only);
/* Returns true if this kernel has the hook. Otherwise appends the cause and what is used instead. */
bool return_probe(enum duet_return hook, struct buf *why);
/* Returns the name of a hook, as the kernel has it: "sched_exit_tp". */
const char *return_name(enum duet_return hook);
/* Returns the hook of this name, or NONE. */
enum duet_return return_by_name(const char *name);

/* Returns the hook's program; NULL for NONE. */
struct bpf_program *return_program(const struct duet_bpf *bpf, enum duet_return hook);
/* The program for sleeps after which the hook does not run, or NULL. To be attached after offcpu_switch. */
struct bpf_program *return_early_program(const struct duet_bpf *bpf, enum duet_return hook);
/* Attaches the hook's program, which is loaded. Returns 0 or -errno. */
int return_attach(struct bpf_link **ret, const struct duet_bpf *bpf, enum duet_return hook);
