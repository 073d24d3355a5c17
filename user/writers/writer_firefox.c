/* SPDX-License-Identifier: MIT */
/*
 * The processed format of the Firefox Profiler, version 49, which its later versions upgrade. Each thread of each event
 * is a thread of the file with its own tables, and with its samples in the order of time.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "writers/json.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"
#include "writers/writer.h"

#define PROCESSED_VERSION 49
#define GECKO_VERSION 27 /* of the format from which Firefox's own profiles are processed */
#define NO_STACK UINT32_MAX
#define STRINGS_MAX (256u << 20) /* bytes of strings before they are cut */
#define STRING_LITTLE 128

/* Rows of the thread's tables. */
struct firefox_frame {
	uint32_t label, line;
	enum frame_kind kind;
};

struct stack_row {
	uint32_t prefix; /* NO_STACK for the root */
	uint32_t frame; /* index of the code */
};

struct sample_row {
	uint32_t stack;
	uint64_t time_ns; /* since the start */
	uint64_t weight;
};

struct firefox {
	const struct profile *profile;
	struct json json;
	struct ordered ordered;
	struct path_maker path;
	/* of the thread that is written */
	struct vec(struct firefox_frame) codes;
	struct vec(struct stack_row) stacks;
	struct vec(struct sample_row) samples;
	struct vec(uint32_t) functions; /* labels */
	struct map code_ids, stack_ids; /* label << 32 | line; (prefix + 1) << 32 | code */
	struct map function_ids; /* label -> index */
	struct buf text;
	uint64_t strings_bytes; /* of all threads so far */
};

/* Categories by kind; the first is for all that are not code. Colours are those that the profiler knows. */
static const struct {
	const char *name, *color;
} categories[] = {
	{"Other", "grey"},
	{"Kernel", "orange"},
	{"Native", "blue"},
	{"JVM", "purple"},
	{"Java", "green"},
	{"Java inlined", "lightgreen"},
	{"Java interpreted", "yellow"},
};

static unsigned category_of_kind(enum frame_kind kind)
{
	static const uint8_t of[FRAME_KIND_MAX] = {
		[FRAME_KERNEL] = 1,	 [FRAME_NATIVE] = 2,  [FRAME_JVM] = 3,	       [FRAME_COMPILED] = 4,
		[FRAME_JAVA_NATIVE] = 4, [FRAME_INLINED] = 5, [FRAME_INTERPRETED] = 6,
	};

	return of[kind];
}

static void clear_tables(struct firefox *f)
{
	vec_clear(&f->codes);
	vec_clear(&f->stacks);
	vec_clear(&f->samples);
	vec_clear(&f->functions);
	map_release(&f->code_ids);
	map_release(&f->stack_ids);
	map_release(&f->function_ids);
}

static int add_function(struct firefox *f, uint32_t label)
{
	uint64_t known;

	if (map_get(&f->function_ids, label, &known))
		return 0;
	if (map_put(&f->function_ids, label, f->functions.len) < 0)
		return -ENOMEM;
	return vec_push(&f->functions, label);
}

/* Returns the row of a frame; NO_STACK when out of memory. */
static uint32_t code_of(struct firefox *f, const struct path_step *step)
{
	const struct path_label *label = &f->path.labels->items[step->label];
	uint32_t line = step->frame && step->frame->line > 0 ? (uint32_t)step->frame->line : 0;
	uint64_t key = (uint64_t)step->label << 32 | line, row = f->codes.len;

	if (map_get(&f->code_ids, key, &row))
		return (uint32_t)row;
	if (add_function(f, step->label) < 0 || map_put(&f->code_ids, key, row) < 0 ||
	    vec_push(&f->codes,
		     (struct firefox_frame){step->label, line, step->frame ? step->frame->kind : label->kind}) < 0)
		return NO_STACK;
	return (uint32_t)row;
}

static uint32_t stack_of(struct firefox *f, uint32_t prefix, uint32_t code)
{
	uint64_t key = (uint64_t)(uint32_t)(prefix + 1) << 32 | code, row = f->stacks.len;

	if (map_get(&f->stack_ids, key, &row))
		return (uint32_t)row;
	if (map_put(&f->stack_ids, key, row) < 0 || vec_push(&f->stacks, (struct stack_row){prefix, code}) < 0)
		return NO_STACK;
	return (uint32_t)row;
}

/* Adds the sample if the filters choose it. */
static int add_sample(struct firefox *f, const struct profile_sample *sample)
{
	uint64_t start = f->profile->start_ns;
	uint32_t stack = NO_STACK;
	int wanted = path_make(&f->path, sample->thread, sample->node);

	if (wanted <= 0)
		return wanted;
	for (size_t i = f->path.depth; i-- > 0;) {
		uint32_t code = code_of(f, &f->path.steps.items[i]);

		stack = code == NO_STACK ? NO_STACK : stack_of(f, stack, code);
		if (stack == NO_STACK)
			return -ENOMEM;
	}
	return vec_push(&f->samples, (struct sample_row){
					     .stack = stack,
					     .time_ns = sample->time_ns > start ? sample->time_ns - start : 0,
					     .weight = sample->weight,
				     });
}

