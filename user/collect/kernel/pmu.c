/* SPDX-License-Identifier: MIT */
#include "collect/kernel/pmu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

#define DEVICES "/sys/bus/event_source/devices/"
#define SYSFS_MAX_BYTES 4096 /* a page: no file there is larger */

static int read_file(const char *pmu, const char *folder, const char *name, struct buf *text)
{
	char path[300];

	if (strchr(name, '/') || name[0] == '.' ||
	    snprintf(path, sizeof(path), DEVICES "%s/%s%s", pmu, folder, name) >= (int)sizeof(path))
		return -ENOENT;
	return io_read_file(AT_FDCWD, path, SYSFS_MAX_BYTES, text);
}

int pmu_type(const char *pmu)
{
	BUF(text);

	return strchr(pmu, '/') || read_file(pmu, "", "type", &text) ? -ENOENT : atoi(text.data);
}

/* Spreads the value over the bits of a format such as "config:0-7,32-35". */
static int set_bits(struct event_perf *perf, const char *format, uint64_t value)
{
	static const char *const words[] = {"config:", "config1:", "config2:"};
	uint64_t *const fields[] = {&perf->config, &perf->config1, &perf->config2};
	uint64_t *field = NULL;

	for (size_t i = 0; i < 3 && !field; i++)
		if (!strncmp(format, words[i], strlen(words[i]))) {
			field = fields[i];
			format += strlen(words[i]);
		}
	while (field && *format >= '0' && *format <= '9') {
		char *end;
		unsigned long first = strtoul(format, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long bit = first; bit <= last && bit < 64; bit++, value >>= 1)
			*field |= (value & 1) << bit;
		format = *end == ',' ? end + 1 : end;
	}
	return field && !value ? 0 : -EINVAL;
}

static uint64_t *whole_field(struct event_perf *perf, const char *name)
{
	return !strcmp(name, "config")    ? &perf->config
	       : !strcmp(name, "config1") ? &perf->config1
	       : !strcmp(name, "config2") ? &perf->config2
					  : NULL;
}

/* "event=0xc0", or "edge", which is edge=1. */
static int set_term(struct event_perf *perf, const char *pmu, char *term)
{
	char *equal = strchr(term, '='), *end = "";
	uint64_t value, *whole;
	BUF(format);
	int err;

	if (equal)
		*equal++ = '\0';
	value = equal ? strtoull(equal, &end, 0) : 1;
	if (*end || end == equal)
		return -EINVAL;
	whole = whole_field(perf, term);
	if (whole) {
		*whole = value;
		return 0;
	}
	err = read_file(pmu, "format/", term, &format);
	if (!err)
		err = set_bits(perf, format.data, value);
	return err;
}

static int set_terms(struct event_perf *perf, const char *pmu, const char *terms, bool is_event, struct buf *why)
{
	char *copy = strdup(terms), *rest = copy, *term;
	BUF(event);
	int err = copy ? 0 : -ENOMEM;

	while (!err && (term = strsep(&rest, ",\n"))) {
		buf_clear(&event);
		if (!*term)
			continue;
		if (!is_event && !strchr(term, '=') && !read_file(pmu, "events/", term, &event))
			err = set_terms(perf, pmu, event.data, true, why);
		else
			err = set_term(perf, pmu, term);
		if (err && !why->len)
			buf_printf(why, "the PMU %s has no event or term '%s': see events and format in " DEVICES "%s",
				   pmu, term, pmu);
	}
	free(copy);
	return err;
}

static void add_pmus(struct buf *why)
{
	DIR *dir = opendir(DEVICES);
	const struct dirent *entry;
	const char *before = ": this machine has ";

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			buf_printf(why, "%s%s", before, entry->d_name);
			before = ", ";
		}
	if (dir)
		closedir(dir);
}

int pmu_find(struct event_perf *perf, const char *pmu, const char *terms, struct buf *why)
{
	int type = pmu_type(pmu);

	if (type < 0) {
		buf_printf(why, "there is no PMU '%s'", pmu);
		add_pmus(why);
		return type;
	}
	perf->type = (uint32_t)type;
	return set_terms(perf, pmu, terms, false, why);
}
