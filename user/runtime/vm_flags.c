/* SPDX-License-Identifier: MIT */
#include "runtime/vm_flags.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_MAX 127 /* bytes of an option; longer ones are ignored */

static int set_flag(struct vm_flags *flags, const char *name, const char *value)
{
	size_t at = 0;
	struct vm_flag flag = {0}, *items;
	int err;

	if (!*name || strlen(name) > VM_FLAG_NAME_MAX || strlen(value) >= sizeof(flag.value))
		return 0;
	while (at < flags->list.len && strcmp(flags->list.items[at].name, name) < 0)
		at++;
	snprintf(flag.name, sizeof(flag.name), "%s", name);
	snprintf(flag.value, sizeof(flag.value), "%s", value);
	if (at == flags->list.len || strcmp(flags->list.items[at].name, name) != 0) {
		if (flags->list.len >= VM_FLAGS_MAX)
			return 0;
		err = vec_push(&flags->list, flag);
		if (err < 0)
			return err;
		items = flags->list.items;
		memmove(&items[at + 1], &items[at], (flags->list.len - 1 - at) * sizeof(*items));
	}
	flags->list.items[at] = flag;
	return 0;
}

/* Converts "512m" to bytes, as HotSpot does. Other numbers keep their value. False if the text is not a number. */
static bool read_number(const char *text, char *value, size_t size)
{
	static const char units[] = "kmgt";
	const char *unit;
	uint64_t number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, text[0] == '0' && tolower((unsigned char)text[1]) == 'x' ? 16 : 10);
	if (errno)
		return false;
	unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
	if (isdigit((unsigned char)*text) && (!*end || (unit && !end[1]))) {
		unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

		snprintf(value, size, "%" PRIu64, number << shift);
		return number <= UINT64_MAX >> shift;
	}
	snprintf(value, size, "%s", text);
	strtod(text, &end);
	return end > text && !*end && strspn(text, "+-.0123456789eE") == strlen(text) && strlen(text) < size;
}

static int set_number(struct vm_flags *flags, const char *name, const char *text)
{
	char value[sizeof(((struct vm_flag *)0)->value)];

	return read_number(text, value, sizeof(value)) ? set_flag(flags, name, value) : 0;
}

/* Sets sizes that have a special option: Arguments::parse_each_vm_init_arg, JDK 8 to 27. */
static int set_size(struct vm_flags *flags, const char *option)
{
	static const struct {
		const char *option, *flag;
	} sizes[] = {
		{"-Xmx", "MaxHeapSize"},
		{"-Xms", "InitialHeapSize"},
		{"-Xmn", "NewSize"},
		{"-Xmn", "MaxNewSize"},
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(sizes) / sizeof(*sizes); i++)
		if (!strncmp(option, sizes[i].option, strlen(sizes[i].option)))
			err = set_number(flags, sizes[i].flag, option + strlen(sizes[i].option));
	return err;
}

static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return len > 0;
}

static int set_option(struct vm_flags *flags, char *option)
{
	static const char prefix[] = "-XX:";
	char *name = option + strlen(prefix), *equals;

	if (strncmp(option, prefix, strlen(prefix)) != 0)
		return set_size(flags, option);
	if (*name == '+' || *name == '-')
		return is_name(name + 1, strlen(name + 1)) ? set_flag(flags, name + 1, *name == '+' ? "true" : "false")
							   : 0;
	equals = strchr(name, '=');
	if (!equals || !is_name(name, (size_t)(equals - name)))
		return 0;
	*equals = '\0';
	return set_number(flags, name, equals + 1);
}

int vm_flags_add(struct vm_flags *flags, const char *options, size_t len, char separator)
{
	const char *end = options + len, *option_end;
	char option[OPTION_MAX + 1];
	int err = 0;

	for (; !err && options < end; options = option_end + 1) {
		option_end = memchr(options, separator, (size_t)(end - options));
		option_end = option_end ? option_end : end;
		if (option_end - options > OPTION_MAX)
			continue;
		memcpy(option, options, (size_t)(option_end - options));
		option[option_end - options] = '\0';
		err = set_option(flags, option);
	}
	return err;
}

void vm_flags_print(const struct vm_flags *flags, struct buf *out)
{
	for (size_t i = 0; i < flags->list.len; i++)
		buf_printf(out, "%s=%s\n", flags->list.items[i].name, flags->list.items[i].value);
	if (!flags->list.len)
		buf_add_char(out, '\n');
}

void vm_flags_release(struct vm_flags *flags)
{
	vec_release(&flags->list);
}
