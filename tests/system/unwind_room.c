/* SPDX-License-Identifier: MIT */
/*
 * Processes are published while rows are made in several steps, into BPF maps that do not hold the rows of all files.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "collect/tables/unwinding.h"
#include "unwind/unwind_file.h"

#define ENTRIES 4096 /* of each map except that of the rows */
#define OTHER 1000000000 /* a pid that no process has */
#define MOST_NS (20 * NS_PER_SEC)

static struct unwind_tables_map make(enum bpf_map_type type, uint32_t bytes, uint32_t entries, uint32_t flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = flags);

	return (struct unwind_tables_map){
		.fd = bpf_map_create(type, "duet_test", 4, bytes, entries, &options), .entries = entries};
}

/* NULL without the right to make BPF maps. */
static struct unwind_tables *open_tables(uint32_t rows)
{
	const struct unwind_tables_maps maps = {
		.rows = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_row), rows, BPF_F_MMAPABLE),
		.pages = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_page), ENTRIES, BPF_F_MMAPABLE),
		.modules = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_module), ENTRIES, BPF_F_MMAPABLE),
		.mappings = make(BPF_MAP_TYPE_ARRAY, sizeof(struct duet_unwind_mapping), ENTRIES, BPF_F_MMAPABLE),
		.processes = make(BPF_MAP_TYPE_HASH, sizeof(struct duet_unwind_process), ENTRIES, 0),
	};
	struct unwind_tables *tables = NULL;

	if (maps.rows.fd < 0)
		return NULL;
	assert_int_equal(unwind_tables_open(&tables, &maps), 0);
	return tables;
}

/* Counts the rows of the process's two largest files. */
static void count_rows(const struct process *process, uint32_t *ret_most, uint32_t *ret_second)
{
	*ret_most = *ret_second = 0;
	for (size_t i = 0; i < process->maps.list.len; i++) {
		const struct charge *charge = CHARGE_OWN(process->pid);
		const struct mapping *mapping = &process->maps.list.items[i];
		struct target_file target;
		struct unwind_file file;
		uint32_t rows;

		if (mapping->path[0] != '/' || target_file_find_mapping(&target, charge, process, mapping))
			continue;
		if (!unwind_file_read(&file, target_file_read(&target, charge, 0))) {
			rows = (uint32_t)file.rows.rows.len;
			*ret_second = rows > *ret_most ? *ret_most : rows > *ret_second ? rows : *ret_second;
			*ret_most = rows > *ret_most ? rows : *ret_most;
			unwind_file_release(&file);
		}
		target_file_release(&target);
	}
}

/* Another process is published each time in between, as on a host where new ones start all the time. */
static void files_that_do_not_fit_together(void **state)
{
	struct unwind_tables *tables;
	struct process_table processes;
	struct unwinding unwinding;
	struct process *process;
	uint32_t most, second;
	uint64_t end_ns;

	process_table_init(&processes);
	process = process_get(&processes, getpid(), 0);
	assert_true(process_refresh_maps(process, clock_monotonic_ns(), 0) >= 0);
	count_rows(process, &most, &second);
	assert_in_range(second, 1000, most);
	tables = open_tables(most + second / 2);
	if (!tables)
		skip();
	unwinding_init(&unwinding, tables);
	end_ns = clock_monotonic_ns() + MOST_NS;
	unwinding_want(&unwinding, process);
	while (unwinding.wanted.len) {
		unwinding_work(&unwinding, &processes, clock_monotonic_ns() + NS_PER_MS);
		assert_int_equal(unwind_tables_publish(tables, OTHER, 1, NULL, 0), 0);
		assert_true(clock_monotonic_ns() < end_ns);
	}
	unwinding_release(&unwinding);
	unwind_tables_close(tables);
	process_table_release(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_do_not_fit_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
