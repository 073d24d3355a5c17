/* SPDX-License-Identifier: MIT */
#include "event/event.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/text.h"

#define NAME_MAX_BYTES 512 /* bytes of a name, which may be the path of a file */

const struct event *event_by_name(const char *name)
{
	for (size_t i = 0; event_table[i]; i++)
		if (!strcmp(event_table[i]->name, name))
			return event_table[i];
	return NULL;
}

/* Other names that perf has for some of the events. */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{"cpu-clock", "cpu"},
	{"task-clock", "cpu"},
	{"faults", "page-faults"},
	{"cs", "context-switches"},
	{"migrations", "cpu-migrations"},
	{"cpu-cycles", "cycles"},
	{"branches", "branch-instructions"},
	{"idle-cycles-frontend", "stalled-cycles-frontend"},
	{"idle-cycles-backend", "stalled-cycles-backend"},
};

static const struct event *event_by_alias(const char *alias)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (!strcmp(aliases[i].alias, alias))
			return event_by_name(aliases[i].name);
	return NULL;
}

/* The events that families have made. Each is made once, so that events can be compared by address. */
static struct made {
	struct event event;
	struct made *next;
} *all_made;

static const struct event *made_before(const char *name)
{
	for (const struct made *made = all_made; made; made = made->next)
		if (!strcmp(made->event.name, name))
			return &made->event;
	return NULL;
}

static void free_made(struct made *made)
{
	free(made->event.place.file);
	free(made->event.place.name);
	free(made->event.place.field);
	free((char *)made->event.name);
	free(made);
}

static void explain_unknown(const char *text, struct buf *why)
{
	struct text_guess guess = {.typed = text};

	if (!*text)
		return buf_add_str(why, "the name of an event is missing");
	buf_printf(why, "unknown event '%s'", text);
	for (size_t i = 0; event_table[i]; i++)
		text_guess(&guess, event_table[i]->name);
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		text_guess(&guess, aliases[i].alias);
	text_add_guess(&guess, "", "`duet list` shows the events", why);
}

static const struct event *make(const char *text, struct buf *why)
{
	struct made *made = calloc(1, sizeof(*made));
	int err = made ? event_make(&made->event, text, why) : -ENOMEM;

	if (!err) {
		made->event.name = strdup(text);
		err = made->event.name ? 0 : -ENOMEM;
	}
	if (!err) {
		made->next = all_made;
		all_made = made;
		return &made->event;
	}
	if (made)
		free_made(made);
	if (err == -ENOMEM)
		buf_add_str(why, "out of memory");
	else if (err == -ENOENT)
		explain_unknown(text, why);
	return NULL;
}

const struct event *event_of_text(const char *text, struct buf *why)
{
	const struct event *event = event_by_name(text);

	if (!event)
		event = event_by_alias(text);
	if (!event)
		event = made_before(text);
	return event ? event : make(text, why);
}

/* Returns true for counters of the CPU that a family made. */
static bool is_counter(const char *text)
{
	BUF(why);

	return !event_make(&(struct event){0}, text, &why);
}

bool event_is_file_part(const char *text)
{
	size_t len = strlen(text);

	if (event_by_name(text))
		return true;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(":-_", text[i]))
			return false;
	return strchr(text, ':') || (len && text[len - 1] == '_') || is_counter(text);
}

static int parse_count(uint64_t *ret, const char *text, struct buf *why)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (!errno && isdigit((unsigned char)*text) && !*end && *ret)
		return 0;
	return buf_explain(why, -EINVAL, "a whole number above 0 is accepted: one sample in that many events");
}

static enum event_unit interval_unit(const struct event *event)
{
	return event->counts_calls ? EVENT_COUNT : event->unit;
}

int event_spec_set_interval(struct event_spec *spec, const char *text, struct buf *why)
{
	const struct event *event = spec->event;
	uint64_t interval = 0;
	int err;

	if (event->may_be_all && !strcmp(text, "0"))
		text = "1";
	if (interval_unit(event) == EVENT_NS)
		err = opt_interval(&interval, text, why);
	else if (event->unit == EVENT_BYTES)
		err = opt_bytes(&interval, text, why);
	else
		err = parse_count(&interval, text, why);
	if (err < 0)
		return err;
	if (interval < event->least_interval || interval > event->most_interval) {
		buf_add_str(why, "out of range: from ");
		event_amount_text(interval_unit(event), event->least_interval, why);
		buf_add_str(why, " to ");
		event_amount_text(interval_unit(event), event->most_interval, why);
		return buf_explain(why, -EINVAL, " is accepted");
	}
	spec->interval = interval;
	return 0;
}

