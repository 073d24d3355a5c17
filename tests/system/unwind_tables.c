/* SPDX-License-Identifier: MIT */
/*
 * The tables by which BPF walks, on small BPF maps: what is published, replaced and shared, and what happens when they
 * are full.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>

#include "base/clock.h"
#include "collect/tables/unwind_tables.h"
#include "proc/room.h"

#define ROWS 64
#define PAGES 16
#define MODULES 8
#define MAPPINGS 32
#define PROCESSES 4
#define FILES 8 /* of the map of offers */
#define MAP_BYTES 4096

struct tables {
	struct unwind_tables *tables;
	struct unwind_tables_maps maps;
};

static struct unwind_tables_map make(enum bpf_map_type type, uint32_t bytes, uint32_t entries, uint32_t flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = flags);

	return (struct unwind_tables_map){
		.fd = bpf_map_create(type, "duet_test", 4, bytes, entries, &options), .entries = entries};
}

static int open_tables(void **state)
{
	struct tables *t = calloc(1, sizeof(*t));

	t->maps.rows = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_row), ROWS, BPF_F_MMAPABLE);
	t->maps.pages = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_page), PAGES, BPF_F_MMAPABLE);
	t->maps.modules = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_module), MODULES, BPF_F_MMAPABLE);
	t->maps.mappings = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_mapping), MAPPINGS, BPF_F_MMAPABLE);
	t->maps.processes = make(BPF_MAP_TYPE_HASH, sizeof(struct duet_unwind_process), PROCESSES, 0);
	t->maps.files = (struct unwind_tables_map){.fd = -1, .entries = FILES};
	if (t->maps.rows.fd >= 0)
		t->maps.files.fd = bpf_map_create(BPF_MAP_TYPE_HASH, "duet_test", sizeof(struct duet_mapped_file),
						  sizeof(struct duet_mapped_rows), FILES, NULL);
	*state = t;
	return t->maps.rows.fd < 0 ? 0 : unwind_tables_open(&t->tables, &t->maps);
}

static int close_tables(void **state)
{
	struct tables *t = *state;
	int fds[] = {t->maps.rows.fd,	  t->maps.pages.fd,	t->maps.modules.fd,
		     t->maps.mappings.fd, t->maps.processes.fd, t->maps.files.fd};

	unwind_tables_close(t->tables);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(t);
	return 0;
}

static struct tables *tables_or_skip(void **state)
{
	struct tables *t = *state;

	if (!t->tables) {
		print_message("skipped: no right to make BPF maps\n");
		skip();
	}
	return t;
}

/* Adds a file of `count` rows, which its `cfa` distinguishes from others. */
static int add(struct tables *t, uint64_t key, size_t count, int16_t cfa)
{
	struct duet_unwind_row rows[ROWS] = {0};
	struct duet_unwind_page page = {0, (uint32_t)count};
	struct unwind_rows file = {.rows = {rows, count, count}, .pages = {&page, 1, 1}};

	for (size_t i = 0; i < count; i++)
		rows[i] = (struct duet_unwind_row){.pc = (uint32_t)i, .cfa = cfa};
	return unwind_tables_add(t->tables, key, &file);
}

static int publish(struct tables *t, pid_t pid, const int *modules, size_t count)
{
	struct duet_unwind_mapping mappings[MAPPINGS + 1] = {0};

	for (size_t i = 0; i < count; i++)
		mappings[i] = (struct duet_unwind_mapping){.start = i, .end = i + 1, .module = (uint32_t)modules[i]};
	return unwind_tables_publish(t->tables, pid, 1000 + (uint64_t)pid, mappings, count);
}

static bool find(struct tables *t, pid_t pid, struct duet_unwind_process *ret)
{
	return bpf_map_lookup_elem(t->maps.processes.fd, &pid, ret) == 0;
}

/* Returns the cfa of the first row of a process's mapping, as BPF would see it. */
static int seen_cfa(struct tables *t, pid_t pid, uint32_t index)
{
	struct duet_unwind_process process;
	struct duet_unwind_mapping mapping;
	struct duet_unwind_module module;
	struct duet_unwind_row row;

	assert_true(find(t, pid, &process));
	assert_true(index < process.mappings);
	index += process.first;
	assert_int_equal(bpf_map_lookup_elem(t->maps.mappings.fd, &index, &mapping), 0);
	assert_int_equal(bpf_map_lookup_elem(t->maps.modules.fd, &mapping.module, &module), 0);
	assert_int_equal(bpf_map_lookup_elem(t->maps.rows.fd, &module.first_row, &row), 0);
	return row.cfa;
}

