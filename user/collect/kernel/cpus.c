/* SPDX-License-Identifier: MIT */
#include "collect/kernel/cpus.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS NS_PER_SEC

/* The kernel makes the folder `topology` whenever a CPU comes, and gives it another number each time. */
static uint64_t read_mark(const struct cpus *cpus, size_t cpu)
{
	char name[48];
	struct stat st;

	snprintf(name, sizeof(name), "cpu%zu/topology", cpu);
	return fstatat(cpus->folder, name, &st, 0) < 0 ? 0 : st.st_ino;
}

void cpus_open(struct cpus *cpus, const char *folder, int count)
{
	*cpus = (struct cpus){.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	if (cpus->folder < 0)
		return;
	if (count <= 0 || vec_reserve(&cpus->marks, (size_t)count) < 0) {
		close(cpus->folder);
		return;
	}
	for (int cpu = 0; cpu < count; cpu++)
		cpus->marks.items[cpus->marks.len++] = read_mark(cpus, (size_t)cpu);
}

void cpus_release(struct cpus *cpus)
{
	if (cpus->marks.len)
		close(cpus->folder);
	vec_release(&cpus->marks);
}

int cpus_look(struct cpus *cpus, void (*came)(void *context, int cpu), void *context)
{
	int count = 0;

	for (size_t cpu = 0; cpu < cpus->marks.len; cpu++) {
		uint64_t mark = read_mark(cpus, cpu);

		if (mark && mark != cpus->marks.items[cpu]) {
			came(context, (int)cpu);
			count++;
		}
		cpus->marks.items[cpu] = mark;
	}
	return count;
}

int cpus_step(struct cpus *cpus, uint64_t now_ns, void (*came)(void *context, int cpu), void *context)
{
	if (!cpus->looked_ns || now_ns - cpus->looked_ns < LOOK_NS)
		return 0;
	cpus->looked_ns = now_ns;
	return cpus_look(cpus, came, context);
}