/* Returns the bytes of a PMU with terms, which may have commas: "cpu/event=0xc0,umask=1/"; 0: it is none. */
static size_t pmu_bytes(const char *word)
{
	size_t name = strcspn(word, ",:=/");
	const char *end;

	if (word[name] != '/')
		return 0;
	if (!strncmp(word, "pmu/", strlen("pmu/")))
		name += 1 + strcspn(word + name + 1, "/");
	end = word[name] ? strchr(word + name + 1, '/') : NULL;
	return end ? (size_t)(end - word) + 1 : 0;
}

/* Returns the interval at the end of a word, or NULL. A path may have a '=', too. */
static char *find_interval(char *word)
{
	char *equal = strrchr(word + pmu_bytes(word), '=');

	return equal && !strpbrk(equal, "/:") ? equal : NULL;
}

/* One word of the list: "cpu", "page-faults=100". */
static int parse_spec(struct event_spec *spec, const char *word, size_t len, struct buf *why)
{
	char text[NAME_MAX_BYTES] = "";
	char *interval;

	if (len >= sizeof(text))
		return buf_explain(why, -EINVAL, "unknown event '%.60s…': a name has at most %zu bytes", word,
				   sizeof(text) - 1);
	memcpy(text, word, len);
	interval = find_interval(text);
	if (interval)
		*interval++ = '\0';
	spec->event = event_of_text(text, why);
	if (!spec->event)
		return -EINVAL;
	spec->interval = spec->event->default_interval;
	return interval ? event_spec_set_interval(spec, interval, why) : 0;
}

/* Refuses two events of which one includes the other's samples: each sample would be taken twice. */
static int check_pair(const struct event *event, const struct event *other, struct buf *why)
{
	if (event == other)
		return buf_explain(why, -EINVAL, "event '%s' is given twice", event->name);
	if (!event_is_sleep(event) || !event_is_sleep(other))
		return 0;
	return buf_explain(why, -EINVAL, "%s has the samples of %s: give one of them",
			   event->also_shows ? event->name : other->name,
			   event->also_shows ? other->name : event->name);
}

static int add_spec(struct event_list *list, const struct event_spec *spec, struct buf *why)
{
	struct event_list all;

	for (size_t i = 0; i < list->len; i++)
		if (check_pair(spec->event, list->items[i].event, why))
			return -EINVAL;
	event_list_expand(&all, list);
	if (all.len + (spec->event->also_shows ? 2 : 1) > DUET_MAX_EVENTS)
		return buf_explain(why, -EINVAL, "more than %d events", DUET_MAX_EVENTS);
	list->items[list->len++] = *spec;
	return 0;
}

int event_list_parse(struct event_list *list, const char *text, struct buf *why)
{
	struct event_list found = {.len = 0};

	for (;;) {
		struct event_spec spec;
		size_t pmu = pmu_bytes(text), len = pmu + strcspn(text + pmu, ",");
		int err = parse_spec(&spec, text, len, why);

		if (!err)
			err = add_spec(&found, &spec, why);
		if (err < 0)
			return err;
		if (!text[len])
			break;
		text += len + 1;
	}
	*list = found;
	return 0;
}

struct event_spec *event_list_find(struct event_list *list, const struct event *event)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].event == event)
			return &list->items[i];
	return NULL;
}

/* For an event that is not in the list. */
static struct event_spec spec_in(struct event_list *list, const struct event *event)
{
	struct event_spec *source = event->interval_of ? event_list_find(list, event->interval_of) : NULL;

	return (struct event_spec){.event = event, .interval = source ? source->interval : event->default_interval};
}

int event_list_set(struct event_list *list, const struct event *event, const char *interval, struct buf *why)
{
	struct event_spec *known = event_list_find(list, event);
	struct event_spec spec = known ? *known : spec_in(list, event);
	int err = interval ? event_spec_set_interval(&spec, interval, why) : 0;

	if (err < 0 || !known)
		return err < 0 ? err : add_spec(list, &spec, why);
	*known = spec;
	return 0;
}

bool event_is_sleep(const struct event *event)
{
	return event->program == DUET_PROGRAM_OFFCPU ||
	       (event->also_shows && event->also_shows->program == DUET_PROGRAM_OFFCPU);
}

static bool has_any(const struct event_list *list, bool (*is)(const struct event *event), bool wanted)
{
	for (size_t i = 0; i < list->len; i++)
		if (is(list->items[i].event) == wanted)
			return true;
	return false;
}

bool event_list_has_sleeps(const struct event_list *list)
{
	return has_any(list, event_is_sleep, true);
}

