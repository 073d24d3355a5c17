/* SPDX-License-Identifier: MIT */
#include "sample/sample.h"

#include <string.h>

#include "safe_copy.h"

/* What is read by this is the library's own and the C library's. The record is not: safe_copy() reads it. */
static int context_read(void *to, uint32_t bytes, uint64_t from)
{
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return 0;
}

#include "walk/context.h"

/* Exported for readers like BPF, and native code. A descriptor can be found, and loaded late, by any C library. */
__attribute__((visibility("default"), tls_model("global-dynamic")))
__thread struct duet_context_record *otel_thread_ctx_v1;

extern const char *gnu_get_libc_version(void) __attribute__((weak)); /* glibc has it, musl has not */

void context_set(struct duet_context_record *record)
{
	otel_thread_ctx_v1 = record;
}

/* The address of the variable's descriptor: to name the variable may allocate it. */
static uint64_t descriptor(void)
{
	uint64_t at;

#if defined(__x86_64__)
	__asm__("leaq otel_thread_ctx_v1@TLSDESC(%%rip), %0" : "=a"(at));
#else
	__asm__("adrp %0, :tlsdesc:otel_thread_ctx_v1\n\tadd %0, %0, :tlsdesc_lo12:otel_thread_ctx_v1" : "=r"(at));
#endif
	return at;
}

static uint64_t own_thread_pointer(void)
{
	uint64_t at;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(at)); /* the block's first word is its address */
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(at));
#endif
	return at;
}

void context_here(struct duet_context *ret)
{
	const struct duet_context_source source = {
		.place = DUET_CONTEXT_DESCRIPTOR,
		.at = descriptor(),
		.is_musl = !gnu_get_libc_version,
	};
	uint64_t variable = context_variable(&source, own_thread_pointer()), at = 0;
	struct duet_context_record record;

	if (variable)
		memcpy(&at, (const void *)(uintptr_t)variable, sizeof(at));
	if (at && safe_copy(&record, at, sizeof(record)) == sizeof(record) && record.valid == DUET_CONTEXT_VALID)
		*ret = record.context;
}
