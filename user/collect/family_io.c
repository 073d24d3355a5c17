/* SPDX-License-Identifier: MIT */
/* I/O: calls, and requests of io_uring, if the kernel has a tracepoint that shows them. */

#include <bpf/libbpf.h>

#include "collect/kernel/probe.h"
#include "collect/programs.h"

#include "duet.skel.h"

#define IO_CALLS (16u << 10) /* calls at the same time */
#define URING_REQUESTS (16u << 10) /* under way at the same time; a row takes 150 bytes */

/* The completions are attached before the submissions: each request that is seen to begin is seen to end. */
enum { IO_ENTER, URING_SUBMIT, URING_COMPLETE };

static int prepare_uring(struct family *family, uint8_t *config)
{
	struct duet_bpf *bpf = family->programs->bpf;
	bool has_entry;
	const char *tracepoint = probe_uring(&has_entry);
	int err;

	if (!tracepoint)
		return 0;
	if (has_entry)
		*config |= DUET_URING_HAS_ENTRY;
	err = family_use(family, URING_SUBMIT, bpf->progs.uring_submit, tracepoint);
	if (!err)
		err = family_use(family, URING_COMPLETE, bpf->progs.uring_complete, NULL);
	if (!err)
		err = bpf_map__set_max_entries(bpf->maps.uring_requests, URING_REQUESTS);
	return err ? err : bpf_map__set_max_entries(bpf->maps.uring_repeated, URING_REQUESTS);
}

static int io_prepare(struct family *family, const struct collector_options *options)
{
	struct duet_bpf *bpf = family->programs->bpf;
	uint8_t *uring = &bpf->rodata->duet_config.uring;
	int err = 0;

	if (event_list_count(family->events, DUET_PROGRAM_IO)) {
		*uring |= DUET_URING_TIME;
		err = family_use(family, IO_ENTER, bpf->progs.io_enter, NULL);
	}
	if (!err)
		err = programs_keep_threads(family->programs, bpf->maps.io_threads, bpf->maps.io_calls,
					    *uring & DUET_URING_TIME ? IO_CALLS : 0);
	if (event_list_count(family->events, DUET_PROGRAM_IO_BYTES))
		*uring |= DUET_URING_BYTES;
	return err || !family->is_used ? err : prepare_uring(family, uring);
}

const struct bpf_family family_io = {
	.programs = FAMILY_PROGRAM(IO) | FAMILY_PROGRAM(IO_BYTES),
	.maps = {{FAMILY_MAP(io_calls), 0, 1}, {FAMILY_MAP(uring_requests), 0, 1}, {FAMILY_MAP(uring_repeated), 0, 1}},
	.prepare = io_prepare,
};
