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
#include <unistd.h>

#include "publishing.h"

#define LIMIT_S 240

static volatile uint64_t sink;

static void put_count(struct message *to, unsigned int field, const char *key, uint64_t value)
{
	struct message any = {.len = 0}, pair = {.len = 0};

	put_number(&any, 3 << 3);
	put_number(&any, value);
	put_bytes(&pair, 1, key, strlen(key));
	put_message(&pair, 2, &any);
	put_message(to, field, &pair);
}

static void publish(const char *version)
{
	static const char *const keys[] = {"http.route", "user.id"};
	struct message resource = {.len = 0}, context = {.len = 0};

	put_attribute(&resource, 1, "service.name", "shop");
	put_attribute(&resource, 1, "service.version", version);
	put_attribute(&resource, 1, "deployment.environment.name", "test");
	put_attribute(&resource, 1, "team", "a\033[31m\nb;c=d\xff");
	put_count(&resource, 1, "service.instance.number", 7);
	put_message(&context, 1, &resource);
	put_keys(&context, keys, sizeof(keys) / sizeof(*keys));
	publish_message(&context);
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
