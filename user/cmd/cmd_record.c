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
#include "cmd/cmd.h"
#include "cmd/outputs.h"
#include "cmd/record.h"
#include "cmd/record_events.h"
#include "cmd/record_rows.h"
#include "cmd/record_targets.h"
#include "cmd/style.h"
#include "collect/kernel/returns.h"
#include "duet_agent.h"
#include "event/event.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "session/session.h"
#include "subject/census.h"

#define DEFAULT_DURATION_NS (60 * NS_PER_SEC) /* async-profiler's default */
#define DEFAULT_WINDOW_NS (60 * NS_PER_SEC) /* gProfiler's default */
#define WINDOW_MIN_NS NS_PER_SEC
#define WINDOW_MAX_NS (86400 * NS_PER_SEC)
#define CONTINUOUS_MEMORY (128u << 20)
#define DAEMON_OVERHEAD 1.0 /* percent */
#define COMMAND_LINE_MAX 400 /* bytes of the command line that go into the output */

/* ---- from the command line to the session's options; each function reports its own errors ---- */

/* Checks the options that need an off-CPU event. */
static int set_sleeps(struct session_options *session, const struct record_options *options)
{
	bool has_range = options->off_cpu.least_ns || options->off_cpu.most_ns;
	const char *word = has_range ? "--off-cpu" : options->sleep_hook ? "--off-cpu-hook" : "--wakers";

	session->wakers = options->wakers || event_list_has_wakers(&session->events);
	session->least_sleep_ns = options->off_cpu.least_ns;
	session->most_sleep_ns = options->off_cpu.most_ns;
	if ((!session->wakers && !has_range && !options->sleep_hook) || event_list_has_sleeps(&session->events))
		return 0;
	log_error("%s is about the time off CPU: add -e offcpu or -e wall", word);
	return -EINVAL;
}

/* Checks --holders, which needs an event of locks. */
static int set_locks(struct session_options *session, const struct record_options *options)
{
	session->holders = options->holders;
	if (!options->holders || event_list_has_holders(&session->events))
		return 0;
	log_error("--holders is about waits for locks: add -e lock or -e nativelock");
	return -EINVAL;
}

/* Checks the options that need the event live. */
static int set_live(struct session_options *session, const struct record_options *options)
{
	session->survivors = options->survivors;
	session->ages = options->ages;
	if ((!options->survivors && !options->ages) || event_list_find(&session->events, event_by_name("live")))
		return 0;
	log_error("%s is about live objects: add --live", options->survivors ? "--survivors" : "--ages");
	return -EINVAL;
}

static int set_alloc(struct session_options *session, const struct record_options *options)
{
	session->tlab = options->tlab;
	session->alloc_native = options->alloc_native;
	if ((!options->tlab && !options->alloc_native) || event_list_find(&session->events, event_by_name("alloc")))
		return 0;
	log_error("--%s is about allocations: add -e alloc", options->tlab ? "tlab" : "alloc-native");
	return -EINVAL;
}

static int set_engine(struct session_options *session, const struct record_options *options)
{
	int engine = options->engine ? engine_by_name(options->engine) : (int)session->engine;
	struct buf names;

	if (engine >= 0) {
		session->engine = (enum session_engine)engine;
		return 0;
	}
	buf_init(&names);
	engine_names(&names);
	log_error("unknown engine '%s': %s; `duet check` says which can run here", options->engine, names.data);
	buf_release(&names);
	return -EINVAL;
}

