/* SPDX-License-Identifier: MIT */
#include "collect/events.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "base/log.h"

static int open_on_cpu(const struct mode *mode, uint64_t interval_ns, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = mode->perf_type,
		.config = mode->perf_config,
		/* A fixed period, not a frequency: every sample weighs the same. */
		.sample_period = interval_ns,
		.disabled = 1,
		.exclude_idle = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* ENODEV: possible but offline. EINVAL: beyond what this kernel can have. Neither is a reason to give up. */
int events_open(struct events *events, const struct mode *mode, uint64_t interval_ns)
{
	int cpus = libbpf_num_possible_cpus();
	int err = -ENODEV;

	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_on_cpu(mode, interval_ns, cpu);

		if (fd < 0) {
			log_debug("perf event on CPU %d: %s", cpu, strerrordesc_np(-fd));
			err = fd;
			continue;
		}
		if (vec_push(&events->fds, fd) < 0) {
			close(fd);
			return -ENOMEM;
		}
	}
	return events->fds.len ? (int)events->fds.len : err;
}

int events_start(struct events *events, const struct bpf_program *program)
{
	if (vec_reserve(&events->links, events->fds.len) < 0)
		return -ENOMEM;
	for (size_t i = events->links.len; i < events->fds.len; i++) {
		struct bpf_link *link = bpf_program__attach_perf_event(program, events->fds.items[i]);

		if (!link)
			return -errno;
		events->links.items[events->links.len++] = link;
	}
	return 0;
}

void events_stop(struct events *events)
{
	for (size_t i = 0; i < events->links.len; i++)
		ioctl(events->fds.items[i], PERF_EVENT_IOC_DISABLE, 0);
}

void events_release(struct events *events)
{
	for (size_t i = 0; i < events->links.len; i++)
		bpf_link__destroy(events->links.items[i]);
	for (size_t i = events->links.len; i < events->fds.len; i++)
		close(events->fds.items[i]);
	vec_release(&events->links);
	vec_release(&events->fds);
}
