/* SPDX-License-Identifier: MIT */
/* The command line of async-profiler's converter, jfrconv. */
#include "asprof/asprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "writers/writer.h"

/* One call of `duet convert` or `duet diff`. The words are owned; items[0] is the command's name. A vec. */
struct jfrconv_words {
	char **items;
	size_t len;
	size_t size;
};

/* What the command line asks for. Several inputs and a folder are a call each. */
struct jfrconv {
	bool help, is_diff;
	struct jfrconv_words options; /* in duet's words */
	struct vec(const char *) files;
	const char *format; /* -o; NULL: by the output's extension */
	bool has_event, is_leak;
	struct buf tail; /* percent, of --leak; empty: the whole time */
};

/* Times in milliseconds below this are distances from the start; async-profiler's converter has the same bound. */
#define EPOCH_MS 1500000000000ll

#define LEAK_TAIL "10" /* percent of the time, whose allocations may be in use still */

static const char usage[] =
	"Usage: jfrconv [OPTIONS] INPUT... [OUTPUT]\n"
	"The command line of async-profiler's converter, with duet converting. Inputs are JFR, .duet, collapsed,\n"
	"flame graphs, pprof or OTLP; several make one output, or one each if OUTPUT is a folder.\n"
	"\n"
	"  -o --output FORMAT    html, collapsed, pprof, pb.gz, heatmap, otlp, or another format of duet\n"
	"     --diff             BASE NEW [OUTPUT]: differential flame graph, html or collapsed\n"
	"     --cpu --cpu-time --wall --alloc --live --nativemem --leak --lock --nativelock --trace\n"
	"                        only samples of this event\n"
	"     --tail RATIO       of --leak: without the last part of the time (10%)\n"
	"  -t --threads          a frame for each thread\n"
	"     --classify         a frame for the kind of work\n"
	"     --total            weights instead of numbers of samples\n"
	"     --lines --bci --simple --norm --dot\n"
	"                        names of Java frames\n"
	"     --from --to TIME   milliseconds since the start, before the end (negative), or since 1970; or\n"
	"                        local time, hh:mm:ss or yyyy-MM-ddThh:mm:ss\n"
	"     --latency MS       only samples within spans and traced calls of this length or longer\n"
	"     --tag TEXT         only samples within spans with this tag\n"
	"  -s --state LIST       only threads in these states: runnable, sleeping, default; r, s and d will do\n"
	"  -I -X REGEX           only stacks with such a frame; none with it\n"
	"     --title TEXT, --minwidth PERCENT, --grain N, --skip N, --highlight REGEX, --tree\n"
	"  -r --reverse, -i --inverted\n"
	"                        of the flame graph\n";

enum value { VALUE_NONE, VALUE_TEXT, VALUE_TIME, VALUE_TAIL, VALUE_PERCENT, VALUE_COUNT, VALUE_LATENCY };

static const char events[] =
	"cpu cpu-time wall alloc live lock nativemem nativelock leak trace";

static const struct row {
	char letter;
	const char *word;
	enum value value;
} rows[] = {
	{'t', "threads", VALUE_NONE},  {0, "classify", VALUE_NONE},    {0, "total", VALUE_NONE},
	{0, "lines", VALUE_NONE},      {0, "bci", VALUE_NONE},	       {0, "simple", VALUE_NONE},
	{0, "norm", VALUE_NONE},       {0, "dot", VALUE_NONE},	       {'r', "reverse", VALUE_NONE},
	{'i', "inverted", VALUE_NONE}, {0, "title", VALUE_TEXT},       {'I', "include", VALUE_TEXT},
	{'X', "exclude", VALUE_TEXT},  {0, "highlight", VALUE_TEXT},   {'s', "state", VALUE_TEXT},
	{0, "tag", VALUE_TEXT},	       {0, "from", VALUE_TIME},	       {0, "to", VALUE_TIME},
	{0, "tail", VALUE_TAIL},       {0, "minwidth", VALUE_PERCENT}, {0, "grain", VALUE_COUNT},
	{0, "skip", VALUE_COUNT},      {0, "latency", VALUE_LATENCY},
};

static void release_words(struct jfrconv_words *words)
{
	for (size_t i = 0; i < words->len; i++)
		free(words->items[i]);
	vec_release(words);
}

__attribute__((format(printf, 2, 3))) static int add_word(struct jfrconv_words *words, const char *format, ...)
{
	BUF(text);
	va_list args;
	char *word;

	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	word = buf_detach(&text);
	if (word && !vec_push(words, word))
		return 0;
	free(word);
	return -ENOMEM;
}

