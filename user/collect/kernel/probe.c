/* SPDX-License-Identifier: MIT */
#include "collect/kernel/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "collect/collector.h"
#include "collect/kernel/kernel_names.h"
#include "collect/kernel/returns.h"
#include "collect/kernel/perf_sources.h"
#include "collect/perf_events.h"
#include "event/event.h"
#include "sym/kallsyms.h"

/* linux/capability.h of older systems lacks the last two. */
#define CAP_SYS_ADMIN 21
#define CAP_SYS_RESOURCE 24
#define CAP_PERFMON 38
#define CAP_BPF 39
#define AS_ROOT (geteuid() ? "run as root" : "this root lacks them, give them to the container")
#define WITHOUT_BPF "or use --engine ctimer, which needs no BPF"

/* One of has(), `pmu`, probe() and `hook` says whether it is there. */
struct feature {
	const char *name;
	bool required;
	bool (*has)(void);
	const char *pmu;
	const char *without; /* what it means that has() is false, or that there is no such PMU, and the way out */
	bool (*probe)(struct buf *why); /* appends the same if it returns false */
	enum duet_return hook;
};

unsigned probe_kernel_version(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	if (uname(&name) == 0)
		sscanf(name.release, "%u.%u", &major, &minor);
	return major * 1000 + minor;
}

/* Returns the number (to base `base`) after `key` in a file of /proc or /sys, or `otherwise` if it cannot be read. */
static long long read_number(const char *path, const char *key, int base, long long otherwise)
{
	long long number = otherwise;
	BUF(text);
	char *found;

	if (io_read_file(AT_FDCWD, path, 64 << 10, &text) == 0 && (found = strstr(text.data, key)))
		number = strtoll(found + strlen(key), NULL, base);
	return number;
}

static bool has_capability(int capability)
{
	long long effective = read_number("/proc/self/status", "CapEff:", 16, 0);

	return effective >> capability & 1 || effective >> CAP_SYS_ADMIN & 1;
}

static bool under_seccomp(void)
{
	return read_number("/proc/self/status", "Seccomp:", 10, 0) != 0;
}

/* Appends the cause and the way out for a system call that was refused. */
static void explain_refusal(struct buf *why, const char *call, int error, int right, const char *name)
{
	buf_printf(why, "%s is refused (%s): ", call, strerror(error));
	if (!has_capability(right))
		buf_printf(why, "it needs %s%s, ", name,
			   under_seccomp() ? " and a seccomp profile that allows it" : "");
	else if (under_seccomp())
		buf_add_str(why, "allow it in the container's seccomp profile, ");
	else
		buf_add_str(why, "look for a security module or a kernel built without it, ");
	buf_add_str(why, WITHOUT_BPF);
}

static bool has_kernel(void)
{
	return probe_kernel_version() >= 5008;
}

static bool probe_rights(struct buf *why)
{
	if (has_capability(CAP_BPF) && has_capability(CAP_PERFMON))
		return true;
	buf_printf(why, "BPF needs CAP_BPF and CAP_PERFMON: %s, " WITHOUT_BPF, AS_ROOT);
	return false;
}

static bool try_map(enum bpf_map_type type, __u32 value_bytes, __u32 entries, const char *call, struct buf *why)
{
	int fd = bpf_map_create(type, "duet_probe", value_bytes ? sizeof(__u32) : 0, value_bytes, entries, NULL);

	if (fd < 0)
		explain_refusal(why, call, errno, CAP_BPF, "CAP_BPF");
	else
		close(fd);
	return fd >= 0;
}

static bool probe_bpf(struct buf *why)
{
	return try_map(BPF_MAP_TYPE_ARRAY, sizeof(__u32), 1, "bpf()", why);
}

static bool probe_locked_memory(struct buf *why)
{
	struct rlimit limit;

	/* Since Linux 5.11 BPF memory is charged to the cgroup instead. */
	if (probe_kernel_version() >= 5011 || has_capability(CAP_SYS_RESOURCE))
		return true;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_max >= 64 << 20)
		return true;
	buf_add_str(why, "before Linux 5.11 BPF maps count as locked memory: raise the limit, ulimit -l 65536");
	return false;
}

static bool has_no_lockdown(void)
{
	return read_number("/sys/kernel/security/lockdown", "[confidentiality]", 10, -1) < 0;
}

static bool has_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

