/* SPDX-License-Identifier: MIT */
#include "recorder/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/record.h"
#include "recorder/report_shape.h"

/* Of whole numbers, as async-profiler's arguments have them: the first letter behind the number, of either case. */
struct unit {
	char letter; /* 0: no letter */
	uint64_t factor;
};

/* In ns or bytes. m is a millisecond. */
static const struct unit units[] = {
	{'\0', 1},	   {'n', 1}, {'u', NS_PER_US}, {'m', NS_PER_MS},
	{'s', NS_PER_SEC}, {'b', 1}, {'k', 1u << 10},  {'g', 1u << 30},
};
static const struct unit sizes[] = {{'\0', 1}, {'b', 1}, {'k', 1u << 10}, {'m', 1u << 20}, {'g', 1u << 30}};
/* Of long times; a number without a unit is in seconds. */
static const struct unit long_units[] = {
	{'\0', NS_PER_SEC},	  {'s', NS_PER_SEC},	     {'m', 60 * NS_PER_SEC},
	{'h', 3600 * NS_PER_SEC}, {'d', 86400 * NS_PER_SEC},
};
#define PARSE(text, known, ret) parse(text, known, sizeof(known) / sizeof(*(known)), ret)

/* Returns false if the text is no number with such a unit; *ret is set then, too, if the number is too large. */
static bool parse(const char *text, const struct unit *known, size_t count, uint64_t *ret)
{
	char *end;
	uint64_t number;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	for (size_t i = 0; !errno && i < count; i++)
		if (tolower((unsigned char)*end) == known[i].letter)
			return !__builtin_mul_overflow(number, known[i].factor, ret);
	return false;
}

enum form {
	FORM_SWITCH, /* bool */
	FORM_STRING, /* const char * */
	FORM_DEPTH, /* "N", or "N/M" */
	FORM_PERCENT, /* double */
	FORM_CPU, /* uint32_t: 1 + its number */
	FORM_SIZE, /* uint64_t: bytes, or with a unit k m g */
	FORM_LONG_TIME, /* uint64_t: seconds, or with a unit s m h d */
	FORM_INTERVAL, /* struct asprof_interval: a value with any unit; without a value, the default */
	FORM_LIST, /* struct opt_strings */
	FORM_RATES, /* limits of JFR's events */
	FORM_BITS, /* unsigned int; words change nothing */
	FORM_ACTION, /* sets the action to `number` */
	FORM_FORMAT, /* sets the writer to the one called `name`, and its number of rows */
};

struct word {
	const char *name;
	enum form form;
	size_t offset; /* offset in struct asprof_arguments */
	uint64_t number; /* FORM_INTERVAL, FORM_LONG_TIME: the default; FORM_ACTION: enum asprof_action */
	const char *otherwise; /* FORM_STRING: the value if there is none; NULL: the word has no effect then */
};

#define AT(member) offsetof(struct asprof_arguments, member)

