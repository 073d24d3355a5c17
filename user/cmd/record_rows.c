/* SPDX-License-Identifier: MIT */
#include "cmd/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/style.h"
#include "collect/engines.h"
#include "collect/kernel/returns.h"
#include "event/event.h"

#define CPUS_MAX 8192 /* the kernel can have no more (NR_CPUS) */

#define FIELD(name) .offset = offsetof(struct options, name)

static void event_names(struct buf *out)
{
	for (size_t i = 0; event_table[i]; i++)
		buf_printf(out, "%s\n", event_table[i]->name);
}

static int opt_event(void *field, const char *value, struct buf *why)
{
	*(const char **)field = value ? value : "";
	return 0;
}

static const char *interval_word(const struct event *event)
{
	if (event->option == EVENT_SWITCH)
		return NULL;
	return event->unit == EVENT_NS ? "TIME" : event->unit == EVENT_BYTES ? "SIZE" : "N";
}

/* A row for each event that has an option. */
static const struct opt *event_rows(void)
{
	static struct opt rows[OPTIONS_EVENTS + 1]; /* the last is OPT_END */
	struct opt *row = rows;

	if (rows[0].word)
		return rows;
	for (size_t i = 0; event_table[i] && i < OPTIONS_EVENTS; i++) {
		const struct event *event = event_table[i];

		if (event->option)
			*row++ = (struct opt){.word = event->name,
					      .value = interval_word(event),
					      .help = event->help,
					      .parse = opt_event,
					      .offset = offsetof(struct options, given.event_options) +
							i * sizeof(const char *)};
	}
	return rows;
}

static void engine_choices(struct buf *out)
{
	for (size_t i = 0; engines[i].name; i++)
		buf_printf(out, "%s\n", engines[i].name);
}

static int opt_freq(void *field, const char *value, struct buf *why)
{
	return opt_u32_up_to((uint32_t)(NS_PER_SEC / event_table[0]->least_interval), field, value, why);
}

/* [struct duet_range] "1ms..10s"; either end may be left out. */
static int opt_range(void *field, const char *value, struct buf *why)
{
	const char *dots = strstr(value, "..");
	struct duet_range range = {0};
	char least[32] = "";
	int err = 0;

	if (!dots || (size_t)(dots - value) >= sizeof(least) || (dots == value && !dots[2]))
		return buf_explain(why, -EINVAL,
				  "the least and the longest length are accepted, or one of them: "
				  "1ms..10s, 5ms.., ..1s");
	memcpy(least, value, (size_t)(dots - value));
	if (*least)
		err = opt_interval(&range.least_ns, least, why);
	if (!err && dots[2])
		err = opt_interval(&range.most_ns, dots + 2, why);
	if (err)
		return err;
	if (range.most_ns && range.most_ns < range.least_ns)
		return buf_explain(why, -EINVAL, "the first length is longer than the second one");
	*(struct duet_range *)field = range;
	return 0;
}

int record_cpu(void *field, const char *value, struct buf *why)
{
	char *end;
	unsigned long cpu = strtoul(value, &end, 10);

	if (*value >= '0' && *value <= '9' && !*end && cpu < CPUS_MAX) {
		*(uint32_t *)field = (uint32_t)cpu + 1;
		return 0;
	}
	return buf_explain(why, -EINVAL, "the number of one CPU is accepted: 0, 7");
}

static void when_words(struct buf *out)
{
	buf_add_str(out, "needed\nalways\nnever\n");
}

static void pairing_words(struct buf *out)
{
	buf_add_str(out, "auto\ninterval\n");
}

static void jfrsync_words(struct buf *out)
{
	buf_add_str(out, "default\nprofile\n");
}

static void hook_words(struct buf *out)
{
	buf_add_str(out, "auto\n");
	for (enum duet_return hook = DUET_RETURN_NONE + 1; hook < DUET_RETURN_MAX; hook++)
		buf_printf(out, "%s\n", return_name(hook));
}

