/* SPDX-License-Identifier: MIT */
/*
 * Threads that serve requests, and publish the attributes of each in OpenTelemetry's layout (headers/duet_context.h):
 *
 *   routes GATE SECONDS WAY
 *
 * Says READY, and begins when the file GATE exists. Each thread uses SECONDS of CPU, in turns: for each of three routes
 * twice as long as for the one before, then for none. "ROUTE ns VALUE" says how long, by the thread's own clock. Then
 * DONE, and waits to be killed. WAY:
 *   plain   http.route and user.id; the first route is of a trace that is not sampled, the others are of none
 *   late    the same, and the name of http.route is published only when it is used already
 *   ten     http.route and nine more
 *   long    as much as a record may have
 *   liar    between the requests, a record that lies in every field
 *   many    another user.id 10,000 times a second
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "publishing.h"

#define THREADS 2
#define ROUTES 3
#define KEYS 10
#define LIMIT_S 60

__attribute__((visibility("default"))) __thread struct duet_context_record *otel_thread_ctx_v1;

struct request {
	struct duet_context_record head;
	unsigned char attributes[2048];
};

static const char *const keys[KEYS] = {"user.id", "http.route", "a", "b", "c", "d", "e", "f", "g", "h"};
static const char *const routes[ROUTES] = {"/cart", "/pay/{id}", "/se\xc3\xa4rch;x y"};
static const char *const shown[ROUTES + 1] = {"/cart", "/pay/{id}", "/se\xc3\xa4rch|x y", "[no http.route]"};
static uint64_t slice_ns;
static const char *way;
static volatile uint64_t sink;

static void publish(size_t count)
{
	struct message resource = {.len = 0}, context = {.len = 0};

	put_attribute(&resource, 1, "service.name", "routes");
	put_message(&context, 1, &resource);
	put_keys(&context, keys, count);
	publish_message(&context);
	name_mapping();
}

static void add(struct request *to, unsigned char key, const char *value)
{
	size_t len = strlen(value);
	unsigned char *at = to->attributes + to->head.attribute_bytes;

	at[0] = key;
	at[1] = (unsigned char)len;
	memcpy(at + 2, value, len);
	to->head.attribute_bytes = (uint16_t)(to->head.attribute_bytes + 2 + len);
}

static void make(struct request *ret, int route, int thread)
{
	char user[128];

	memset(ret, 0, sizeof(*ret));
	snprintf(user, sizeof(user), "user-%d", thread);
	ret->head.valid = DUET_CONTEXT_VALID;
	add(ret, 1, "an earlier value"); /* the last one counts */
	add(ret, 0, user);
	add(ret, 1, routes[route]);
	for (unsigned char key = 2; !strcmp(way, "ten") && key < KEYS; key++)
		add(ret, key, "some value of it");
	if (!strcmp(way, "long")) {
		memset(user, 'x', sizeof(user) - 1);
		user[sizeof(user) - 1] = '\0';
		for (unsigned char key = 2; key < 6; key++)
			add(ret, key, user);
	}
	if (!route)
		memset(&ret->head.context, 0xab, sizeof(ret->head.context));
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static __attribute__((noipa)) uint64_t work(uint64_t ns)
{
	uint64_t from_ns = cpu_ns(), used_ns;

	while ((used_ns = cpu_ns() - from_ns) < ns)
		for (int i = 0; i < 2000; i++)
			sink++;
	return used_ns;
}

/* One lie after the other: lengths, keys, bytes, and records that are not all there. */
static void lie(unsigned int number)
{
	static __thread struct request liar;
	static const uint16_t lengths[] = {1, 2, 3, 255, 611, 612, 613, 2048, 65535};
	long page = sysconf(_SC_PAGESIZE);
	static char *edge;

	memset(&liar, 0, sizeof(liar));
	liar.head.valid = DUET_CONTEXT_VALID;
	for (size_t i = 0; i < sizeof(liar.attributes); i++)
		liar.attributes[i] = (unsigned char)(number % 3 ? rand() : number % 2 ? 255 : 1);
	liar.head.attribute_bytes = lengths[number % (sizeof(lengths) / sizeof(*lengths))];
	otel_thread_ctx_v1 = &liar.head;
	if (number % 7 == 0) { /* the page after the head cannot be read */
		if (!edge) {
			edge = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				    0);
			mprotect(edge + page, (size_t)page, PROT_NONE);
		}
		memcpy(edge + page - sizeof(liar.head), &liar.head, sizeof(liar.head));
		otel_thread_ctx_v1 = (struct duet_context_record *)(edge + page - sizeof(liar.head));
	}
	work(1000000);
	otel_thread_ctx_v1 = NULL;
}

static void change_user(struct request *request, uint64_t ns)
{
	static __thread unsigned int number;
	uint64_t used_ns = 0;
	char user[32];

	while (used_ns < ns) {
		snprintf(user, sizeof(user), "%u", number++);
		request->head.valid = 0;
		add(request, 0, user);
		request->head.valid = DUET_CONTEXT_VALID;
		used_ns += work(100000);
		request->head.attribute_bytes = (uint16_t)(request->head.attribute_bytes - 2 - strlen(user));
	}
}

static void *serve(void *number)
{
	uint64_t used_ns[ROUTES + 1] = {0}, from_ns;
	struct request requests[ROUTES];

	for (int i = 0; i < ROUTES; i++)
		make(&requests[i], i, (int)(intptr_t)number);
	for (unsigned int turn = 0; cpu_ns() < 500 * slice_ns; turn++) {
		for (int i = 0; i < ROUTES; i++) {
			otel_thread_ctx_v1 = &requests[i].head;
			from_ns = cpu_ns();
			if (!strcmp(way, "many"))
				change_user(&requests[i], slice_ns << i);
			else
				work(slice_ns << i);
			used_ns[i] += cpu_ns() - from_ns;
		}
		otel_thread_ctx_v1 = NULL;
		from_ns = cpu_ns();
		if (!strcmp(way, "liar"))
			lie(turn);
		else
			work(slice_ns);
		used_ns[ROUTES] += cpu_ns() - from_ns;
		if (!number && turn == 3 && !strcmp(way, "late"))
			publish(KEYS);
	}
	for (int i = 0; i <= ROUTES; i++)
		printf("ROUTE %llu %s\n", (unsigned long long)used_ns[i], shown[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc < 4 || map_head())
		return 2;
	way = argv[3];
	slice_ns = (uint64_t)(atof(argv[2]) * 1e9) / 500;
	alarm(LIMIT_S);
	publish(!strcmp(way, "late") ? 1 : KEYS);
	puts("READY");
	fflush(stdout);
	while (access(argv[1], F_OK))
		usleep(20000);
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts("DONE");
	fflush(stdout);
	pause();
	return 0;
}
