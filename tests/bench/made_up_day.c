/* SPDX-License-Identifier: MIT */
/*
 * made_up_day SAMPLES OUT: a recording of a day with that many samples, in the format of OUT's extension. The server is
 * made up: it has 64 threads and 4000 stacks, of which the first are the most frequent. The size of the file and what
 * the writer took are printed. 100000000 samples need 1 GB below $TMPDIR.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "profile/profile.h"
#include "writers/writer.h"

#define DAY_NS (86400ull * NS_PER_SEC)
#define STACKS 4000
#define THREADS 64
#define DEPTH 24

static uint64_t random_state = 20261125;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 32) * bound >> 32);
}

/* Stacks share their callers, as those of a server do. */
static uint32_t make_stack(struct profile *profile, uint32_t number)
{
	uint32_t class_name = intern_str(&profile->strings, "com.acme.shop.Service");
	uint32_t frames[DEPTH];
	char name[64];

	for (uint32_t depth = 0; depth < DEPTH; depth++) {
		uint32_t choice = number >> (depth < 12 ? 12 - depth : 0);

		snprintf(name, sizeof(name), "step%u_%u", depth, choice % 199);
		frames[depth] = profile_frame(profile, &(struct frame){
							       .kind = FRAME_COMPILED + number % 3,
							       .name = intern_str(&profile->strings, name),
							       .class_name = class_name,
							       .line = (int)(10 * depth + number % 7),
							       .bci = (int)(4 * (number % 7)),
						       });
	}
	return profile_stack(profile, frames, DEPTH);
}

static int add_samples(struct profile *profile, uint64_t count)
{
	uint32_t nodes[STACKS], threads[THREADS];
	char name[32];
	int err = 0;

	for (uint32_t i = 0; i < STACKS; i++)
		nodes[i] = make_stack(profile, i);
	for (uint32_t i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "worker-%u", i);
		threads[i] = profile_thread(profile, 1, 2 + i, name, "java", 0);
	}
	for (uint64_t i = 0; !err && i < count; i++) {
		uint32_t rare = random_below(STACKS), rarer = random_below(rare + 1);

		err = profile_add(profile, &(struct profile_sample){
						   .time_ns = i * (DAY_NS / count) + random_below(NS_PER_MS),
						   .weight = 10 * NS_PER_MS,
						   .thread = threads[random_below(random_below(THREADS) + 1)],
						   .node = nodes[random_below(rarer + 1)],
						   .count = 1,
						   .event = 0,
					   });
	}
	return err;
}

static int write_file(const struct profile *profile, const char *path)
{
	FILE *out = fopen(path, "we");
	struct writer_options options;
	uint64_t start = clock_cpu_ns();
	int err;

	if (!out)
		return -1;
	writer_options_default(&options);
	err = writer_by_path(path)->write(profile, &options, out);
	printf("%" PRIu64 " samples: %.1f MB, %.1f s of CPU time\n", profile->samples.len, (double)ftello(out) / 1e6,
	       (double)(clock_cpu_ns() - start) / 1e9);
	fclose(out);
	return err;
}

int main(int argc, char **argv)
{
	struct profile profile;
	int err;

	if (argc != 3 || profile_init(&profile) < 0)
		return 2;
	profile.end_ns = DAY_NS;
	profile.start_realtime_ns = 1700000000ull * NS_PER_SEC;
	(void)profile_event(&profile, "cpu", PROFILE_NS, 10 * NS_PER_MS);
	err = add_samples(&profile, strtoull(argv[1], NULL, 10));
	if (!err)
		err = write_file(&profile, argv[2]);
	profile_release(&profile);
	return err ? 1 : 0;
}