static bool probe_ring(struct buf *why)
{
	return try_map(BPF_MAP_TYPE_RINGBUF, 0, (__u32)sysconf(_SC_PAGESIZE), "a BPF ring buffer", why);
}

static bool probe_perf_event(struct buf *why)
{
	struct perf_events perf = {0};
	int err = perf_events_open(&perf, &event_table[0]->perf, NS_PER_SEC, 0);

	perf_events_release(&perf);
	if (err > 0)
		return true;
	if (err == -EACCES && !has_capability(CAP_PERFMON))
		buf_printf(why,
			   "kernel.perf_event_paranoid is %lld, so that perf events need CAP_PERFMON: %s, " WITHOUT_BPF,
			   read_number("/proc/sys/kernel/perf_event_paranoid", "", 10, 2), AS_ROOT);
	else
		explain_refusal(why, "perf_event_open()", -err, CAP_PERFMON, "CAP_PERFMON");
	return false;
}

static bool probe_kernel_names(struct buf *why)
{
	struct kernel_names names = {0};
	bool asks_kernel = kernel_names_open(&names);

	kernel_names_close(&names);
	return asks_kernel || !kallsyms_hidden("/proc/kallsyms", why);
}

#define WITHOUT_HOOKS "-e offcpu, wall and wakeup need one of the hooks above; -e context-switches counts the sleeps"

static bool probe_wakers(struct buf *why)
{
	if (!probe_has_sleeps())
		buf_add_str(why, WITHOUT_HOOKS);
	else if (probe_has_wakers())
		return true;
	else
		buf_add_str(why, "--wakers and -e wakeup find interrupts by the names of the kernel's functions, see "
				 "above: -e offcpu needs none");
	return false;
}

static bool has_requests(void)
{
	bool has_entry;

	return probe_uring(&has_entry);
}

static bool lacks_counter(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -ENXIO || err == -EOPNOTSUPP || err == -EINVAL;
}

static int try_event(const struct event *event)
{
	struct perf_events perf = {0};
	int err = perf_events_open(&perf, &event->perf, event->default_interval, 0);

	perf_events_release(&perf);
	return err;
}

static bool has_counters(void)
{
	return !lacks_counter(try_event(event_by_name("cycles")));
}

static bool probe_tracepoints(struct buf *why)
{
	IO_FD(folder) = tracefs_open(why);

	return folder >= 0;
}

/* Causes come first: if a feature is missing, it explains why later ones fail. */
bool probe_has_breakpoints(void)
{
	static volatile uint64_t watched;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = sizeof(watched),
		.exclude_kernel = 1,
	};
	IO_FD(fd) = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t count = 1;

	watched++;
	if (fd >= 0 && read(fd, &count, sizeof(count)) != sizeof(count))
		count = 1;
	return pmu_type("breakpoint") >= 0 && count;
}

