/* SPDX-License-Identifier: MIT */
#include "collect/perf_events.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/packet.h"
#include "collect/kernel/perf_sources.h"

#define TIMEOUT_MS 5000 /* to set a probe, or remove all; some milliseconds, on a busy machine some hundred */
#define END_STEP_NS 2000000
#define INSTEAD ": -e cpu needs no counter"

static int open_event(const struct event_perf *perf, uint64_t period, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = perf->type,
		.config = perf->config,
		.bp_type = perf->bp_type,
		.config1 = perf->config1,
		.config2 = perf->config2,
		/* A fixed period, not a frequency, so that every sample weighs the same. */
		.sample_period = period,
		.disabled = 1,
		.exclude_idle = perf->is_clock, /* few counters can exclude idle time */
	};
	long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int keep(struct perf_events *events, int fd)
{
	if (vec_push(&events->fds, fd) == 0)
		return 0;
	close(fd);
	return -ENOMEM;
}

static int keep_of_cpu(struct perf_events *events, const struct perf_of_cpu *of, int fd)
{
	if (vec_push(&events->of_cpus, *of) == 0)
		return keep(events, fd);
	close(fd);
	return -ENOMEM;
}

static int open_of_cpu(const struct perf_of_cpu *of)
{
	return open_event(&of->perf, of->period, -1, of->cpu);
}

/* ENODEV: the CPU is possible, but offline. EINVAL: this kernel cannot have such a CPU. Neither is a reason to fail. */
int perf_events_open(struct perf_events *events, const struct event_perf *perf, uint64_t period, uint32_t only_cpu)
{
	int cpus = libbpf_num_possible_cpus();
	int err = 0;

	for (int cpu = 0; cpu < cpus; cpu++) {
		const struct perf_of_cpu of = {.perf = *perf, .period = period, .cpu = cpu};
		int fd;

		if (only_cpu && only_cpu - 1 != (uint32_t)cpu)
			continue;
		fd = open_of_cpu(&of);
		if (fd < 0) {
			log_debug("perf event on CPU %d: %s", cpu, strerrordesc_np(-fd));
			err = err ? err : fd;
		} else if (keep_of_cpu(events, &of, fd) < 0) {
			return -ENOMEM;
		}
	}
	if (events->fds.len)
		return (int)events->fds.len;
	return err ? err : -ENODEV;
}

int perf_events_open_hook(struct perf_events *events, const struct event_perf *perf)
{
	int fd = open_event(perf, 0, -1, 0);

	events->is_hook = true;
	return fd < 0 ? fd : keep(events, fd);
}

struct probes {
	const struct event_perf *perf;
	const pid_t *pids;
	size_t pid_count;
};

static int open_nth(const void *context, size_t i)
{
	const struct probes *probes = context;
	pid_t pid = probes->pids[i % probes->pid_count];

	return open_event(&probes->perf[i / probes->pid_count], 0, pid, pid < 0 ? 0 : -1);
}

int perf_events_open_probes(struct perf_events *events, const struct event_perf *probes, size_t count,
			    const pid_t *pids, size_t pid_count, int file)
{
	const struct probes context = {.perf = probes, .pids = pids, .pid_count = pid_count};
	int err;

	events->is_hook = true;
	if (vec_reserve(&events->fds, count * pid_count) < 0)
		return -ENOMEM;
	err = probe_process_open(&events->probe_process, open_nth, &context, count * pid_count, file,
				 events->fds.items);
	if (!err)
		events->fds.len = count * pid_count;
	return err;
}

/* Runs the program on the event, from now on. Returns NULL with errno set on failure. */
static struct bpf_link *start(int fd, const struct bpf_program *program, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = cookie);

	return bpf_program__attach_perf_event_opts(program, fd, &options);
}