bool event_list_has_wakers(const struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].event->has_wakers)
			return true;
	return false;
}

bool event_list_has_holders(const struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].event->has_holders)
			return true;
	return false;
}

void event_list_expand(struct event_list *ret, const struct event_list *list)
{
	*ret = *list;
	for (size_t i = 0; i < list->len; i++) {
		const struct event_spec *spec = &list->items[i];

		ret->items[i].shown_as = (uint8_t)i;
		if (spec->event->also_shows)
			ret->items[ret->len++] =
				(struct event_spec){spec->event->also_shows, spec->interval, (uint8_t)i};
	}
}

void event_list_add_holders(struct event_list *list)
{
	for (size_t i = 0; i < list->len && list->len < DUET_MAX_EVENTS; i++) {
		const struct event_spec *spec = &list->items[i];

		if (!spec->event->has_holders)
			continue;
		list->items[list->len++] = (struct event_spec){&event_holders, spec->interval, spec->shown_as};
		return;
	}
}

const struct event_spec *event_list_clock(const struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].event->perf.is_clock)
			return &list->items[i];
	return NULL;
}

const struct event_spec *event_list_agent_clock(const struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].event->perf.is_clock && !list->items[i].event->also_shows)
			return &list->items[i];
	return event_list_clock(list);
}

size_t event_list_count(const struct event_list *list, enum duet_program program)
{
	size_t count = 0;

	for (size_t i = 0; i < list->len; i++)
		count += list->items[i].event->program == program;
	return count;
}

bool event_has_ticks(const struct event *event)
{
	return event->agent < DUET_AGENT_EVENT_ALLOC;
}

bool event_list_has_ticks(const struct event_list *list)
{
	return has_any(list, event_has_ticks, true);
}

bool event_list_has_taps(const struct event_list *list)
{
	return has_any(list, event_has_ticks, false);
}

bool event_list_needs_tables(const struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].event->needs_tables)
			return true;
	return false;
}

static void time_text(uint64_t ns, struct buf *out)
{
	if (ns % NS_PER_SEC == 0)
		buf_printf(out, "%llu s", (unsigned long long)(ns / NS_PER_SEC));
	else if (ns % NS_PER_MS == 0)
		buf_printf(out, "%llu ms", (unsigned long long)(ns / NS_PER_MS));
	else if (ns % NS_PER_US == 0)
		buf_printf(out, "%llu us", (unsigned long long)(ns / NS_PER_US));
	else
		buf_printf(out, "%llu ns", (unsigned long long)ns);
}

static void bytes_text(uint64_t bytes, struct buf *out)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	size_t unit = 0;

	for (; unit < 3 && bytes && bytes % 1024 == 0; unit++)
		bytes /= 1024;
	buf_printf(out, "%llu %s", (unsigned long long)bytes, units[unit]);
}

void event_amount_text(enum event_unit unit, uint64_t amount, struct buf *out)
{
	if (unit == EVENT_NS)
		time_text(amount, out);
	else if (unit == EVENT_BYTES)
		bytes_text(amount, out);
	else
		buf_printf(out, "%llu", (unsigned long long)amount);
}

void event_list_tap_names(const struct event_list *list, struct buf *out)
{
	const char *before = "";

	for (size_t i = 0; i < list->len; i++)
		if (!event_has_ticks(list->items[i].event)) {
			buf_printf(out, "%s%s", before, list->items[i].event->name);
			before = ", ";
		}
}

void event_interval_text(const struct event *event, uint64_t interval, struct buf *out)
{
	enum event_unit unit = interval_unit(event);

	if (unit == EVENT_NS && interval % NS_PER_MS)
		buf_printf(out, interval % NS_PER_US ? "%lluns" : "%lluus",
			   (unsigned long long)(interval % NS_PER_US ? interval : interval / NS_PER_US));
	else if (unit == EVENT_NS)
		buf_printf(out, "%llums", (unsigned long long)(interval / NS_PER_MS));
	else if (unit == EVENT_BYTES && interval && interval % 1024 == 0)
		buf_printf(out, "%lluk", (unsigned long long)(interval >> 10));
	else
		buf_printf(out, "%llu", (unsigned long long)interval);
}

void event_list_text(const struct event_list *list, uint64_t every, struct buf *out)
{
	for (size_t i = 0; i < list->len; i++) {
		const struct event_spec *spec = &list->items[i];

		buf_printf(out, "%s%s every ", i ? ", " : "", spec->event->name);
		event_amount_text(interval_unit(spec->event), spec->interval * every, out);
	}
}