/* As duet takes dates. Returns false if there is none. */
static bool add_utc(time_t time, struct buf *out)
{
	char text[32];
	struct tm tm;

	if (!gmtime_r(&time, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return false;
	buf_add_str(out, text);
	return true;
}

/* Local time of a date, or of today, in UTC, as duet takes it. Returns false if it is neither. */
static bool local_time(const char *value, struct buf *out)
{
	time_t now = time(NULL);
	struct tm tm;
	const char *end;

	if (!localtime_r(&now, &tm))
		return false;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	end = strptime(value, strchr(value, 'T') ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
	if (!end || (*end && *end != '.'))
		return false;
	tm.tm_isdst = -1;
	return add_utc(mktime(&tm), out);
}

static bool take_time(const char *value, struct buf *out)
{
	char *end;
	long long ms = strtoll(value, &end, 10);

	if (strchr(value, ':'))
		return local_time(value, out);
	if (end == value || *end)
		return false;
	if (ms < EPOCH_MS) {
		buf_printf(out, "%lldms", ms);
		return true;
	}
	return add_utc((time_t)(ms / 1000), out);
}

/* A part, as 0.1 or 10%. Nothing is appended for 0. */
static bool take_ratio(const char *value, double whole, struct buf *out)
{
	char *end;
	double ratio = strtod(value, &end);

	if (end == value || (*end && strcmp(end, "%")) || !(ratio >= 0) || ratio > 1e9)
		return false;
	if (!*end)
		ratio *= whole;
	if (ratio > 0)
		buf_printf(out, "%.6f", ratio);
	return true;
}

static bool take_count(const char *value, struct buf *out)
{
	char *end;
	double count = strtod(value, &end);

	if (end == value || *end || !(count >= 0) || count > 1e9)
		return false;
	if (count >= 1)
		buf_printf(out, "%.0f", count);
	return true;
}

/* Whole milliseconds. 0 are spans of any length. */
static bool take_latency(const char *value, struct buf *out)
{
	char *end;
	long long ms = strtoll(value, &end, 10);

	if (end == value || *end || ms < 0 || ms > INT32_MAX)
		return false;
	if (ms)
		buf_printf(out, "%lldms", ms);
	else
		buf_add_str(out, "1"); /* ns */
	return true;
}

static bool take_value(const struct row *row, const char *value, struct buf *out)
{
	switch (row->value) {
	case VALUE_TIME:
		return take_time(value, out);
	case VALUE_TAIL:
		return take_ratio(value, 100, out);
	case VALUE_PERCENT:
		return take_ratio(value, 1, out);
	case VALUE_COUNT:
		return take_count(value, out);
	case VALUE_LATENCY:
		return take_latency(value, out);
	default:
		buf_add_str(out, value);
		return true;
	}
}

static const struct row *find_row(const char *word)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (word[1] == '-' ? !strcmp(rows[i].word, word + 2)
				   : rows[i].letter && rows[i].letter == word[1] && !word[2])
			return &rows[i];
	return NULL;
}

/* Takes an option that is a row. `value` is the word behind it, or NULL. Returns the number of words, or -errno. */
static int take_row(struct jfrconv *j, const struct row *row, const char *value, struct buf *why)
{
	BUF(text);
	int err = 0;

	if (row->value != VALUE_NONE && !value)
		return buf_explain(why, -EINVAL, "--%s: a value is missing", row->word);
	if (row->value == VALUE_NONE)
		return add_word(&j->options, "--%s", row->word) ? -ENOMEM : 1;
	if (!take_value(row, value, &text))
		return buf_explain(why, -EINVAL, "--%s %s: the value is not understood", row->word, value);
	if (row->value == VALUE_TAIL) {
		buf_clear(&j->tail);
		buf_add_str(&j->tail, text.data);
		return 2;
	}
	if (text.len || row->value == VALUE_TEXT)
		err = add_word(&j->options, "--%s=%s", row->word, text.data);
	return err ? err : 2;
}

static int take_option(struct jfrconv *j, const char *word, const char *value, struct buf *why)
{
	const struct row *row = find_row(word);

	if (text_is_word(word, "-h --help"))
		return j->help = true;
	if (!strcmp(word, "--diff"))
		return j->is_diff = true;
	if (!strcmp(word, "--tree")) {
		j->format = "tree";
		return 1;
	}
	if (text_is_word(word, "-o --output") && value) {
		j->format = !strcmp(value, "pb") ? "pprof" : value;
		return 2;
	}
	if (row)
		return take_row(j, row, value, why);
	if (!strncmp(word, "--", 2) && text_is_word(word + 2, events)) {
		j->has_event = true;
		j->is_leak |= !strcmp(word + 2, "leak");
		return add_word(&j->options, "%s", word) ? -ENOMEM : 1;
	}
	return buf_explain(why, -EINVAL,
			  text_is_word(word, "-o --output") ? "%s: a value is missing" : "unknown option %s", word);
}

/* Returns 0, or -errno with one sentence in `why`. Call jfrconv_release() in both cases. */
static int jfrconv_parse(struct jfrconv *ret, int argc, char **argv, struct buf *why)
{
	int taken;

	*ret = (struct jfrconv){0};
	buf_init(&ret->tail);
	buf_add_str(&ret->tail, LEAK_TAIL);
	for (int i = 1; i < argc; i += taken) {
		if (argv[i][0] == '-' && argv[i][1])
			taken = take_option(ret, argv[i], i + 1 < argc ? argv[i + 1] : NULL, why);
		else
			taken = vec_push(&ret->files, argv[i]) ? -ENOMEM : 1;
		if (taken < 0)
			return taken;
	}
	ret->help |= !ret->files.len;
	return 0;
}

static void jfrconv_release(struct jfrconv *jfrconv)
{
	release_words(&jfrconv->options);
	vec_release(&jfrconv->files);
	buf_release(&jfrconv->tail);
}

/* "foo.jfr" becomes "FOLDER/foo.html". */
static void output_name(const struct jfrconv *j, const char *folder, const char *input, struct buf *out)
{
	const char *name = basename(input), *dot = strrchr(name, '.');
	const char *format =
		!j->format || !strcmp(j->format, "heatmap") || !strcmp(j->format, "tree") ? "html" : j->format;

	buf_printf(out, "%s/%.*s.%s%s", folder, dot ? (int)(dot - name) : (int)strlen(name), name,
		   j->is_diff ? "diff." : "", format);
}

static bool is_collapsed(const struct jfrconv *j, const char *output)
{
	return !strcmp(j->format ? j->format : writer_by_path(output)->name, "collapsed");
}

/*
 * Makes the words of a call. Without a word for an event, collapsed stacks are those of CPU time and wall clock, as
 * async-profiler's converter has them; other formats hold all events. It also says in collapsed stacks how code ran.
 */
static int compose(const struct jfrconv *j, char **inputs, size_t count, const char *output, struct jfrconv_words *ret)
{
	int err = add_word(ret, "%s", j->is_diff ? "diff" : "convert");

	for (size_t i = 0; !err && i < j->options.len; i++)
		err = add_word(ret, "%s", j->options.items[i]);
	if (!err && j->is_leak && j->tail.len)
		err = add_word(ret, "--tail=%s", j->tail.data);
	if (!err)
		err = add_word(ret, "--regex");
	if (!err && j->is_diff)
		err = add_word(ret, "--no-normalize");
	if (!err && j->is_diff) /* numbers of hidden classes are others in each run */
		err = add_word(ret, "--norm");
	if (!err && !j->has_event && is_collapsed(j, output))
		err = add_word(ret, "--execution");
	if (!err && !j->is_diff && is_collapsed(j, output))
		err = add_word(ret, "--ann");
	if (!err && (j->format || !strcmp(writer_by_path(output)->name, "text")))
		err = add_word(ret, "--output=%s", j->format ? j->format : "html");
	if (!err)
		err = add_word(ret, "--");
	for (size_t i = 0; !err && i < count; i++)
		err = add_word(ret, "%s", inputs[i]);
	return err ? err : add_word(ret, "%s", output);
}

static int call(const struct jfrconv *j, const char **inputs, size_t count, const char *output)
{
	struct jfrconv_words words = {0};
	int code = 1;

	if (compose(j, (char **)inputs, count, output, &words) < 0)
		log_error("out of memory");
	else
		code = command_run(j->is_diff ? &cmd_diff : &cmd_jfrconv, (int)words.len, words.items);
	release_words(&words);
	return code;
}

static int call_for_folder(const struct jfrconv *j, const char **inputs, size_t count, const char *folder)
{
	size_t each = j->is_diff ? 2 : 1;
	int code = 0;

	for (size_t i = 0; !code && i + each <= count; i += each) {
		BUF(output);

		output_name(j, folder, inputs[i + each - 1], &output);
		code = output.failed ? 1 : call(j, &inputs[i], each, output.data);
	}
	return code;
}

static int run(const struct jfrconv *j)
{
	size_t count = j->files.len, least = j->is_diff ? 2 : 1;
	const char **files = j->files.items;

	if (count < least || (j->is_diff && count > 3))
		return log_fail(2, "--diff takes two profiles and an output: jfrconv --diff BASE NEW [OUTPUT]");
	if (count == least)
		return call_for_folder(j, files, count, ".");
	if (folder_is(files[count - 1]))
		return call_for_folder(j, files, count - 1, files[count - 1]);
	return call(j, files, count - 1, files[count - 1]);
}

int jfrconv_main(int argc, char **argv)
{
	struct jfrconv jfrconv;
	BUF(why);
	int code = 0, err = jfrconv_parse(&jfrconv, argc, argv, &why);

	if (err < 0)
		code = log_fail(2, "%s", why.len ? why.data : strerror(-err));
	else if (jfrconv.help)
		fputs(usage, stdout);
	else
		code = run(&jfrconv);
	jfrconv_release(&jfrconv);
	return code;
}
