/* SPDX-License-Identifier: MIT */
/* Forms of events that name a place, a counter or a Java method: from text to what to look up on the host. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "base/opt.h"
#include "event/event.h"

#define COUNTER_INTERVAL 1000000 /* the same as that of cycles */

static int refuse(struct buf *why, const char *form, const char *text)
{
	return buf_explain(why, -EINVAL, "'%s' is not of the form %s", text, form);
}

static void make_counter(struct event *event, uint32_t type, uint64_t config)
{
	event->default_interval = COUNTER_INTERVAL;
	event->most_interval = 4000000000;
	event->perf = (struct event_perf){.type = type, .config = config, .by_period = true};
	event->may_signal = true;
}

static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"};
/* The order is that of enum perf_hw_cache_op_id, with the two results of each. */
static const char *const accesses[] = {"loads",	 "load-misses", "stores", "store-misses", "prefetches",
				       "prefetch-misses"};

static int make_cache(struct event *event, const char *text, struct buf *why)
{
	for (size_t cache = 0; cache < sizeof(caches) / sizeof(*caches); cache++) {
		size_t len = strlen(caches[cache]);

		if (strncmp(text, caches[cache], len) != 0 || text[len] != '-')
			continue;
		for (size_t access = 0; access < sizeof(accesses) / sizeof(*accesses); access++)
			if (!strcmp(text + len + 1, accesses[access])) {
				make_counter(event, PERF_TYPE_HW_CACHE,
					     cache | access / 2 << 8 | (access & 1) << 16);
				return 0;
			}
	}
	return -ENOENT;
}

static int make_raw(struct event *event, const char *text, struct buf *why)
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF");

	if (!digits || digits > 16 || text[digits])
		return -ENOENT;
	make_counter(event, PERF_TYPE_RAW, strtoull(text, NULL, 16));
	return 0;
}

/* cpu/cache-misses/; pmu/cpu/cache-misses/ is the same. */
static int make_pmu(struct event *event, const char *text, struct buf *why)
{
	const char *name = strncmp(text, "pmu/", strlen("pmu/")) ? text : text + strlen("pmu/");
	const char *slash = strchr(text, ':') ? NULL : strchr(name, '/'), *end = slash ? strchr(slash + 1, '/') : NULL;

	if (!slash)
		return -ENOENT;
	if (!end || end[1] || slash == name || end == slash + 1 || *name == '.')
		return refuse(why, "PMU/TERMS/, such as cpu/event=0xc0,umask=1/", text);
	make_counter(event, 0, 0);
	event->place = (struct event_place){.source = EVENT_PMU,
					    .file = strndup(name, (size_t)(slash - name)),
					    .name = strndup(slash + 1, (size_t)(end - slash - 1))};
	return event->place.file && event->place.name ? 0 : -ENOMEM;
}

static void make_counted(struct event *event, enum duet_program program)
{
	event->default_interval = 1;
	event->most_interval = 1000000000;
	event->program = program;
}

/* Reads a whole number, decimal or 0x…, and moves *text past it. */
static bool read_number(const char **text, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 0);
	*text = end;
	return !errno;
}

/* A number that is too large is no symbol. */
static bool begins_symbol(char c)
{
	return c && c != '-' && !isdigit((unsigned char)c);
}

/* Reads SYMBOL[+OFFSET], OFFSET or +OFFSET of `len` bytes. *ret_symbol, which the caller frees, may be NULL. */
static int read_place(const char *text, size_t len, char **ret_symbol, uint64_t *ret_offset)
{
	char *symbol = strndup(text, len), *plus = symbol ? strrchr(symbol, '+') : NULL;
	const char *offset = plus ? plus + 1 : symbol;
	bool has_offset = symbol && read_number(&offset, ret_offset) && !*offset;

	if (symbol && has_offset && plus > symbol)
		*plus = '\0';
	else if (symbol && (has_offset || plus == symbol || !begins_symbol(*symbol))) {
		free(symbol);
		return has_offset ? 0 : -EINVAL;
	}
	*ret_symbol = symbol;
	return symbol ? 0 : -ENOMEM;
}