static void two_processes_share_a_file(void **state)
{
	struct tables *t = tables_or_skip(state);
	int file = add(t, 77, 20, 5), other = add(t, 78, 20, 6);

	assert_true(file >= 0 && other >= 0);
	assert_int_equal(unwind_tables_find(t->tables, 77), file);
	assert_int_equal(unwind_tables_find(t->tables, 79), -ENOENT);
	assert_int_equal(publish(t, 1, (int[]){file, other}, 2), 0);
	assert_int_equal(publish(t, 2, (int[]){other, file}, 2), 0);
	assert_int_equal(seen_cfa(t, 1, 0), 5);
	assert_int_equal(seen_cfa(t, 1, 1), 6);
	assert_int_equal(seen_cfa(t, 2, 1), 5);
}

static void a_new_slice_replaces_the_old(void **state)
{
	struct tables *t = tables_or_skip(state);
	int file = add(t, 1, 4, 5), other = add(t, 2, 4, 6);
	struct duet_unwind_process before, after;

	assert_int_equal(publish(t, 1, (int[]){file}, 1), 0);
	assert_true(find(t, 1, &before));
	assert_int_equal(publish(t, 1, (int[]){other, file}, 2), 0);
	assert_true(find(t, 1, &after));
	assert_int_not_equal(before.first, after.first); /* a walk may still be reading */
	assert_int_equal(after.start_ticks, 1001);
	assert_int_equal(seen_cfa(t, 1, 0), 6);
	unwind_tables_forget(t->tables, 1);
	assert_false(find(t, 1, &after));
}

static void files_nobody_maps_make_room(void **state)
{
	struct tables *t = tables_or_skip(state);
	int used = add(t, 1, 30, 5), unused = add(t, 2, 30, 6);

	assert_int_equal(publish(t, 1, &used, 1), 0);
	assert_true(unused >= 0);
	assert_true(add(t, 3, 30, 7) >= 0);
	assert_int_equal(unwind_tables_find(t->tables, 2), -ENOENT);
	assert_int_equal(unwind_tables_find(t->tables, 1), used);
	assert_int_equal(seen_cfa(t, 1, 0), 5);
}

/* Files that were found for a process are not dropped for its other files. */
static void files_of_the_process_under_way_stay(void **state)
{
	struct tables *t = tables_or_skip(state);
	int old = add(t, 1, 30, 5), mine;

	assert_int_equal(publish(t, 1, &old, 1), 0);
	unwind_tables_forget(t->tables, 1);
	assert_int_equal(unwind_tables_find(t->tables, 1), old);
	mine = add(t, 2, 30, 6);
	assert_true(mine >= 0);
	assert_int_equal(add(t, 3, 30, 7), -ENOSPC);
	assert_int_equal(publish(t, 2, (int[]){old, mine}, 2), 0);
	assert_int_equal(seen_cfa(t, 2, 0), 5);
	assert_int_equal(seen_cfa(t, 2, 1), 6);
}

static void a_full_table_refuses(void **state)
{
	struct tables *t = tables_or_skip(state);
	int file = add(t, 1, 60, 5), none[MAPPINGS + 1] = {0};

	assert_int_equal(publish(t, 1, &file, 1), 0);
	assert_int_equal(add(t, 2, 30, 6), -ENOSPC);
	assert_false(unwind_tables_have_room(t->tables, 30, 1));
	assert_false(unwind_tables_have_room(t->tables, 4, PAGES));
	assert_true(unwind_tables_have_room(t->tables, 4, 1));
	assert_true(add(t, 3, 4, 7) >= 0); /* what fits is taken */
	assert_int_equal(publish(t, 2, none, MAPPINGS + 1), -ENOSPC);
	assert_int_equal(seen_cfa(t, 1, 0), 5);
}