static const struct feature features[] = {
	{"kernel version", true, .has = has_kernel,
	 .without = "the kernel is older than Linux 5.8: upgrade it, " WITHOUT_BPF},
	{"rights", true, .probe = probe_rights},
	{"BPF system call", true, .probe = probe_bpf},
	{"locked memory", true, .probe = probe_locked_memory},
	{"kernel lockdown", true, .has = has_no_lockdown,
	 .without = "kernel lockdown is in mode confidentiality, where BPF may not read kernel memory: boot with "
		    "lockdown=integrity, " WITHOUT_BPF},
	{"BTF", true, .has = has_btf,
	 .without = "there is no /sys/kernel/btf/vmlinux: boot a kernel with CONFIG_DEBUG_INFO_BTF, " WITHOUT_BPF},
	{"BPF ring buffer", true, .probe = probe_ring},
	{"perf events per CPU", true, .probe = probe_perf_event},
	{"names of kernel functions", false, .probe = probe_kernel_names},
	{"user registers in system calls", false, .has = probe_has_task_pt_regs,
	 .without = "needs Linux 5.15; without it, user registers are read from the kernel stack"},
	{"several events at once", false, .has = probe_has_attach_cookie,
	 .without = "needs Linux 5.15; without it, one recording samples one perf event"},
	{"mappings of new processes", false, .has = probe_has_find_vma,
	 .without = "needs Linux 5.17; without it, the first stacks of a process or library are cut"},
	{"signal with cookie", false, .has = probe_has_signal_cookie,
	 .without = "needs Linux 6.13; without it, samples and Java stacks are paired by thread and time"},
	{"hook sched_exit_tp", false, .hook = DUET_RETURN_SWITCH_EXIT},
	{"hook rseq_update", false, .hook = DUET_RETURN_RSEQ},
	{"hook finish_task_switch", false, .hook = DUET_RETURN_KPROBE},
	{"hook sys_exit", false, .hook = DUET_RETURN_SYS_EXIT},
	{"time off CPU", false, .has = probe_has_sleeps, .without = WITHOUT_HOOKS},
	{"who ends the time off CPU", false, .probe = probe_wakers},
	{"requests of io_uring", false, .has = has_requests,
	 .without = "-e io and io-bytes show requests of io_uring from Linux 5.19 on, if the kernel has io_uring"},
	{"counters of the CPU", false, .has = has_counters,
	 .without = "no counters of the CPU (cycles, cache-misses, rNNN …), as in most virtual machines: "
		    "-e cpu needs none"},
	{"tracepoints", false, .probe = probe_tracepoints},
	{"breakpoints", false, .has = probe_has_breakpoints,
	 .without = "-e mem:… needs a kernel with CONFIG_HAVE_HW_BREAKPOINT, and a hypervisor that lets breakpoints "
		    "work"},
	{"probes of kernel functions", false, .pmu = "kprobe",
	 .without = "-e kprobe:… needs a kernel with CONFIG_KPROBE_EVENTS (Linux 4.17): tracepoints do not"},
	{"probes of programs and libraries", false, .pmu = "uprobe",
	 .without = "-e uprobe:… and usdt:… need a kernel with CONFIG_UPROBE_EVENTS (Linux 4.17): "
		    "tracepoints do not"},
};

/* Returns whether the feature is there; otherwise appends why not. */
static bool probe_feature(const struct feature *feature, struct buf *why)
{
	if (feature->hook)
		return return_probe(feature->hook, why);
	if (feature->probe)
		return feature->probe(why);
	if (feature->pmu ? pmu_type(feature->pmu) >= 0 : feature->has())
		return true;
	buf_add_str(why, feature->without);
	return false;
}

/* most lines of one message that are logged: the verifier's log is long, and the cause is at its end */
#define LIBBPF_LINES 16

static const char *last_lines(const char *text)
{
	const char *at = text + strlen(text);

	for (int lines = 0; at > text && lines <= LIBBPF_LINES; at--)
		lines += at[-1] == '\n';
	return at > text ? at + 1 : text;
}

static int log_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	char *text, *rest, *line;

	/* libbpf's debug level has a line for every relocation. */
	if (level == LIBBPF_DEBUG || log_level() < LOG_DEBUG || vasprintf(&text, format, args) < 0)
		return 0;
	rest = text + (last_lines(text) - text);
	while ((line = strsep(&rest, "\n")))
		if (line[0])
			log_debug("%s", line);
	free(text);
	return 0;
}

void probe_init(void)
{
	libbpf_set_print(log_libbpf);
}

#define FEATURES (sizeof(features) / sizeof(features[0]))

bool probe_has_task_pt_regs(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1;
}

bool probe_has_attach_cookie(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_attach_cookie, NULL) == 1;
}

bool probe_has_type(const char *name, uint32_t kind)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, name, kind) > 0;

	btf__free(btf);
	return found;
}

/* Distributions backport the function to older kernels. For these, looks it up in the BTF, which takes 10 ms. */
bool probe_has_signal_cookie(void)
{
	if (probe_kernel_version() >= 6013)
		return true;
	return probe_has_type("bpf_send_signal_task", BTF_KIND_FUNC);
}

bool probe_has_find_vma(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_find_vma, NULL) == 1;
}

