/* SPDX-License-Identifier: MIT */
#include "profile/trace.h"

#include <inttypes.h>
#include <stdio.h>

void trace_id_text(const struct profile_sample *sample, char ret[TRACE_ID_DIGITS + 1])
{
	snprintf(ret, TRACE_ID_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, sample->trace_high, sample->trace_low);
}

void span_id_text(const struct profile_sample *sample, char ret[SPAN_ID_DIGITS + 1])
{
	snprintf(ret, SPAN_ID_DIGITS + 1, "%016" PRIx64, sample->span);
}

static int digit_of(char letter)
{
	if (letter >= '0' && letter <= '9')
		return letter - '0';
	if (letter >= 'a' && letter <= 'f')
		return letter - 'a' + 10;
	return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

/* 16 digits. */
static bool parse_number(const char *text, uint64_t *ret)
{
	uint64_t number = 0;

	for (size_t i = 0; i < SPAN_ID_DIGITS; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return false;
		number = number << 4 | (unsigned int)digit;
	}
	*ret = number;
	return true;
}

bool trace_id_parse(struct profile_sample *sample, const char *text, size_t bytes)
{
	uint64_t high, low;

	if (bytes != TRACE_ID_DIGITS || !parse_number(text, &high) || !parse_number(text + SPAN_ID_DIGITS, &low))
		return false;
	sample->trace_high = high;
	sample->trace_low = low;
	return true;
}

bool span_id_parse(struct profile_sample *sample, const char *text, size_t bytes)
{
	return bytes == SPAN_ID_DIGITS && parse_number(text, &sample->span);
}
