/* SPDX-License-Identifier: MIT */
/* `duet record`, and its short form without the word. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/redact.h"
#include "cmd/cmd.h"
#include "cmd/outputs.h"
#include "cmd/record.h"
#include "cmd/style.h"
#include "collect/engines.h"
#include "collect/kernel/returns.h"
#include "duet_agent.h"
#include "event/event.h"
#include "jvms/flight_recording.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "session/session.h"
#include "subject/host.h"

#define DEFAULT_DURATION_NS (60 * NS_PER_SEC) /* async-profiler's default */
#define DEFAULT_WINDOW_NS (60 * NS_PER_SEC) /* gProfiler's default */
#define WINDOW_MIN_NS NS_PER_SEC
#define WINDOW_MAX_NS (86400 * NS_PER_SEC)
#define CONTINUOUS_MEMORY (128u << 20)
#define DAEMON_OVERHEAD 1.0 /* percent */
#define OF_SLEEPS "the time off CPU: add -e offcpu or -e wall"
#define COMMAND_LINE_MAX 400 /* bytes of the command line that go into the output */

/* ---- from what is given to what it means; each function reports its own errors ---- */

static bool has_event(struct options *options, const char *name)
{
	return event_list_find(&options->events, event_by_name(name));
}

/* Checks the options that are about an event's samples. */
static int check_events(struct options *options)
{
	const struct event_list *events = &options->events;
	const bool has_sleeps = event_list_has_sleeps(events), has_alloc = has_event(options, "alloc"),
		   has_live = has_event(options, "live");
	const struct {
		bool is_given, is_met;
		const char *word, *help;
	} rows[] = {
		{options->bpf.sleeps.least_ns || options->bpf.sleeps.most_ns, has_sleeps, "off-cpu", OF_SLEEPS},
		{options->given.sleep_hook, has_sleeps, "off-cpu-hook", OF_SLEEPS},
		{options->wakers, has_sleeps, "wakers", OF_SLEEPS},
		{options->holders, event_list_has_holders(events), "holders",
		 "waits for locks: add -e lock or -e nativelock"},
		{options->survivors, has_live, "survivors", "live objects: add --live"},
		{options->ages, has_live, "ages", "live objects: add --live"},
		{options->tlab, has_alloc, "tlab", "allocations: add -e alloc"},
		{options->alloc_native, has_alloc, "alloc-native", "allocations: add -e alloc"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].is_given && !rows[i].is_met)
			return log_refuse("--%s is about %s", rows[i].word, rows[i].help);
	options->wakers |= event_list_has_wakers(events);
	return 0;
}

static int set_engine(struct options *options)
{
	int engine = options->given.engine ? engine_by_name(options->given.engine) : (int)options->engine;
	BUF(names);

	if (engine >= 0) {
		options->engine = (enum session_engine)engine;
		return 0;
	}
	engine_names(&names);
	return log_refuse("unknown engine '%s': %s; `duet check` says which can run here", options->given.engine,
			  names.data);
}

static bool is_set(const struct options *options, const struct record_of_bpf *row)
{
	static const char zeros[sizeof(uint64_t)];

	return memcmp((const char *)options + row->offset, zeros, row->bytes) != 0;
}

/* Checks the options that only the bpf engine has. */
static int check_of_bpf(struct options *options, const struct engine *engine)
{
	int err = 0;

	for (const struct record_of_bpf *row = record_of_bpf; !err && row->word; row++) {
		BUF(why);

		if (!is_set(options, row))
			continue;
		options->needs_bpf |= row->without == RECORD_REFUSED;
		if (!engine->standalone)
			continue;
		err = row->without == RECORD_LESS ? 0 : -EINVAL;
		buf_printf(&why, row->why, engine->name);
		log_print(err ? LOG_ERROR : LOG_INFO, "--%s needs the bpf engine%s", row->word, why.data);
	}
	return err;
}

static int check_engine(struct options *options)
{
	const struct engine *engine = &engines[options->engine];
	int err = check_of_bpf(options, engine);

	if (err < 0)
		return err;
	for (size_t i = 0; options->agent == AGENT_NEVER && i < options->events.len; i++)
		if (!event_has_ticks(options->events.items[i].event) &&
		    !(options->tlab && options->events.items[i].event == event_by_name("alloc")))
			return log_refuse("--agent never: %s comes from the agent in the JVM",
					  options->events.items[i].event->name);
	if (!engine_takes(options->engine, &options->events))
		return log_refuse(
			"-e: engine %s samples cpu, wall, offcpu%s, and events that the JVM reports; others need bpf",
			engine->name, engine->counts ? " or page-faults" : "");
	if (engine->standalone && (options->host || options->agent == AGENT_NEVER))
		return log_refuse("%s needs the bpf engine: engine %s sees only JVMs with an agent",
				  options->agent == AGENT_NEVER ? "--agent never"
				  : options->cgroup		? "--cgroup"
				  : options->container		? "--container"
				  : options->comm		? "--comm"
								: "--host",
				  engine->name);
	return 0;
}

