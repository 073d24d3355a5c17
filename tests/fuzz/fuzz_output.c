/* SPDX-License-Identifier: MIT */
/*
 * A profile of names and patterns from the input, in every format. Collapsed: each line one stack and a count. HTML: no
 * name ends the script or opens an element. pprof: our reader takes it. No format has control characters or ill-formed
 * UTF-8 in it.
 */
#include <ctype.h>
#include <stdio.h>

#include "fuzz.h"
#include "profile/profile.h"
#include "read_back.h"
#include "writers/writer.h"

#define FRAMES 12

static char *write_as(const char *writer, const struct profile *profile, const struct writer_options *options)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	FUZZ_CHECK(out && !writer_by_name(writer)->write(profile, options, out));
	fclose(out);
	FUZZ_CHECK(strlen(text) == len);
	for (size_t i = 0; i < len; i++)
		FUZZ_CHECK(text[i] == '\n' || text[i] == '\t' || !iscntrl((unsigned char)text[i]));
	return text;
}

static void check_collapsed(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *count = strrchr(line, ' ');

		FUZZ_CHECK(count && count != line && atoi(count + 1) > 0);
		FUZZ_CHECK(strspn(count + 1, "0123456789") == strlen(count + 1));
	}
}

/* Two columns, then a stack; `text` is changed. */
static void check_col(char *text)
{
	char *stacks = strchr(text, '\n');

	FUZZ_CHECK(!strncmp(text, "# {", 3) && stacks && stacks[-1] == '}');
	for (const char *line = stacks + 1; *line; line = strchr(line, '\n') + 1)
		FUZZ_CHECK(line[0] == '0' && line[1] == ';' && strcspn(line + 2, ";") < strcspn(line + 2, "\n"));
	check_collapsed(stacks + 1);
}

static size_t count_of(const char *text, char c)
{
	size_t count = 0;

	for (; (text = strchr(text, c)); text++)
		count++;
	return count;
}

/* The page without samples has the same elements as this one. */
static void check_page(const char *text)
{
	static size_t elements;
	struct writer_options options;
	struct profile empty;
	char *page;

	if (!elements) {
		writer_options_default(&options);
		FUZZ_CHECK(!profile_init(&empty));
		page = write_as("flamegraph", &empty, &options);
		elements = count_of(page, '<');
		free(page);
		profile_release(&empty);
	}
	FUZZ_CHECK(count_of(text, '<') == elements);
}

static uint32_t fuzzed_frame(struct profile *profile, struct input *input)
{
	struct frame frame = {.kind = (enum frame_kind)(input_number(input, 1) % FRAME_KIND_MAX), .bci = -1};
	uint32_t *texts[] = {&frame.name, &frame.class_name, &frame.signature, &frame.module};
	size_t given = input_number(input, 1) % 5;

	frame.line = (int32_t)input_number(input, 4);
	for (size_t i = 0; i < given; i++) {
		char *text = input_line(input);

		*texts[i] = intern_str(&profile->strings, text);
		free(text);
	}
	return profile_frame(profile, &frame);
}

static void fill(struct profile *profile, struct input *input)
{
	uint32_t frames[FRAMES];
	char *name = input_line(input);
	uint32_t text = intern_str(&profile->strings, name);
	struct profile_owner owner = {
		.pid = 1, .container = text, .container_kind = text, .container_name = text, .pod = text};
	uint32_t thread = profile_thread(profile, 1, 2, name, name, profile_owner(profile, &owner));

	profile_add_fact(profile, "command", "%s", name);
	profile_add_fact(profile, name, "%s", name);
	profile_add_loss(profile, 1, name);
	for (size_t i = 0; i < FRAMES; i++)
		frames[i] = fuzzed_frame(profile, input);
	for (uint32_t depth = 0; depth <= FRAMES; depth += 3) {
		uint32_t node = profile_stack(profile, frames, depth);

		const struct profile_sample sample = {
			.time_ns = depth,
			.weight = input_number(input, 8) >> 16, /* pprof holds 63 bits, for all samples */
			.thread = thread,
			.node = node,
			.count = 1,
			.event = depth % 2 ? profile_event(profile, name, PROFILE_COUNT, 0)
					   : profile_event(profile, "cpu", PROFILE_NS, 0),
		};

		FUZZ_CHECK(!profile_add(profile, &sample));
	}
	free(name);
}

/* With itself. */
static void check_diff(const struct profile *profile, const struct writer_options *options)
{
	const struct writer_diff two = {{profile, "a", 0}, {profile, "b", 0}, .normalize = true};
	static const char *const formats[] = {"collapsed", "flamegraph", "text"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		FUZZ_CHECK(out && !writer_by_name(formats[i])->write_diff(&two, options, out));
		fclose(out);
		if (!strcmp(formats[i], "flamegraph"))
			check_page(text);
		free(text);
	}
}

/* The file is compressed: what is read from it is checked as text. */
static void check_pprof(const struct profile *profile, const struct writer_options *options)
{
	struct profile read;
	char *file = NULL;
	size_t len;
	FILE *out = open_memstream(&file, &len);

	FUZZ_CHECK(out && !writer_by_name("pprof")->write(profile, options, out));
	fclose(out);
	FUZZ_CHECK(!fuzz_read(&reader_pprof, &read, file, len));
	free(write_as("text", &read, options));
	free(write_as("collapsed", &read, options));
	profile_release(&read);
	free(file);
}

static void write_all(const struct profile *profile, const struct writer_options *options, size_t one_of)
{
	static const char *const texts[] = {"traces", "flat",	    "tree",	 "tree-text",	"heatmap",
					    "perf",   "speedscope", "callgrind", "chrometrace", "otlp-json"};
	char *collapsed = write_as("collapsed", profile, options);
	char *page = write_as("flamegraph", profile, options);
	char *col = write_as("col", profile, options);

	if (!options->total) { /* a weight may be nothing */
		check_collapsed(collapsed);
		check_col(col);
	}
	check_page(page);
	check_diff(profile, options);
	check_pprof(profile, options);
	free(write_as("text", profile, options));
	free(write_as(texts[one_of % (sizeof(texts) / sizeof(*texts))], profile, options));
	free(collapsed);
	free(page);
	free(col);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint64_t bits = input_number(&input, 2);
	char *patterns[] = {input_line(&input), input_line(&input), input_line(&input)};
	struct writer_options options;
	struct profile profile;

	writer_options_default(&options);
	options.style = (struct frame_style){.simple = bits & 1,
					     .signatures = bits & 2,
					     .annotate = bits & 4,
					     .libraries = bits & 8,
					     .lines = bits & 16,
					     .dotted = bits & 32,
					     .steady = bits & 2048,
					     .bci = bits & 4096};
	options.threads = bits & 64;
	options.processes = bits & 128;
	options.total = bits & 256;
	options.reverse = bits & 512;
	options.inverted = bits & 1024;
	if (bits & 2048)
		FUZZ_CHECK(!writer_groups_parse(&options, "container,process,thread"));
	options.max_depth = bits >> 11 & 15;
	options.title = patterns[2];
	options.include = (struct opt_strings){(const char **)&patterns[0], bits >> 15 & 1};
	options.exclude = (struct opt_strings){(const char **)&patterns[1], bits >> 15 & 1};
	FUZZ_CHECK(!profile_init(&profile));
	fill(&profile, &input);
	write_all(&profile, &options, size);
	profile_release(&profile);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		free(patterns[i]);
	return 0;
}
