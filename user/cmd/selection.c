/* SPDX-License-Identifier: MIT */
#include "cmd/selection.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "event/event.h"
#include "profile/intervals.h"
#include "profile/merge.h"
#include "readers/reader.h"

#define DAY_NS (86400 * NS_PER_SEC)

/* Returns true if the whole text matches the format of strptime(3). A Z may follow; the time is UTC with or without. */
static bool parse_time(const char *text, const char *format, struct tm *ret)
{
	const char *end;

	*ret = (struct tm){.tm_mday = 1, .tm_year = 70};
	end = strptime(text, format, ret);
	return end && (!*end || !strcmp(end, "Z"));
}

static bool parse_clock(const char *text, struct moment *ret)
{
	static const char *const dates[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
	static const char *const times[] = {"%H:%M:%S", "%H:%M"};
	struct tm tm;

	for (size_t i = 0; i < sizeof(dates) / sizeof(*dates); i++)
		if (parse_time(text, dates[i], &tm) && tm.tm_year >= 70) {
			*ret = (struct moment){MOMENT_DATE, (uint64_t)timegm(&tm) * NS_PER_SEC};
			return true;
		}
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		if (parse_time(text, times[i], &tm)) {
			*ret = (struct moment){MOMENT_OF_DAY, (uint64_t)timegm(&tm) * NS_PER_SEC};
			return true;
		}
	return false;
}

/* 0 is the start, -0 the end. */
static bool parse_distance(const char *text, struct moment *ret)
{
	struct moment moment = {.kind = *text == '-' ? MOMENT_BEFORE_END : MOMENT_AFTER_START};
	BUF(why);
	int err;

	text += *text == '-';
	err = opt_seconds_or_0(&moment.ns, text, &why);
	if (!err)
		*ret = moment;
	return !err;
}

int opt_moment(void *field, const char *value, struct buf *why)
{
	if (parse_distance(value, field) || parse_clock(value, field))
		return 0;
	return buf_explain(why, -EINVAL,
			  "a time since the start (10s, 0.5s, 5m), before the end (-10s), or in UTC (10:00, 10:00:00, "
			  "2026-11-22T10:00:00) is accepted");
}

/*
 * Returns the first such time of day after the start if it is within the recording; otherwise that of the recording's
 * first day.
 */
static uint64_t time_of_day(uint64_t of_day_ns, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ns = start_ns - start_ns % DAY_NS + of_day_ns;

	return ns < start_ns && ns + DAY_NS <= end_ns ? ns + DAY_NS : ns;
}

uint64_t moment_last_of_day(const struct moment *moment, uint64_t end_ns)
{
	uint64_t ns = end_ns - end_ns % DAY_NS + moment->ns;

	return ns > end_ns && ns >= DAY_NS ? ns - DAY_NS : ns;
}

uint64_t moment_next_of_day(const struct moment *moment, uint64_t ns)
{
	uint64_t of_day_ns = ns - ns % DAY_NS + moment->ns;

	return of_day_ns <= ns ? of_day_ns + DAY_NS : of_day_ns;
}

uint64_t moment_ns(const struct moment *moment, uint64_t start_ns, uint64_t end_ns, uint64_t otherwise)
{
	switch (moment->kind) {
	case MOMENT_AFTER_START:
		return moment->ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + moment->ns;
	case MOMENT_BEFORE_END:
		return moment->ns > end_ns ? 0 : end_ns - moment->ns;
	case MOMENT_OF_DAY:
		return time_of_day(moment->ns, start_ns, end_ns);
	case MOMENT_DATE:
		return moment->ns;
	case MOMENT_NONE:
		break;
	}
	return otherwise;
}

#define NONE UINT32_MAX

#define WORD_ROW(type, index, word, help, also, ...) {word, also, {__VA_ARGS__}},
static const struct word {
	const char *word, *also;
	const char *events[6];
} words[SELECT_WORDS] = {SELECTION_WORDS(WORD_ROW, )};

static const struct word *chosen_word(const struct selection *selection)
{
	for (size_t i = 0; i < SELECT_WORDS; i++)
		if (selection->words[i])
			return &words[i];
	return NULL;
}

/* Adds the states that a word of `len` bytes may be the beginning of. Returns false if there is none. */
static bool add_state(const char *word, size_t len, uint32_t *states)
{
	static const char *const names[THREAD_STATES] = {
		[THREAD_STATE_UNKNOWN] = "",
		[THREAD_DEFAULT] = "default",
		[THREAD_RUNNABLE] = "runnable",
		[THREAD_SLEEPING] = "sleeping",
	};
	bool is_known = false;

	for (enum thread_state state = THREAD_DEFAULT; len && state < THREAD_STATES; state++) {
		if (strncasecmp(names[state], word, len) != 0)
			continue;
		*states |= 1u << state;
		is_known = true;
	}
	return is_known;
}

/* Returns the bits of a list, or 0 if it is no list of states, and for NULL. */
static uint32_t states_of(const char *list)
{
	uint32_t states = 0;

	for (bool is_known = true; list; list = *list ? list + 1 : NULL) {
		size_t len = strcspn(list, ",");

		is_known &= add_state(list, len, &states);
		if (!is_known)
			return 0;
		list += len;
	}
	return states;
}

int selection_check(struct selection *selection)
{
	int chosen = selection->event != NULL;

	if (selection->words[SELECT_LEAK])
		selection->words[SELECT_NATIVEMEM] = false;
	for (size_t i = 0; i < SELECT_WORDS; i++)
		chosen += selection->words[i];
	if (selection->states && !states_of(selection->states))
		return log_refuse("--state %s: the states are runnable, sleeping and default", selection->states);
	if (chosen <= 1 && (!selection->tail || selection->words[SELECT_LEAK]))
		return 0;
	return log_refuse(chosen > 1
				  ? "--event, --cpu, --wall and so on exclude each other: one event is selected, or all"
				  : "--tail belongs to --leak");
}

static uint32_t event_named(const struct profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->events.len; i++)
		if (!strcmp(profile_event_name(profile, i), name))
			return i;
	return NONE;
}

