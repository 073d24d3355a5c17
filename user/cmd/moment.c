/* SPDX-License-Identifier: MIT */
#include "cmd/moment.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/opt.h"

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
	buf_add_str(why, "a time since the start (10s, 0.5s, 5m), before the end (-10s), or in UTC (10:00, 10:00:00, "
			 "2026-11-22T10:00:00) is accepted");
	return -EINVAL;
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