static int check_engine(struct session_options *session, const struct record_options *options)
{
	const struct engine *engine = &engines[session->engine];
	const char *of_bpf = options->cpus	 ? "--record-cpu"
			     : options->only_cpu ? "--target-cpu"
			     : options->policies ? "--sched"
						 : NULL;

	if (engine->standalone && of_bpf) {
		log_error("%s needs the bpf engine: samples of engine %s have no CPU and no policy", of_bpf,
			  engine->name);
		return -EINVAL;
	}

	if (engine->standalone && options->receivers)
		log_info("--receivers needs the bpf engine: with %s, no class comes above vtable stubs", engine->name);
	if (engine->standalone && session->holders) {
		log_error("--holders needs the bpf engine: engine %s does not see who releases a lock", engine->name);
		return -EINVAL;
	}
	if (engine->standalone && session->tlab) {
		log_error("--tlab needs the bpf engine, which sets probes in HotSpot: engine %s cannot", engine->name);
		return -EINVAL;
	}
	if (engine->standalone && session->max_overhead > 0) {
		log_error("--max-overhead needs the bpf engine: engine %s cannot change its rate", engine->name);
		return -EINVAL;
	}
	for (size_t i = 0; session->agent == AGENT_NEVER && i < session->events.len; i++)
		if (!event_has_ticks(session->events.items[i].event) &&
		    !(session->tlab && session->events.items[i].event == event_by_name("alloc"))) {
			log_error("--agent never: %s comes from the agent in the JVM",
				  session->events.items[i].event->name);
			return -EINVAL;
		}
	if (!engine_takes(session->engine, &session->events)) {
		log_error("-e: engine %s samples cpu%s, and events that the JVM reports; others need the bpf engine",
			  engine->name, engine->counts ? " or page-faults" : "");
		return -EINVAL;
	}
	if (engine->standalone && (session->host || session->agent == AGENT_NEVER)) {
		log_error("%s needs the bpf engine: engine %s sees only JVMs with an agent",
			  session->agent == AGENT_NEVER ? "--agent never"
			  : session->cgroup		? "--cgroup"
			  : session->container		? "--container"
			  : session->comm		? "--comm"
							: "--host",
			  engine->name);
		return -EINVAL;
	}
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

	if (!strncmp(pattern, "user:", strlen("user:")) && find_user(pattern + strlen("user:"), ret_uid) < 0) {
		log_error("--leave-alone: no user '%s' in /etc/passwd: give uid:N for a user of another name service",
			  pattern + strlen("user:"));
		return -EINVAL;
	}
	if (strncmp(pattern, "uid:", strlen("uid:")) != 0)
		return strncmp(pattern, "user:", strlen("user:")) != 0;
	pattern += strlen("uid:");
	errno = 0;
	id = strtoul(pattern, &end, 10);
	if (errno || !isdigit((unsigned char)*pattern) || *end || id >= UINT32_MAX) {
		log_error("--leave-alone: '%s' is not a user's number: uid:1000", pattern);
		return -EINVAL;
	}
	*ret_uid = (uid_t)id;
	return 0;
}

