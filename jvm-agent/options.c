/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_DEFAULT_MS 2000
#define SECRET_VARIABLE "DUET_SECRET"

static const char *set_control(struct agent_options *options, const char *value, size_t length)
{
	if (length == 0 || length > DUET_NAME_MAX)
		return "control= takes a name of 1 to 107 bytes";
	memcpy(options->control, value, length);
	options->control[length] = '\0';
	return NULL;
}

static const char *set_secret(struct agent_options *options, const char *value, size_t length)
{
	if (length != DUET_SECRET_DIGITS || strspn(value, "0123456789abcdef") < length)
		return "secret= takes 32 hexadecimal digits";
	memcpy(options->secret, value, length);
	return NULL;
}

static const char *set_wait(struct agent_options *options, const char *value, size_t length)
{
	unsigned int wait_ms = 0;

	for (size_t i = 0; i < length; i++) {
		if (value[i] < '0' || value[i] > '9' || wait_ms > OPTIONS_WAIT_MAX_MS)
			return "wait= takes milliseconds, at most 60000";
		wait_ms = wait_ms * 10 + (unsigned int)(value[i] - '0');
	}
	if (length == 0 || wait_ms > OPTIONS_WAIT_MAX_MS)
		return "wait= takes milliseconds, at most 60000";
	options->wait_ms = wait_ms;
	return NULL;
}

static const struct {
	const char *key;
	const char *(*set)(struct agent_options *options, const char *value, size_t length);
} keys[] = {
	{"control=", set_control},
	{"secret=", set_secret},
	{"wait=", set_wait},
};

static const char *parse_one(struct agent_options *options, const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t key_length = strlen(keys[i].key);

		if (length >= key_length && !memcmp(text, keys[i].key, key_length))
			return keys[i].set(options, text + key_length, length - key_length);
	}
	return "unknown option; expected control=NAME,secret=HEX[,wait=MS]";
}

/* Removes the variable, so that the application and the programs that it starts do not see the secret. */
static const char *set_environment_secret(struct agent_options *options)
{
	const char *value = getenv(SECRET_VARIABLE);
	const char *why = value ? set_secret(options, value, strlen(value)) : "secret=HEX is missing";

	unsetenv(SECRET_VARIABLE);
	return why;
}

int options_parse(struct agent_options *ret_options, const char *text, const char **ret_why)
{
	struct agent_options options = {.wait_ms = WAIT_DEFAULT_MS};
	const char *why = NULL;

	while (text && *text && !why) {
		size_t length = strcspn(text, ",");

		why = parse_one(&options, text, length);
		text += length + (text[length] == ',');
	}
	if (!why && !options.control[0])
		why = "control=NAME is missing";
	if (!why && !options.secret[0])
		why = set_environment_secret(&options);
	if (why) {
		*ret_why = why;
		return -EINVAL;
	}
	*ret_options = options;
	return 0;
}
