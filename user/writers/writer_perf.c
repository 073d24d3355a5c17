/* SPDX-License-Identifier: MIT */
/*
 * The text of perf script, for tools that read it: stackcollapse-perf.pl, speedscope, Firefox Profiler. A sample is a
 * line with thread, time, period and event, and then one line a frame, leaf first. The addresses are 0. Ten million
 * samples would be some 16 GB, so too many samples are merged, as in other formats: see ordered.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "duet_jvm.h"
#include "profile/perf_text.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"
#include "writers/writer.h"

#define STACKS_BYTES ((size_t)32 << 20) /* of the texts of stacks that are kept for later samples */
#define DIGITS_MAX 20
#define REPEATED_MAX 1000 /* times that a sample is written */
#define HEAD_BYTES 96 /* of a line before a stack, about */
#define TRUNCATED "\t               0 " PATH_TRUNCATED " ([mark])\n\n" /* the end of a stack that is cut */

struct text_place {
	size_t at, len;
};

/* Texts that are made once: one after the other in `bytes`. */
struct texts {
	struct buf bytes;
	struct vec(struct text_place) places;
};

struct perf {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	struct path_maker path;
	struct map processes; /* pid -> the name that the file has for the process */
	struct texts threads, events; /* by index: what lines of samples begin and end with */
	struct texts stacks; /* their frames; a text without any is of a stack that is left out */
	struct map stack_ids; /* thread << 32 | node -> index in stacks */
	struct buf text;
	struct stack_room room;
	bool is_merged; /* samples of equal stacks are one */
};

static void texts_release(struct texts *texts)
{
	buf_release(&texts->bytes);
	vec_release(&texts->places);
}

/* Appends a copy. Returns 0 or -ENOMEM. */
static int texts_add(struct texts *texts, const struct buf *text)
{
	struct text_place place = {.at = texts->bytes.len, .len = text->len};

	buf_add(&texts->bytes, text->data, text->len);
	return text->failed || texts->bytes.failed ? -ENOMEM : vec_push(&texts->places, place);
}

static void put_text(FILE *out, const struct texts *texts, size_t index)
{
	fwrite(texts->bytes.data + texts->places.items[index].at, 1, texts->places.items[index].len, out);
}

/* Appends a name without spaces and parentheses. */
static void add_word(struct buf *out, const char *text)
{
	size_t start = out->len;

	text_add_line(out, text);
	for (size_t i = start; i < out->len; i++)
		if (strchr(" ()", out->data[i]))
			out->data[i] = '_';
	if (out->len == start)
		buf_add_str(out, PERF_TEXT_UNKNOWN);
}

static void add_module(struct perf *p, const struct frame *frame, uint32_t pid)
{
	const char *module = frame ? profile_text(p->profile, frame->module) : "";
	enum frame_kind kind = frame ? frame->kind : FRAME_MARK;

	if (kind == FRAME_KERNEL && (!*module || !strcmp(module, "kernel")))
		buf_add_str(&p->text, PERF_TEXT_KERNEL);
	else if (kind == FRAME_COMPILED)
		buf_printf(&p->text, PERF_TEXT_MAP "%u.map", pid);
	else if (kind == FRAME_INLINED)
		buf_add_str(&p->text, PERF_TEXT_INLINED);
	else if (kind == FRAME_NATIVE || (kind == FRAME_JVM && duet_is_libjvm(module)))
		add_word(&p->text, module);
	else {
		buf_add_char(&p->text, '[');
		add_word(&p->text, kind == FRAME_KERNEL ? module : frame_kind_name(kind));
		buf_add_char(&p->text, ']');
	}
}

/* "<TAB>0 symbol (module)" */
static void add_frame(struct perf *p, const struct path_step *step, uint32_t pid)
{
	struct frame_style style = p->options->style;

	style.libraries = false;
	buf_add_str(&p->text, "\t               0 ");
	if (step->frame)
		frame_name(&p->profile->strings, step->frame, &style, &p->text);
	else
		buf_add_str(&p->text, p->path.labels->items[step->label].text);
	buf_add_str(&p->text, " (");
	add_module(p, step->frame, pid);
	buf_add_str(&p->text, ")\n");
}

/*
 * A word of digits and dots that ends with ':' is read as the time, and the words before it as the name and the ids: in
 * names, the ':' becomes '_'. `at` is where the name begins.
 */
static void hide_times(struct buf *text, size_t at)
{
	for (; at < text->len; at++) {
		char *end = text->data + at + strspn(text->data + at, "0123456789.");

		if (*end == ':' && strchr(" ", end[1]))
			*end = '_';
		at += strcspn(text->data + at, " ");
	}
}