/* Looks only in /etc/passwd: name services may use the network. Returns 0 or -ENOENT. */
static int find_user(const char *name, uid_t *ret_uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *user;
	int err = -ENOENT;

	while (file && err < 0 && (user = fgetpwent(file)))
		if (!strcmp(user->pw_name, name)) {
			*ret_uid = user->pw_uid;
			err = 0;
		}
	if (file)
		fclose(file);
	return err;
}

/* Returns 0, or 1 if the pattern is not about a user, or -EINVAL after reporting the error. */
static int parse_user(const char *pattern, uid_t *ret_uid)
{
	unsigned long id;
	char *end;

	if (!strncmp(pattern, "user:", strlen("user:")) && find_user(pattern + strlen("user:"), ret_uid) < 0)
		return log_refuse(
			"--leave-alone: no user '%s' in /etc/passwd: give uid:N for a user of another name service",
			pattern + strlen("user:"));
	if (strncmp(pattern, "uid:", strlen("uid:")) != 0)
		return strncmp(pattern, "user:", strlen("user:")) != 0;
	pattern += strlen("uid:");
	errno = 0;
	id = strtoul(pattern, &end, 10);
	if (errno || !isdigit((unsigned char)*pattern) || *end || id >= UINT32_MAX)
		return log_refuse("--leave-alone: '%s' is not a user's number: uid:1000", pattern);
	*ret_uid = (uid_t)id;
	return 0;
}