/* clang-format off */
static const struct word words[] = {
	{.name = "start", .form = FORM_ACTION, .number = ASPROF_START},
	{.name = "resume", .form = FORM_ACTION, .number = ASPROF_RESUME},
	{.name = "stop", .form = FORM_ACTION, .number = ASPROF_STOP},
	{.name = "dump", .form = FORM_ACTION, .number = ASPROF_DUMP},
	{.name = "check", .form = FORM_ACTION, .number = ASPROF_CHECK},
	{.name = "status", .form = FORM_ACTION, .number = ASPROF_STATUS},
	{.name = "meminfo", .form = FORM_ACTION, .number = ASPROF_MEMINFO},
	{.name = "metrics", .form = FORM_ACTION, .number = ASPROF_METRICS},
	{.name = "list", .form = FORM_ACTION, .number = ASPROF_LIST},
	{.name = "version", .form = FORM_ACTION, .number = ASPROF_VERSION},

	{.name = "collapsed", .form = FORM_FORMAT},
	{.name = "flamegraph", .form = FORM_FORMAT},
	{.name = "tree", .form = FORM_FORMAT},
	{.name = "jfr", .form = FORM_FORMAT},
	{.name = "otlp", .form = FORM_FORMAT},
	{.name = "traces", .form = FORM_FORMAT},
	{.name = "flat", .form = FORM_FORMAT},
	{.name = "text", .form = FORM_FORMAT},

	{.name = "event", .form = FORM_STRING, .offset = AT(event)},
	{.name = "cpu", .form = FORM_STRING, .offset = AT(event)}, /* the word itself is the value */
	{.name = "interval", .form = FORM_INTERVAL, .offset = AT(interval)},
	{.name = "alloc", .form = FORM_INTERVAL, .offset = AT(alloc), .number = ASPROF_ALLOC_BYTES},
	{.name = "lock", .form = FORM_INTERVAL, .offset = AT(lock), .number = ASPROF_LOCK_NS},
	{.name = "nativelock", .form = FORM_INTERVAL, .offset = AT(nativelock), .number = ASPROF_LOCK_NS},
	{.name = "wall", .form = FORM_INTERVAL, .offset = AT(wall), .number = ASPROF_WALL_NS},
	{.name = "nativemem", .form = FORM_INTERVAL, .offset = AT(nativemem), .number = 0},
	{.name = "nofree", .form = FORM_SWITCH, .offset = AT(no_frees)},
	{.name = "trace", .form = FORM_LIST, .offset = AT(traces)},
	{.name = "all", .form = FORM_SWITCH, .offset = AT(all)},
	{.name = "live", .form = FORM_SWITCH, .offset = AT(live)},
	{.name = "nobatch", .form = FORM_SWITCH, .offset = AT(style.jfr.no_batch)},
	{.name = "alluser", .form = FORM_SWITCH, .offset = AT(record.all_user)},
	{.name = "filter", .form = FORM_STRING, .offset = AT(filter), .otherwise = ""}, /* what the program adds */
	{.name = "begin", .form = FORM_STRING, .offset = AT(begin)},
	{.name = "end", .form = FORM_STRING, .offset = AT(end)},
	{.name = "ttsp", .form = FORM_SWITCH, .offset = AT(ttsp)},
	{.name = "nostop", .form = FORM_SWITCH, .offset = AT(nostop)},
	{.name = "record-cpu", .form = FORM_SWITCH, .offset = AT(record.cpus)},
	{.name = "sched", .form = FORM_SWITCH, .offset = AT(record.bpf.policies)},
	{.name = "tlab", .form = FORM_SWITCH, .offset = AT(record.tlab)},
	{.name = "target-cpu", .form = FORM_CPU, .offset = AT(record.only_cpu)},
	{.name = "jstackdepth", .form = FORM_DEPTH, .offset = AT(depth)},
	{.name = "timeout", .form = FORM_LONG_TIME, .offset = AT(timeout_ns)},
	{.name = "loop", .form = FORM_LONG_TIME, .offset = AT(loop_ns)},
	{.name = "proc", .form = FORM_LONG_TIME, .offset = AT(proc_ns), .number = ASPROF_PROC_NS},
	{.name = "chunksize", .form = FORM_SIZE, .offset = AT(style.chunk_bytes)},
	{.name = "chunktime", .form = FORM_LONG_TIME, .offset = AT(style.chunk_ns)},
	{.name = "memlimit", .form = FORM_SIZE, .offset = AT(memory_bytes)},

	{.name = "file", .form = FORM_STRING, .offset = AT(file)},
	{.name = "quiet", .form = FORM_SWITCH, .offset = AT(quiet)},
	{.name = "threads", .form = FORM_SWITCH, .offset = AT(style.threads)},
	{.name = "simple", .form = FORM_SWITCH, .offset = AT(style.style.simple)},
	{.name = "norm", .form = FORM_SWITCH, .offset = AT(style.style.steady)},
	{.name = "dot", .form = FORM_SWITCH, .offset = AT(style.style.dotted)},
	{.name = "sig", .form = FORM_SWITCH, .offset = AT(style.style.signatures)},
	{.name = "ann", .form = FORM_SWITCH, .offset = AT(style.style.annotate)},
	{.name = "lib", .form = FORM_SWITCH, .offset = AT(style.style.libraries)},
	{.name = "total", .form = FORM_SWITCH, .offset = AT(style.total)},
	{.name = "samples", .form = FORM_SWITCH, .offset = AT(style.samples)},
	{.name = "reverse", .form = FORM_SWITCH, .offset = AT(style.reverse)},
	{.name = "inverted", .form = FORM_SWITCH, .offset = AT(style.inverted)},
	{.name = "title", .form = FORM_STRING, .offset = AT(style.title)},
	{.name = "minwidth", .form = FORM_PERCENT, .offset = AT(style.min_width)},
	{.name = "include", .form = FORM_LIST, .offset = AT(style.include)},
	{.name = "exclude", .form = FORM_LIST, .offset = AT(style.exclude)},

	{.name = "server", .form = FORM_STRING, .offset = AT(server)},
	{.name = "log", .form = FORM_STRING, .offset = AT(log)},
	{.name = "loglevel", .form = FORM_STRING, .offset = AT(log_level)},
	{.name = "cstack", .form = FORM_STRING, .offset = AT(cstack)},
	{.name = "features", .form = FORM_STRING, .offset = AT(features), .otherwise = ""},
	{.name = "clock", .form = FORM_STRING, .offset = AT(clock)},
	{.name = "ratelimit", .form = FORM_RATES},
	{.name = "jfrsync", .form = FORM_STRING, .offset = AT(jfrsync), .otherwise = "default"},
	{.name = "jfropts", .form = FORM_BITS, .offset = AT(style.jfr.without)},
};
/* clang-format on */

