/* SPDX-License-Identifier: MIT */
#include "writers/jfr/rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char *const names[JFR_RATES] = {
	[JFR_RATE_CPU] = "cpu",
	[JFR_RATE_ALLOC] = "alloc",
	[JFR_RATE_LOCK] = "lock",
	[JFR_RATE_WALL] = "wall",
	[JFR_RATE_NATIVEMEM] = "nativemem",
	[JFR_RATE_NATIVELOCK] = "nativelock",
	[JFR_RATE_TRACE] = "trace",
	[JFR_RATE_SPAN] = "span",
};

/* Returns the category of "cpu:50", or JFR_RATES. */
static enum jfr_rate rate_of(const char *text, size_t len)
{
	enum jfr_rate rate = 0;

	while (rate < JFR_RATES && (strncmp(names[rate], text, len) || names[rate][len]))
		rate++;
	return rate;
}

int jfr_rates_parse(uint32_t limits[JFR_RATES], const char *text, struct buf *why)
{
	while (*text) {
		size_t len = strcspn(text, ":,;");
		enum jfr_rate rate = rate_of(text, len);
		unsigned long limit = 0;
		char *end = NULL;

		if (rate < JFR_RATES && text[len] == ':' && text[len + 1] >= '0' && text[len + 1] <= '9')
			limit = strtoul(text + len + 1, &end, 10);
		if (!end || (*end && *end != ',' && *end != ';') || !limit || limit > UINT32_MAX) {
			buf_printf(why,
				   "ratelimit '%s': CATEGORY:NUMBER is accepted, with commas; categories are cpu, "
				   "alloc, lock, wall, nativemem, nativelock, trace and span",
				   text);
			return -EINVAL;
		}
		limits[rate] = (uint32_t)limit;
		text = end + (*end != '\0');
	}
	return 0;
}

bool jfr_budget_take(struct jfr_budget *budget, uint32_t limit, uint64_t time_ns, uint64_t events)
{
	uint64_t second = time_ns / NS_PER_SEC;

	if (!budget->is_begun)
		budget->left = limit;
	else if (second > budget->second)
		budget->left = second > budget->second + 1 || budget->left > limit ? 2ull * limit
										   : budget->left + limit;
	if (!budget->is_begun || second > budget->second)
		budget->second = second;
	budget->is_begun = true;
	if (events > budget->left)
		return false;
	budget->left -= events;
	return true;
}
