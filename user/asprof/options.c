/* SPDX-License-Identifier: MIT */
#include "asprof/asprof.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DURATION_S 60

const char asprof_usage[] =
	"Usage: asprof [ACTION] [OPTIONS] PID|NAME|jps\n"
	"The command line of async-profiler, with duet taking the samples.\n"
	"\n"
	"Actions:\n"
	"  collect           record for the duration, then report (default)\n"
	"  start, resume     begin to record; resume keeps what was recorded before\n"
	"  stop, dump        report, and stop or go on\n"
	"  check             print whether a start with these options would succeed\n"
	"  status, metrics   print whether a recording runs; its numbers\n"
	"  list              the events\n"
	"  load, jcmd, threaddump, dumpheap, inspectheap\n"
	"                    commands for the JVM; what follows PID is passed on\n"
	"\n"
	"Options:\n"
	"  -e EVENT          what to sample: cpu, alloc, lock, wall, ctimer, itimer, nativemem, page-faults …\n"
	"  -d SECONDS        how long (60)\n"
	"  -f FILE           file of the report; %p pid, %t time, %n number, %{VARIABLE}\n"
	"  -i N              interval: 10ms, 500us; of alloc 512k\n"
	"  -j DEPTH          most frames of a stack\n"
	"  -t                a frame for each thread\n"
	"  -s -g -a -l       names: simple, with signatures, annotated, with libraries\n"
	"  -n --dot          names without numbers that differ in each run; with dots\n"
	"  -o FORMAT         flat[=N], traces[=N], collapsed, flamegraph, tree, jfr, otlp\n"
	"  -I -X PATTERN     only stacks with such a frame; none with it\n"
	"  --alloc N, --lock TIME, --nativelock TIME, --wall TIME, --nativemem N, --live, --all\n"
	"                    events beside each other, for jfr\n"
	"  --total           weights instead of numbers of samples\n"
	"  --title TEXT, --minwidth PERCENT, --reverse, --inverted\n"
	"                    of the flame graph\n"
	"  --all-user        no kernel frames\n"
	"  --loop TIME       write a report each TIME; --timeout TIME: one\n"
	"  -v, -h            version; this text. asprof(1) has all options\n";

enum place { PLACE_FORMAT, PLACE_PARAMS, PLACE_NOWHERE };

struct row {
	const char *letter, *word; /* as they are typed; NULL for none */
	const char *argument; /* the recorder's word */
	enum place place;
	bool has_value;
	char separator; /* replaces a comma in the value; 0: no character does */
};

/* clang-format off */
static const struct row rows[] = {
	{"-e", "--event", "event", PLACE_PARAMS, true, 0},
	{"-i", "--interval", "interval", PLACE_PARAMS, true, 0},
	{"-j", "--jstackdepth", "jstackdepth", PLACE_PARAMS, true, 0},
	{"-t", "--threads", "threads", PLACE_FORMAT, false, 0},
	{"-s", "--simple", "simple", PLACE_FORMAT, false, 0},
	{"-n", "--norm", "norm", PLACE_FORMAT, false, 0},
	{"-g", "--sig", "sig", PLACE_FORMAT, false, 0},
	{"-a", "--ann", "ann", PLACE_FORMAT, false, 0},
	{"-l", "--lib", "lib", PLACE_FORMAT, false, 0},
	{"-I", "--include", "include", PLACE_FORMAT, true, 0},
	{"-X", "--exclude", "exclude", PLACE_FORMAT, true, 0},
	{"-L", "--log", "loglevel", PLACE_FORMAT, true, 0},
	{"-F", "--features", "features", PLACE_FORMAT, true, '+'},
	{NULL, "--filter", "filter", PLACE_FORMAT, true, ';'},
	{"-b", NULL, "framebuf", PLACE_PARAMS, true, 0}, /* 1.x */
	{NULL, "--all-kernel", "allkernel", PLACE_PARAMS, false, 0}, /* 1.x, 2.x */
	{NULL, "--sync-walk", NULL, PLACE_NOWHERE, false, 0}, /* 1.x */
	{NULL, "--call-graph", "cstack", PLACE_PARAMS, true, 0}, /* 2.x */
	{NULL, "--ratelimit", "ratelimit", PLACE_PARAMS, true, ';'},
	{NULL, "--all-user", "alluser", PLACE_PARAMS, false, 0},
	{NULL, "--jfrsync", "jfr,jfrsync", PLACE_FORMAT, true, 0},
	{NULL, "--jfropts", "jfr,jfropts", PLACE_FORMAT, true, 0},
	{NULL, "--safe-mode", "safemode", PLACE_PARAMS, true, 0}, /* 2.x */
	{NULL, "--libpath", NULL, PLACE_NOWHERE, true, 0}, /* there is no library to load */
	{NULL, "--lib", NULL, PLACE_NOWHERE, true, 0}, /* 2.x; its short form is -l */
	{NULL, "--fdtransfer", NULL, PLACE_NOWHERE, false, 0},
};

/* Those that are the recorder's word with "--" before it. */
static const struct {
	enum place place;
	bool has_value;
	const char *words;
} sames[] = {
	{PLACE_FORMAT, false, "dot reverse inverted samples total"},
	{PLACE_FORMAT, true, "width height minwidth"},
	{PLACE_PARAMS, true, "alloc nativemem lock nativelock wall trace chunksize chunktime cstack signal clock begin "
		"end target-cpu proc memlimit timeout loop"},
	{PLACE_PARAMS, false, "all live nobatch nofree nostop record-cpu sched tlab ttsp"},
};