/* These change nothing, because duet has one way. */
static const char accepted[] = "safemode fdtransfer signal mcache framebuf summary allkernel width "
			       "height meminfolog includemm includeln";

/* Of either case, as async-profiler has it. */
static const struct word *find_word(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(words[i].name, name))
			return &words[i];
	return NULL;
}

/* ---- values ---- */

/* Of sizes, m is a megabyte. */
static bool parse_amount(const struct word *word, const char *text, uint64_t *ret)
{
	bool is_size = word->offset == AT(alloc) || word->offset == AT(nativemem) || word->form == FORM_SIZE;

	return is_size ? PARSE(text, sizes, ret) : PARSE(text, units, ret);
}

static bool must_have_text(const struct word *word)
{
	return word->offset == AT(event) || word->offset == AT(file) || word->offset == AT(log_level);
}

static int bad_value(const struct word *word, const char *value, struct buf *why)
{
	if (word->offset == AT(interval))
		buf_add_str(why, "Invalid interval");
	else if (must_have_text(word))
		buf_printf(why, "%s must not be empty", word->name);
	else
		buf_printf(why, "Invalid value of %s: '%s'", word->name, value ? value : "");
	return -EINVAL;
}

static int set_interval(struct asprof_interval *interval, const struct word *word, const char *value, struct buf *why)
{
	interval->is_wanted = interval->is_set = true;
	interval->value = word->number;
	if (value && *value && !parse_amount(word, value, &interval->value))
		return bad_value(word, value, why);
	if (word->offset == AT(interval) && !interval->value)
		return bad_value(word, value, why);
	return 0;
}

/* Each of these only enables its own event, which may come in addition to another one. Of nativemem: all calls. */
static int set_event(struct asprof_arguments *to, const char *value, struct buf *why)
{
	if (text_is_word(value, "alloc lock nativelock nativemem")) {
		((struct asprof_interval *)((char *)to + find_word(value)->offset))->is_wanted = true;
		to->nativemem.is_set |= to->nativemem.is_wanted;
		return 0;
	}
	if (to->event && strcmp(to->event, value))
		return buf_explain(why, -EINVAL, "Duplicate event argument");
	to->event = value;
	return 0;
}

