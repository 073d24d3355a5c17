/* SPDX-License-Identifier: MIT */
#include "collect/family.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "collect/collector.h"
#include "collect/programs.h"

#include "duet.skel.h"

#define FAMILY_ROW(name) &family_##name,
const struct bpf_family *const bpf_families[FAMILIES] = {BPF_FAMILIES(FAMILY_ROW)};

static bool is_of(const struct bpf_family *row, const struct event *event)
{
	return row->programs >> event->program & 1;
}

int families_open(struct family *families, struct programs *programs, const struct event_list *events)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		const struct bpf_family *row = bpf_families[i];

		families[i] = (struct family){.row = row, .programs = programs, .events = events};
		for (size_t j = 0; j < events->len; j++)
			families[i].is_used |= is_of(row, events->items[j].event);
		families[i].state = calloc(1, row->state_bytes + 1);
		if (!families[i].state)
			return -ENOMEM;
	}
	return 0;
}

void families_close(struct family *families)
{
	for (size_t i = 0; i < FAMILIES && families[i].state; i++) {
		if (families[i].row->release)
			families[i].row->release(&families[i]);
		free(families[i].state);
	}
}

int family_use(struct family *family, size_t link, struct bpf_program *program, const char *tracepoint)
{
	family->used[link].program = program;
	family->used[link].tracepoint = tracepoint;
	return bpf_program__set_autoload(program, true);
}

static int attach(struct bpf_link **ret, const struct bpf_program *program, const char *tracepoint)
{
	if (*ret || !program)
		return 0;
	*ret = tracepoint ? bpf_program__attach_raw_tracepoint(program, tracepoint) : bpf_program__attach(program);
	return *ret ? 0 : -errno;
}

int family_attach(struct family *family)
{
	int err = 0;

	for (size_t i = 0; !err && i < family->events->len; i++) {
		const struct event *event = family->events->items[i].event;

		if (is_of(family->row, event))
			err = attach(&family->of_events[i], family->programs->of[event->program], NULL);
	}
	for (size_t i = FAMILY_LINKS; !err && i-- > 0;)
		err = attach(&family->links[i], family->used[i].program, family->used[i].tracepoint);
	return err;
}

static void destroy(struct bpf_link **links, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
}

void family_detach(struct family *family)
{
	if (!family->state)
		return;
	if (family->row->detach)
		family->row->detach(family);
	destroy(family->links, FAMILY_LINKS);
	destroy(family->of_events, DUET_MAX_EVENTS);
}

/* ---- families of a few lines ---- */

static void holders_drop(struct family *family, pid_t pid)
{
	(void)bpf_map__delete_elem(family->programs->bpf->maps.lock_waiters, &pid, sizeof(pid), 0);
}

int collector_watch_locks(struct collector *collector, pid_t pid, const struct duet_lock_waiters *waiters)
{
	const struct bpf_map *map;

	if (!collector)
		return 0;
	map = collector_family(collector, FAMILY_holders)->programs->bpf->maps.lock_waiters;
	return bpf_map__update_elem(map, &pid, sizeof(pid), waiters, sizeof(*waiters), BPF_ANY);
}

/* Who releases locks. */
const struct bpf_family family_holders = {
	.programs = FAMILY_PROGRAM(HOLDERS),
	.maps = {{FAMILY_MAP(lock_waiters), DUET_MAX_JVMS, 0}},
	.drop = holders_drop,
};

/* One program each, without state. */
const struct bpf_family family_plain = {.programs = FAMILY_PROGRAM(SYSCALLS) | FAMILY_PROGRAM(MMAP)};
