/* SPDX-License-Identifier: MIT */
/* A program publishes what it is, in OpenTelemetry's layout (struct duet_published). */
#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "duet_context.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#define MAPPED 4096

static volatile struct duet_published *head;
static unsigned char payload[2][65536];
static int current;

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- protobuf ---- */

struct message {
	unsigned char bytes[4096];
	size_t len;
};

static inline void put_number(struct message *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		to->bytes[to->len++] = (unsigned char)(number | 0x80);
	to->bytes[to->len++] = (unsigned char)number;
}

static inline void put_bytes(struct message *to, unsigned int field, const void *bytes, size_t len)
{
	put_number(to, field << 3 | 2);
	put_number(to, len);
	memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

static inline void put_message(struct message *to, unsigned int field, const struct message *from)
{
	put_bytes(to, field, from->bytes, from->len);
}

static inline void put_attribute(struct message *to, unsigned int field, const char *key, const char *value)
{
	struct message any = {.len = 0}, pair = {.len = 0};

	put_bytes(&any, 1, value, strlen(value));
	put_bytes(&pair, 1, key, strlen(key));
	put_message(&pair, 2, &any);
	put_message(to, field, &pair);
}

/* The names of the attributes of threads, of which the first has index 0. */
static inline void put_keys(struct message *to, const char *const *keys, size_t count)
{
	struct message list = {.len = 0}, any = {.len = 0}, pair = {.len = 0};

	for (size_t i = 0; i < count; i++) {
		struct message text = {.len = 0};

		put_bytes(&text, 1, keys[i], strlen(keys[i]));
		put_message(&list, 1, &text);
	}
	put_message(&any, 5, &list);
	put_bytes(&pair, 1, DUET_CONTEXT_KEYS, strlen(DUET_CONTEXT_KEYS));
	put_message(&pair, 2, &any);
	put_attribute(to, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
	put_message(to, 2, &pair);
}

/* ---- publishing ---- */

static inline void name_mapping(void)
{
	(void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, head, MAPPED, DUET_PUBLISHED_SIGNATURE);
}

static inline int map_head(void)
{
	int file = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (file < 0)
		file = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file < 0 || ftruncate(file, MAPPED))
		return -1;
	head = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	close(file);
	return head == MAP_FAILED ? -1 : madvise((void *)head, MAPPED, MADV_DONTFORK);
}

static inline void publish_message(const struct message *context)
{
	current = !current;
	memcpy(payload[current], context->bytes, context->len);
	head->published_ns = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy((void *)head->signature, DUET_PUBLISHED_SIGNATURE, sizeof(head->signature));
	head->version = DUET_PUBLISHED_VERSION;
	head->payload_bytes = (uint32_t)context->len;
	head->payload = (uint64_t)(uintptr_t)payload[current];
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	head->published_ns = clock_ns(CLOCK_BOOTTIME);
}