/* clang-format off */
const struct opt record_rows[] = {
	OPT_GROUP("Target"),
	{'p', "pid", "PID|NAME[,…]", "profile these processes, or the JVM that runs this jar or main class",
		opt_strings, FIELD(given.pids), OPT_NOT_CONFIG | OPT_OF_HOST, list_jvm_choices, .is_short = true},
	{0, "host", NULL, "profile every process of the host", opt_flag, FIELD(host), OPT_NOT_CONFIG,
		.is_short = true},
	{0, "cgroup", "PATH", "profile every process in this cgroup (v2) and below it", opt_string, FIELD(cgroup),
		.is_short = true},
	{0, "container", "ID|NAME", "profile every process of this container", opt_string, FIELD(container),
		OPT_OF_HOST, list_container_choices, .is_short = true},
	{0, "comm", "NAME", "profile every process of this name", opt_string, FIELD(comm), .is_short = true},

	OPT_GROUP("Sampling"),
	{'e', "event", "EVENT[=N][,…]", "events of `duet list` (default: cpu); =N: interval", opt_strings,
		FIELD(given.events), .choices = event_names, .is_short = true},
	{'i', "interval", "TIME|N", "one sample in TIME of CPU time (default: 10ms), or in N events",
		opt_string, FIELD(given.interval), .is_short = true},
	{0, "freq", "HZ", "the interval of cpu as a rate, up to 100000: 99, 1000", opt_freq, FIELD(given.freq)},
	{0, "off-cpu", "MIN..MAX", "with -e offcpu and wall: only sleeps of this length: 1ms..10s, 5ms.., ..1s",
		opt_range, FIELD(bpf.sleeps)},
	{0, "wakers", NULL, "with -e offcpu and wall: show who ended each wait, above the stack that waited", opt_flag,
		FIELD(wakers)},
	{0, "holders", NULL, "with -e lock and nativelock: show who held the lock that was waited for", opt_flag,
		FIELD(holders)},
	{0, "tlab", NULL, "with -e alloc: sample by BPF, where threads take new buffers of the heap", opt_flag,
		FIELD(tlab)},
	{0, "alloc-native", NULL, "with -e alloc: native frames too, of the JVM and of what called it", opt_flag,
		FIELD(alloc_native)},
	{0, "survivors", "N", "with -e live: only objects that have outlived N pauses of the garbage collector",
		opt_u32, FIELD(survivors)},
	{0, "ages", NULL, "with -e live: show how old the objects are, above their class", opt_flag, FIELD(ages)},
	{0, "record-cpu", NULL, "stacks of ticks and counters begin with the CPU: [CPU-1]", opt_flag, FIELD(cpus)},
	{0, "target-cpu", "N", "ticks and counters of this CPU alone", record_cpu, FIELD(only_cpu)},
	{0, "sched", NULL, "stacks begin with the thread's scheduling policy: [SCHED_BATCH]", opt_flag,
		FIELD(bpf.policies)},
	{0, "receivers", NULL, "above vtable and itable stubs, the class of the object that is called", opt_flag,
		FIELD(bpf.receivers)},
	{0, "compiling", NULL, "above the compilers' compile_method, the Java method that the thread compiles",
		opt_flag, FIELD(bpf.compiling)},
	{0, "offsets", NULL, "native frames have the offset of their instruction, for `duet annotate`", opt_flag,
		FIELD(offsets)},
	{'d', "duration", "TIME", "how long: 30, 500ms, 10m (default 60; with -- CMD until it ends)", opt_seconds,
		FIELD(duration_ns), OPT_NOT_CONFIG, .is_short = true},
	{0, "engine", "ENGINE", "what takes the samples; see `duet check`", opt_string, FIELD(given.engine),
		.choices = engine_choices},
	{'j', "jstackdepth", "N", "most frames of a stack, up to 16384 (default: all, but only both ends above 1024)",
		opt_u32, FIELD(given.depth)},
	{0, "all-user", NULL, "no kernel frames", opt_flag, FIELD(all_user)},
	{0, "agent", "WHEN", "when a JVM gets an agent (default: needed); without, it is read from outside", opt_string,
		FIELD(given.agent), .choices = when_words},
	{0, "no-attach", NULL, "the same as --agent never", opt_flag, FIELD(given.no_attach)},
	{0, "leave-alone", "PATTERN",
		"no agent in JVMs of this name, main class, jar, container, cgroup, user:NAME or uid:N",
		opt_strings, FIELD(leave_alone.patterns)},
	{0, "signals", "WHEN", "when to ask the agent for Java frames, too (default: needed)", opt_string,
		FIELD(given.signals), .choices = when_words},
	{0, "pairing", "RULE", "how to pair samples with Java stacks; interval: without signal cookies", opt_string,
		FIELD(given.pairing), .choices = pairing_words},
	{0, "off-cpu-hook", "HOOK", "at which hook of the kernel sleeps are sampled, see `duet check`", opt_string,
		FIELD(given.sleep_hook), .choices = hook_words},
	{0, "java-collect-spark-app-name-as-appid", NULL, "add the name of Spark's application to the main class",
		opt_flag, FIELD(spark_names)},

	OPT_GROUP("More events, beside those of -e, with their interval"),
	{.rows = event_rows},
	{0, "trace", "CLASS.METHOD[:TIME]",
		"time of calls of a Java method that take TIME or longer; repeatable",
		opt_strings, FIELD(given.traces)},
	{0, "proc", "TIME", "each TIME, what the machine's processes use: 1, 30; for the formats duet, jfr, text",
		opt_seconds, FIELD(usages_ns)},
	{0, "all", NULL, "cpu (without -e), wall, alloc, live, lock, nativemem, nativelock, if the engine has them",
		opt_flag, FIELD(given.all)},

	OPT_GROUP("Output"),
	{'f', "file", "FILE", "output file; %p pid, %t time, %n number (default: stdout); repeatable",
		opt_strings, FIELD(given.files), OPT_OF_FILES, .is_short = true},
	{0, "group", "GROUP",
		"group that may read the files of --host, --cgroup, --container and --comm",
		opt_string, FIELD(given.group), OPT_OF_FILES},
	{'o', "output", "FORMAT[,…]", "formats of `duet list` (default: by FILE's extension, else text)", opt_string,
		FIELD(given.format), OPT_OF_FILES, style_format_names, .is_short = true},
	{0, "chunksize", "SIZE", "size of a chunk of a JFR file (default: 100m; at least 256k)", opt_bytes,
		FIELD(style.chunk_bytes), OPT_OF_FILES},
	{0, "chunktime", "TIME", "length of a chunk of a JFR file (default: 1h; at least 5s)", opt_seconds,
		FIELD(style.chunk_ns), OPT_OF_FILES},
	{0, "jfrsync", "CONFIG", "the JVM's own events in the JFR file, too: default, profile, a .jfc file, +EVENT+…",
		opt_string, FIELD(jfrsync), OPT_NOT_CONFIG, jfrsync_words},
	{0, "jfropts", "BITS",
		"left out of JFR files: 1 system, 2 properties, 4 libraries, 8 CPU load, 16 heap",
		opt_u32, FIELD(given.jfropts), OPT_OF_FILES},
	{0, "max-file", "SIZE", "limit of a file of the format duet; near it, fewer samples are kept", opt_bytes,
		FIELD(max_file), OPT_NOT_CONFIG},
	STYLE_ROWS(struct options, given.by),

	OPT_GROUP("Continuous"),
	{0, "continuous", NULL, "write window after window into the folder -f, until stopped", opt_flag,
		FIELD(given.continuous), OPT_NOT_CONFIG, .is_short = true},
	{0, "window", "TIME", "length of a window (default: 60)", opt_seconds, FIELD(window_ns), OPT_OF_FILES},
	{0, "keep-files", "N", "remove the oldest files when there are more", opt_u32, FIELD(folder.keep_files),
		OPT_OF_FILES},
	{0, "keep-age", "TIME", "remove files that are older: 7d, 12h", opt_seconds, FIELD(folder.keep_age_ns),
		OPT_OF_FILES},
	{0, "keep-bytes", "SIZE", "remove the oldest files when all are larger: 500m, 10g", opt_bytes,
		FIELD(folder.keep_bytes), OPT_OF_FILES},

	OPT_GROUP("Limits, and duet itself"),
	{0, "max-memory", "SIZE",
		"limit of duet's RAM, BPF maps included: 128m; at it, detail is dropped (default: RAM/8)",
		opt_bytes, FIELD(max_memory)},
	{0, "max-overhead", "PCT",
		"limit of duet's share of the host's CPU: 1; at it, samples become rarer (daemon: 1)",
		opt_percent, FIELD(max_overhead), .is_short = true},
	{0, "metrics", "ADDRESS", "Prometheus metrics of duet itself on localhost:PORT or the socket /PATH", opt_string,
		FIELD(metrics)},
	{'v', "verbose", NULL, "report more", opt_flag, FIELD(given.verbose), OPT_NOT_CONFIG},
	COMMAND_HELP,
	OPT_END,
};

#define OF_BPF(word, field, ...) \
	{word, offsetof(struct options, field), sizeof(((struct options *)0)->field), __VA_ARGS__}

const struct record_of_bpf record_of_bpf[] = {
	OF_BPF("record-cpu", cpus, RECORD_REFUSED, ": samples of engine %s have no CPU and no policy"),
	OF_BPF("target-cpu", only_cpu, RECORD_REFUSED, ": samples of engine %s have no CPU and no policy"),
	OF_BPF("sched", bpf.policies, RECORD_REFUSED, ": samples of engine %s have no CPU and no policy"),
	OF_BPF("receivers", bpf.receivers, RECORD_LESS, ": with %s, no class comes above vtable stubs"),
	OF_BPF("holders", holders, RECORD_UNASKED, ": engine %s does not see who releases a lock"),
	OF_BPF("tlab", tlab, RECORD_UNASKED, ", which sets probes in HotSpot: engine %s cannot"),
	OF_BPF("max-overhead", max_overhead, RECORD_UNASKED, ": engine %s cannot change its rate"),
	{0},
};
/* clang-format on */