static int set_leave_alone(struct session_options *session, const struct record_options *options)
{
	session->leave_alone.patterns = options->leave_alone;
	if (options->leave_alone.len && !session->host) {
		log_error("--leave-alone is for --host, --cgroup, --container and --comm: "
			  "-p and -- CMD always profile their target");
		return -EINVAL;
	}
	for (size_t i = 0; i < options->leave_alone.len; i++) {
		uid_t uid;
		int err = parse_user(options->leave_alone.items[i], &uid);

		if (!err)
			err = vec_push(&session->leave_alone.users, uid);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Lengthens intervals that are too short for --max-overhead. */
static int slow_clocks(struct session_options *session, const struct record_options *options)
{
	for (size_t i = 0; options->max_overhead > 0 && i < session->events.len; i++) {
		struct event_spec *spec = &session->events.items[i];

		if (!spec->event->perf.is_clock || spec->interval >= OVERHEAD_TICK_MIN_NS)
			continue;
		log_info("the interval is 1 ms: --max-overhead allows none shorter");
		spec->interval = OVERHEAD_TICK_MIN_NS;
	}
	return 0;
}

static int set_memory(struct session_options *session, const struct record_options *options)
{
	struct buf asked;

	session->max_memory = options->max_memory;
	if (options->continuous && !options->max_memory)
		session->max_memory = CONTINUOUS_MEMORY;
	if (!session->max_memory || session->max_memory >= BUDGET_MIN_BYTES)
		return 0;
	buf_init(&asked);
	event_amount_text(EVENT_BYTES, session->max_memory, &asked);
	log_error("--max-memory: %s is too little, at least %um are needed", asked.data, BUDGET_MIN_BYTES >> 20);
	buf_release(&asked);
	return -EINVAL;
}

/* Other formats cannot hold a sample that stands for several, or are written at the end. */
static int set_file_limit(struct session_options *session, const struct record_options *options)
{
	bool is_duet = session->outputs.len && !session->window_ns;

	session->max_file = options->max_file;
	for (size_t i = 0; i < session->outputs.len; i++)
		is_duet &= !strcmp(session->outputs.items[i].writer->name, "duet");
	if (session->max_file && !is_duet)
		log_error("--max-file is for one recording of the format duet: add -o duet");
	else if (session->max_file && session->max_file < RECORD_FILE_MIN_BYTES)
		log_error("--max-file: at least %uk are needed", RECORD_FILE_MIN_BYTES >> 10);
	else
		return 0;
	return -EINVAL;
}

/* The writer cuts stacks to the depth, because it decides which end is kept. */
static void set_depth(struct session_options *session, const struct record_options *options)
{
	session->java_depth = options->depth > DUET_MAX_USER_STACK ? DUET_MAX_JAVA_DEPTH : DUET_JAVA_DEPTH;
	style_set_depth(&session->style, options->depth);
}

static int set_pairing(struct session_options *session, const struct record_options *options)
{
	if (!options->pairing || !strcmp(options->pairing, "auto"))
		return 0;
	session->interval_pairing = !strcmp(options->pairing, "interval");
	if (session->interval_pairing)
		return 0;
	log_error("unknown pairing '%s': auto or interval", options->pairing);
	return -EINVAL;
}

static int set_sleep_hook(struct session_options *session, const struct record_options *options)
{
	const char *name = options->sleep_hook;

	if (!name || !strcmp(name, "auto"))
		return 0;
	session->sleep_hook = return_by_name(name);
	if (session->sleep_hook)
		return 0;
	log_error("unknown hook '%s': `duet check` lists them", name);
	return -EINVAL;
}

static int set_agent(struct session_options *session, const struct record_options *options)
{
	static const char *const words[] = {
		[AGENT_ALWAYS] = "always",
		[AGENT_NEEDED] = "needed",
		[AGENT_NEVER] = "never",
	};
	const char *word = options->agent;

	if (options->no_attach && word && strcmp(word, words[AGENT_NEVER]) != 0) {
		log_error("--no-attach is --agent never: leave out --agent %s", word);
		return -EINVAL;
	}
	if (!word)
		word = words[options->no_attach ? AGENT_NEVER : AGENT_NEEDED];
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(word, words[i]))
			continue;
		session->agent = (enum agent_policy)i;
		return 0;
	}
	log_error("unknown --agent '%s': needed, always or never", word);
	return -EINVAL;
}

static int set_signals(struct session_options *session, const struct record_options *options)
{
	static const char *const words[] = {
		[DUET_SIGNALS_ALWAYS] = "always",
		[DUET_SIGNALS_NEEDED] = "needed",
		[DUET_SIGNALS_NEVER] = "never",
	};

	session->signals = DUET_SIGNALS_NEEDED;
	for (size_t i = 0; options->signals && i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(options->signals, words[i]))
			continue;
		session->signals = (enum duet_signals)i;
		if (session->signals == DUET_SIGNALS_ALWAYS || !engines[session->engine].standalone)
			return 0;
		log_error("--signals %s needs the bpf engine: engine %s always uses signals", words[i],
			  engines[session->engine].name);
		return -EINVAL;
	}
	if (!options->signals)
		return 0;
	log_error("unknown --signals '%s': needed, always or never", options->signals);
	return -EINVAL;
}

