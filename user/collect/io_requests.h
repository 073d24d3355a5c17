/* SPDX-License-Identifier: MIT */
/* The programs for requests of io_uring, at the tracepoints of the running kernel. */
#ifndef COLLECT_IO_REQUESTS_H
#define COLLECT_IO_REQUESTS_H

struct bpf_link;
struct programs;

/* Initialize with {0}. NULL: not attached. */
struct io_requests {
	struct bpf_link *submit, *complete;
};

/* Attaches the programs, if they are loaded. Returns 0 or -errno. Release in any case. */
int io_requests_start(struct io_requests *requests, const struct programs *programs);
void io_requests_release(struct io_requests *requests);

#endif
