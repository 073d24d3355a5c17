/* SPDX-License-Identifier: MIT */
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "duet_jvm.h"
#include "proc/helper.h"
#include "proc/process.h"

/* The unread part of one line. */
struct line {
	const char *at, *end;
};

/* Reads a number that ends with `stop`, and skips `stop`. */
static bool line_number(struct line *line, unsigned int base, char stop, uint64_t *ret)
{
	uint64_t number = 0;
	const char *at;

	for (at = line->at; at < line->end && *at != stop; at++) {
		unsigned int digit = *at >= 'a' ? (unsigned int)(*at - 'a') + 10 : (unsigned int)(*at - '0');

		if (digit >= base || number > (UINT64_MAX - digit) / base)
			return false;
		number = number * base + digit;
	}
	if (at == line->at || at == line->end)
		return false;
	line->at = at + 1;
	*ret = number;
	return true;
}

static bool line_permissions(struct line *line, bool *ret_executable)
{
	if (line->end - line->at < 5 || line->at[4] != ' ')
		return false;
	*ret_executable = line->at[2] == 'x';
	line->at += 5;
	return true;
}

/* The kernel prints a newline in a path as \012, and nothing else escaped. */
static void unescape_newlines(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		bool newline = !strncmp(from, "\\012", 4);

		*to = newline ? '\n' : *from;
		from += newline ? 4 : 1;
	}
	*to = '\0';
}

static char *line_path(struct line *line)
{
	static const char deleted[] = " (deleted)";
	size_t deleted_len = sizeof(deleted) - 1, len;
	char *path;

	while (line->at < line->end && *line->at == ' ')
		line->at++;
	len = (size_t)(line->end - line->at);
	if (len > deleted_len && !memcmp(line->end - deleted_len, deleted, deleted_len))
		len -= deleted_len;
	path = strndup(line->at, len);
	if (path)
		unescape_newlines(path);
	return path;
}

/* "start-end perms offset major:minor inode   path". 1: an executable mapping, 0: skip the line, or -ENOMEM. */
static int parse_line(struct line line, struct mapping *ret)
{
	struct mapping mapping = {0};
	uint64_t major, minor;
	bool executable;

	if (!line_number(&line, 16, '-', &mapping.start) || !line_number(&line, 16, ' ', &mapping.end) ||
	    !line_permissions(&line, &executable) || !line_number(&line, 16, ' ', &mapping.offset) ||
	    !line_number(&line, 16, ':', &major) || !line_number(&line, 16, ' ', &minor) ||
	    !line_number(&line, 10, ' ', &mapping.inode))
		return 0;
	if (!executable || mapping.start >= mapping.end || major > UINT32_MAX || minor > UINT32_MAX)
		return 0;
	mapping.dev_major = (uint32_t)major;
	mapping.dev_minor = (uint32_t)minor;
	mapping.path = line_path(&line);
	if (!mapping.path)
		return -ENOMEM;
	*ret = mapping;
	return 1;
}

static int compare_starts(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static bool is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       !strcmp(a->path, b->path);
}

/* True if `behind` has the part of the file that it would have if the file were mapped from `before` on. */
static bool continues(const struct mapping *before, const struct mapping *behind)
{
	return is_same_file(before, behind) && behind->offset - before->offset == behind->start - before->start;
}

/* Makes the mappings from `first` to `end` parts of the file before them. Returns 0 or -ENOMEM. */
static int fill(struct mapping *first, const struct mapping *end)
{
	const struct mapping *before = first - 1;

	for (struct mapping *hole = first; hole < end; hole++) {
		char *path = strdup(before->path);

		if (!path)
			return -ENOMEM;
		free(hole->path);
		hole->path = path;
		hole->offset = before->offset + (hole->start - before->start);
		hole->inode = before->inode;
		hole->dev_major = before->dev_major;
		hole->dev_minor = before->dev_minor;
	}
	return 0;
}