static int make_kprobe(struct event *event, const char *text, struct buf *why)
{
	const char *form = event->place.at_return ? "kretprobe:FUNCTION" : "kprobe:FUNCTION[+OFFSET]";
	int err = read_place(text, strlen(text), &event->place.name, &event->place.offset);

	make_counted(event, DUET_PROGRAM_PROBE);
	event->place.source = EVENT_KPROBE;
	return err == -ENOMEM || event->place.name ? err : refuse(why, form, text);
}

/* Parses FILE:FUNCTION, FILE:FUNCTION+0x10 or FILE:+0x1234; also FILE+0x1234, async-profiler's form. */
static int make_uprobe(struct event *event, const char *text, struct buf *why)
{
	const char *colon = strrchr(text, ':'), *after = colon ? colon : strrchr(text, '+');
	int err = -EINVAL;

	make_counted(event, DUET_PROGRAM_PROBE);
	event->place.source = EVENT_UPROBE;
	if (after && after > text && after[1]) {
		event->place.file = strndup(text, (size_t)(after - text));
		err = event->place.file ? read_place(after + 1, strlen(after + 1), &event->place.name,
						     &event->place.offset)
					: -ENOMEM;
	}
	if (err != -EINVAL)
		return err;
	return refuse(why, event->place.at_return ? "uretprobe:FILE:FUNCTION"
						  : "uprobe:FILE:FUNCTION[+OFFSET] or FILE:+OFFSET", text);
}

static int make_usdt(struct event *event, const char *text, struct buf *why)
{
	const char *name = strrchr(text, ':'), *provider = name ? memrchr(text, ':', (size_t)(name - text)) : NULL;

	if (!provider || provider == text || provider + 1 == name || !name[1])
		return refuse(why, "usdt:FILE:PROVIDER:NAME", text);
	make_counted(event, DUET_PROGRAM_PROBE);
	event->place = (struct event_place){.source = EVENT_USDT,
					    .file = strndup(text, (size_t)(provider - text)),
					    .field = strndup(provider + 1, (size_t)(name - provider - 1)),
					    .name = strdup(name + 1)};
	return event->place.file && event->place.field && event->place.name ? 0 : -ENOMEM;
}

/* Returns true for a name that folders in tracefs can have. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
			return false;
	return len > 0;
}

static int make_tracepoint(struct event *event, const char *text, struct buf *why)
{
	size_t group = strcspn(text, ":"), name = text[group] ? strcspn(text + group + 1, "{") : 0;
	const char *brace = text + group + 1 + name;
	size_t field = name && *brace ? strcspn(brace + 1, "}") : 0;

	if (!text[group])
		return -ENOENT;
	if (!is_plain(text, group) || !is_plain(text + group + 1, name) ||
	    (*brace && (!is_plain(brace + 1, field) || strcmp(brace + 1 + field, "}") != 0)))
		return refuse(why, "GROUP:TRACEPOINT or GROUP:TRACEPOINT{FIELD}", text);
	make_counted(event, DUET_PROGRAM_TRACEPOINT);
	event->is_chosen = field > 0;
	event->place = (struct event_place){.source = EVENT_TRACEPOINT,
					    .file = strndup(text, group),
					    .name = strndup(text + group + 1, name),
					    .field = field ? strndup(brace + 1, field) : NULL};
	return event->place.file && event->place.name && (!field || event->place.field) ? 0 : -ENOMEM;
}

/* Parses the name of a system call, or of one of the group's tracepoints: sys_enter_NAME, sys_exit_NAME. */
static int make_syscall(struct event *event, const char *text, struct buf *why)
{
	bool is_call = strncmp(text, "sys_enter_", strlen("sys_enter_")) &&
		       strncmp(text, "sys_exit_", strlen("sys_exit_"));
	BUF(tracepoint);

	if (!*text)
		return refuse(why, "syscalls:NAME", text);
	buf_printf(&tracepoint, "syscalls:%s%s", is_call ? "sys_enter_" : "", text);
	return tracepoint.failed ? -ENOMEM : make_tracepoint(event, tracepoint.data, why);
}

