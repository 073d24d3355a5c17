/* SPDX-License-Identifier: MIT */
#include "collect/io_requests.h"

#include <errno.h>

#include <bpf/libbpf.h>

#include "collect/programs.h"

#include "duet.skel.h"

/* The completions come first: each request that is seen to begin is seen to end. */
int io_requests_start(struct io_requests *requests, const struct programs *programs)
{
	if (!programs->uring)
		return 0;
	requests->complete = bpf_program__attach(programs->bpf->progs.uring_complete);
	if (!requests->complete)
		return -errno;
	requests->submit = bpf_program__attach_raw_tracepoint(programs->bpf->progs.uring_submit, programs->uring);
	return requests->submit ? 0 : -errno;
}

void io_requests_release(struct io_requests *requests)
{
	bpf_link__destroy(requests->submit);
	bpf_link__destroy(requests->complete);
	*requests = (struct io_requests){0};
}