/* Starts the next event. */
static int start_next(struct perf_events *events, const struct bpf_program *program, uint64_t cookie)
{
	struct bpf_link *link;

	if (vec_reserve(&events->links, events->fds.len) < 0)
		return -ENOMEM;
	link = start(events->fds.items[events->links.len], program, cookie);
	if (!link)
		return -errno;
	events->links.items[events->links.len++] = link;
	return 0;
}

int perf_events_start(struct perf_events *events, const struct bpf_program *program, const uint64_t *cookies,
		      size_t count)
{
	int err = 0;

	while (!err && events->links.len < events->fds.len)
		err = start_next(events, program, cookies[events->links.len % count]);
	return err;
}

/* Ends the old event, which has no CPU any more. */
static int renew(struct perf_events *events, size_t index, const struct bpf_program *program, uint64_t cookie)
{
	int fd = open_of_cpu(&events->of_cpus.items[index]);
	struct bpf_link *link = fd < 0 ? NULL : start(fd, program, cookie);

	if (!link) {
		int err = fd < 0 ? fd : -errno;

		io_close(&fd);
		return err;
	}
	bpf_link__destroy(events->links.items[index]);
	events->links.items[index] = link;
	events->fds.items[index] = fd;
	return 0;
}

static int add_cpu(struct perf_events *events, int cpu, const struct bpf_program *program, uint64_t cookie)
{
	struct perf_of_cpu of = events->of_cpus.items[0];
	int fd, err;

	of.cpu = cpu;
	fd = open_of_cpu(&of);
	if (fd < 0)
		return fd;
	err = keep_of_cpu(events, &of, fd);
	return err ? err : start_next(events, program, cookie);
}

int perf_events_renew(struct perf_events *events, int cpu, const struct bpf_program *program, uint64_t cookie)
{
	bool is_known = false;
	int err = 0;

	for (size_t i = 0; !err && i < events->of_cpus.len && i < events->links.len; i++)
		if (events->of_cpus.items[i].cpu == cpu) {
			is_known = true;
			err = renew(events, i, program, cookie);
		}
	return err || is_known || !events->of_cpus.len ? err : add_cpu(events, cpu, program, cookie);
}

void perf_events_stop(struct perf_events *events)
{
	for (size_t i = 0; !events->is_hook && i < events->links.len; i++)
		ioctl(events->fds.items[i], PERF_EVENT_IOC_DISABLE, 0);
	if (events->is_hook)
		perf_events_release(events);
}

void perf_events_release(struct perf_events *events)
{
	for (size_t i = 0; i < events->links.len; i++)
		bpf_link__destroy(events->links.items[i]);
	for (size_t i = events->links.len; i < events->fds.len; i++)
		close(events->fds.items[i]);
	vec_release(&events->links);
	vec_release(&events->fds);
	vec_release(&events->of_cpus);
	probe_process_close(&events->probe_process);
}

/* Returns when the loader closes its end of the socket or exits. */
static void run(int socket, int (*open_probe)(const void *context, size_t i), const void *context, size_t count)
{
	int fd = 0, none;
	char byte;

	prctl(PR_SET_NAME, "duet-probes");
	for (size_t i = 0; fd >= 0 && i < count; i++) {
		int result;

		fd = open_probe(context, i);
		result = fd < 0 ? fd : 0;
		if (packet_send(socket, &result, sizeof(result), fd, 0) < 0)
			return;
	}
	(void)packet_receive(socket, &byte, sizeof(byte), -1, &none);
}

/* Signals of the terminal are for the loader. */
static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
}

static int start_process(struct probe_process *process, int (*open_probe)(const void *context, size_t i),
			 const void *context, size_t count, int kept)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	process->socket = pair[0];
	process->pid = fork();
	if (!process->pid) {
		ignore_signals();
		child_keep_only(0, pair[1], kept);
		run(pair[1], open_probe, context, count);
		_exit(0);
	}
	close(pair[1]);
	if (process->pid > 0)
		return 0;
	close(pair[0]);
	*process = (struct probe_process){0};
	return -EAGAIN;
}

