/* SPDX-License-Identifier: MIT */
#include "collect/kernel/kernel_names.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "collect/kernel/probe.h"
#include "duet_config.h"
#include "names.skel.h"

bool kernel_names_open(struct kernel_names *names)
{
	if (names->bpf || names->is_refused)
		return names->bpf;
	probe_init();
	names->bpf = names_bpf__open_and_load();
	if (!names->bpf) {
		names->is_refused = true;
		log_debug("the kernel names no address for a BPF program: %s", strerrordesc_np(errno));
	}
	return names->bpf;
}

void kernel_names_close(struct kernel_names *names)
{
	names_bpf__destroy(names->bpf);
	*names = (struct kernel_names){0};
}

/*
 * System calls without arguments. On x86 such a function has two names (SYSCALL_DEFINE0 of asm/syscall_wrapper.h): the
 * one here, which people look for, and __do_sys_NAME, which the kernel reports.
 */
static const char *const usual_names[] = {
	"__x64_sys_fork",	     "__x64_sys_getegid",      "__x64_sys_geteuid",	 "__x64_sys_getgid",
	"__x64_sys_getpgrp",	     "__x64_sys_getpid",       "__x64_sys_getppid",	 "__x64_sys_gettid",
	"__x64_sys_getuid",	     "__x64_sys_inotify_init", "__x64_sys_munlockall",	 "__x64_sys_pause",
	"__x64_sys_restart_syscall", "__x64_sys_rt_sigreturn", "__x64_sys_sched_yield", "__x64_sys_setsid",
	"__x64_sys_sync",	     "__x64_sys_vfork",	       "__x64_sys_vhangup",
};

static const char *usual_name(const char *name)
{
	if (strncmp(name, "__do_sys_", strlen("__do_sys_")))
		return name;
	for (size_t i = 0; i < sizeof(usual_names) / sizeof(*usual_names); i++)
		if (!strcmp(name + strlen("__do"), usual_names[i] + strlen("__x64")))
			return usual_names[i];
	return name;
}

void kernel_names_split(char *text, struct kernel_name *ret)
{
	char *module = strstr(text, " ["), *offset;

	*ret = (struct kernel_name){.module = "kernel"};
	if (module) {
		*module = '\0';
		module += 2;
		module[strcspn(module, "]")] = '\0';
		ret->module = module;
	}
	offset = strrchr(text, '+');
	if (!offset || offset == text)
		return;
	*offset = '\0';
	ret->name = usual_name(text);
	ret->offset = strtoull(offset + 1, NULL, 16);
}

int kernel_names_find(void *names, uint64_t address, struct kernel_name *ret)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &address, .ctx_size_in = sizeof(address));
	const struct names_bpf *bpf = ((const struct kernel_names *)names)->bpf;
	int err = bpf_prog_test_run_opts(bpf_program__fd(bpf->progs.name_address), &run);

	if (err < 0)
		return err;
	bpf->bss->duet_name[DUET_NAME_BYTES - 1] = '\0';
	kernel_names_split(bpf->bss->duet_name, ret);
	return 0;
}