/* Profiles of other users' processes are private: users who can list the folder must not be able to read them. */
static int set_access(struct session_options *session, const struct record_options *options)
{
	struct io_access *access = &session->folder.access;

	*access = (struct io_access){.is_private = session->host || options->proc_ns, .group = IO_NO_GROUP};
	if (!options->group)
		return 0;
	if (session->host)
		return outputs_find_group(options->group, &access->group);
	log_error("--group is for --host, --cgroup, --container and --comm: the umask decides about other files");
	return -EINVAL;
}

static int set_windows(struct session_options *session, const struct record_options *options)
{
	if (!options->continuous) {
		if (!options->window_ns && !options->keep_files && !options->keep_age_ns && !options->keep_bytes)
			return 0;
		log_error("--window and --keep-… are for --continuous");
		return -EINVAL;
	}
	session->window_ns = options->window_ns ? options->window_ns : DEFAULT_WINDOW_NS;
	session->folder.keep_files = options->keep_files;
	session->folder.keep_age_ns = options->keep_age_ns;
	session->folder.keep_bytes = options->keep_bytes;
	if (session->window_ns >= WINDOW_MIN_NS && session->window_ns <= WINDOW_MAX_NS)
		return 0;
	log_error("--window: 1s to 1d are accepted");
	return -EINVAL;
}

static bool has_jfr_file(const struct session_options *session)
{
	for (size_t i = 0; i < session->outputs.len; i++)
		if (!strcmp(session->outputs.items[i].writer->name, "jfr") && session->outputs.items[i].file)
			return true;
	return false;
}

static bool has_usages(const struct session_options *session)
{
	for (size_t i = 0; i < session->outputs.len; i++)
		if (session->outputs.items[i].writer->has_usages)
			return true;
	return false;
}

/* What processes use. */
static int set_usages(struct session_options *session, const struct record_options *options)
{
	session->usages_ns = options->proc_ns;
	if (!options->proc_ns)
		return 0;
	if (options->proc_ns < CENSUS_INTERVAL_MIN_NS)
		log_error("--proc: 100ms and more are accepted");
	else if (!has_usages(session))
		log_error("--proc is for the formats duet, jfr and text: add -o or -f with one of them");
	else
		return 0;
	return -EINVAL;
}

/* The JVM's own recorder has what belongs to the machine and the JVM, unless --jfropts divides it. */
static int set_jfr(struct session_options *session, const struct record_options *options)
{
	session->jfrsync = options->jfrsync;
	session->style.jfr.without = options->jfropts & WRITER_WITHOUT_ALL;
	if (options->jfrsync && !options->jfropts)
		session->style.jfr.without = WRITER_WITHOUT_ALL;
	if (!options->jfrsync || (session->pids.len == 1 && !session->window_ns && has_jfr_file(session)))
		return 0;
	log_error("--jfrsync is for one JVM and a JFR file: -p PID -f FILE.jfr");
	return -EINVAL;
}

static int set_style(struct session_options *session, const struct record_options *options)
{
	session->style = options->style;
	set_depth(session, options);
	return style_set(&session->style, options->by);
}

static int set_outputs(struct session_options *session, const struct record_options *options)
{
	return outputs_set(session, &options->files, options->format);
}

static int set_duration(struct session_options *session, const struct record_options *options)
{
	session->duration_ns = options->duration_ns;
	if (!options->duration_ns && !session->command && !options->continuous)
		session->duration_ns = DEFAULT_DURATION_NS;
	return 0;
}

static void copy_values(struct session_options *session, const struct record_options *options)
{
	session->all_user = options->all_user;
	session->cpus = options->cpus;
	session->policies = options->policies;
	session->receivers = options->receivers;
	session->offsets = options->offsets;
	session->only_cpu = options->only_cpu;
	session->spark_names = options->spark_names;
	session->max_overhead = options->max_overhead;
	session->metrics = options->metrics;
}

typedef int (*session_setter)(struct session_options *session, const struct record_options *options);