/* Replaces the entities for characters that arguments or HTML cannot contain; writers escape these themselves. */
static void decode_entities(char *text)
{
	static const struct {
		const char *entity;
		char character;
	} known[] = {{"&amp;", '&'}, {"&lt;", '<'},  {"&gt;", '>'}, {"&#38;", '&'},
		     {"&#60;", '<'}, {"&#62;", '>'}, {"&#44;", ','}};

	for (; (text = strchr(text, '&')) != NULL; text++)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			size_t length = strlen(known[i].entity);

			if (strncmp(text, known[i].entity, length) != 0)
				continue;
			*text = known[i].character;
			memmove(text + 1, text + length, strlen(text + length) + 1);
			break;
		}
}

static int set_string(struct asprof_arguments *to, const struct word *word, char *value, struct buf *why)
{
	if (!strcmp(word->name, "cpu"))
		return set_event(to, word->name, why);
	if ((!value || !*value) && must_have_text(word))
		return bad_value(word, value, why);
	if (word->offset == AT(event))
		return set_event(to, value, why);
	if ((!value || !*value) && !word->otherwise) /* not set */
		return 0;
	if (word->offset == AT(filter) && value && !thread_filter_is_valid(value))
		return bad_value(word, value, why);
	if (word->offset == AT(style.title))
		decode_entities(value);
	if (word->offset == AT(clock)) { /* the first letter counts, and others are no clock */
		to->clock = *value == 't' ? "tsc" : *value == 'm' ? "monotonic" : to->clock;
		return 0;
	}
	if (word->offset == AT(jfrsync)) /* the JVM has what belongs to it */
		to->style.jfr.without = WRITER_WITHOUT_ALL;
	*(const char **)((char *)to + word->offset) = value && *value ? value : word->otherwise;
	return 0;
}

static int set_cpu(uint32_t *field, const struct word *word, const char *value, struct buf *why)
{
	BUF(reason);
	int err = record_cpu(field, value ? value : "", &reason);

	return err ? bad_value(word, value, why) : 0;
}

/* Words such as "mem" are about async-profiler's own buffers. */
static int set_bits(unsigned int *field, const struct word *word, const char *value, struct buf *why)
{
	char *end;

	if (!value || !*value)
		return bad_value(word, value, why);
	if (isalpha((unsigned char)*value))
		return 0;
	*field = (unsigned int)strtoul(value, &end, 0) & WRITER_WITHOUT_ALL;
	return *end ? bad_value(word, value, why) : 0;
}

/* async-profiler's text is the whole report. */
static const struct writer *whole_text(const struct writer *writer)
{
	return writer == writer_by_name("text") ? writer_by_name("text=full") : writer;
}

/* "traces=5,flat=10" is one text with both lists. */
static int set_format(struct asprof_arguments *to, const struct word *word, const char *value, struct buf *why)
{
	bool had_rows = to->writer && to->writer->count_at;
	const struct writer *writer = whole_text(writer_by_name(word->name));
	BUF(whole);

	/* jfropts of versions before 3 */
	if (value && *value && !strcmp(word->name, "jfr")) {
		to->writer = writer;
		return set_bits(&to->style.jfr.without, word, value, why);
	}
	buf_printf(&whole, value && *value ? "%s=%s" : "%s", word->name, value);
	if (value && *value)
		writer = writer_by_word(whole.data, &to->style);
	if (!writer)
		return bad_value(word, value, why);
	to->writer = had_rows && writer->count_at && writer != to->writer ? writer_by_name("text=full") : writer;
	return 0;
}

/* Of a time of day. A part without a number is that of the start. */
#define ANY_PART 0xffu
#define PART(number, index) ((uint64_t)(number) << 8 * (index))