/* BPF drops a process when it ends; the loader does not hear of every end. */
static void processes_that_ended_make_room(void **state)
{
	struct tables *t = tables_or_skip(state);
	int file = add(t, 1, 40, 5), other;
	pid_t ended = 1;

	assert_int_equal(publish(t, ended, (int[MAPPINGS]){file, file}, MAPPINGS), 0);
	assert_int_equal(publish(t, 2, &file, 1), -ENOSPC);
	assert_int_equal(add(t, 2, 40, 6), -ENOSPC);
	assert_false(unwind_tables_have_room(t->tables, 40, 1));
	assert_int_equal(bpf_map_delete_elem(t->maps.processes.fd, &ended), 0);
	assert_true(unwind_tables_have_room(t->tables, 40, 1));
	other = add(t, 2, 40, 6);
	assert_true(other >= 0);
	assert_int_equal(publish(t, 2, &other, 1), 0);
	assert_int_equal(seen_cfa(t, 2, 0), 6);
}

/* Marks the module as used, as BPF does when a walk passes through the file. */
static void use(struct tables *t, int module)
{
	uint32_t index = (uint32_t)module;
	struct duet_unwind_module now;

	assert_int_equal(bpf_map_lookup_elem(t->maps.modules.fd, &index, &now), 0);
	now.used = 1;
	assert_int_equal(bpf_map_update_elem(t->maps.modules.fd, &index, &now, BPF_ANY), 0);
}

static bool has_rows(struct tables *t, int module)
{
	uint32_t index = (uint32_t)module;
	struct duet_unwind_module now;

	assert_int_equal(bpf_map_lookup_elem(t->maps.modules.fd, &index, &now), 0);
	return now.pages != 0;
}

#define SECONDS(count) ((count) * 1000000000ull)

/* All files are mapped. The one that is not used makes room for the missing one, and comes back in the same way. */
static void the_least_used_makes_room(void **state)
{
	struct tables *t = tables_or_skip(state);
	int used, unused, missed;

	assert_int_equal(unwind_tables_look(t->tables, SECONDS(100)), 0);
	used = add(t, 1, 30, 5);
	unused = add(t, 2, 30, 6);
	assert_int_equal(add(t, 3, 30, 7), -ENOSPC);
	missed = unwind_tables_note(t->tables, 3, 30, 1);
	assert_true(missed >= 0 && !has_rows(t, missed));
	assert_int_equal(unwind_tables_find(t->tables, 3), missed);
	assert_int_equal(publish(t, 1, (int[]){used, unused, missed}, 3), 0);
	assert_false(unwind_tables_bring_back(t->tables, missed));
	use(t, missed);
	assert_int_equal(unwind_tables_look(t->tables, SECONDS(101)), 1);
	assert_false(unwind_tables_bring_back(t->tables, missed)); /* the others have not had time to be used */
	use(t, used);
	use(t, missed);
	assert_int_equal(unwind_tables_look(t->tables, SECONDS(106)), 1);
	assert_true(unwind_tables_bring_back(t->tables, missed));
	assert_int_equal(add(t, 3, 30, 7), missed);
	assert_true(has_rows(t, used) && has_rows(t, missed) && !has_rows(t, unused));
	assert_int_equal(seen_cfa(t, 1, 0), 5);
	assert_int_equal(seen_cfa(t, 1, 2), 7);
	use(t, unused);
	use(t, used);
	assert_int_equal(unwind_tables_look(t->tables, SECONDS(120)), 1);
	assert_true(unwind_tables_bring_back(t->tables, unused));
	assert_int_equal(add(t, 2, 30, 6), unused);
	assert_true(has_rows(t, used) && has_rows(t, unused) && !has_rows(t, missed));
}

/* Rows that are all needed stay: otherwise they would be read over and over. */
static void what_is_used_stays(void **state)
{
	struct tables *t = tables_or_skip(state);
	int used = add(t, 1, 60, 5), missed = unwind_tables_note(t->tables, 2, 30, 1);

	assert_int_equal(publish(t, 1, (int[]){used, missed}, 2), 0);
	for (unsigned second = 1; second < 20; second++) {
		use(t, used);
		use(t, missed);
		assert_int_equal(unwind_tables_look(t->tables, SECONDS(second)), 1);
		assert_false(unwind_tables_bring_back(t->tables, missed));
	}
	assert_int_equal(seen_cfa(t, 1, 0), 5);
}

