/* SPDX-License-Identifier: MIT */
#include "collect/kernel/returns.h"

#include <errno.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "collect/kernel/probe.h"
#include "collect/kernel/perf_sources.h"
#include "sym/kallsyms.h"

#include "duet.skel.h"

#define SWITCH_FUNCTION "finish_task_switch"
#define FUNCTION_BYTES 64

/*
 * `tracepoint` is the type in BTF; NULL for the kprobe. `since` is a version from which on every kernel has the hook,
 * see probe_kernel_version(); 0: there is none.
 */
static const struct {
	const char *name, *tracepoint, *lacks;
	unsigned since;
} hooks[DUET_RETURN_MAX] = {
	[DUET_RETURN_SWITCH_EXIT] = {"sched_exit_tp", "btf_trace_sched_exit_tp",
				     "needs Linux 6.15; without it, the next hooks are used", 6015},
	[DUET_RETURN_RSEQ] = {"rseq_update", "btf_trace_rseq_update",
			      "needs a kernel with CONFIG_RSEQ (Linux 4.18), which is of use to threads of glibc 2.35",
			      0},
	[DUET_RETURN_KPROBE] = {SWITCH_FUNCTION, NULL,
				"needs a kernel with CONFIG_KPROBE_EVENTS (Linux 4.17), and names of functions",
				0},
	[DUET_RETURN_SYS_EXIT] = {"sys_exit", "btf_trace_sys_exit", "needs a kernel with CONFIG_FTRACE_SYSCALLS", 0},
};

/* Compilers give the function a suffix. */
static bool find_switch_function(char *ret, size_t room)
{
	return kallsyms_search("/proc/kallsyms", SWITCH_FUNCTION, ret, room);
}

static bool has_hook(enum duet_return hook)
{
	char function[FUNCTION_BYTES];

	if (hooks[hook].since && probe_kernel_version() >= hooks[hook].since)
		return true;
	if (hooks[hook].tracepoint)
		return probe_has_type(hooks[hook].tracepoint, BTF_KIND_TYPEDEF);
	return pmu_type("kprobe") >= 0 && find_switch_function(function, sizeof(function));
}

bool return_probe(enum duet_return hook, struct buf *why)
{
	if (has_hook(hook))
		return true;
	buf_add_str(why, hooks[hook].lacks);
	return false;
}

const char *return_name(enum duet_return hook)
{
	return hooks[hook].name;
}

enum duet_return return_by_name(const char *name)
{
	enum duet_return hook = DUET_RETURN_NONE + 1;

	while (hook < DUET_RETURN_MAX && strcmp(hooks[hook].name, name) != 0)
		hook++;
	return hook < DUET_RETURN_MAX ? hook : DUET_RETURN_NONE;
}

struct returns returns_choose(enum duet_return only)
{
	struct returns returns = {only, DUET_RETURN_NONE};

	if (only)
		returns.first = has_hook(only) ? only : DUET_RETURN_NONE;
	for (enum duet_return hook = DUET_RETURN_SWITCH_EXIT; !only && hook < DUET_RETURN_MAX; hook++)
		if (has_hook(hook)) {
			returns.first = hook;
			break;
		}
	if (returns.first == DUET_RETURN_RSEQ)
		returns.fallback = has_hook(DUET_RETURN_KPROBE)	? DUET_RETURN_KPROBE
			       : has_hook(DUET_RETURN_SYS_EXIT) ? DUET_RETURN_SYS_EXIT
								: DUET_RETURN_NONE;
	return returns;
}

struct bpf_program *return_program(const struct duet_bpf *bpf, enum duet_return hook)
{
	struct bpf_program *const programs[DUET_RETURN_MAX] = {
		[DUET_RETURN_SWITCH_EXIT] = bpf->progs.offcpu_return,
		[DUET_RETURN_RSEQ] = bpf->progs.offcpu_rseq,
		[DUET_RETURN_KPROBE] = bpf->progs.offcpu_kprobe,
		[DUET_RETURN_SYS_EXIT] = bpf->progs.offcpu_sys_exit,
	};

	return programs[hook];
}

struct bpf_program *return_early_program(const struct duet_bpf *bpf, enum duet_return hook)
{
	return hook == DUET_RETURN_SYS_EXIT ? bpf->progs.offcpu_early : NULL;
}

static struct bpf_link *attach_kprobe(const struct bpf_program *program)
{
	char function[FUNCTION_BYTES];

	if (find_switch_function(function, sizeof(function)))
		return bpf_program__attach_kprobe(program, false, function);
	errno = ENOENT;
	return NULL;
}

int return_attach(struct bpf_link **ret, const struct duet_bpf *bpf, enum duet_return hook)
{
	const struct bpf_program *program = return_program(bpf, hook);
	struct bpf_link *link = hook == DUET_RETURN_KPROBE ? attach_kprobe(program) : bpf_program__attach(program);

	if (!link)
		return -errno;
	*ret = link;
	return 0;
}
