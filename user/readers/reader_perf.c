/* SPDX-License-Identifier: MIT */
/*
 * The text of perf script, of perf and of duet. A sample is a line "comm pid/tid [cpu] time: period event:", in which
 * the ids, the CPU and the period may be missing, then one line a frame, leaf first, "address symbol+offset (module)",
 * and an empty line. Without call chains, the frame is in the sample's line, and there is no empty line. A frame may be
 * followed by a line with its place in the source. Texts without a time, of perf script -F, have any part of the
 * sample's line, or an empty one. Each event of the text is an event of the profile. The events of perf are counts,
 * except its clocks.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "duet_jvm.h"
#include "profile/perf_text.h"
#include "readers/frame_text.h"
#include "readers/perf_head.h"
#include "readers/reader.h"

#define DEPTH_MAX 65536

enum heads { HEADS_UNKNOWN, HEADS_WITH_TIME, HEADS_BARE };

struct perf {
	struct profile *profile;
	struct lines lines;
	struct frame_texts frames;
	struct vec(uint32_t) stack; /* leaf first */
	struct map processes; /* pid -> name, a string of the profile */
	struct profile_sample sample; /* the sample whose frames are being read */
	bool has_sample, has_start;
	bool is_flat; /* the sample has its only frame already */
	bool has_addresses; /* its first frame has one */
	bool needs_frames; /* its head alone does not suffice */
	enum heads heads; /* as the first one is */
	uint32_t count; /* of samples merged into the next one; 0 = 1 */
	struct buf *why;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct perf *p, const char *format, ...)
{
	va_list args;

