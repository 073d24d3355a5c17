/* SPDX-License-Identifier: MIT */
#include "recorder/units.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"

struct unit {
	const char *letters;
	uint64_t factor;
};

/* Times in ns, sizes in bytes; one letter is enough. Of an interval, m is a millisecond. */
static const struct unit units[] = {
	{"", 1},	  {"n", 1},	      {"ns", 1},	  {"u", NS_PER_US},  {"us", NS_PER_US},
	{"m", NS_PER_MS}, {"ms", NS_PER_MS},  {"s", NS_PER_SEC},  {"b", 1},	     {"k", 1u << 10},
	{"kb", 1u << 10}, {"mb", 1u << 20},   {"g", 1u << 30},	  {"gb", 1u << 30},
};

static const struct unit long_units[] = {
	{"", NS_PER_SEC}, {"s", NS_PER_SEC}, {"m", 60 * NS_PER_SEC}, {"h", 3600 * NS_PER_SEC},
	{"d", 86400 * NS_PER_SEC},
};

static bool parse(const char *text, const struct unit *known, size_t count, uint64_t *ret)
{
	char *end;
	uint64_t number;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	for (size_t i = 0; !errno && i < count; i++)
		if (!strcasecmp(end, known[i].letters))
			return !__builtin_mul_overflow(number, known[i].factor, ret);
	return false;
}

bool units_parse(const char *text, uint64_t *ret)
{
	return parse(text, units, sizeof(units) / sizeof(units[0]), ret);
}

bool units_parse_long(const char *text, uint64_t *ret_ns)
{
	return parse(text, long_units, sizeof(long_units) / sizeof(long_units[0]), ret_ns);
}
