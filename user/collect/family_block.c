/* SPDX-License-Identifier: MIT */
/* Requests to block devices. */

#include <errno.h>

#include "collect/kernel/probe.h"
#include "collect/programs.h"

#include "duet.skel.h"

/* The completions are attached first, the submissions last: each request that is seen to begin is seen to end. */
enum { BLOCK_INSERT, BLOCK_ISSUE, BLOCK_REQUEUE, BLOCK_MERGE };

static int block_check(struct family *family, const struct collector_options *options, struct buf *why)
{
	if (probe_tracepoint_arguments("block_rq_issue"))
		return 0;
	return buf_explain(why, -ENOTSUP,
			   "block: this kernel has no tracepoints of block devices (CONFIG_BLOCK): give -e io");
}

static int block_prepare(struct family *family, const struct collector_options *options)
{
	const struct duet_bpf *bpf = family->programs->bpf;
	int err;

	if (!family->is_used)
		return 0;
	bpf->rodata->duet_config.block_queue_first = probe_tracepoint_arguments("block_rq_issue") > 1;
	err = family_use(family, BLOCK_INSERT, bpf->progs.block_insert, NULL);
	if (!err)
		err = family_use(family, BLOCK_ISSUE, bpf->progs.block_issue, NULL);
	if (!err)
		err = family_use(family, BLOCK_REQUEUE, bpf->progs.block_requeue, NULL);
	if (!err && probe_tracepoint_arguments("block_rq_merge")) /* Linux 5.9 */
		err = family_use(family, BLOCK_MERGE, bpf->progs.block_merge, NULL);
	return err;
}

const struct bpf_family family_block = {
	.programs = FAMILY_PROGRAM(BLOCK),
	/* requests that wait or are under way at the same time; a row takes 130 bytes */
	.maps = {{FAMILY_MAP(block_requests), 16u << 10, 1}},
	.check = block_check,
	.prepare = block_prepare,
};