/* Each sets or checks one thing. They are called in this order: a check comes after what it looks at. */
static const session_setter setters[] = {
	set_duration, record_events_set, set_sleeps, set_sleep_hook, set_locks,	      set_live,
	set_alloc,    set_engine,	 set_agent,  check_engine,   set_leave_alone, slow_clocks,
	set_memory,   set_pairing,	 set_style,  set_signals,    set_windows,     set_access,
	set_outputs,  set_usages,	 set_jfr,    set_file_limit,
};

static int fill_session(struct session_options *session, const struct record_options *options,
			const struct command_words *words)
{
	int err = record_targets_set(session, options, words);

	copy_values(session, options);
	for (size_t i = 0; !err && i < sizeof(setters) / sizeof(setters[0]); i++)
		err = setters[i](session, options);
	return err;
}

/* The command line for the output's facts, cut so that a long list of files does not hide the other facts. */
static void join_words(struct buf *line, int argc, char **argv)
{
	buf_add_str(line, "duet");
	for (int i = 0; i < argc; i++) {
		if (line->len + strlen(argv[i]) > COMMAND_LINE_MAX) {
			buf_add_str(line, " …");
			return;
		}
		buf_printf(line, " %s", argv[i]);
	}
}

void record_session_release(struct session_options *session)
{
	outputs_release(session);
	vec_release(&session->leave_alone.users);
	vec_release(&session->pids);
}

/* ---- the same options from a configuration ---- */

struct record_options *record_options_new(void)
{
	struct record_options *options = calloc(1, sizeof(*options));

	if (options)
		writer_options_default(&options->style);
	return options;
}

static void release_options(struct record_options *options)
{
	free(options->pids.items);
	free(options->events.items);
	free(options->files.items);
	free(options->leave_alone.items);
	free(options->traces.items);
	style_release(&options->style);
}

void record_options_free(struct record_options *options)
{
	if (options)
		release_options(options);
	free(options);
}

const struct opt *record_option(const char *word)
{
	return opt_by_word(record_rows, word);
}

int record_options_set(struct record_options *options, const char *word, const char *value, struct buf *why)
{
	const struct opt *row = record_option(word);

	if (!row || !(row->scope & OPT_NOT_CONFIG))
		return opt_set(record_rows, word, value, options, why);
	buf_printf(why, "'%s' is not allowed in a configuration: the daemon profiles the host until it is stopped",
		   word);
	return -EINVAL;
}

int record_options_fill(struct record_options *options, const char *folder, struct session_options *session)
{
	const char *only[] = {folder};
	struct record_options filled;

	options->continuous = true;
	options->host = !options->cgroup && !options->container && !options->comm;
	if (!(options->max_overhead > 0))
		options->max_overhead = DAEMON_OVERHEAD;
	filled = *options; /* a copy: a later line may still name a folder */
	if (!filled.files.len) {
		filled.files.items = only;
		filled.files.len = 1;
	}
	return fill_session(session, &filled, &(struct command_words){.dashdash = -1});
}

static void init(void *options)
{
	writer_options_default(&((struct record_options *)options)->style);
}

static void release(void *options)
{
	release_options(options);
}

static struct record_gate entrance; /* of record_behind_gate() */

static int run(void *context, const struct command_words *words)
{
	const struct record_options *options = context;
	struct session_options session = {0};
	struct buf line;
	int code = 2;

	buf_init(&line);
	join_words(&line, words->argc, words->argv);
	session.command_line = line.data;
	session.loaded_agent = entrance.control;
	session.await = entrance.await;
	session.await_context = entrance.context;
	session.as_called = entrance.await != NULL;
	if (options->verbose)
		log_set_level(LOG_DEBUG);
	if (!fill_session(&session, options, words))
		code = session_run(&session);
	record_session_release(&session);
	buf_release(&line);
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
	.options_bytes = sizeof(struct record_options),
	.most_words = INT_MAX,
	.explain = record_targets_lack_dashes,
	.init = init,
	.release = release,
	.run = run,
};

int record_behind_gate(int argc, char **argv, const struct record_gate *gate)
{
	entrance = *gate;
	return command_run(&cmd_record, argc, argv);
}
