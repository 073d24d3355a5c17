/* SPDX-License-Identifier: MIT */
/*
 * A program that publishes what it is, in OpenTelemetry's layout (headers/duet_context.h, struct duet_published):
 *
 *   services GATE SECONDS WAY
 *
 * Says READY, and uses SECONDS of CPU once the file GATE exists. Then DONE, and waits to be killed. WAY:
 *   early    publishes before READY
 *   late     publishes when a third of the CPU time is used, and another version at two thirds
 *   silent   publishes at once, and after a third another version without telling the kernel
 *   liar     each field lies in turn
 *   storm    publishes at once, then changes it 10,000 times a second
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
#define LIMIT_S 240

static volatile struct duet_published *head;
static unsigned char payload[2][65536];
static int current;
static volatile uint64_t sink;

/* ---- protobuf ---- */

struct message {
	unsigned char bytes[4096];
	size_t len;
};

static void put_number(struct message *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		to->bytes[to->len++] = (unsigned char)(number | 0x80);
	to->bytes[to->len++] = (unsigned char)number;
}

static void put_bytes(struct message *to, unsigned int field, const void *bytes, size_t len)
{
	put_number(to, field << 3 | 2);
	put_number(to, len);
	memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

static void put_message(struct message *to, unsigned int field, const struct message *from)
{
	put_bytes(to, field, from->bytes, from->len);
}

static void put_attribute(struct message *to, unsigned int field, const char *key, const char *value)
{
	struct message any = {.len = 0}, pair = {.len = 0};

	put_bytes(&any, 1, value, strlen(value));
	put_bytes(&pair, 1, key, strlen(key));
	put_message(&pair, 2, &any);
	put_message(to, field, &pair);
}

static void put_count(struct message *to, unsigned int field, const char *key, uint64_t value)
{
	struct message any = {.len = 0}, pair = {.len = 0};

	put_number(&any, 3 << 3);
	put_number(&any, value);
	put_bytes(&pair, 1, key, strlen(key));
	put_message(&pair, 2, &any);
	put_message(to, field, &pair);
}

static void put_keys(struct message *to)
{
	static const char *const keys[] = {"http.route", "user.id"};
	struct message list = {.len = 0}, any = {.len = 0}, pair = {.len = 0};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct message text = {.len = 0};

		put_bytes(&text, 1, keys[i], strlen(keys[i]));
		put_message(&list, 1, &text);
	}
	put_message(&any, 5, &list);
	put_bytes(&pair, 1, "threadlocal.attribute_key_map", strlen("threadlocal.attribute_key_map"));
	put_message(&pair, 2, &any);
	put_attribute(to, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
	put_message(to, 2, &pair);
}

static size_t describe(unsigned char *to, const char *version)
{
	struct message resource = {.len = 0}, context = {.len = 0};

	put_attribute(&resource, 1, "service.name", "shop");
	put_attribute(&resource, 1, "service.version", version);
	put_attribute(&resource, 1, "deployment.environment.name", "test");
	put_attribute(&resource, 1, "team", "a\033[31m\nb;c=d\xff");
	put_count(&resource, 1, "service.instance.number", 7);
	put_message(&context, 1, &resource);
	put_keys(&context);
	memcpy(to, context.bytes, context.len);
	return context.len;
}

/* ---- publishing ---- */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void name_mapping(void)
{
	(void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, head, MAPPED, DUET_PUBLISHED_SIGNATURE);
}

static int map_head(void)
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

static void publish(const char *version)
{
	size_t len;

	current = !current;
	len = describe(payload[current], version);
	head->published_ns = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy((void *)head->signature, DUET_PUBLISHED_SIGNATURE, sizeof(head->signature));
	head->version = DUET_PUBLISHED_VERSION;
	head->payload_bytes = (uint32_t)len;
	head->payload = (uint64_t)(uintptr_t)payload[current];
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	head->published_ns = clock_ns(CLOCK_BOOTTIME);
}

/* One lie after the other: in the size, the address, the version, the time, and in what is at the address. */
static void lie(unsigned int number)
{
	static const uint32_t sizes[] = {0xffffffff, 65537, 65536, 0};
	static const uint64_t places[] = {~0ull, 1ull << 63, 1, 0xffffffffff600000};

	publish("1");
	switch (number % 5) {
	case 0:
		head->payload_bytes = sizes[number / 5 % 4];
		break;
	case 1:
		head->payload = places[number / 5 % 4];
		break;
	case 2:
		head->version = number;
		break;
	case 3:
		head->published_ns = 1 + number; /* goes back */
		break;
	default:
		/* messages in messages: each byte but the last begins one that says it has all the rest */
		memset(payload[current], number / 5 % 2 ? 0x0a : 0xff, sizeof(payload[current]));
		head->payload_bytes = sizeof(payload[current]);
	}
	name_mapping();
}

/* ---- work ---- */

static __attribute__((noipa)) void work(uint64_t ns)
{
	uint64_t until_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until_ns)
		for (int i = 0; i < 2000; i++)
			sink++;
}

static void serve(const char *way, uint64_t third_ns)
{
	unsigned int turns = (unsigned int)(3 * third_ns / 100000);

	if (!strcmp(way, "late")) {
		work(third_ns);
		publish("1");
		name_mapping();
		work(third_ns);
		publish("2");
		name_mapping();
		work(third_ns);
	} else if (!strcmp(way, "silent")) {
		work(third_ns);
		publish("2");
		work(2 * third_ns);
	} else if (!strcmp(way, "liar") || !strcmp(way, "storm")) {
		for (unsigned int i = 0; i < turns; i++) {
			work(100000);
			if (*way == 'l') {
				if (i % 1000 == 0)
					lie(i / 1000);
				continue;
			}
			publish("1");
			name_mapping();
		}
	} else {
		work(3 * third_ns);
	}
}

int main(int argc, char **argv)
{
	const char *way = argc > 3 ? argv[3] : "";

	if (argc < 4 || map_head())
		return 2;
	alarm(LIMIT_S);
	if (strcmp(way, "late") != 0) {
		publish("1");
		name_mapping();
	}
	puts("READY");
	fflush(stdout);
	while (access(argv[1], F_OK))
		usleep(20000);
	serve(way, (uint64_t)(atof(argv[2]) * 1e9 / 3));
	puts("DONE");
	fflush(stdout);
	pause();
	return 0;
}
