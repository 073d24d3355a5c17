/* SPDX-License-Identifier: MIT */
/*
 * Many large libraries in one process. As a library: some thousand functions that nobody calls, each with rows of its
 * own, and one that somebody does. As a program: maps the libraries that it is given and calls each in turn, or those
 * before "--" only. Says READY and runs until it is killed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUND 20000u
#define LIMIT_S 60 /* seconds after which it ends by itself, if nobody ends it */

#ifdef FUNCTIONS
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* Only to be read: the code does not do to the stack pointer what the rows say. */
__asm__(".text\n"
	".rept " TEXT(FUNCTIONS) "\n"
	".balign 16\n"
	".cfi_startproc\n"
	"nop\n.cfi_def_cfa_offset 16\n"
	"nop\n.cfi_def_cfa_offset 64\n"
	".skip 152\n.cfi_def_cfa_offset 16\n"
	"nop\n.cfi_def_cfa_offset 32\n"
	"nop\n"
	".cfi_endproc\n"
	".endr\n"
	/* Three rows whose offsets are digits (DW_CFA_def_cfa_offset_sf). A test replaces them by others. */
	".cfi_startproc\n"
	".cfi_escape 'A', 0x13, '0', 'A', 0x13, '0', 'A', 0x13, '0'\n"
	".skip 64\n"
	".cfi_endproc\n");

void library_work(void);
__attribute__((noipa)) void library_work(void)
{
	static volatile uint64_t sink;

	for (uint32_t i = 0; i < ROUND; i++)
		sink += i;
}
#else
int main(int argc, char **argv)
{
	void (**works)(void) = calloc((size_t)argc, sizeof(*works));
	int end = argc;

	for (int i = 1; works && i < argc; i++) {
		void *library;

		if (!strcmp(argv[i], "--")) {
			end = i;
			continue;
		}
		library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		*(void **)&works[i] = library ? dlsym(library, "library_work") : NULL;
		if (!works[i]) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	}
	alarm(LIMIT_S);
	puts("READY");
	fflush(stdout);
	for (;;)
		for (int i = 1; works && i < end; i++)
			works[i]();
}
#endif
