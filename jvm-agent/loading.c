/* SPDX-License-Identifier: MIT */
#include "loading.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "libc_versions.h"
#include "linkage.h"

/*
 * The result of dlopen() may depend on the calling library, unless the file is named by its path. Without a path, this
 * function jumps to dlopen(), which then sees the real caller, and the next rescan hooks the library.
 */
static void *hook_dlopen(const char *file, int flags)
{
	void *handle;

	if (!file || !strchr(file, '/') || strchr(file, '$'))
		return dlopen(file, flags);
	handle = dlopen(file, flags);
	if (handle) {
		int saved_errno = errno;

		linkage_install();
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