/* "name":[1,2,3] */
#define PUT_COLUMN(f, name, count, ...) JSON_ARRAY(&(f)->json, "\"" name "\":[", count, __VA_ARGS__)

/* Each thread has its own strings: they are cut when they have taken STRINGS_MAX. */
static void put_string(struct firefox *f, const char *text)
{
	buf_clear(&f->text);
	buf_printf(&f->text, "%.*s", f->strings_bytes < STRINGS_MAX ? INT_MAX : STRING_LITTLE, text);
	f->strings_bytes += f->text.len;
	json_foreign(&f->json, f->text.data);
}

/* Strings: for each function its name, and its file behind it. */
static void put_strings(struct firefox *f)
{
	json_begin(&f->json, "\n\"stringArray\":[");
	for (size_t i = 0; i < f->functions.len; i++) {
		const struct path_label *label = &f->path.labels->items[f->functions.items[i]];

		if (i)
			json_begin(&f->json, "\n");
		put_string(f, label->text);
		put_string(f, label->module);
	}
	json_end(&f->json, "]");
}

static uint32_t function_of(const struct firefox *f, size_t code)
{
	uint64_t index = 0;

	map_get(&f->function_ids, f->codes.items[code].label, &index);
	return (uint32_t)index;
}

/* Begins a table, whose columns follow. */
static void begin_table(struct firefox *f, const char *name, size_t length)
{
	json_begin(&f->json, name);
	json_put(&f->json, "\"length\":%zu", length);
}

static void put_frames(struct firefox *f)
{
	size_t count = f->codes.len;

	begin_table(f, "\n\"frameTable\":{", count);
	PUT_COLUMN(f, "address", count, "-1");
	PUT_COLUMN(f, "inlineDepth", count, "0");
	PUT_COLUMN(f, "category", count, "%u", category_of_kind(f->codes.items[i].kind));
	PUT_COLUMN(f, "subcategory", count, "0");
	PUT_COLUMN(f, "func", count, "%u", function_of(f, i));
	PUT_COLUMN(f, "nativeSymbol", count, "null");
	PUT_COLUMN(f, "innerWindowID", count, "0");
	PUT_COLUMN(f, "implementation", count, "null");
	PUT_COLUMN(f, "line", count, f->codes.items[i].line ? "%u" : "null", f->codes.items[i].line);
	PUT_COLUMN(f, "column", count, "null");
	json_end(&f->json, "}");
}

static bool has_file(const struct firefox *f, size_t function)
{
	return *f->path.labels->items[f->functions.items[function]].module;
}

static void put_functions(struct firefox *f)
{
	size_t count = f->functions.len;

	begin_table(f, "\n\"funcTable\":{", count);
	PUT_COLUMN(f, "name", count, "%zu", 2 * i);
	PUT_COLUMN(f, "isJS", count, "false");
	PUT_COLUMN(f, "relevantForJS", count, "false");
	PUT_COLUMN(f, "resource", count, "-1");
	PUT_COLUMN(f, "fileName", count, has_file(f, i) ? "%zu" : "null", 2 * i + 1);
	PUT_COLUMN(f, "lineNumber", count, "null");
	PUT_COLUMN(f, "columnNumber", count, "null");
	json_end(&f->json, "}");
}

static void put_stacks(struct firefox *f)
{
	const struct stack_row *rows = f->stacks.items;
	size_t count = f->stacks.len;

	begin_table(f, "\n\"stackTable\":{", count);
	PUT_COLUMN(f, "frame", count, "%u", rows[i].frame);
	PUT_COLUMN(f, "prefix", count, rows[i].prefix == NO_STACK ? "null" : "%u", rows[i].prefix);
	PUT_COLUMN(f, "category", count, "%u", category_of_kind(f->codes.items[rows[i].frame].kind));
	PUT_COLUMN(f, "subcategory", count, "0");
	json_end(&f->json, "}");
}

/*
 * Times are milliseconds. So are the weights of events in time, with six places for nanoseconds. CPU time is also what
 * the thread used since its sample before, in microseconds, from which the profiler draws the graphs of the threads.
 */
static void put_samples(struct firefox *f, enum profile_unit unit, bool is_cpu)
{
	static const char *const types[PROFILE_UNIT_MAX] = {"tracing-ms", "samples", "bytes"};
	const struct sample_row *rows = f->samples.items;
	size_t count = f->samples.len;

	begin_table(f, "\n\"samples\":{", count);
	json_put(&f->json, "\"weightType\":\"%s\"", types[unit]);
	PUT_COLUMN(f, "stack", count, "%u", rows[i].stack);
	PUT_COLUMN(f, "time", count, "%" PRIu64 ".%06u", (uint64_t)(rows[i].time_ns / NS_PER_MS),
		   (unsigned)(rows[i].time_ns % NS_PER_MS));
	if (unit == PROFILE_NS)
		PUT_COLUMN(f, "weight", count, "%" PRIu64 ".%06u", (uint64_t)(rows[i].weight / NS_PER_MS),
			   (unsigned)(rows[i].weight % NS_PER_MS));
	else
		PUT_COLUMN(f, "weight", count, "%" PRIu64, rows[i].weight);
	if (is_cpu)
		PUT_COLUMN(f, "threadCPUDelta", count, "%" PRIu64, (uint64_t)(rows[i].weight / NS_PER_US));
	json_end(&f->json, "}");
}

