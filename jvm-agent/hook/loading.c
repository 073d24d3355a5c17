/* SPDX-License-Identifier: MIT */
#include "hook/loading.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "hook/linkage.h"
#include "jvm/stay.h"
#include "jvm/tables.h"
#include "libc_versions.h"
#include "peer/peer.h"

#define ROWS_STEP_NS 1000000
#define ROWS_MOST_STEPS 50 /* the loader takes a few ms, unless the machine is busy */

/* ---- the unwind tables' knowledge of libraries ---- */

struct code_search {
	const struct tables *tables;
	struct tables_slice slice;
	size_t unknown;
};

static int search_code(struct dl_phdr_info *info, size_t size, void *context)
{
	struct code_search *search = context;
	struct duet_unwind_mapping mapping;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    !tables_find_mapping(search->tables, &search->slice, info->dlpi_addr + segment->p_vaddr, &mapping))
			search->unknown++;
	}
	return 0;
}

/*
 * Returns how many segments of the libraries' code have no rows yet. Returns 0 without tables, as no rows will come.
 * Returns SIZE_MAX if the loader changed the tables meanwhile: the number is not known.
 */
static size_t count_unknown(void)
{
	struct stay *stay = stay_enter();
	struct code_search search = {0};

	if (stay && stay->tables.file) {
		search.tables = &stay->tables;
		search.slice = tables_begin(&stay->tables);
		if (search.slice.generation)
			dl_iterate_phdr(search_code, &search);
		if (!tables_unchanged(&stay->tables, &search.slice))
			search.unknown = SIZE_MAX;
	}
	stay_leave();
	return search.unknown;
}

static void notify_loader(void)
{
	const struct stay *stay = stay_enter();

	if (stay && stay->loader >= 0)
		peer_send_note(stay->loader, DUET_MESSAGE_MAPPED);
	stay_leave();
}

/* Stacks through code without rows end there, and a library's first calls may be all that it does. */
static void await_rows(size_t unknown_before)
{
	const struct timespec step = {.tv_nsec = ROWS_STEP_NS};

	for (int i = 0; i < ROWS_MOST_STEPS && count_unknown() > unknown_before; i++) {
		notify_loader();
		nanosleep(&step, NULL);
	}
}

/* ---- dlopen() ---- */

/*
 * The result of dlopen() may depend on the calling library, unless the file is named by its path. Without a path, this
 * function jumps to dlopen(), which then sees the real caller, and the next rescan hooks the library.
 */
static void *hook_dlopen(const char *file, int flags)
{
	size_t unknown;
	void *handle;

	if (!file || !strchr(file, '/') || strchr(file, '$'))
		return dlopen(file, flags);
	unknown = count_unknown();
	handle = dlopen(file, flags);
	if (handle) {
		int saved_errno = errno;

		linkage_install();
		await_rows(unknown);
		errno = saved_errno;
	}
	return handle;
}

static struct linkage_hook hooks[] = {{"dlopen", (uintptr_t)hook_dlopen, false, 0, NULL}};
static struct linkage_set loading = {.hooks = hooks, .count = 1};
static unsigned int users;

bool loading_open(void)
{
	if (!users && !linkage_open(&loading))
		return false;
	users++;
	return true;
}

void loading_close(void)
{
	if (!--users)
		linkage_close(&loading);
}
