/* SPDX-License-Identifier: MIT */
#include "collect/kernel/perf_sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mount.h>

#include "base/io.h"
#include "base/text.h"

#define FORMAT_MAX_BYTES (256u << 10)
#define NAMES_SHOWN 12

static int open_folder(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Mounts tracefs without a folder: the mount ends with its descriptors. */
static int open_own_mount(void)
{
	IO_FD(context) = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	IO_FD(mount) = -1;

	if (context >= 0 && syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	return mount < 0 ? -errno : open_folder(mount, "events");
}

int tracefs_open(struct buf *why)
{
	static const char *const places[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};
	int fd = -ENOENT;

	for (size_t i = 0; fd < 0 && i < sizeof(places) / sizeof(*places); i++)
		fd = open_folder(AT_FDCWD, places[i]);
	if (fd < 0)
		fd = open_own_mount();
	if (fd == -ENODEV)
		buf_add_str(why, "this kernel has no tracepoints (it lacks tracefs)");
	else if (fd < 0)
		buf_printf(why, "tracefs, which describes tracepoints, cannot be read (%s): %s", strerror(-fd),
			   geteuid() ? "run as root, or make /sys/kernel/tracing readable"
				     : "mount -t tracefs nodev /sys/kernel/tracing");
	return fd;
}

/* Appends ": did you mean NAME?" if a folder below `folder` has a similar name. */
static void add_nearest(int folder, const char *path, const char *wanted, struct buf *why)
{
	struct text_guess guess = {.typed = wanted};
	int fd = open_folder(folder, path);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			text_guess(&guess, entry->d_name);
	if (dir)
		closedir(dir);
	else
		io_close(&fd);
	text_add_guess(&guess, "", NULL, why);
}

static int explain_unknown(int folder, const char *group, const char *name, struct buf *why)
{
	IO_FD(fd) = open_folder(folder, group);

	if (fd >= 0) {
		buf_printf(why, "the kernel has no tracepoint '%s' in the group %s", name, group);
		add_nearest(folder, group, name, why);
	} else if (!strcmp(group, "syscalls")) {
		buf_add_str(why, "this kernel has no tracepoints of single system calls (CONFIG_FTRACE_SYSCALLS): "
				 "-e syscalls samples all of them");
	} else {
		buf_printf(why, "the kernel has no group of tracepoints '%s'", group);
		add_nearest(folder, ".", group, why);
	}
	return -ENOENT;
}

/* Finds the number after `key` in a line. */
static bool number_after(const char *line, const char *end, const char *key, uint32_t *ret)
{
	const char *found = memmem(line, (size_t)(end - line), key, strlen(key));

	if (!found)
		return false;
	*ret = (uint32_t)strtoul(found + strlen(key), NULL, 10);
	return true;
}

/* A line is "field:unsigned int bytes; offset:28; size:4; signed:0;", with tabs. */
static int parse_line(const char *line, const char *end, const char *field, struct tracefs_field *ret)
{
	const char *declared = memmem(line, (size_t)(end - line), "field:", strlen("field:"));
	const char *semicolon = declared ? memchr(declared, ';', (size_t)(end - declared)) : NULL;
	const char *name = semicolon ? memrchr(declared, ' ', (size_t)(semicolon - declared)) : NULL;
	size_t len = name ? (size_t)(semicolon - ++name) : 0, wanted = strlen(field);
	uint32_t is_signed = 0;

	if (!name || len < wanted || memcmp(name, field, wanted) || (len > wanted && name[wanted] != '['))
		return -ENOENT;
	if (!number_after(semicolon, end, "offset:", &ret->offset) ||
	    !number_after(semicolon, end, "size:", &ret->bytes))
		return -EINVAL;
	ret->is_signed = number_after(semicolon, end, "signed:", &is_signed) && is_signed;
	if (len > wanted || memmem(declared, (size_t)(semicolon - declared), "__data_loc", strlen("__data_loc")) ||
	    ret->bytes > 8 || !ret->bytes || ret->bytes & (ret->bytes - 1) || ret->offset > UINT16_MAX)
		return -EINVAL;
	return 0;
}

int tracefs_parse_field(const char *format, const char *field, struct tracefs_field *ret)
{
	int err = -ENOENT;

	while (err == -ENOENT && *format) {
		const char *end = strchrnul(format, '\n');

		err = parse_line(format, end, field, ret);
		format = *end ? end + 1 : end;
	}
	return err;
}

/* Appends the names of the fields that are whole numbers. The kernel's own, common_…, come first: left out. */
static void add_fields(const char *format, struct buf *why)
{
	size_t shown = 0;

	for (const char *at = format; (at = strstr(at, "field:")) && shown < NAMES_SHOWN; at++) {
		const char *semicolon = strchrnul(at, ';'), *name = memrchr(at, ' ', (size_t)(semicolon - at));
		struct tracefs_field found;
		char text[64];

		if (!name)
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)(semicolon - name - 1), name + 1);
		if (!strncmp(text, "common_", strlen("common_")) || tracefs_parse_field(format, text, &found))
			continue;
		buf_printf(why, "%s%s", shown++ ? ", " : "; it has ", text);
	}
}

static int read_format(int folder, const char *group, const char *name, struct buf *text)
{
	char path[300];

	if (snprintf(path, sizeof(path), "%s/%s/format", group, name) >= (int)sizeof(path))
		return -ENOENT;
	return io_read_file(folder, path, FORMAT_MAX_BYTES, text);
}

static int find_field(const char *format, const char *group, const char *name, const char *field,
		      struct tracefs_field *ret, struct buf *why)
{
	int err = tracefs_parse_field(format, field, ret);

	if (!err)
		return 0;
	if (err == -EINVAL)
		buf_printf(why, "the field %s of %s:%s is no whole number", field, group, name);
	else
		buf_printf(why, "the tracepoint %s:%s has no field %s", group, name, field);
	add_fields(format, why);
	return err;
}

int tracefs_find(int folder, const char *group, const char *name, const char *field, uint64_t *ret_id,
		 struct tracefs_field *ret_field, struct buf *why)
{
	const char *id;
	BUF(text);
	int err = read_format(folder, group, name, &text);

	if (err == -ENOENT) {
		err = explain_unknown(folder, group, name, why);
	} else if (err) {
		buf_printf(why, "the description of %s:%s cannot be read: %s", group, name, strerror(-err));
	} else if (!(id = strstr(text.data, "ID: "))) {
		buf_printf(why, "%s:%s cannot be sampled: it has no number", group, name);
		err = -ENOENT;
	} else {
		*ret_id = strtoull(id + strlen("ID: "), NULL, 10);
		if (field)
			err = find_field(text.data, group, name, field, ret_field, why);
	}
	return err;
}

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
	return err ? err : set_bits(perf, format.data, value);
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
