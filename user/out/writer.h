/* SPDX-License-Identifier: MIT */
/* Output formats. A writer sees the profile and a FILE, never a pid, an ELF file or BPF. */
#ifndef OUT_WRITER_H
#define OUT_WRITER_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/opt.h"
#include "profile/profile.h"

/* What stacks can be gathered under. Equal names are one frame, whatever their ids. */
enum writer_group { WRITER_BY_NONE, WRITER_BY_CONTAINER, WRITER_BY_PROCESS, WRITER_BY_THREAD };
#define WRITER_GROUPS 3

struct writer_options {
	struct frame_style style;
	enum writer_group by[WRITER_GROUPS]; /* --by: leading frames, outermost first; WRITER_BY_NONE ends it */
	bool threads;	    /* -t: a leading frame [name tid=N]; as duet(1) says for virtual threads */
	bool processes;	    /* a leading frame [name pid=N]: more than one was profiled, and there is no `by` */
	uint32_t event;	    /* whose samples are written, by writers of one event: index into profile.events */
	bool total;	    /* --total: weigh by what samples weigh instead of counting them */
	uint32_t max_depth; /* -j: deeper stacks keep the frames nearest the leaf under [truncated]; 0 = no limit */
	struct opt_strings include; /* -I: keep stacks with a matching frame; '*' at either end */
	struct opt_strings exclude; /* -X */
	const char *title;	    /* --title */
	double min_width;	    /* --minwidth, percent */
	bool reverse;		    /* --reverse: leaf at the root */
	bool inverted;		    /* --inverted: icicle instead of flame */
	uint32_t traces;	    /* text: how many stacks */
	uint32_t flat;		    /* text: how many methods */
	uint32_t col_version;	    /* col: 1 or 2 */
	/* A writer's own leading frame: appends its text, which may be several tokens. NULL for none. */
	void (*lead)(const void *context, const struct profile_thread *thread, struct buf *out);
	const void *lead_context;
};

struct writer {
	const char *name;	/* -o NAME */
	const char *extensions; /* "html,htm": chosen by -f when -o is absent; NULL for none */
	const char *help;
	bool has_all_events; /* in one file; else there is one for each, which options->event tells */
	/* 0 or -errno from the stream. Prints nothing else. */
	int (*write)(const struct profile *profile, const struct writer_options *options, FILE *out);
};

/* NULL when unknown. By path: the extension decides, `text` when it is none of ours. */
const struct writer *writer_by_name(const char *name);
const struct writer *writer_by_path(const char *path);
/* All of them, ends with NULL; for --help and for error messages. */
extern const struct writer *const writers[];

/* Name of the event that is written, "" when there is none; and what its weights are in: "ns", or its name. */
const char *writer_event(const struct profile *profile, const struct writer_options *options);
const char *writer_unit(const struct profile *profile, const struct writer_options *options);
void writer_options_default(struct writer_options *options);
/* From "container,process": each at most once. 0, or -EINVAL and `by` is unchanged. */
int writer_groups_parse(enum writer_group by[WRITER_GROUPS], const char *list);

#endif