/* "hh:mm" or "hh:mm:ss" */
static bool set_time_of_day(uint64_t *field, const char *text)
{
	static const unsigned long most[] = {23, 59, 59};
	uint64_t time = ASPROF_TIME_OF_DAY;
	size_t parts = 0;

	for (; text && parts < 3; parts++) {
		unsigned long number = isdigit((unsigned char)*text) ? strtoul(text, NULL, 10) : ANY_PART;

		if (number != ANY_PART && number > most[parts])
			return false;
		time |= PART(number, 2 - parts);
		text = strchr(text, ':');
		text += text != NULL;
	}
	*field = time | (parts < 3 ? ANY_PART : 0);
	return !text && (time & 0xffffff) != 0xffffff;
}

uint64_t asprof_arguments_span_ns(uint64_t span, time_t from)
{
	static const time_t repeats_s[] = {60, 3600, 86400}; /* with a second, a minute, an hour */
	struct tm local;
	int *const parts[] = {&local.tm_sec, &local.tm_min, &local.tm_hour};
	time_t repeat_s = 0, at;

	if (!(span & ASPROF_TIME_OF_DAY) || !localtime_r(&from, &local))
		return span & ~ASPROF_TIME_OF_DAY;
	for (size_t i = 0; i < 3; i++)
		if ((span >> 8 * i & ANY_PART) != ANY_PART) {
			*parts[i] = (int)(span >> 8 * i & ANY_PART);
			repeat_s = repeats_s[i];
		}
	local.tm_isdst = -1;
	at = mktime(&local);
	return (uint64_t)(at > from ? at - from : at - from + repeat_s) * NS_PER_SEC;
}

static int set_number(void *field, const struct word *word, const char *value, struct buf *why)
{
	char *end = NULL;

	if (word->form == FORM_LONG_TIME && word->number && (!value || !*value)) {
		*(uint64_t *)field = word->number;
		return 0;
	}
	if ((word->offset == AT(timeout_ns) || word->offset == AT(loop_ns)) && value && strchr(value, ':'))
		return set_time_of_day(field, value) ? 0 : bad_value(word, value, why);
	if (word->form == FORM_LONG_TIME)
		return value && PARSE(value, long_units, field) ? 0 : bad_value(word, value, why);
	if (value && isdigit((unsigned char)*value))
		*(double *)field = strtod(value, &end);
	return end && !*end ? 0 : bad_value(word, value, why);
}

/* Reads a whole number above 0, and moves *text past it. */
static bool read_depth(const char **text, uint32_t *ret)
{
	char *end;
	unsigned long number;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	number = strtoul(*text, &end, 10);
	*text = end;
	*ret = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
	return number;
}

/* Of stacks deeper than N, M frames are kept; M is not more than N. */
static int set_depth(struct asprof_arguments *to, const struct word *word, const char *value, struct buf *why)
{
	const char *rest = value ? value : "";
	bool is_valid = read_depth(&rest, &to->depth);

	to->kept_depth = 0;
	if (is_valid && *rest == '/') {
		rest++;
		is_valid = read_depth(&rest, &to->kept_depth) && to->kept_depth <= to->depth;
	}
	return is_valid && !*rest ? 0 : bad_value(word, value, why);
}

static int set_word(struct asprof_arguments *to, const struct word *word, char *value, struct buf *why)
{
	void *field = (char *)to + word->offset;

	switch (word->form) {
	case FORM_SWITCH:
		*(bool *)field = true;
		return 0;
	case FORM_STRING:
		return set_string(to, word, value, why);
	case FORM_DEPTH:
		return set_depth(to, word, value, why);
	case FORM_PERCENT:
	case FORM_LONG_TIME:
		return set_number(field, word, value, why);
	case FORM_CPU:
		return set_cpu(field, word, value, why);
	case FORM_SIZE:
		return value && parse_amount(word, value, field) ? 0 : bad_value(word, value, why);
	case FORM_INTERVAL:
		return set_interval(field, word, value, why);
	case FORM_RATES:
		return value ? jfr_rates_parse(to->style.jfr.rate_limits, value, why) : bad_value(word, value, why);
	case FORM_BITS:
		return set_bits(field, word, value, why);
	case FORM_LIST:
		if ((!value || !*value) && word->offset != AT(traces))
			return 0;
		return value ? opt_strings(field, value, why) : bad_value(word, value, why);
	case FORM_ACTION:
		to->action = (enum asprof_action)word->number;
		return 0;
	case FORM_FORMAT:
		return set_format(to, word, value, why);
	}
	return -EINVAL;
}