/* The ids are behind the name. A name that begins with '#' or ' ' would make the line a comment or a frame. */
static void add_thread(struct perf *p, const struct profile_thread *thread)
{
	const char *name = profile_text(p->profile, thread->name);
	size_t start = p->text.len;

	text_add_line(&p->text, *name ? name : ":-1");
	if (strchr("# ", p->text.data[start]))
		p->text.data[start] = '_';
	hide_times(&p->text, start);
	buf_printf(&p->text, " %5u/%-5u ", thread->pid, thread->tid == PROFILE_VIRTUAL ? 0 : thread->tid);
}

/* Writes a number with at least so many characters; `fill` stands before it. Faster than printf. */
static char *put_number(char *at, uint64_t number, int width, char fill)
{
	char digits[DIGITS_MAX];
	int len = 0;

	do {
		digits[len++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	for (; width > len; width--)
		*at++ = fill;
	while (len)
		*at++ = digits[--len];
	return at;
}

/* Writes "NAME PID/TID SECONDS.NANOSECONDS:     WEIGHT EVENT:" */
static void put_head(struct perf *p, const struct profile_sample *sample, uint64_t weight)
{
	uint64_t ns = sample->time_ns - p->profile->start_ns + p->profile->start_realtime_ns;
	char numbers[4 * DIGITS_MAX], *at;

	put_text(p->out, &p->threads, sample->thread);
	at = put_number(numbers, ns / NS_PER_SEC, 5, ' ');
	*at++ = '.';
	at = put_number(at, ns % NS_PER_SEC, 9, '0');
	*at++ = ':';
	*at++ = ' ';
	at = put_number(at, weight, 10, ' ');
	fwrite(numbers, 1, (size_t)(at - numbers), p->out);
	put_text(p->out, &p->events, sample->event);
}

static void put_line(struct perf *p)
{
	buf_add_char(&p->text, '\n');
	fwrite(p->text.data, 1, p->text.len, p->out);
	buf_clear(&p->text);
}

/* Writes the name of the process before its first sample, and again when exec has given it another name. */
static int put_process(struct perf *p, const struct profile_thread *thread)
{
	uint64_t known;

	if (map_get(&p->processes, thread->pid, &known) && known == thread->process)
		return 0;
	buf_clear(&p->text);
	buf_printf(&p->text, PERF_TEXT_PROCESS "%u ", thread->pid);
	text_add_line(&p->text, profile_text(p->profile, thread->process));
	put_line(p);
	return map_put(&p->processes, thread->pid, thread->process);
}

/* Makes the text of a sample's frames there is room for, with an empty line behind them. Returns 0 or -ENOMEM. */
static int make_stack(struct perf *p, const struct profile_sample *sample)
{
	uint32_t pid = p->profile->threads.items[sample->thread].pid;
	int wanted = path_make(&p->path, sample->thread, sample->node);
	uint64_t most = p->room.bytes < STACK_ROOM_ONE ? p->room.bytes + STACK_ROOM_EACH : STACK_ROOM_ONE;
	size_t i = 0;

	if (wanted < 0)
		return wanted;
	buf_clear(&p->text);
	for (; wanted && i < p->path.depth && p->text.len <= most; i++)
		add_frame(p, &p->path.steps.items[i], pid);
	if (wanted)
		buf_add_str(&p->text, i < p->path.depth ? TRUNCATED : "\n");
	return texts_add(&p->stacks, &p->text);
}

/* Finds or makes the text. Returns its index, or -ENOMEM. Texts are forgotten when they are too many. */
static int64_t find_stack(struct perf *p, const struct profile_sample *sample)
{
	bool is_filtered = p->options->include.len || p->options->exclude.len; /* by the thread's name too */
	uint32_t who = is_filtered ? sample->thread : p->profile->threads.items[sample->thread].pid;
	uint64_t key = (uint64_t)who << 32 | sample->node, known;
	int err;

	if (map_get(&p->stack_ids, key, &known))
		return (int64_t)known;
	if (p->stacks.bytes.len > STACKS_BYTES) {
		buf_clear(&p->stacks.bytes);
		vec_clear(&p->stacks.places);
		map_release(&p->stack_ids);
	}
	err = make_stack(p, sample);
	if (!err)
		err = map_put(&p->stack_ids, key, p->stacks.places.len - 1);
	return err ? err : (int64_t)p->stacks.places.len - 1;
}

/* Writes the text of a stack, as far as there is room. Returns its bytes. */
static size_t put_stack(struct perf *p, size_t index, uint64_t most)
{
	const struct text_place *place = &p->stacks.places.items[index];
	const char *text = p->stacks.bytes.data + place->at, *end;
	size_t len = 0;

	if (place->len <= most) {
		put_text(p->out, &p->stacks, index);
		return place->len;
	}
	end = memrchr(text, '\n', most);
	if (!end && stack_room_has_leaf(&p->room))
		end = memchr(text, '\n', place->len);
	if (end)
		len = fwrite(text, 1, (size_t)(end + 1 - text), p->out);
	fputs(TRUNCATED, p->out);
	writer_left_out(p->options);
	return len + strlen(TRUNCATED);
}

/*
 * A sample that stands for several is written as many times, as long as there is room. One that others are merged into,
 * or that stands for more than REPEATED_MAX, is written once, with their number.
 */
static int put_sample(void *context, const struct profile_sample *sample)
{
	struct perf *p = context;
	bool is_once = p->is_merged || sample->count > REPEATED_MAX;
	uint64_t rest = sample->weight, most;
	int64_t stack = find_stack(p, sample);
	size_t len;

	if (stack < 0)
		return (int)stack;
	len = p->stacks.places.items[stack].len;
	if (!len)
		return 0;
	if (put_process(p, &p->profile->threads.items[sample->thread]) < 0)
		return -ENOMEM;
	most = stack_room_next(&p->room);
	if (is_once)
		fprintf(p->out, PERF_TEXT_COUNT "%u\n", sample->count);
	for (uint32_t left = is_once ? 1 : sample->count; left; left--) {
		uint64_t weight;

		if (left < sample->count && p->room.bytes < len + HEAD_BYTES)
			left = 1;
		weight = rest / left;
		rest -= weight;
		put_head(p, sample, weight);
		stack_room_took(&p->room, put_stack(p, (size_t)stack, most) + HEAD_BYTES);
	}
	return 0;
}

static int put_samples(struct perf *p)
{
	struct ordered ordered;
	int err;

	p->is_merged = p->profile->samples.len > ORDERED_MAX;
	if (!p->is_merged)
		return timeline_each(&p->profile->samples, put_sample, p);
	err = ordered_merge(&ordered, p->profile);
	for (size_t i = 0; !err && i < ordered.samples.len; i++)
		err = put_sample(p, &ordered.samples.items[i]);
	ordered_release(&ordered);
	return err;
}

/* Makes what does not change from sample to sample. Returns 0 or -ENOMEM. */
static int make_heads(struct perf *p)
{
	const struct profile *profile = p->profile;
	int err = 0;

	for (size_t i = 0; !err && i < profile->threads.len; i++) {
		buf_clear(&p->text);
		add_thread(p, &profile->threads.items[i]);
		err = texts_add(&p->threads, &p->text);
	}
	for (size_t i = 0; !err && i < profile->events.len; i++) {
		buf_clear(&p->text);
		buf_add_char(&p->text, ' ');
		add_word(&p->text, profile_event_name(profile, i));
		buf_add_str(&p->text, ":\n");
		err = texts_add(&p->events, &p->text);
	}
	buf_clear(&p->text);
	return err;
}

static void put_events(struct perf *p)
{
	for (size_t i = 0; i < p->profile->events.len; i++) {
		const struct profile_event *event = &p->profile->events.items[i];

		buf_add_str(&p->text, PERF_TEXT_EVENT);
		add_word(&p->text, profile_text(p->profile, event->name));
		buf_printf(&p->text, " %s %" PRIu64, profile_units[event->unit], event->interval);
		put_line(p);
	}
}

static void put_comments(struct perf *p)
{
	const struct profile *profile = p->profile;

	buf_printf(&p->text, PERF_TEXT_START "%" PRIu64 " %" PRIu64, profile->start_realtime_ns,
		   profile->end_ns - profile->start_ns);
	put_line(p);
	put_events(p);
	for (size_t i = 0; i < profile->facts.len; i++) {
		buf_add_str(&p->text, "# fact: ");
		text_add_line(&p->text, profile_text(profile, profile->facts.items[i].key));
		buf_add_str(&p->text, ": ");
		text_add_line(&p->text, profile_text(profile, profile->facts.items[i].value));
		put_line(p);
	}
	for (size_t i = 0; i < profile->losses.len; i++) {
		buf_printf(&p->text, "# lost: %" PRIu64 " ", profile->losses.items[i].count);
		text_add_line(&p->text, profile_text(profile, profile->losses.items[i].text));
		put_line(p);
	}
}

static void release(struct perf *p)
{
	path_maker_release(&p->path);
	map_release(&p->processes);
	map_release(&p->stack_ids);
	texts_release(&p->threads);
	texts_release(&p->events);
	texts_release(&p->stacks);
	buf_release(&p->text);
}

static int perf_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct perf p = {
		.profile = profile,
		.options = options,
		.out = out,
		.threads.bytes = BUF_NONE,
		.events.bytes = BUF_NONE,
		.stacks.bytes = BUF_NONE,
		.text = BUF_NONE,
		.room = stack_room_new(profile->most_text),
	};
	int err = path_maker_init(&p.path, NULL, profile, options);

	if (!err)
		err = make_heads(&p);
	if (!err) {
		put_comments(&p);
		err = put_samples(&p);
	}
	release(&p);
	return err ? err : writer_finish(out);
}

const struct writer writer_perf = {
	.name = "perf",
	.lacks = "containers, virtual threads, lines and signatures",
	.extensions = "perf",
	.help = "the text of perf script, sample by sample",
	.has_all_events = true,
	.merges = true,
	.write = perf_write,
};