/* Parses what follows the address: /4 bytes, then :rw. */
static bool read_breakpoint(struct event_perf *perf, const char *text)
{
	uint64_t bytes = 1;
	size_t letters;

	if (*text == '/' && (text++, !read_number(&text, &bytes)))
		return false;
	perf->bp_type = HW_BREAKPOINT_RW;
	if (*text == ':') {
		letters = strspn(++text, "rwx");
		perf->bp_type = (strchr(text, 'r') ? HW_BREAKPOINT_R : 0) | (strchr(text, 'w') ? HW_BREAKPOINT_W : 0) |
				(strchr(text, 'x') ? HW_BREAKPOINT_X : 0);
		text += letters;
	}
	if (perf->bp_type == HW_BREAKPOINT_X)
		bytes = sizeof(long);
	perf->config2 = bytes;
	return !*text && bytes <= 8 && !(bytes & (bytes - 1)) && bytes && perf->bp_type &&
	       (perf->bp_type == HW_BREAKPOINT_X || !(perf->bp_type & HW_BREAKPOINT_X));
}

/* Returns the bytes of a symbol, which may be one of C++: "Class::function:x". */
static size_t symbol_bytes(const char *text)
{
	size_t bytes = strcspn(text, "/:");

	while (text[bytes] == ':' && text[bytes + 1] == ':')
		bytes += 2 + strcspn(text + bytes + 2, "/:");
	return bytes;
}

static int make_breakpoint(struct event *event, const char *text, struct buf *why)
{
	static const char form[] = "mem:ADDRESS|SYMBOL[+OFFSET][/1|2|4|8][:w|rw|x]";
	size_t place = symbol_bytes(text);
	int err;

	make_counted(event, DUET_PROGRAM_PERF);
	event->perf.type = PERF_TYPE_BREAKPOINT;
	event->place.source = EVENT_BREAKPOINT;
	if (!read_breakpoint(&event->perf, text + place))
		return refuse(why, form, text);
	err = read_place(text, place, &event->place.name, &event->place.offset);
	return err == -EINVAL ? refuse(why, form, text) : err;
}

/* Returns true if a part is a name, with a '*' at its end only. */
static bool is_part(const char *at, size_t len)
{
	const char *star = memchr(at, '*', len);

	return len && (!star || star == at + len - 1);
}

/* Passes one type of a descriptor (JVM specification, 4.3.2). Returns false if there is none. */
static bool pass_type(const char **at)
{
	*at += strspn(*at, "[");
	if (**at == 'L')
		*at += strcspn(*at, ";)");
	else if (!**at || !strchr("BCDFIJSZ", **at))
		return false;
	return *(*at)++ != ')' && (*at)[-1];
}

/* "(I[Ljava/lang/String;)V"; the type of the result may be missing. */
static bool is_signature(const char *at)
{
	for (at++; *at && *at != ')';)
		if (!pass_type(&at))
			return false;
	if (*at++ != ')')
		return false;
	if (*at == 'V')
		at++;
	else if (*at && !pass_type(&at))
		return false;
	return !*at;
}

/* Returns 0, or -EINVAL with one sentence in `why`. */
static int check_target(const char *text, struct buf *why)
{
	size_t names = strcspn(text, "(");
	const char *dot = memrchr(text, '.', names);

	if (strlen(text) + 2 > DUET_MAX_TARGET_BYTES)
		buf_printf(why, "'%.60s…' is too long: %d bytes are accepted", text, DUET_MAX_TARGET_BYTES - 2);
	else if (!dot || !is_part(text, (size_t)(dot - text)) || !is_part(dot + 1, names - (size_t)(dot + 1 - text)))
		buf_printf(why, "'%s' is not of the form CLASS.METHOD[(SIGNATURE)], with '*' at the end of a name only",
			   text);
	else if (text[names] && !is_signature(text + names))
		buf_printf(why, "'%s' is no signature of a method, such as (ILjava/lang/String;)V", text + names);
	else
		return 0;
	return -EINVAL;
}

/* A text with a dot and without a colon; a slash is in a signature only. */
static bool names_method(const char *text)
{
	size_t names = strcspn(text, "(");

	return memchr(text, '.', names) && !memchr(text, '/', names) && !strchr(text, ':');
}

bool event_is_of_methods(const struct event *event)
{
	return event->agent == DUET_AGENT_EVENT_METHOD || event->agent == DUET_AGENT_EVENT_TRACE;
}

static int make_target(struct event *event, const char *text, size_t len, struct buf *why)
{
	event->default_interval = 1;
	event->most_interval = 1000000000;
	event->program = DUET_PROGRAM_NONE;
	event->place.name = strndup(text, len);
	return event->place.name ? check_target(event->place.name, why) : -ENOMEM;
}