/* Programs copy code to huge pages in the middle of its mapping. The file still has its names and rows. */
static int fill_holes(struct maps *maps)
{
	struct mapping *all = maps->list.items;
	int err = 0;

	for (size_t before = 0, i = 1; !err && i < maps->list.len; i++) {
		bool is_adjacent = all[i - 1].end == all[i].start;

		if (!is_adjacent || !all[before].inode || all[before].path[0] != '/' ||
		    is_same_file(&all[before], &all[i])) {
			if (is_adjacent && i - before > 1 && continues(&all[before], &all[i]))
				err = fill(&all[before + 1], &all[i]);
			before = i;
		}
	}
	return err;
}

static int parse_lines(struct maps *maps, const char *text, const char *end)
{
	const char *next;
	int err;

	for (; text < end; text = next + 1) {
		struct mapping mapping;

		next = memchr(text, '\n', (size_t)(end - text));
		if (!next) /* the last line is incomplete */
			break;
		err = parse_line((struct line){text, next}, &mapping);
		if (err < 0)
			return err;
		if (err && vec_push(&maps->list, mapping) < 0) {
			free(mapping.path);
			return -ENOMEM;
		}
	}
	if (maps->list.len)
		qsort(maps->list.items, maps->list.len, sizeof(*maps->list.items), compare_starts);
	return fill_holes(maps);
}

int maps_parse(struct maps *maps, const char *text, size_t len)
{
	struct maps parsed = {0};
	int err = parse_lines(&parsed, text, text + len);

	if (err < 0) {
		maps_release(&parsed);
		return err;
	}
	maps_release(maps);
	*maps = parsed;
	return 0;
}

/* Leaves only the whole lines of executable mappings. */
static void keep_executable(struct buf *text)
{
	char *to = text->data, *next, *end = text->data + text->len;

	for (char *at = text->data; at < end && (next = memchr(at, '\n', (size_t)(end - at))); at = next + 1) {
		const char *blank = memchr(at, ' ', (size_t)(next - at));
		size_t len = (size_t)(next + 1 - at);

		if (!blank || next - blank < 5 || blank[3] != 'x')
			continue;
		memmove(to, at, len);
		to += len;
	}
	buf_cut(text, (size_t)(to - text->data));
}

/* struct procmap_query of include/uapi/linux/fs.h, Linux 6.11, which older headers lack. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, end, mapping_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size; /* of the room; then of the name, with its 0; 0: there is none */
	uint32_t build_id_size;
	uint64_t name, build_id;
};
_Static_assert(sizeof(struct query) == 104, "as in the kernel");

#define QUERY _IOWR('f', 17, struct query)
#define IS_READABLE 0x01
#define IS_WRITABLE 0x02
#define IS_EXECUTABLE 0x04
#define IS_SHARED 0x08
#define COVERING_OR_NEXT 0x10
#define NAMED_AMONG (1u << 16) /* mappings that are looked at for a name; the kernel lets a process have as many */

static void add_name(struct buf *text, const char *name)
{
	for (; *name; name++) {
		if (*name == '\n')
			buf_add_str(text, "\\012");
		else
			buf_add_char(text, *name);
	}
}

static void add_line(struct buf *text, const struct query *mapping, const char *name)
{
	uint64_t flags = mapping->mapping_flags;

	buf_printf(text, "%" PRIx64 "-%" PRIx64 " %c%cx%c %" PRIx64 " %" PRIx32 ":%" PRIx32 " %" PRIu64 " ",
		   mapping->start, mapping->end, flags & IS_READABLE ? 'r' : '-', flags & IS_WRITABLE ? 'w' : '-',
		   flags & IS_SHARED ? 's' : 'p', mapping->offset, mapping->dev_major, mapping->dev_minor,
		   mapping->inode);
	if (mapping->name_size)
		add_name(text, name);
	buf_add_char(text, '\n');
}

