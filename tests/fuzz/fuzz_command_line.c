/* SPDX-License-Identifier: MIT */
/* The words of `duet record`, a line each, up to the session's options. */
#define running_find find_none
#define running_release release_none
#define running_list list_none
#define running_short_name whole_name
#include "cmd/cmd_record.c"
#include "cmd/record_targets.c"

#include "fuzz.h"

#define WORDS_MAX 64

/* No JVM runs here: to look at all processes for each word would take longer than all else. */
int find_none(struct running *ret, const char *name)
{
	*ret = (struct running){0};
	return 0;
}

void release_none(struct running *running)
{
}

void list_none(const struct running *running, struct buf *out)
{
}

const char *whole_name(const char *program)
{
	return program;
}

static void check(const struct options *options)
{
	FUZZ_CHECK(options->events.len && options->outputs.len);
	for (size_t i = 0; i < options->outputs.len; i++)
		FUZZ_CHECK(options->outputs.items[i].writer);
	for (size_t i = 0; i < options->events.len; i++) {
		const struct event_spec *spec = &options->events.items[i];

		FUZZ_CHECK(spec->interval >= spec->event->least_interval);
		FUZZ_CHECK(spec->interval <= spec->event->most_interval);
	}
	FUZZ_CHECK(options->pids.len <= PIDS_MAX && options->java_depth <= DUET_MAX_JAVA_DEPTH);
	for (size_t i = 0; i < options->pids.len; i++)
		FUZZ_CHECK(options->pids.items[i] > 0);
}

static void parse(int argc, char **argv)
{
	struct options options;
	char *items[WORDS_MAX + 2];
	struct command_words words = {.items = items, .argc = argc, .argv = argv};
	struct buf why;

	buf_init(&why);
	record_options_init(&options);
	if (opt_parse(record_rows, argc, argv, &options, items, &words.count, &words.dashdash, &why) < 0)
		FUZZ_CHECK(why.len);
	else if (!record_options_finish(&options, &words))
		check(&options);
	record_options_release(&options);
	buf_release(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *argv[WORDS_MAX + 2] = {"record"};
	int argc = 1;

	while (input.left && argc <= WORDS_MAX)
		argv[argc++] = input_line(&input);
	parse(argc, argv);
	while (argc-- > 1)
		free(argv[argc]);
	return 0;
}