static int set_leave_alone(struct options *options)
{
	if (options->leave_alone.patterns.len && !options->host)
		return log_refuse("--leave-alone is for --host, --cgroup, --container and --comm: "
				  "-p and -- CMD always profile their target");
	for (size_t i = 0; i < options->leave_alone.patterns.len; i++) {
		uid_t uid;
		int err = parse_user(options->leave_alone.patterns.items[i], &uid);

		if (!err)
			err = vec_push(&options->leave_alone.users, uid);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Lengthens intervals that are too short for --max-overhead. */
static int slow_clocks(struct options *options)
{
	for (size_t i = 0; options->max_overhead > 0 && i < options->events.len; i++) {
		struct event_spec *spec = &options->events.items[i];

		if (!spec->event->perf.is_clock || spec->interval >= OVERHEAD_TICK_MIN_NS)
			continue;
		log_info("the interval is 1 ms: --max-overhead allows none shorter");
		spec->interval = OVERHEAD_TICK_MIN_NS;
	}
	return 0;
}

static int set_memory(struct options *options)
{
	BUF(asked);

	if (options->given.continuous && !options->max_memory)
		options->max_memory = CONTINUOUS_MEMORY;
	if (!options->max_memory || options->max_memory >= BUDGET_MIN_BYTES)
		return 0;
	event_amount_text(EVENT_BYTES, options->max_memory, &asked);
	return log_refuse("--max-memory: %s is too little, at least %um are needed", asked.data,
			  BUDGET_MIN_BYTES >> 20);
}

/* Other formats cannot hold a sample that stands for several, or are written at the end. */
static int check_file_limit(struct options *options)
{
	bool is_duet = options->outputs.len && !options->window_ns;

	for (size_t i = 0; i < options->outputs.len; i++)
		is_duet &= !strcmp(options->outputs.items[i].writer->name, "duet");
	if (options->max_file && !is_duet)
		return log_refuse("--max-file is for one recording of the format duet: add -o duet");
	if (options->max_file && options->max_file < RECORD_FILE_MIN_BYTES)
		return log_refuse("--max-file: at least %uk are needed", RECORD_FILE_MIN_BYTES >> 10);
	return 0;
}

static int set_pairing(struct options *options)
{
	if (!options->given.pairing || !strcmp(options->given.pairing, "auto"))
		return 0;
	options->interval_pairing = !strcmp(options->given.pairing, "interval");
	if (options->interval_pairing)
		return 0;
	return log_refuse("unknown pairing '%s': auto or interval", options->given.pairing);
}

static int set_sleep_hook(struct options *options)
{
	const char *name = options->given.sleep_hook;

	if (!name || !strcmp(name, "auto"))
		return 0;
	options->sleep_hook = return_by_name(name);
	if (options->sleep_hook)
		return 0;
	return log_refuse("unknown hook '%s': `duet check` lists them", name);
}

/* Returns the index of the word, or -EINVAL. */
static int find_word(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(word, words[i]))
			return (int)i;
	return -EINVAL;
}

static int set_agent(struct options *options)
{
	static const char *const words[] = {
		[AGENT_ALWAYS] = "always",
		[AGENT_NEEDED] = "needed",
		[AGENT_NEVER] = "never",
	};
	const char *word = options->given.agent;
	int policy;

	if (!word)
		word = words[options->given.no_attach ? AGENT_NEVER : AGENT_NEEDED];
	policy = find_word(word, words, sizeof(words) / sizeof(*words));
	if (options->given.no_attach && policy != AGENT_NEVER)
		return log_refuse("--no-attach is --agent never: leave out --agent %s", word);
	if (policy < 0)
		return log_refuse("unknown --agent '%s': needed, always or never", word);
	options->agent = (enum agent_policy)policy;
	return 0;
}

static int set_signals(struct options *options)
{
	static const char *const words[] = {
		[DUET_SIGNALS_ALWAYS] = "always",
		[DUET_SIGNALS_NEEDED] = "needed",
		[DUET_SIGNALS_NEVER] = "never",
	};
	const char *word = options->given.signals ? options->given.signals : words[DUET_SIGNALS_NEEDED];
	int signals = find_word(word, words, sizeof(words) / sizeof(*words));

	if (signals < 0)
		return log_refuse("unknown --signals '%s': needed, always or never", word);
	options->bpf.signals = (uint32_t)signals;
	if (!options->given.signals || signals == DUET_SIGNALS_ALWAYS || !engines[options->engine].standalone)
		return 0;
	return log_refuse("--signals %s needs the bpf engine: engine %s always uses signals", word,
			  engines[options->engine].name);
}

/* Profiles of other users' processes are private: users who can list the folder must not be able to read them. */
static int set_access(struct options *options)
{
	struct io_access *access = &options->folder.access;

	*access = (struct io_access){.is_private = options->host || options->usages_ns, .group = IO_NO_GROUP};
	if (!options->given.group)
		return 0;
	if (options->host)
		return outputs_find_group(options->given.group, &access->group);
	return log_refuse(
		"--group is for --host, --cgroup, --container and --comm: the umask decides about other files");
}

static int set_windows(struct options *options)
{
	if (!options->given.continuous) {
		if (!options->window_ns && !options->folder.keep_files && !options->folder.keep_age_ns &&
		    !options->folder.keep_bytes)
			return 0;
		return log_refuse("--window and --keep-… are for --continuous");
	}
	if (!options->window_ns)
		options->window_ns = DEFAULT_WINDOW_NS;
	if (options->window_ns >= WINDOW_MIN_NS && options->window_ns <= WINDOW_MAX_NS)
		return 0;
	return log_refuse("--window: 1s to 1d are accepted");
}

static bool has_jfr_file(const struct options *options)
{
	for (size_t i = 0; i < options->outputs.len; i++)
		if (!strcmp(options->outputs.items[i].writer->name, "jfr") && options->outputs.items[i].file)
			return true;
	return false;
}

static bool has_usages(const struct options *options)
{
	for (size_t i = 0; i < options->outputs.len; i++)
		if (options->outputs.items[i].writer->has_usages)
			return true;
	return false;
}

/* What processes use. */
static int check_usages(struct options *options)
{
	if (!options->usages_ns)
		return 0;
	if (options->usages_ns < CENSUS_INTERVAL_MIN_NS)
		return log_refuse("--proc: 100ms and more are accepted");
	if (!has_usages(options))
		return log_refuse("--proc is for the formats duet, jfr and text: add -o or -f with one of them");
	return 0;
}

/* The JVM's own recorder has what belongs to the machine and the JVM, unless --jfropts divides it. */
static int set_jfr(struct options *options)
{
	options->style.jfr.without = options->given.jfropts & WRITER_WITHOUT_ALL;
	if (options->jfrsync && !options->given.jfropts)
		options->style.jfr.without = flight_recording_has(options->jfrsync);
	if (!options->jfrsync || (options->pids.len == 1 && !options->window_ns && has_jfr_file(options)))
		return 0;
	return log_refuse("--jfrsync is for one JVM and a JFR file: -p PID -f FILE.jfr");
}

static int set_style(struct options *options)
{
	/* the writer cuts stacks to the depth, because it decides which end is kept */
	options->java_depth = options->given.depth > DUET_MAX_USER_STACK ? DUET_MAX_JAVA_DEPTH : DUET_JAVA_DEPTH;
	style_set_depth(&options->style, options->given.depth);
	return style_set(&options->style, options->given.by);
}

static int set_duration(struct options *options)
{
	if (!options->duration_ns && !options->command && !options->given.continuous)
		options->duration_ns = DEFAULT_DURATION_NS;
	return 0;
}

int record_options_finish(struct options *options, const struct command_words *words)
{
	/* Each sets or checks one thing. They are called in this order: a check comes after what it looks at. */
	static int (*const steps[])(struct options * options) = {
		set_duration, set_engine,   record_events_set, check_events,	 set_sleep_hook,
		set_agent,    check_engine, set_leave_alone,   slow_clocks,	 set_memory,
		set_pairing,  set_style,    set_signals,       set_windows,	 set_access,
		outputs_set,  check_usages, set_jfr,	       check_file_limit,
	};
	int err = record_targets_set(options, words);

	for (size_t i = 0; !err && i < sizeof(steps) / sizeof(*steps); i++)
		err = steps[i](options);
	return err;
}

/* The command line for the output's facts, cut so that a long list of files does not hide the other facts. */
static void join_words(struct buf *line, int argc, char **argv)
{
	bool is_cut = false;
	BUF(words);

	buf_add(&words, "duet", sizeof("duet"));
	for (int i = 0; i < argc && !is_cut; i++) {
		is_cut = words.len + strlen(argv[i]) > COMMAND_LINE_MAX;
		buf_add(&words, argv[i], is_cut ? 0 : strlen(argv[i]) + 1);
	}
	redact_arguments(words.data, words.len, line);
	buf_add_str(line, is_cut ? " …" : "");
}

/* ---- the struct ---- */

void record_options_init(struct options *options)
{
	memset(options, 0, sizeof(*options));
	writer_options_default(&options->style);
}

void record_options_unfinish(struct options *options)
{
	outputs_release(options);
	vec_release(&options->leave_alone.users);
	vec_release(&options->pids);
}

void record_options_release(struct options *options)
{
	record_options_unfinish(options);
	free(options->given.pids.items);
	free(options->given.events.items);
	free(options->given.files.items);
	free(options->given.traces.items);
	free(options->leave_alone.patterns.items);
	style_release(&options->style);
}

const struct opt *record_option(const char *word)
{
	return opt_by_word(record_rows, word);
}

int record_options_set(struct options *options, const char *word, const char *value, struct buf *why)
{
	const struct opt *row = record_option(word);

	if (!row || !(row->scope & OPT_NOT_CONFIG))
		return opt_set(record_rows, word, value, options, why);
	return buf_explain(why, -EINVAL,
			  "'%s' is not allowed in a configuration: the daemon profiles the host until it is stopped",
			  word);
}

int record_options_finish_daemon(struct options *options)
{
	options->given.continuous = true;
	options->host = !options->cgroup && !options->container && !options->comm;
	if (!(options->max_overhead > 0))
		options->max_overhead = DAEMON_OVERHEAD;
	return record_options_finish(options, &(struct command_words){.dashdash = -1});
}

/* ---- the command ---- */

static void init(void *options)
{
	record_options_init(options);
}

static void release(void *options)
{
	record_options_release(options);
}

static int run(void *context, const struct command_words *words)
{
	struct options *options = context;
	BUF(line);
	int code = 2;

	if (options->given.verbose)
		log_set_level(LOG_DEBUG);
	if (!record_options_finish(options, words)) {
		join_words(&line, words->argc, words->argv);
		options->command_line = line.data;
		code = session_run(options);
	}
	return code;
}

const struct command cmd_record = {
	.name = "record",
	.summary = "profile processes: duet record -p PID -d 30 -f out.html",
	.usage = "duet record [OPTIONS] (-p PID|NAME[,…] | --host | --cgroup PATH |\n"
		 "                              --container ID|NAME | --comm NAME | -- CMD [ARGS…])\n"
		 "       duet [OPTIONS] PID|NAME    NAME: the jar or main class that a JVM runs\n",
	.examples = "  duet -d 10 -f out.html PID                        a flame graph of one process, ten seconds\n"
		    "  duet record --host -e cpu,offcpu -f host.html     the whole host, running and waiting\n"
		    "  duet record -f start.html -- java -jar app.jar    a program from its first instruction\n",
	.rows = record_rows,
	.options_bytes = sizeof(struct options),
	.most_words = INT_MAX,
	.explain = record_targets_lack_dashes,
	.init = init,
	.release = release,
	.run = run,
};