/* event->place.name is the target as START has it. */
static int make_method(struct event *event, const char *text, struct buf *why)
{
	if (!names_method(text))
		return -ENOENT;
	event->agent = DUET_AGENT_EVENT_METHOD;
	return make_target(event, text, strlen(text), why);
}

/* 0: every call. */
static int read_threshold(uint64_t *ret_ns, const char *text, struct buf *why)
{
	if (strcmp(text, "0") != 0)
		return opt_interval(ret_ns, text, why);
	*ret_ns = 0;
	return 0;
}

/* CLASS.METHOD[(SIGNATURE)][:THRESHOLD], whose calls are timed: event->place.offset is in ns. */
static int make_trace(struct event *event, const char *text, struct buf *why)
{
	size_t len = strcspn(text, ":");

	if (!memchr(text, '.', len)) /* a tracepoint by its number, or of the group "trace" */
		return -ENOENT;
	event->agent = DUET_AGENT_EVENT_TRACE;
	event->unit = EVENT_NS;
	event->counts_calls = true;
	if (text[len] && read_threshold(&event->place.offset, text + len + 1, why) < 0)
		return -EINVAL;
	return make_target(event, text, len, why);
}

const struct event_family event_families[] = {
	{"CLASS.METHOD[(SIGNATURE)]", "calls of a Java method; '*' may end both names: my.App.<init>, java.util.*.get*",
	 EVENT_METHOD, NULL, .make = make_method},
	{"trace:CLASS.METHOD[(SIGNATURE)][:TIME]", "time of calls of a Java method, of those that take TIME or longer",
	 EVENT_METHOD, "trace:", .make = make_trace},
	{"CACHE-loads", "loads of a cache of the CPU (L1-dcache, L1-icache, LLC, dTLB, iTLB, branch, node); also "
			"-load-misses, -stores, -store-misses, -prefetches, -prefetch-misses",
	 EVENT_COMPLETE, NULL, .make = make_cache},
	{"rNNN", "a counter of the CPU by its number in the CPU's manual", EVENT_COMPLETE, "r", .make = make_raw},
	{"PMU/TERMS/", "a counter by the names in /sys/bus/event_source/devices: cpu/event=0xc0,umask=1/", EVENT_PMU,
	 NULL, .make = make_pmu},
	{"mem:ADDRESS[:rw]", "accesses to a variable, by address or name: w, rw, or x for code", EVENT_BREAKPOINT,
	 "mem:", .make = make_breakpoint},
	{"kprobe:FUNCTION", "calls of a function of the kernel", EVENT_KPROBE, "kprobe:", .make = make_kprobe},
	{"kretprobe:FUNCTION", "returns from a function of the kernel", EVENT_KPROBE, "kretprobe:",
	 .make = make_kprobe, .at_return = true},
	{"uprobe:FILE:FUNCTION", "calls of a function of a program or library", EVENT_UPROBE, "uprobe:",
	 .make = make_uprobe},
	{"uretprobe:FILE:FUNCTION", "returns from a function of a program or library", EVENT_UPROBE, "uretprobe:",
	 .make = make_uprobe, .at_return = true},
	{"usdt:FILE:PROVIDER:NAME", "static probes that a program or library has", EVENT_USDT, "usdt:",
	 .make = make_usdt},
	{"syscalls:NAME", "one kind of system call", EVENT_TRACEPOINT, "syscalls:", .make = make_syscall},
	{"GROUP:TRACEPOINT[{FIELD}]", "a tracepoint of the kernel; {FIELD}: weighed by this field", EVENT_TRACEPOINT,
	 NULL, .make = make_tracepoint},
	{0},
};

int event_make(struct event *event, const char *text, struct buf *why)
{
	event->unit = EVENT_COUNT;
	event->least_interval = 1;
	for (const struct event_family *family = event_families; family->form; family++) {
		size_t prefix = family->prefix ? strlen(family->prefix) : 0;
		int err;

		if (prefix && strncmp(text, family->prefix, prefix))
			continue;
		event->place.at_return = family->at_return;
		err = family->make(event, text + prefix, why);
		if (err == -ENOENT)
			continue;
		event->help = family->help;
		return err;
	}
	return -ENOENT;
}