bool selection_is_unknown(const struct profile *profile)
{
	return profile->events.len == 1 &&
	       !strncmp(profile_event_name(profile, 0), READER_SAMPLES, strlen(READER_SAMPLES));
}

static int refuse(const struct profile *profile, const struct selection *selection)
{
	const struct word *word = chosen_word(selection);
	BUF(known);

	for (size_t i = 0; i < profile->events.len; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", profile_event_name(profile, i));
	return log_refuse("--%s%s: the recording has %s", word ? word->word : "event ", word ? "" : selection->event,
			  known.len ? known.data : "no event");
}

/* Without the event leak, what was not freed is found by the addresses of what was taken and freed. */
static void find_unfreed(const struct profile *profile, struct profile_part *part)
{
	part->event = event_named(profile, "nativemem");
	part->freed = event_named(profile, "free");
	part->is_unfreed = part->event != NONE;
	if (part->is_unfreed && part->freed == NONE)
		log_warn("--leak: the recording does not say what was freed: all that was taken is shown");
}

/* Adds an event of which the recording has no samples. Returns NONE if that fails. */
static uint32_t add_empty(struct profile *profile, const char *name)
{
	const struct event *event = event_by_name(name);

	return profile_event(profile, name, event ? (enum profile_unit)event->unit : PROFILE_NS, 0);
}

/* Sets `event` and `also` of the part. Returns 0, or -EINVAL after reporting the error. */
static int find_events(struct profile *profile, const struct selection *selection, struct profile_part *part)
{
	const struct word *word = chosen_word(selection);

	part->event = part->also = part->freed = NONE;
	if (!word && !selection->event)
		return 0;
	if (!word)
		part->event = event_named(profile, selection->event);
	for (size_t i = 0; word && part->event == NONE && i < 6 && word->events[i]; i++)
		part->event = event_named(profile, word->events[i]);
	if (part->event == NONE && selection->words[SELECT_LEAK])
		find_unfreed(profile, part);
	if (part->event == NONE && word && selection->may_be_empty && !selection_is_unknown(profile))
		part->event = add_empty(profile, word->events[0]);
	if (part->event == NONE)
		return word && selection_is_unknown(profile) ? 0 : refuse(profile, selection);
	if (word && word->also)
		part->also = event_named(profile, word->also);
	if (part->also == part->event)
		part->also = NONE;
	return 0;
}

/* The end of the time of which --leak shows what was not freed: what is younger may be in use. */
static uint64_t end_of_leaks(const struct profile *profile, const struct selection *selection)
{
	double tail = (double)(profile->end_ns - profile->start_ns) * selection->tail / 100;

	return profile->end_ns - (uint64_t)tail;
}

static struct profile_part times_of(const struct profile *profile, const struct selection *selection)
{
	struct profile_part part = {
		.from_ns = moment_ns(&selection->from, profile->start_ns, profile->end_ns, 0),
		.until_ns = moment_ns(&selection->to, profile->start_ns, profile->end_ns, UINT64_MAX),
	};

	if (selection->tail && end_of_leaks(profile, selection) < part.until_ns)
		part.until_ns = end_of_leaks(profile, selection);
	return part;
}

/* The other facts describe the whole recording. */
static void note_part(struct profile *part, const struct profile *whole)
{
	profile_add_fact(part, "part", "%.3f s to %.3f s of the recording",
			 (double)(part->start_ns - whole->start_ns) / 1e9,
			 (double)(part->end_ns - whole->start_ns) / 1e9);
}

static int replace(struct profile *profile, const struct profile_part *part)
{
	struct profile chosen;
	BUF(why);
	int err = profile_init(&chosen);

	if (!err) {
		err = profile_cut(&chosen, profile, part, &why);
		if (!err && (part->from_ns || part->until_ns != UINT64_MAX))
			note_part(&chosen, profile);
		profile_release(err ? &chosen : profile);
	}
	if (err < 0)
		log_error("%s", why.len ? why.data : strerror(-err));
	else
		*profile = chosen;
	return err;
}

/* Finds the spans and calls. Returns 0, or -errno after reporting the error. */
static int find_intervals(struct intervals *intervals, struct profile_part *part)
{
	int err = intervals_find(intervals);

	if (err)
		log_error("%s", strerror(-err));
	else if (!intervals->met)
		log_error("--latency and --tag: the recording has no spans and no traced calls");
	part->within = intervals;
	return err || intervals->met ? err : -ENOENT;
}

static int cut_within(struct profile *profile, const struct selection *selection, struct profile_part *part)
{
	struct intervals intervals = {.profile = profile, .least_ns = selection->latency_ns, .tag = selection->tag};
	int err = 0;

	if (selection->latency_ns || selection->tag)
		err = find_intervals(&intervals, part);
	if (!err)
		err = replace(profile, part);
	intervals_release(&intervals);
	return err;
}

static bool is_whole(const struct profile_part *part, const struct selection *selection)
{
	return !part->from_ns && part->until_ns == UINT64_MAX && part->event == NONE && !part->states &&
	       !selection->latency_ns && !selection->tag;
}

int selection_cut(struct profile *profile, const struct selection *selection)
{
	struct profile_part part = times_of(profile, selection);
	int err = find_events(profile, selection, &part);

	part.states = states_of(selection->states);
	if (err || is_whole(&part, selection))
		return err;
	if (part.from_ns >= part.until_ns)
		return log_refuse("--from is not before --to");
	return cut_within(profile, selection, &part);
}