	buf_printf(p->why, "line %llu ", (unsigned long long)p->lines.number);
	va_start(args, format);
	buf_vprintf(p->why, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- frames ---- */

/* A line of a call chain: a tab and a padded address. */
static bool is_chain(const char *line, size_t len)
{
	size_t at = 0;
	struct perf_word address = perf_word_next(line, len, &at);

	return len && line[0] == '\t' && perf_word_is_address(&address) && at > PERF_ADDRESS_WIDTH;
}

/* Kernel modules are in brackets, and so are mappings of user space without a file. */
static bool is_kernel(const char *module, size_t len)
{
	static const char *const others[] = {"[vdso]", "[vsyscall]", "[unknown]", "[anon]",
					     "[heap]", "[stack]",    "[uprobes]"};
	struct perf_word word = {module, len};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (perf_word_is(&word, others[i]))
			return false;
	return len > 2 && module[0] == '[' && module[len - 1] == ']';
}

/* The kind that duet's name in brackets stands for. FRAME_KIND_MAX if it is none of these names. */
static enum frame_kind kind_of_module(const char *module, size_t len)
{
	for (enum frame_kind kind = FRAME_JVM; len > 2 && kind < FRAME_KIND_MAX; kind++) {
		const char *name = frame_kind_name(kind);
		bool is_same = module[0] == '[' && strlen(name) == len - 2;

		for (size_t i = 0; is_same && i < len - 2; i++)
			is_same = module[i + 1] == (name[i] == ' ' ? '_' : name[i]);
		if (is_same)
			return kind;
	}
	return FRAME_KIND_MAX;
}

/* duet's names of addresses without a symbol are libc.so.6+0x1234 and [anon]+0x1234. These are kept. */
static size_t without_offset(const char *symbol, size_t len, const struct perf_word *module)
{
	size_t digits = 0, name;

	while (digits < len && isxdigit((unsigned char)symbol[len - 1 - digits]))
		digits++;
	if (!digits || len <= digits + 3 || symbol[0] == '[' || memcmp(symbol + len - digits - 3, "+0x", 3))
		return len;
	name = len - digits - 3;
	return module->len == name && !memcmp(module->text, symbol, name) ? len : name;
}

static uint32_t file_name(struct profile *profile, const char *module, size_t len)
{
	const char *slash = memrchr(module, '/', len);
	size_t skip = slash ? (size_t)(slash + 1 - module) : 0;

	return intern_bytes(&profile->strings, module + skip, len - skip);
}

static struct frame plain_frame(struct profile *profile, enum frame_kind kind, const char *symbol, size_t len)
{
	bool is_unknown = len == strlen(PERF_TEXT_UNKNOWN) && !memcmp(symbol, PERF_TEXT_UNKNOWN, len);

	return (struct frame){
		.kind = kind,
		.name = is_unknown ? 0 : intern_bytes(&profile->strings, symbol, len),
		.bci = -1,
	};
}

/* A method of Java; without a class if the text has none. */
static struct frame java_frame(struct profile *profile, enum frame_kind kind, const char *symbol, size_t len)
{
	struct frame frame;
	BUF(text);

	buf_add(&text, symbol, len);
	buf_add_str(&text, "_[j]"); /* so that a class without a package is recognised, too */
	frame = frame_from_text(profile, text.data, text.len);
	frame.kind = kind;
	return frame;
}

/* Symbols of a perf map, and inlined ones, may be of any language. */
static struct frame maybe_java(struct profile *profile, enum frame_kind kind, const char *symbol, size_t len)
{
	struct frame frame = java_frame(profile, kind, symbol, len);

	return frame.class_name ? frame : plain_frame(profile, FRAME_NATIVE, symbol, len);
}

static void set_module(struct profile *profile, struct frame *frame, const struct perf_word *module)
{
	if (perf_word_is(module, PERF_TEXT_KERNEL))
		frame->module = intern_str(&profile->strings, "kernel");
	else if (frame->kind == FRAME_KERNEL)
		frame->module = intern_bytes(&profile->strings, module->text + 1, module->len - 2);
	else if (!perf_word_is(module, PERF_TEXT_UNKNOWN))
		frame->module = file_name(profile, module->text, module->len);
	if (frame->kind == FRAME_NATIVE && duet_is_libjvm(intern_text(&profile->strings, frame->module)))
		frame->kind = FRAME_JVM;
}

/* Finds the text in parentheses at the end. *ret_symbol is the length of the text before them. */
static struct perf_word module_of(const char *text, size_t len, size_t *ret_symbol)
{
	const char *paren = len && text[len - 1] == ')' ? memrchr(text, '(', len) : NULL;

	*ret_symbol = !paren ? len : paren > text ? (size_t)(paren - text - 1) : 0;
	return paren ? (struct perf_word){paren + 1, (size_t)(text + len - paren - 2)}
		     : (struct perf_word){text + len, 0};
}

/* "symbol+0x12 (module)" */
static struct frame frame_of_perf(struct profile *profile, const char *text, size_t len)
{
	size_t symbol_len, map = strlen(PERF_TEXT_MAP);
	struct perf_word module = module_of(text, len, &symbol_len);
	enum frame_kind kind = kind_of_module(module.text, module.len);
	struct frame frame;

	if (kind != FRAME_KIND_MAX && frame_kind_is_java(kind))
		return java_frame(profile, kind, text, symbol_len);
	if (kind != FRAME_KIND_MAX)
		return plain_frame(profile, kind, text, symbol_len);
	symbol_len = without_offset(text, symbol_len, &module);
	if (module.len >= map && !memcmp(module.text, PERF_TEXT_MAP, map))
		return maybe_java(profile, FRAME_COMPILED, text, symbol_len);
	if (perf_word_is(&module, PERF_TEXT_INLINED))
		return maybe_java(profile, FRAME_INLINED, text, symbol_len);
	kind = is_kernel(module.text, module.len) ? FRAME_KERNEL : FRAME_NATIVE;
	frame = plain_frame(profile, kind, text, symbol_len);
	set_module(profile, &frame, &module);
	return frame;
}

static int push_frame(struct perf *p, const char *line, size_t len)
{
	size_t at = 0;
	struct perf_word address = perf_word_next(line, len, &at);
	uint32_t frame;

	if (!p->stack.len)
		p->has_addresses = perf_word_is_address(&address);
	if (!perf_word_is_address(&address)) /* perf script -F sym */
		at = (size_t)(address.text - line);
	while (at < len && line[at] == ' ')
		at++;
	if (at == len) /* perf script -F ip */
		at = (size_t)(address.text - line);
	if (p->stack.len >= DEPTH_MAX)
		return refuse(p, "is one of more than %d frames", DEPTH_MAX);
	frame = frame_texts_find(&p->frames, line + at, len - at);
	return frame == UINT32_MAX ? -ENOMEM : vec_push(&p->stack, frame);
}

/*
 * Lines between frames that are none have no address: "  file.c:12", of which the number is taken, "ilen: 3", and what
 * else perf script can be asked for.
 */
static bool is_detail(const struct perf *p, const char *line, size_t len, uint64_t *ret_line)
{
	const char *colon = memrchr(line, ':', len);
	size_t at = 0;
	struct perf_word first = perf_word_next(line, len, &at);

	if (!p->stack.len || !p->has_addresses || perf_word_is_address(&first))
		return false;
	if (!colon || !perf_word_number(colon + 1, (size_t)(line + len - colon - 1), ret_line))
		*ret_line = 0;
	return true;
}

/* The last frame is in that line of its source. */
static int set_line(struct perf *p, uint64_t line)
{
	uint32_t *last = &p->stack.items[p->stack.len - 1], index;
	struct frame frame = p->profile->frames.items[*last];

	frame.line = line <= INT32_MAX ? (int)line : 0;
	index = profile_frame(p->profile, &frame);
	if (index == UINT32_MAX)
		return -ENOMEM;
	*last = index;
	return 0;
}

/* ---- samples ---- */

static int end_sample(struct perf *p)
{
	uint32_t node = 0;

	if (!p->has_sample)
		return 0;
	p->has_sample = false;
	if (p->needs_frames && !p->stack.len)
		return refuse(p, "follows a sample without event and frame, which perf script -F +ip,sym shows");
	for (size_t i = p->stack.len; i-- > 0;) {
		node = profile_child(p->profile, node, p->stack.items[i]);
		if (node == UINT32_MAX)
			return -ENOMEM;
	}
	p->sample.node = node;
	return profile_add(p->profile, &p->sample);
}

static uint32_t find_event(struct perf *p, const struct perf_word *name)
{
	static const char *const clocks[] = {"cpu-clock", "task-clock"};
	enum profile_unit unit = PROFILE_COUNT;
	uint32_t text = intern_bytes(&p->profile->strings, name->text, name->len);

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (!strncmp(intern_text(&p->profile->strings, text), clocks[i], strlen(clocks[i])))
			unit = PROFILE_NS;
	return profile_event(p->profile, intern_text(&p->profile->strings, text), unit, 0);
}

static uint32_t find_thread(struct perf *p, const struct perf_head *head)
{
	struct profile_owner owner = {.pid = head->pid};
	struct intern *strings = &p->profile->strings;
	uint32_t name = intern_bytes(strings, head->comm.text, head->comm.len);
	uint64_t process = name;

	if (!map_get(&p->processes, head->pid, &process) && map_put(&p->processes, head->pid, name) < 0)
		return UINT32_MAX;
	return profile_thread(p->profile, head->pid, head->tid, intern_text(strings, name),
			      intern_text(strings, (uint32_t)process),
			      head->pid ? profile_owner(p->profile, &owner) : 0);
}

static int begin_sample(struct perf *p, const struct perf_head *head)
{
	const struct perf_word unnamed = {READER_SAMPLES, strlen(READER_SAMPLES)};

	p->sample = (struct profile_sample){
		.time_ns = head->time_ns,
		.weight = head->period,
		.count = p->count ? p->count : 1,
		.event = find_event(p, head->event.len ? &head->event : &unnamed),
		.thread = find_thread(p, head),
	};
	if (p->sample.event == UINT32_MAX)
		return refuse(p, "has an event after %d others", PROFILE_EVENTS_MAX);
	p->count = 0;
	if (!p->has_start && (!p->profile->start_ns || head->time_ns < p->profile->start_ns))
		p->profile->start_ns = p->profile->start_realtime_ns = head->time_ns;
	if (!p->has_start && head->time_ns > p->profile->end_ns)
		p->profile->end_ns = head->time_ns;
	p->has_sample = true;
	p->needs_frames = !head->event.len && !head->has_time;
	vec_clear(&p->stack);
	p->is_flat = head->frame.len;
	return p->is_flat ? push_frame(p, head->frame.text, head->frame.len) : 0;
}

/* ---- lines ---- */

static bool begins_with(const char *line, size_t len, const char *text, size_t *ret_at)
{
	*ret_at = strlen(text);
	return len >= *ret_at && !memcmp(line, text, *ret_at);
}

static int read_process(struct perf *p, const char *line, size_t len, size_t at)
{
	struct perf_word pid = perf_word_next(line, len, &at);
	uint64_t number;

	at += at < len;
	if (!perf_word_number(pid.text, pid.len, &number))
		return 0;
	return map_put(&p->processes, (uint32_t)number, intern_bytes(&p->profile->strings, line + at, len - at));
}

static void read_start(struct perf *p, const char *line, size_t len, size_t at)
{
	struct perf_word start = perf_word_next(line, len, &at), length = perf_word_next(line, len, &at);
	uint64_t start_ns, length_ns;

	if (!perf_word_number(start.text, start.len, &start_ns) ||
	    !perf_word_number(length.text, length.len, &length_ns) || start_ns > INT64_MAX / 4 ||
	    length_ns > INT64_MAX / 4)
		return;
	p->has_start = true;
	p->profile->start_ns = p->profile->start_realtime_ns = start_ns;
	p->profile->end_ns = start_ns + length_ns;
}

static int read_event_row(struct perf *p, const char *line, size_t len, size_t at)
{
	struct perf_word name = perf_word_next(line, len, &at), unit_name = perf_word_next(line, len, &at);
	struct perf_word interval = perf_word_next(line, len, &at);
	uint32_t text = intern_bytes(&p->profile->strings, name.text, name.len);
	uint64_t number;

	for (enum profile_unit unit = 0; unit < PROFILE_UNIT_MAX; unit++)
		if (perf_word_is(&unit_name, profile_units[unit]) &&
		    perf_word_number(interval.text, interval.len, &number) &&
		    profile_event(p->profile, intern_text(&p->profile->strings, text), unit, number) == UINT32_MAX)
			return -ENOMEM;
	return 0;
}

static void read_count(struct perf *p, const char *line, size_t len, size_t at)
{
	struct perf_word word = perf_word_next(line, len, &at);
	uint64_t count;

	if (perf_word_number(word.text, word.len, &count) && count <= UINT32_MAX)
		p->count = (uint32_t)count;
}

/* Reads duet's comments, and skips others. */
static int read_comment(struct perf *p, const char *line, size_t len)
{
	size_t at;

	if (begins_with(line, len, PERF_TEXT_PROCESS, &at))
		return read_process(p, line, len, at);
	if (begins_with(line, len, PERF_TEXT_EVENT, &at))
		return read_event_row(p, line, len, at);
	if (begins_with(line, len, PERF_TEXT_START, &at))
		read_start(p, line, len, at);
	if (begins_with(line, len, PERF_TEXT_COUNT, &at))
		read_count(p, line, len, at);
	return 0;
}

#define RECORD "PERF_RECORD_"

/* With --show-mmap-events and the like, perf script also has lines that are no samples. */
static bool is_record(const char *line, size_t len)
{
	return memmem(line, len, " " RECORD, sizeof(RECORD)) != NULL;
}

/* The name of a sample's thread, and its event, may have the word too. A record has no period. */
static bool read_sample(const char *line, size_t len, struct perf_head *ret)
{
	return perf_head_read(line, len, ret) && (ret->has_period || ret->event.len < sizeof(RECORD) - 1 ||
						  memcmp(ret->event.text, RECORD, sizeof(RECORD) - 1) != 0);
}

/* The first head of a text shows what the others are like. */
static bool read_next_head(struct perf *p, const char *line, size_t len, struct perf_head *ret)
{
	if (p->heads != HEADS_BARE && read_sample(line, len, ret)) {
		p->heads = HEADS_WITH_TIME;
		return true;
	}
	if (p->heads == HEADS_WITH_TIME || is_record(line, len))
		return false;
	p->heads = HEADS_BARE;
	perf_head_read_bare(line, len, ret);
	return true;
}

/*
 * A line that begins with a blank or a tab. perf script aligns the names of threads to the right by blanks, so that it
 * may be the next sample if this one has no chain. Frames of a chain begin with a tab.
 */
static int read_indented(struct perf *p, const char *line, size_t len)
{
	struct perf_head head;
	uint64_t number;
	int err;

	if (line[0] != '\t' && (!p->stack.len || p->is_flat) && read_next_head(p, line, len, &head)) {
		err = end_sample(p);
		return err ? err : begin_sample(p, &head);
	}
	if (is_detail(p, line, len, &number))
		return number ? set_line(p, number) : 0;
	return push_frame(p, line, len);
}

/* perf script -D */
static bool is_dump(const char *line, size_t len)
{
	return len > 2 && !memcmp(line, "0x", 2) && memmem(line, len, "]: event: ", 10);
}

static int read_line(struct perf *p, const char *line, size_t len)
{
	struct perf_head head;
	int err;

	if (!len)
		return end_sample(p);
	if (line[0] == '#')
		return read_comment(p, line, len);
	if (memchr(line, '\0', len))
		return refuse(p, "is no text");
	if (is_dump(line, len))
		return refuse(p, "is of perf script -D, which duet does not read: leave out -D");
	if (!p->has_sample && p->heads != HEADS_WITH_TIME && is_chain(line, len)) {
		head = (struct perf_head){.comm = {line, 0}, .period = 1};
		p->heads = HEADS_BARE;
		err = begin_sample(p, &head);
		return err ? err : push_frame(p, line, len);
	}
	if (p->has_sample && isspace((unsigned char)line[0]))
		return read_indented(p, line, len);
	err = end_sample(p);
	if (!err && read_next_head(p, line, len, &head))
		return begin_sample(p, &head);
	if (!err && !is_record(line, len))
		return refuse(p, "is no sample, as \"comm 12/34 5.678901: 1 cycles:\"");
	return err;
}

static int read_lines(struct perf *p)
{
	const char *line;
	size_t len;
	int err;

	while ((err = lines_next(&p->lines, &line, &len, p->why)) > 0) {
		err = read_line(p, line, len);
		if (err < 0)
			return err;
	}
	return err ? err : end_sample(p);
}

static int perf_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct perf p = {.profile = profile, .why = why};
	int err = frame_texts_init(&p.frames, profile, frame_of_perf);

	lines_init(&p.lines, source);
	if (!err)
		err = read_lines(&p);
	lines_release(&p.lines);
	frame_texts_release(&p.frames);
	vec_release(&p.stack);
	map_release(&p.processes);
	return err;
}

#define PERF_HEADER "# captured on" /* of perf script --header, whose comments are long */

/* A text without times. `next` is the line after the first. */
static bool claims_bare(const char *line, size_t len, const char *next, size_t next_len)
{
	struct perf_head head;

	perf_head_read_bare(line, len, &head);
	return is_chain(line, len) || is_chain(next, next_len) || head.frame.len ||
	       perf_head_is_tracepoint(&head.event) || (head.has_time && head.comm.len && !head.event.len);
}

/* Decided by the first line that is not a comment. */
static bool perf_claims(const unsigned char *start, size_t len)
{
	const char *line = (const char *)start, *end = line + len;
	struct perf_head head;

	if (memchr(start, '\0', len))
		return false;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line)), *next = newline ? newline + 1 : end;
		size_t bytes = lines_without_return(line, (size_t)((newline ? newline : end) - line)), at;
		const char *last = memchr(next, '\n', (size_t)(end - next));

		if (bytes && *line != '#')
			return is_record(line, bytes) || is_dump(line, bytes) || perf_head_read(line, bytes, &head) ||
			       claims_bare(line, bytes, next, (size_t)((last ? last : end) - next));
		if (begins_with(line, bytes, PERF_TEXT_START, &at) || begins_with(line, bytes, PERF_HEADER, &at))
			return true;
		line = next;
	}
	return false;
}

const struct reader reader_perf = {
	.name = "perf",
	.help = "the text of perf script",
	.claims = perf_claims,
	.read = perf_read,
};