static int receive(int socket, int *ret_fd)
{
	int result = 0;
	ssize_t len = packet_receive(socket, &result, sizeof(result), TIMEOUT_MS, ret_fd);

	if (len != sizeof(result))
		return len < 0 ? (int)len : -ECHILD;
	if (result < 0)
		return result;
	return *ret_fd < 0 ? -EPROTO : 0;
}

int probe_process_open(struct probe_process *process, int (*open_probe)(const void *context, size_t i),
		       const void *context, size_t count, int kept, int *ret_fds)
{
	int err = start_process(process, open_probe, context, count, kept);
	size_t got = 0;

	while (!err && got < count) {
		err = receive(process->socket, &ret_fds[got]);
		got += !err;
	}
	if (!err)
		return 0;
	while (got)
		close(ret_fds[--got]);
	probe_process_close(process);
	return err;
}

void probe_process_close(struct probe_process *process)
{
	uint64_t until_ns = clock_monotonic_ns() + TIMEOUT_MS * NS_PER_MS;

	if (process->socket <= 0)
		return;
	close(process->socket);
	while (!waitpid(process->pid, NULL, WNOHANG) && clock_monotonic_ns() < until_ns)
		clock_sleep(END_STEP_NS);
	*process = (struct probe_process){0};
}

static void explain_breakpoint(const struct event_perf *perf, int err, struct buf *why)
{
	if (err == -ENOSPC)
		buf_add_str(why, "the CPU has no breakpoint left (x86-64 has four)");
	else if (perf->bp_type == HW_BREAKPOINT_R)
		buf_add_str(why, "this CPU has no breakpoints for reads alone: give :rw");
	else if (err == -EINVAL)
		buf_printf(why, "the CPU refuses a breakpoint at 0x%lx: it must be at a multiple of its %lu bytes",
			   (unsigned long)perf->config1, (unsigned long)perf->config2);
	else
		buf_printf(why, "the kernel refuses the breakpoint: %s", strerror(-err));
}

static void explain_counter(const struct event_perf *perf, int err, struct buf *why)
{
	if (err == -EINVAL || err == -EOPNOTSUPP)
		buf_add_str(why, "this counter cannot take samples, or not with this interval" INSTEAD);
	else if (perf->type != PERF_TYPE_SOFTWARE && (err == -ENOENT || err == -ENODEV || err == -ENXIO))
		buf_printf(why, "no counter of this machine counts it%s" INSTEAD,
			   pmu_type("cpu") < 0 ? " (virtual machines often have none)" : "");
	else if (err == -ENODEV)
		buf_add_str(why, "there is no such CPU, or it is offline: /sys/devices/system/cpu/online has them all");
	else
		buf_printf(why, "the kernel refuses the perf event: %s", strerror(-err));
}

void perf_events_explain(const struct event *event, const struct event_perf *perf, int err, struct buf *why)
{
	const struct event_place *place = &event->place;
	bool is_in_file = place->source == EVENT_UPROBE || place->source == EVENT_USDT;

	buf_printf(why, "%s: ", event->name);
	if (place->source == EVENT_BREAKPOINT)
		explain_breakpoint(perf, err, why);
	else if (place->source == EVENT_KPROBE && (err == -ENOENT || err == -EINVAL || err == -EADDRNOTAVAIL))
		buf_printf(why, "the kernel has no function '%s' that can be probed there", place->name);
	else if (is_in_file && err == -ETIMEDOUT)
		buf_add_str(why, "the kernel did not set the probe in time: a process that maps the file holds it up");
	else if (is_in_file)
		buf_printf(why, "the kernel cannot probe this place: %s", strerror(-err));
	else if (place->source == EVENT_COMPLETE || place->source == EVENT_PMU)
		explain_counter(perf, err, why);
	else
		buf_printf(why, "the kernel refuses the perf event: %s", strerror(-err));
}