static void put_thread_head(struct firefox *f, const struct profile_sample *sample)
{
	const struct profile_thread *thread = &f->profile->threads.items[ordered_thread(&f->ordered, sample)];
	const char *event = profile_event_name(f->profile, sample->event);

	buf_clear(&f->text);
	buf_add_str(&f->text, profile_text(f->profile, thread->name));
	if (f->profile->events.len > 1)
		buf_printf(&f->text, " (%s)", event);
	json_begin(&f->json, "\n{");
	json_member(&f->json, "name", f->text.data);
	json_put(&f->json, "\"isMainThread\":%s,\"processType\":\"default\"",
		 thread->pid == thread->tid ? "true" : "false");
	json_member(&f->json, "processName", profile_text(f->profile, thread->process));
	json_put(&f->json,
		 "\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
		 "\"pausedRanges\":[],\"showMarkersInTimeline\":false,\"pid\":\"%u\",\"tid\":%u",
		 thread->pid, thread->tid);
}

/* Writes the thread of the samples that were added. */
static void put_thread(struct firefox *f, const struct profile_sample *sample)
{
	const struct profile_event *event = &f->profile->events.items[sample->event];

	put_thread_head(f, sample);
	put_strings(f);
	put_frames(f);
	put_functions(f);
	put_stacks(f);
	put_samples(f, event->unit, !strcmp(profile_text(f->profile, event->name), "cpu"));
	json_put(&f->json,
		 "\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
		 "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]},"
		 "\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
		 "\"category\":[]}}");
}

static int put_threads(struct firefox *f)
{
	const struct profile_sample *samples = f->ordered.samples.items;
	size_t count = f->ordered.samples.len;
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		bool is_last = i + 1 == count || samples[i + 1].event != samples[i].event ||
			       ordered_thread(&f->ordered, &samples[i + 1]) != ordered_thread(&f->ordered, &samples[i]);

		err = add_sample(f, &samples[i]);
		if (!err && is_last && f->samples.len)
			put_thread(f, &samples[i]);
		if (is_last)
			clear_tables(f);
	}
	return err;
}

static void put_meta(struct firefox *f, const struct writer_options *options)
{
	const struct profile *profile = f->profile;
	uint64_t start_ms = profile->start_realtime_ns / NS_PER_MS;
	const struct profile_event *event = profile->events.len ? profile->events.items : NULL;
	uint64_t interval_ns = event && event->unit == PROFILE_NS && event->interval ? event->interval : NS_PER_MS;

	json_begin(&f->json, "{\"meta\":{");
	json_put(&f->json,
		 "\"interval\":%" PRIu64 ".%06u,\"startTime\":%" PRIu64
		 ",\"processType\":0,\"stackwalk\":1,\"version\":%d,\"preprocessedProfileVersion\":%d,\"debug\":false,"
		 "\"symbolicated\":true,\"importedFrom\":\"duet\","
		 "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"µs\"}",
		 (uint64_t)(interval_ns / NS_PER_MS), (unsigned)(interval_ns % NS_PER_MS), start_ms, GECKO_VERSION,
		 PROCESSED_VERSION);
	json_member(&f->json, "product", options->title ? options->title : "duet");
	json_begin(&f->json, "\"markerSchema\":[],\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},"
			     "\"categories\":[");
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		json_put(&f->json, "{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			 categories[i].name, categories[i].color);
	json_end(&f->json, "]}");
	json_begin(&f->json, "\n\"libs\":[],\"pages\":[],\"counters\":[],\"threads\":[");
}

static void release(struct firefox *f)
{
	clear_tables(f);
	vec_release(&f->codes);
	vec_release(&f->stacks);
	vec_release(&f->samples);
	vec_release(&f->functions);
	ordered_release(&f->ordered);
	path_maker_release(&f->path);
	buf_release(&f->text);
}

static int firefox_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct firefox f = {.profile = profile, .json = {.out = out}, .text = BUF_NONE};
	int err = path_maker_init(&f.path, NULL, profile, options);

	if (!err)
		err = ordered_build(&f.ordered, profile);
	if (!err) {
		put_meta(&f, options);
		err = put_threads(&f);
		json_end(&f.json, "]}\n");
	}
	release(&f);
	return err ? err : writer_finish(out);
}

const struct writer writer_firefox = {
	.name = "firefox",
	.lacks = "containers, losses and facts",
	.extensions = "firefox.json,firefox",
	.help = "for profiler.firefox.com: what each thread did, in the order of time",
	.has_all_events = true,
	.merges = true,
	.write = firefox_write,
};