/*
 * Asks the kernel for the executable mappings only: a process with 1,000 threads has 2,000 others. Appends lines as in
 * /proc/PID/maps, at most `max` bytes. `maps_fd` is that file, open. [vsyscall] is not among them: no code runs there.
 * Returns 0 or -errno: -ENOTTY before Linux 6.11.
 */
static int query_executable(int maps_fd, size_t max, struct buf *text)
{
	size_t len = text->len;
	char name[PATH_MAX];
	uint64_t next = 0;

	for (;;) {
		struct query query = {.size = sizeof(query),
				      .flags = IS_EXECUTABLE | COVERING_OR_NEXT,
				      .address = next,
				      .name_size = sizeof(name),
				      .name = (uintptr_t)name};

		if (ioctl(maps_fd, QUERY, &query) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (query.end <= next)
			return -EPROTO;
		add_line(text, &query, name);
		if (text->len - len > max)
			return -EFBIG;
		next = query.end;
	}
}

static bool begins_with_one(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Returns as query_executable(). A name that does not fit is none of those. */
static int query_named(int maps_fd, const char *const *names, size_t count, uint64_t *at)
{
	char name[PATH_MAX];
	uint64_t next = *at;

	for (unsigned int i = 0; i < NAMED_AMONG; i++) {
		struct query query = {.size = sizeof(query), .flags = COVERING_OR_NEXT, .address = next,
				      .name_size = sizeof(name), .name = (uintptr_t)name};

		if (ioctl(maps_fd, QUERY, &query) < 0)
			return -errno;
		if (query.end <= next)
			return -EPROTO;
		next = query.end;
		if (query.start < *at || !query.name_size || !begins_with_one(name, names, count))
			continue;
		*at = query.start;
		return 0;
	}
	return -ENOENT;
}

/* The same in the text of /proc/PID/maps. */
static int find_named(const char *text, const char *const *names, size_t count, uint64_t *at)
{
	for (const char *next; (next = strchr(text, '\n')); text = next + 1) {
		struct line line = {text, next};
		uint64_t start;

		if (!line_number(&line, 16, '-', &start) || start < *at)
			continue;
		for (int blanks = 0; line.at < line.end && blanks < 4; line.at++)
			blanks += *line.at == ' ';
		line.at += strspn(line.at, "0123456789 ");
		if (line.at >= line.end || !begins_with_one(line.at, names, count))
			continue;
		*at = start;
		return 0;
	}
	return -ENOENT;
}

int maps_find_named(int proc_fd, const char *const *names, size_t count, uint64_t *at)
{
	IO_FD(fd) = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	BUF(text);
	int err = fd < 0 ? -errno : query_named(fd, names, count, at);

	if (err != -ENOTTY)
		return err;
	err = io_read_again(fd, MAPS_MAX_FILE, &text);
	return err ? err : find_named(text.data, names, count, at);
}

/* Runs in the helper. */
static int read_executable(const struct helper_task *task, struct helper_answer *answer)
{
	struct buf *text = &answer->text;
	IO_FD(fd) = openat(task->fd, "maps", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	if (!err)
		err = query_executable(fd, MAPS_MAX_FILE, text);
	if (fd >= 0 && err && err != -EFBIG) { /* before Linux 6.11, or a name is longer than PATH_MAX */
		buf_cut(text, 0);
		err = io_read_again(fd, MAPS_MAX_FILE, text);
		keep_executable(text);
	}
	return err;
}

int maps_read_at(struct maps *maps, const struct charge *charge, int proc_fd)
{
	const struct helper_task task = {.work = read_executable, .charge = charge, .fd = proc_fd, .path = ""};
	struct helper_answer answer;
	int err = helper_run(&task, &answer);

	if (!err)
		err = maps_parse(maps, answer.text.data, answer.text.len);
	helper_answer_release(&answer);
	return err == -ENOENT ? -ESRCH : err; /* a dead process's folder is empty */
}

int maps_read(struct maps *maps, const struct charge *charge)
{
	IO_FD(fd) = proc_open(charge, "");

	return fd < 0 ? fd : maps_read_at(maps, charge, fd);
}

/* Returns the index of the first mapping that starts after the address, or the number of mappings. */
static size_t find_behind(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->list.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps->list.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int maps_add(struct maps *maps, const struct mapping *mapping)
{
	size_t at = find_behind(maps, mapping->start);
	struct mapping copy = *mapping;

	if ((at && maps->list.items[at - 1].end > mapping->start) ||
	    (at < maps->list.len && maps->list.items[at].start < mapping->end))
		return 0;
	copy.path = strdup(mapping->path);
	if (!copy.path || vec_push(&maps->list, copy) < 0) {
		free(copy.path);
		return -ENOMEM;
	}
	memmove(&maps->list.items[at + 1], &maps->list.items[at], (maps->list.len - 1 - at) * sizeof(copy));
	maps->list.items[at] = copy;
	return 0;
}

void maps_release(struct maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->list.len; i++)
		free(maps->list.items[i].path);
	vec_release(&maps->list);
}

bool maps_equal(const struct maps *a, const struct maps *b)
{
	if (a->list.len != b->list.len)
		return false;
	for (size_t i = 0; i < a->list.len; i++) {
		const struct mapping *x = &a->list.items[i], *y = &b->list.items[i];

		if (x->start != y->start || x->end != y->end || x->offset != y->offset || !is_same_file(x, y))
			return false;
	}
	return true;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	size_t behind = find_behind(maps, address);

	return behind && address < maps->list.items[behind - 1].end ? &maps->list.items[behind - 1] : NULL;
}

const struct mapping *maps_find_file(const struct maps *maps, const char *name)
{
	for (size_t i = 0; *name && i < maps->list.len; i++)
		if (!strcmp(basename(maps->list.items[i].path), name))
			return &maps->list.items[i];
	return NULL;
}

bool maps_have_musl(const struct maps *maps)
{
	for (size_t i = 0; i < maps->list.len; i++)
		if (strstr(maps->list.items[i].path, "/ld-musl-"))
			return true;
	return false;
}

const struct mapping *maps_libjvm(const struct maps *maps)
{
	for (size_t i = 0; i < maps->list.len; i++)
		if (duet_is_libjvm(maps->list.items[i].path))
			return &maps->list.items[i];
	return NULL;
}

bool mapping_is_file(const struct mapping *mapping)
{
	static const char *const memory[] = {"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"};

	for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		if (!strncmp(mapping->path, memory[i], strlen(memory[i])))
			return false;
	return mapping->inode != 0 || !strcmp(mapping->path, "[vdso]");
}

static struct mapping_note *slot_of(const struct mapping_log *log, uint64_t number)
{
	return &log->notes[number % MAPPING_LOG_NOTES];
}

/* Returns NULL when there is no such note, or when it was overwritten. */
static const struct mapping_note *find_note(const struct mapping_log *log, uint64_t number)
{
	return number && number + MAPPING_LOG_NOTES > log->count ? slot_of(log, number) : NULL;
}

static const struct mapping_note *last_note(const struct mapping_log *log, pid_t pid)
{
	uint64_t number = 0;

	return map_get(&log->last, (uint64_t)pid, &number) ? find_note(log, number) : NULL;
}

static void forget_note(struct mapping_log *log, uint64_t number)
{
	struct mapping_note *note = slot_of(log, number);
	uint64_t last;

	if (map_get(&log->last, (uint64_t)note->pid, &last) && last == number)
		map_remove(&log->last, (uint64_t)note->pid);
	free(note->mapping.path);
	*note = (struct mapping_note){0};
}

void mapping_log_release(struct mapping_log *log)
{
	for (size_t i = 0; log->notes && i < MAPPING_LOG_NOTES; i++)
		free(log->notes[i].mapping.path);
	free(log->notes);
	map_release(&log->last);
	*log = (struct mapping_log){0};
}

/* A program that maps and unmaps all the time is read from /proc. */
static bool is_one_too_many(const struct mapping_log *log, struct mapping_note *note)
{
	const struct mapping_note *last = last_note(log, note->pid);

	if (note->kind != MAPPING_NOTE_MAPPED)
		return false;
	note->mapped = last && last->kind == MAPPING_NOTE_MAPPED ? last->mapped + 1 : 1;
	return note->mapped > MAPPING_LOG_MAPPINGS && !duet_is_libjvm(note->mapping.path);
}

int mapping_log_add(struct mapping_log *log, const struct mapping_note *note)
{
	uint64_t number = log->count + 1;
	struct mapping_note added = *note;

	if (log->notes && is_one_too_many(log, &added))
		return 0;
	if (!log->notes)
		log->notes = calloc(MAPPING_LOG_NOTES, sizeof(*log->notes));
	if (!log->notes)
		return -ENOMEM;
	if (number > MAPPING_LOG_NOTES)
		forget_note(log, number - MAPPING_LOG_NOTES);
	added.previous = 0;
	(void)map_get(&log->last, (uint64_t)note->pid, &added.previous);
	added.mapping.path = note->kind == MAPPING_NOTE_MAPPED ? strdup(note->mapping.path) : NULL;
	if ((note->kind == MAPPING_NOTE_MAPPED && !added.mapping.path) ||
	    map_put(&log->last, (uint64_t)note->pid, number) < 0) {
		free(added.mapping.path);
		return -ENOMEM;
	}
	*slot_of(log, number) = added;
	log->count = number;
	return 0;
}

/* The last fork or exec before this time. Notes are read CPU after CPU, so the list is not in order of time. */
static const struct mapping_note *find_beginning(const struct mapping_log *log, pid_t pid, uint64_t time_ns)
{
	const struct mapping_note *found = NULL;

	for (const struct mapping_note *note = last_note(log, pid); note; note = find_note(log, note->previous))
		if (note->kind != MAPPING_NOTE_MAPPED && note->time_ns <= time_ns &&
		    (!found || note->time_ns > found->time_ns))
			found = note;
	return found;
}

const struct mapping_note *mapping_log_next(const struct mapping_log *log, uint64_t *number)
{
	if (*number >= log->count)
		return NULL;
	++*number;
	if (*number + MAPPING_LOG_NOTES <= log->count)
		*number = log->count - MAPPING_LOG_NOTES + 1;
	return slot_of(log, *number);
}

bool mapping_log_has_exec(const struct mapping_log *log, pid_t pid, uint64_t since_ns)
{
	for (const struct mapping_note *note = last_note(log, pid); note; note = find_note(log, note->previous))
		if (note->kind == MAPPING_NOTE_EXEC && note->time_ns > since_ns)
			return true;
	return false;
}

pid_t mapping_log_parent(const struct mapping_log *log, pid_t pid, uint64_t time_ns)
{
	for (const struct mapping_note *note = last_note(log, pid); note; note = find_note(log, note->previous))
		if (note->kind == MAPPING_NOTE_FORKED && note->time_ns <= time_ns)
			return note->parent;
	return 0;
}

int mapping_log_find(const struct mapping_log *log, pid_t pid, uint64_t time_ns, struct maps *maps, pid_t *ret_parent,
		     uint64_t *ret_forked_ns)
{
	const struct mapping_note *beginning = find_beginning(log, pid, time_ns);
	int err = 0;

	if (!beginning)
		return -ENOENT;
	*ret_parent = beginning->kind == MAPPING_NOTE_FORKED ? beginning->parent : 0;
	*ret_forked_ns = beginning->time_ns;
	/* Newest first: where mappings overlap, the older one no longer existed and is not added. */
	for (const struct mapping_note *note = last_note(log, pid); !err && note; note = find_note(log, note->previous))
		if (note->kind == MAPPING_NOTE_MAPPED && note->time_ns >= beginning->time_ns &&
		    note->time_ns <= time_ns && maps->list.len < MAPPING_LOG_MAPPINGS)
			err = maps_add(maps, &note->mapping);
	return err;
}