/* Where the count of bpf/event_wakeup.bpf.c is: with BTF, and for BPF's own search in kallsyms. */
bool probe_has_preempt_count(void)
{
#ifdef __x86_64__
	static const char *const names[] = {"__preempt_count", "pcpu_hot"};
	char found[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (probe_has_type(names[i], BTF_KIND_VAR))
			return kallsyms_search("/proc/kallsyms", names[i], found, sizeof(found));
	return false;
#else
	return true; /* in each thread */
#endif
}

bool probe_has_wakers(void)
{
	BUF(why);

	return probe_has_preempt_count() || probe_kernel_names(&why);
}

bool probe_has_sleeps(void)
{
	return returns_choose(DUET_RETURN_NONE).first != DUET_RETURN_NONE;
}

/* Returns the type of a tracepoint's function in the kernel's BTF, or NULL if there is no such tracepoint. */
static const struct btf_type *type_of_tracepoint(const struct btf *btf, const char *name)
{
	char type_name[64];
	const struct btf_type *type;
	int id;

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
	type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	type = type ? btf__type_by_id(btf, type->type) : NULL; /* the pointer */
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	return type && btf_is_func_proto(type) ? type : NULL;
}

/* Returns true if the first argument, after the one that the kernel adds, is a pointer to struct io_kiocb. */
static bool takes_request(const struct btf *btf, const struct btf_type *tracepoint)
{
	const struct btf_type *type = btf_vlen(tracepoint) > 1 ? btf__type_by_id(btf, btf_params(tracepoint)[1].type) :
								 NULL;

	type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type) : NULL;
	return type && !strcmp(btf__name_by_offset(btf, type->name_off), "io_kiocb");
}

const char *probe_uring(bool *ret_has_entry)
{
	static const char *const names[] = {"io_uring_submit_req", "io_uring_submit_sqe"};
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *complete = btf ? type_of_tracepoint(btf, "io_uring_complete") : NULL;
	const char *found = NULL;

	for (size_t i = 0; complete && !found && i < sizeof(names) / sizeof(*names); i++) {
		const struct btf_type *submit = type_of_tracepoint(btf, names[i]);

		if (submit && takes_request(btf, submit))
			found = names[i];
	}
	if (found)
		*ret_has_entry = btf_vlen(complete) == 4;
	btf__free(btf);
	return found;
}

/* The function of a tracepoint has one argument more. */
unsigned probe_tracepoint_arguments(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type = btf ? type_of_tracepoint(btf, name) : NULL;
	unsigned count = type ? btf_vlen(type) - 1u : 0;

	btf__free(btf);
	return count;
}

bool probe_has_task_storage(void)
{
	return probe_kernel_version() >= 6004;
}

bool probe_explain(struct buf *why)
{
	for (size_t i = 0; i < FEATURES; i++)
		if (features[i].required && !probe_feature(&features[i], why))
			return true;
	return false;
}

static int open_own_event(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_SEC,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.use_clockid = 1, /* Linux 4.1 */
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

bool collector_is_ready(const struct collector_probe *probes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!probes[i].ok && probes[i].required)
			return false;
	return true;
}

bool collector_probe_own_threads(struct buf *why)
{
	int err = open_own_event();

	if (!err)
		return true;
	if (err == -EACCES)
		buf_printf(why,
			   "kernel.perf_event_paranoid is %lld, and an ordinary user's perf events see the kernel with "
			   "1 or less: as root, sysctl kernel.perf_event_paranoid=1",
			   read_number("/proc/sys/kernel/perf_event_paranoid", "", 10, 2));
	else
		buf_printf(why, "perf_event_open() is refused (%s): %s", strerror(-err),
			   under_seccomp() ? "allow it in the container's seccomp profile"
					   : "look for a security module or a kernel built without it");
	buf_add_str(why, ", or use --engine ctimer");
	return false;
}

bool collector_has_event(const struct event *event)
{
	if (event_is_sleep(event))
		return probe_has_sleeps() && (!event->has_wakers || probe_has_wakers());
	return event->program != DUET_PROGRAM_PERF || !lacks_counter(try_event(event));
}

bool collector_has_family(const struct event_family *family)
{
	static const char *const pmus[EVENT_SOURCE_MAX] = {
		[EVENT_KPROBE] = "kprobe",
		[EVENT_UPROBE] = "uprobe",
		[EVENT_USDT] = "uprobe",
	};

	if (family->source == EVENT_COMPLETE)
		return has_counters();
	if (family->source == EVENT_BREAKPOINT)
		return probe_has_breakpoints();
	return !pmus[family->source] || pmu_type(pmus[family->source]) >= 0;
}

size_t collector_probe(struct collector_probe *ret, size_t room)
{
	size_t count = room < FEATURES ? room : FEATURES;
	BUF(why);

	probe_init();
	for (size_t i = 0; i < count; i++) {
		buf_clear(&why);
		ret[i] = (struct collector_probe){.name = features[i].name, .required = features[i].required};
		ret[i].ok = probe_feature(&features[i], &why);
		snprintf(ret[i].detail, sizeof(ret[i].detail), "%s", why.data);
	}
	return count;
}