/* A file that is only noted has a slot only as long as it is mapped. */
static void noted_files_leave(void **state)
{
	struct tables *t = tables_or_skip(state);
	int used = add(t, 1, 60, 5);

	assert_int_equal(publish(t, 1, &used, 1), 0);
	for (uint64_t key = 2; key < 2 + 3 * MODULES; key++) {
		int noted = unwind_tables_note(t->tables, key, 30, 1);

		assert_true(noted >= 0);
		assert_int_equal(publish(t, 2, &noted, 1), 0);
	}
}

/* True if BPF would use the rows of this module for the file. */
static bool is_offered(struct tables *t, const struct duet_mapped_file *file, uint64_t base)
{
	struct duet_unwind_module module;
	struct duet_mapped_rows rows;

	assert_int_equal(bpf_map_lookup_elem(t->maps.files.fd, file, &rows), 0);
	assert_int_equal(rows.base, base);
	assert_int_equal(bpf_map_lookup_elem(t->maps.modules.fd, &rows.module, &module), 0);
	return rows.serial == module.serial;
}

/* A file that replaces another one in the tables is not used for it. */
static void an_offer_ends_with_the_file(void **state)
{
	struct tables *t = tables_or_skip(state);
	const struct duet_mapped_file mapped = {.inode = 9, .page = 2};
	int file = add(t, 77, 20, 5);
	const struct duet_unwind_mapping mapping = {
		.start = 0x5000, .end = 0x9000, .base = 0x3000, .module = (uint32_t)file};

	assert_true(file >= 0);
	assert_int_equal(publish(t, 1, &file, 1), 0);
	unwind_tables_offer(t->tables, &mapped, &mapping);
	assert_true(is_offered(t, &mapped, (uint64_t)-0x2000));
	unwind_tables_forget(t->tables, 1);
	for (uint64_t key = 100; key < 100 + 2 * MODULES; key++) {
		int other = add(t, key, 20, 6);

		assert_true(other >= 0);
		assert_int_equal(publish(t, 2, &other, 1), 0);
	}
	assert_false(is_offered(t, &mapped, (uint64_t)-0x2000));
}

/* Offers of so many files, by whoever pays now. Returns how many of them BPF has. */
static int offer_files(struct tables *t, uint64_t first, uint64_t count)
{
	const struct duet_unwind_mapping mapping = {.start = 0x5000, .end = 0x9000, .base = 0x3000};
	int had = 0;

	for (uint64_t inode = first; inode < first + count; inode++)
		unwind_tables_offer(t->tables, &(struct duet_mapped_file){.inode = inode}, &mapping);
	for (uint64_t inode = first; inode < first + count; inode++) {
		struct duet_mapped_rows rows;

		had += !bpf_map_lookup_elem(t->maps.files.fd, &(struct duet_mapped_file){.inode = inode}, &rows);
	}
	return had;
}

static void offers_of_others_stay(void **state)
{
	static const struct payer attacker = {1, 1}, honest = {2, 2}, ours = {0};
	struct tables *t = tables_or_skip(state);

	room_open(true);
	room_set_size(ROOM_UNWIND_OFFERS, FILES);
	assert_true(add(t, 77, 20, 5) >= 0);
	unwind_tables_set_payer(t->tables, &attacker);
	assert_int_equal(offer_files(t, 100, 1), 1);
	unwind_tables_set_payer(t->tables, &honest);
	assert_int_equal(offer_files(t, 1, 1), 1);
	assert_int_equal(offer_files(t, 100, 1), 1); /* he maps it too */
	unwind_tables_set_payer(t->tables, &attacker);
	assert_int_equal(offer_files(t, 200, 10 * FILES), 5); /* and the one above */
	unwind_tables_set_payer(t->tables, &honest);
	assert_int_equal(offer_files(t, 1, 1), 1);
	assert_int_equal(offer_files(t, 100, 1), 1);
	unwind_tables_set_payer(t->tables, &ours);
	assert_int_equal(offer_files(t, 300, FILES), 1);
	room_open(false);
}

