/* SPDX-License-Identifier: MIT */
#include "collect/perf_events.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "base/log.h"

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

static int open_probe(const void *context, size_t i)
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
	err = probe_process_open(&events->probe_process, open_probe, &context, count * pid_count, file,
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

int perf_events_start(struct perf_events *events, const struct bpf_program *program, uint64_t cookie)
{
	int err = 0;

	while (!err && events->links.len < events->fds.len)
		err = start_next(events, program, cookie);
	return err;
}

int perf_events_start_each(struct perf_events *events, const struct bpf_program *program, const uint64_t *cookies)
{
	int err = 0;

	while (!err && events->links.len < events->fds.len)
		err = start_next(events, program, cookies[events->links.len]);
	return err;
}

/* Ends the old event, which has no CPU any more. */
static int renew(struct perf_events *events, size_t index, const struct bpf_program *program, uint64_t cookie)
{
	int fd = open_of_cpu(&events->of_cpus.items[index]);
	struct bpf_link *link = fd < 0 ? NULL : start(fd, program, cookie);

	if (!link) {
		int err = fd < 0 ? fd : -errno;

		if (fd >= 0)
			close(fd);
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
