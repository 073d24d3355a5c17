/* SPDX-License-Identifier: MIT */
/* Each thread finds its own value, whatever other threads do, and no value is lost or released twice. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "wait/waits.c"

#define THREADS 4
#define ROUNDS 20000

static struct waits waits;
static int released;

static void count_one(void *context, void *value)
{
	(void)context, (void)value;
	__atomic_fetch_add(&released, 1, __ATOMIC_RELAXED);
}

static void values_are_found_by_key(void **state)
{
	int a, b;

	assert_null(waits_take(&waits, 1));
	assert_true(waits_put(&waits, 1, &a));
	assert_true(waits_put(&waits, 2, &b));
	assert_ptr_equal(waits_take(&waits, 1), &a);
	assert_null(waits_take(&waits, 1));
	assert_ptr_equal(waits_take(&waits, 2), &b);
}

static size_t touched_pages(void)
{
	uintptr_t bytes = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)&waits / bytes * bytes;
	int fd = open("/proc/self/pagemap", O_RDONLY);
	size_t count = 0;
	uint64_t entry;

	for (uintptr_t page = begin; page < (uintptr_t)(&waits + 1); page += bytes)
		count += pread(fd, &entry, sizeof(entry), (off_t)(page / bytes * sizeof(entry))) == sizeof(entry) &&
			 entry >> 62; /* in memory, or swapped out */
	close(fd);
	return count;
}

/* Threads come and go; the pages in which they waited do not stay, and what others wait for does. */
static void memory_is_given_back(void **state)
{
	int value;

	for (uint64_t key = 1; key < 5000; key++)
		assert_true(waits_put(&waits, key, &value));
	for (uint64_t key = 2; key < 5000; key++)
		assert_ptr_equal(waits_take(&waits, key), &value);
	assert_true(touched_pages() > 500);
	waits_trim(&waits);
	assert_true(touched_pages() < 500);
	assert_ptr_equal(waits_take(&waits, 1), &value);
}

/* Keys with the same place follow each other: the later ones are found after the first was removed. */
static void places_are_reused(void **state)
{
	uint64_t alike[TRIES + 1];
	uint32_t count = 0;

	for (uint64_t key = 1; count <= TRIES; key++)
		if (place_at(&waits, key, 0) == place_at(&waits, 1, 0))
			alike[count++] = key;
	for (uint32_t i = 0; i < TRIES; i++)
		assert_true(waits_put(&waits, alike[i], &alike[i]));
	assert_false(waits_put(&waits, alike[TRIES], &alike[TRIES]));
	for (uint32_t i = 0; i < TRIES; i++)
		assert_ptr_equal(waits_take(&waits, alike[i]), &alike[i]);
	assert_true(waits_put(&waits, alike[TRIES], &alike[TRIES]));
	assert_ptr_equal(waits_take(&waits, alike[TRIES]), &alike[TRIES]);
}

struct worker {
	pthread_t thread;
	uint64_t first;
	int missing; /* released by another thread */
	int wrong;
};

static void *put_and_take(void *of)
{
	struct worker *worker = of;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t key = worker->first + i % 64;
		void *value = waits_put(&waits, key, worker) ? waits_take(&waits, key) : worker;

		worker->missing += !value;
		worker->wrong += value && value != worker;
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	struct worker workers[THREADS] = {{0}};
	int missing = 0;

	released = 0;
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i].first = 1 + i * 64;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, put_and_take, &workers[i]), 0);
	}
	for (int i = 0; i < 50; i++)
		waits_end(&waits, count_one, NULL);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		missing += workers[i].missing;
		assert_int_equal(workers[i].wrong, 0);
	}
	assert_int_equal(missing, released);
	waits_end(&waits, count_one, NULL);
	assert_int_equal(missing, released);
}

static int visited;

static void visit_one(void *context, void *value)
{
	visited++;
	if (context) /* the key's thread comes meanwhile */
		assert_null(waits_take(&waits, *(uint64_t *)context));
}

/* A value that is taken during the visit is the visitor's, once. */
static void visited_values_stay(void **state)
{
	uint64_t key = 5;
	int a, b;

	released = visited = 0;
	assert_true(waits_put(&waits, 5, &a));
	waits_visit(&waits, visit_one, count_one, NULL);
	assert_int_equal(visited, 1);
	assert_int_equal(released, 0);
	waits_visit(&waits, visit_one, count_one, &key);
	assert_int_equal(visited, 2);
	assert_int_equal(released, 1);
	assert_true(waits_put(&waits, 5, &b));
	assert_ptr_equal(waits_take(&waits, 5), &b);
}

static void visits_do_not_disturb(void **state)
{
	struct worker workers[THREADS] = {{0}};
	int missing = 0;

	released = 0;
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i].first = 1 + i * 64;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, put_and_take, &workers[i]), 0);
	}
	for (int i = 0; i < 50; i++)
		waits_visit(&waits, visit_one, count_one, NULL);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		missing += workers[i].missing;
		assert_int_equal(workers[i].wrong, 0);
	}
	assert_int_equal(missing, released);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_by_key),
		cmocka_unit_test(places_are_reused),
		cmocka_unit_test(memory_is_given_back),
		cmocka_unit_test(threads_do_not_disturb_each_other),
		cmocka_unit_test(visited_values_stay),
		cmocka_unit_test(visits_do_not_disturb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