static const char actions[] =
	"collect start resume stop dump check status metrics meminfo list load jcmd threaddump dumpheap "
	"inspectheap";
/* clang-format on */

static bool find_row(const char *word, struct row *ret)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*ret = rows[i];
		if ((ret->letter && !strcmp(ret->letter, word)) || (ret->word && !strcmp(ret->word, word)))
			return true;
	}
	for (size_t i = 0; i < sizeof(sames) / sizeof(sames[0]); i++) {
		*ret = (struct row){NULL, word, word + 2, sames[i].place, sames[i].has_value, 0};
		if (!strncmp(word, "--", 2) && text_is_word(word + 2, sames[i].words))
			return true;
	}
	return false;
}

/* The command's words become a list with commas. */
static void add_argument(struct buf *to, const struct row *row, const char *value)
{
	buf_printf(to, ",%s", row->argument);
	if (!value)
		return;
	buf_add_char(to, '=');
	for (; *value; value++)
		buf_add_char(to, *value == ',' && row->separator ? row->separator : *value);
}

/* A raw event "pmu/a,b/" contains commas. */
static void add_event(struct buf *to, const char *value)
{
	bool is_raw = *value && value[strlen(value) - 1] == '/';

	buf_add_str(to, ",event=");
	for (; *value; value++)
		buf_add_char(to, *value == ',' && is_raw ? ':' : *value);
}

/* As async-profiler does: a title may have commas, and is written into HTML. */
static void add_title(struct buf *to, const char *value)
{
	buf_add_str(to, ",title=");
	for (; *value; value++)
		if (strchr("&<>,", *value))
			buf_printf(to, "&#%d;", *value);
		else
			buf_add_char(to, *value);
}

static void take_row(struct asprof_options *options, const struct row *row, const char *value)
{
	if (row->place == PLACE_NOWHERE)
		return;
	if (!strcmp(row->argument, "event"))
		add_event(&options->params, value);
	else
		add_argument(row->place == PLACE_FORMAT ? &options->format : &options->params, row, value);
	if (!strcmp(row->argument, "timeout") || !strcmp(row->argument, "loop"))
		options->action = strcmp(options->action, "collect") ? options->action : "start";
}

static int take_value(struct asprof_options *options, const char *word, const char *value, struct buf *why)
{
	char *end;

	if (text_is_word(word, "-f --file"))
		options->file = *value ? value : NULL;
	else if (text_is_word(word, "-o --output"))
		buf_printf(&options->format, ",%s", value);
	else if (!strcmp(word, "--title"))
		add_title(&options->format, value);
	else {
		options->duration_s = strtoull(value, &end, 10);
		if (!isdigit((unsigned char)*value) || (*end && strcmp(end, "s")))
			return buf_explain(why, -EINVAL, "Invalid duration: %s", value);
	}
	return 0;
}

/* Returns how many words were used, or -EINVAL with one sentence in `why`. */
static int take_option(struct asprof_options *options, char **words, int count, struct buf *why)
{
	struct row row;
	bool is_row = find_row(words[0], &row);
	bool is_own = text_is_word(words[0], "-f --file -o --output -d --duration --title");
	int err = 0;

	if (text_is_word(words[0], "-h --help"))
		return options->help = true;
	if (text_is_word(words[0], "-v --version"))
		return options->version = true;
	if (!is_row && !is_own)
		return buf_explain(why, -EINVAL, "Unrecognized option: %s", words[0]);
	if ((is_own || row.has_value) && count < 2)
		return buf_explain(why, -EINVAL, "Missing required parameter");
	if (is_own)
		err = take_value(options, words[0], words[1], why);
	else
		take_row(options, &row, row.has_value ? words[1] : NULL);
	return err ? err : 1 + (is_own || row.has_value);
}

/* After the process, all words belong to the command that is passed on. */
static bool passes_on(const struct asprof_options *options)
{
	return options->target && text_is_word(options->action, "load jcmd threaddump dumpheap inspectheap");
}

static int take_word(struct asprof_options *options, char *word, bool is_last, struct buf *why)
{
	if (text_is_word(word, actions))
		options->action = word;
	else if (!options->target && (isdigit((unsigned char)*word) || !strcmp(word, "jps") || is_last))
		options->target = word;
	else
		return buf_explain(why, -EINVAL, "Unrecognized option: %s", word);
	return 1;
}

int asprof_options_parse(struct asprof_options *ret, int argc, char **argv, struct buf *why)
{
	int taken;

	*ret = (struct asprof_options){.action = "collect", .duration_s = DURATION_S};
	buf_init(&ret->format);
	buf_init(&ret->params);
	for (int i = 1; i < argc; i += taken) {
		if (passes_on(ret)) {
			ret->words = argv + i;
			ret->word_count = argc - i;
			return 0;
		}
		if (argv[i][0] == '-' && argv[i][1])
			taken = take_option(ret, argv + i, argc - i, why);
		else
			taken = take_word(ret, argv[i], i == argc - 1, why);
		if (taken < 0)
			return taken;
	}
	return 0;
}

void asprof_options_release(struct asprof_options *options)
{
	buf_release(&options->format);
	buf_release(&options->params);
}
