/* SPDX-License-Identifier: MIT */
#include "writers/text/usage_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"

#define COMMAND_SHOWN 60 /* bytes */
#define PPM_PER_PERCENT 10000.0
#define MB (1u << 20)

/* One process. */
struct sum {
	const struct profile_usage *first, *last;
	uint64_t rows, load_ppm; /* load: sum of all rows */
	uint64_t most_ppm, most_resident;
};

struct table {
	struct map ids; /* pid and start -> index */
	struct vec(struct sum) sums;
};

static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static int add(struct table *table, const struct profile_usage *usage)
{
	uint64_t key = hash_u64(usage->started_ms) ^ usage->pid, index;
	struct sum *sum;

	if (!map_get(&table->ids, key, &index)) {
		index = table->sums.len;
		if (vec_push(&table->sums, (struct sum){.first = usage}) < 0 || map_put(&table->ids, key, index) < 0)
			return -ENOMEM;
	}
	sum = &table->sums.items[index];
	sum->last = usage;
	sum->rows++;
	sum->load_ppm += usage->load_ppm;
	if (usage->load_ppm > sum->most_ppm)
		sum->most_ppm = usage->load_ppm;
	if (usage->resident_bytes > sum->most_resident)
		sum->most_resident = usage->resident_bytes;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	if (x->load_ppm != y->load_ppm)
		return x->load_ppm < y->load_ppm ? 1 : -1;
	if (x->most_resident != y->most_resident)
		return x->most_resident < y->most_resident ? 1 : -1;
	return (x->last->pid > y->last->pid) - (x->last->pid < y->last->pid);
}

static void print_row(const struct profile *profile, const struct sum *sum, FILE *out)
{
	const struct profile_usage *last = sum->last, *first = sum->first;
	const char *command = intern_text(&profile->strings, last->command ? last->command : last->name);
	struct buf line;

	buf_init(&line);
	text_add_line(&line, command);
	fprintf(out, "  %8" PRIu32 "  %5" PRIu64 "  %6.1f%%  %6.1f%%  %7" PRIu32, last->pid, sum->rows,
		(double)sum->load_ppm / (double)sum->rows / PPM_PER_PERCENT, (double)sum->most_ppm / PPM_PER_PERCENT,
		last->threads);
	fprintf(out, "  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %.*s\n", sum->most_resident / MB,
		grown(first->read_bytes, last->read_bytes) / MB, grown(first->written_bytes, last->written_bytes) / MB,
		COMMAND_SHOWN, line.data);
	buf_release(&line);
}

int usage_table_print(const struct profile *profile, size_t count, FILE *out)
{
	struct table table = {0};
	int err = 0;

	for (size_t i = 0; !err && i < profile->usages.len; i++)
		err = add(&table, &profile->usages.items[i]);
	if (!err && table.sums.len) {
		qsort(table.sums.items, table.sums.len, sizeof(*table.sums.items), compare);
		fprintf(out, "\n--- Processes of the machine, every %g s ---\n",
			(double)profile->host.usages_ns / NS_PER_SEC);
		fprintf(out, "  %8s  %5s  %7s  %7s  %7s  %8s  %8s  %8s  %s\n", "pid", "looks", "CPU", "most", "threads",
			"MB", "MB read", "written", "command");
		for (size_t i = 0; i < table.sums.len && i < count; i++)
			print_row(profile, &table.sums.items[i], out);
	}
	map_release(&table.ids);
	vec_release(&table.sums);
	return err;
}