/* ---- all words ---- */

static int parse_word(struct asprof_arguments *to, char *text, struct buf *warnings, struct buf *why)
{
	char *value = strchr(text, '=');
	const struct word *word;

	if (!*text)
		return 0;
	if (value)
		*value++ = '\0';
	word = find_word(text);
	if (word)
		return set_word(to, word, value, why);
	if (!text_is_word(text, accepted))
		buf_printf(warnings, "[WARN] Unknown argument: %s\n", text);
	return 0;
}

static int settle_format(struct asprof_arguments *arguments, struct buf *why)
{
	const char *dot = arguments->file ? strrchr(arguments->file, '.') : NULL;

	if (arguments->writer || !arguments->file)
		return 0;
	if (dot && !strcmp(dot, ".svg"))
		return buf_explain(why, -EINVAL, "SVG format is obsolete, use .html for FlameGraph");
	arguments->writer = dot && !strcmp(dot, ".folded") ? writer_by_name("collapsed")
							   : whole_text(writer_by_path(arguments->file));
	return 0;
}

int asprof_arguments_parse(struct asprof_arguments *ret, const char *text, struct buf *warnings, struct buf *why)
{
	char *rest;
	int err = 0;

	*ret = (struct asprof_arguments){.text = strdup(text), .proc_ns = ASPROF_NOT_SET};
	record_options_init(&ret->record);
	writer_options_default(&ret->style);
	ret->style.tlab = true; /* as async-profiler writes allocations */
	ret->style.frame_list = true; /* its converter reads pages */
	if (!ret->text)
		return buf_explain(why, -EINVAL, "out of memory");
	for (rest = ret->text; !err && rest;)
		err = parse_word(ret, strsep(&rest, ","), warnings, why);
	if (!err)
		err = settle_format(ret, why);
	if (!err && ret->action == ASPROF_NONE && ret->writer)
		ret->action = ASPROF_DUMP;
	ret->style.style.steady &= !ret->style.threads;
	if (!err && ret->ttsp) {
		ret->begin = "SafepointSynchronize::begin";
		ret->end = "RuntimeService::record_safepoint_synchronized";
	}
	if (err)
		asprof_arguments_release(ret);
	return err;
}

char *asprof_arguments_word(const char *text, const char *name)
{
	size_t length = strlen(name), bytes = 0;
	const char *found = NULL;

	for (const char *word = text; *word; word += strcspn(word, ",")) {
		word += *word == ',';
		if (strncasecmp(word, name, length) != 0 || word[length] != '=')
			continue;
		found = word + length + 1;
		bytes = strcspn(found, ",");
	}
	return found && bytes ? strndup(found, bytes) : NULL;
}

bool asprof_arguments_has(const struct asprof_arguments *arguments, const char *feature)
{
	size_t length = strlen(feature);

	for (const char *at = arguments->features; at && *at; at += strspn(at, "+")) {
		size_t word = strcspn(at, "+");

		if (word == length && !memcmp(at, feature, length))
			return true;
		at += word;
	}
	return false;
}

void asprof_arguments_release(struct asprof_arguments *arguments)
{
	free(arguments->style.include.items);
	free(arguments->style.exclude.items);
	free(arguments->traces.items);
	free(arguments->text);
	*arguments = (struct asprof_arguments){0};
}