/* Many files that are added and dropped must not use up any room. */
static void nothing_leaks(void **state)
{
	struct tables *t = tables_or_skip(state);

	for (int i = 0; i < 24; i++) {
		int file = add(t, 100 + (uint64_t)i, 40, (int16_t)i);

		assert_true(file >= 0);
		assert_int_equal(publish(t, 1, (int[]){file, file, file}, 3), 0);
		assert_int_equal(seen_cfa(t, 1, 2), i);
		unwind_tables_forget(t->tables, 1);
	}
}

/* Ten times as many files, mappings and processes as fit, of one user, leave room for those of another one. */
static void a_user_leaves_room_for_others(void **state)
{
	static const struct payer attacker = {1, 1}, honest = {2, 2};
	struct tables *t = tables_or_skip(state);
	int files[10 * MODULES], own[2], published = 0;

	room_open(true);
	room_set_size(ROOM_UNWIND_ROWS, ROWS);
	room_set_size(ROOM_UNWIND_PAGES, PAGES);
	room_set_size(ROOM_UNWIND_FILES, MODULES);
	room_set_size(ROOM_UNWIND_MAPPINGS, MAPPINGS);
	room_set_size(ROOM_UNWIND_PROCESSES, PROCESSES);
	unwind_tables_set_payer(t->tables, &attacker);
	for (int i = 0; i < 10 * MODULES; i++) {
		files[i] = add(t, 100 + (uint64_t)i, 8, 1);
		if (files[i] < 0)
			files[i] = 0;
		published += !publish(t, 1 + i, files + i, 1);
	}
	assert_int_equal(published, PROCESSES / 4 * 3);
	while (!publish(t, 1, files, 16))
		;
	unwind_tables_set_payer(t->tables, &honest);
	own[0] = add(t, 1, 4, 77);
	assert_true(own[0] >= 0);
	assert_int_equal(publish(t, 1000, own, 1), 0);
	assert_int_equal(seen_cfa(t, 1000, 0), 77);
	for (int i = 0; i < 10 * MODULES; i++)
		unwind_tables_forget(t->tables, 1 + i);
	assert_int_equal(room_held(ROOM_UNWIND_MAPPINGS, &attacker), 0);
	assert_int_equal(room_held(ROOM_UNWIND_PROCESSES, &attacker), 0);
	room_open(false);
}

/* A file of a user who has his share, which another user maps too, comes back for that one. */
static void a_refused_file_comes_for_others(void **state)
{
	static const struct payer attacker = {1, 1}, honest = {2, 2};
	struct tables *t = tables_or_skip(state);
	int large, noted;

	room_open(true);
	room_set_size(ROOM_UNWIND_ROWS, ROWS);
	unwind_tables_set_payer(t->tables, &attacker);
	large = add(t, 1, ROWS / 4 * 3, 1);
	assert_int_equal(publish(t, 1, &large, 1), 0);
	assert_int_equal(add(t, 2, 8, 2), -EDQUOT);
	noted = unwind_tables_note(t->tables, 2, 8, 1);
	assert_int_equal(publish(t, 2, &noted, 1), 0);
	use(t, noted);
	assert_int_equal(unwind_tables_look(t->tables, clock_monotonic_ns()), 0);
	assert_false(unwind_tables_bring_back(t->tables, noted));
	unwind_tables_set_payer(t->tables, &honest);
	assert_int_equal(publish(t, 3, &noted, 1), 0);
	use(t, noted);
	assert_int_equal(unwind_tables_look(t->tables, clock_monotonic_ns()), 3);
	assert_true(unwind_tables_bring_back(t->tables, noted));
	assert_int_equal(add(t, 2, 8, 2), noted);
	assert_int_equal(seen_cfa(t, 3, 0), 2);
	assert_true(has_rows(t, large));
	room_open(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_processes_share_a_file, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(a_new_slice_replaces_the_old, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(files_nobody_maps_make_room, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(files_of_the_process_under_way_stay, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(a_full_table_refuses, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(processes_that_ended_make_room, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(the_least_used_makes_room, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(what_is_used_stays, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(noted_files_leave, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(an_offer_ends_with_the_file, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(offers_of_others_stay, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(nothing_leaks, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(a_user_leaves_room_for_others, open_tables, close_tables),
		cmocka_unit_test_setup_teardown(a_refused_file_comes_for_others, open_tables, close_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
