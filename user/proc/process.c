/* SPDX-License-Identifier: MIT */
#include "proc/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "proc/helper.h"
#include "proc/room.h"

#define STAT_MAX 4096 /* bytes of the file */

int proc_open(const struct charge *charge, const char *folder)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", charge->living, folder);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* The process's name may hold anything, even ") R 1", but no later field can hold ')'. */
int proc_stat_parse(struct proc_stat *ret, const char *text)
{
	const char *name = strchr(text, '('), *at = strrchr(text, ')');
	char *end;

	if (!name || !at || at < name || at[1] != ' ' || !at[2])
		return -EPROTO;
	*ret = (struct proc_stat){.state = at[2]};
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(at - name - 1), name + 1);
	at += 3;
	for (int field = STAT_PARENT; field < STAT_FIELDS; field++, at = end) {
		ret->fields[field] = strtoull(at, &end, 10);
		if (end == at)
			return -EPROTO;
	}
	return 0;
}

int proc_stat_read_again(struct proc_stat *ret, int fd)
{
	BUF(text);
	int err = io_read_again(fd, STAT_MAX, &text);

	if (!err)
		err = proc_stat_parse(ret, text.data);
	return err;
}

int proc_stat_read(struct proc_stat *ret, int folder, const char *name)
{
	IO_FD(fd) = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno; /* a dead process's folder is empty */
	return proc_stat_read_again(ret, fd);
}

int proc_stat_of(struct proc_stat *ret, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_read(ret, AT_FDCWD, path);
}

/* False for a process that has ended, and for kernel threads. */
static bool read_moment(pid_t pid, struct proc_stat *ret)
{
	return !proc_stat_of(ret, pid) && !(ret->fields[STAT_FLAGS] & PF_KTHREAD);
}

static uint64_t ticks_of(const struct proc_stat *stat)
{
	return stat->fields[STAT_USER] + stat->fields[STAT_SYSTEM];
}

static void note(void *context, pid_t pid)
{
	struct proc_stat moment;

	if (read_moment(pid, &moment))
		(void)map_put(context, (uint64_t)pid, ticks_of(&moment) + 1);
}

void busy_note(struct map *ret_busy)
{
	(void)process_each(note, ret_busy);
}

void busy_each(const struct map *busy, void (*visit)(void *context, pid_t pid), void *context)
{
	uint64_t pid, ticks;
	size_t cursor = 0;
	struct proc_stat now;

	while (map_next(busy, &cursor, &pid, &ticks))
		if (read_moment((pid_t)pid, &now) && (ticks_of(&now) + 1 > ticks || now.state == 'R'))
			visit(context, (pid_t)pid);
}

/* Both classes of ELF files have the same first fields. */
static const char *judge(const Elf64_Ehdr *head)
{
	if (memcmp(head->e_ident, ELFMAG, SELFMAG))
		return NULL;
	if (head->e_ident[EI_CLASS] == ELFCLASS32)
		return "it is a 32-bit program";
	return head->e_machine == MACHINE_ELF ? NULL : "it is a program for another processor";
}

const char *machine_foreign(pid_t pid)
{
	Elf64_Ehdr head;
	IO_FD(fd) = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return pread(fd, &head, sizeof(head), 0) == sizeof(head) ? judge(&head) : NULL;
}

#define MAPS_COST_NS (200 * NS_PER_MS) /* CPU time that one process's mappings may cost at once */
#define MAPS_COST_SHARE 20 /* in the long run a 20th of the time */
#define PROC_MAX_FILE 65536 /* bytes of status to read */
#define SCHEDSTAT_MAX 128
#define THREADS_ASKED 256 /* when the first one has ended: most threads that are asked whether they live */
#define PF_EXITING 0x4 /* linux/sched.h: set in do_exit(), which closes files before the state shows it */

static int proc_read(int proc_fd, const char *name, struct buf *text)
{
	int err;

	buf_clear(text);
	err = io_read_file(proc_fd, name, PROC_MAX_FILE, text);
	return err == -ENOENT ? -ESRCH : err; /* a dead process's folder is empty */
}

/*
 * Reads the stat of the main thread, which has the process's start, state and flags. For the process's own, the kernel
 * adds up the times of all threads: 40 us for 1,000 of them.
 */
static int proc_read_stat(pid_t pid, struct proc_stat *stat)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	return proc_stat_read(stat, AT_FDCWD, path);
}

/* Returns true if the thread has not begun to exit, and no signal is about to end it. */
static bool is_living(const struct proc_stat *stat)
{
	return !(stat->fields[STAT_FLAGS] & PF_EXITING) && !(stat->fields[STAT_PENDING] & 1u << (SIGKILL - 1));
}

/* Returns what follows "key:" in /proc/PID/status, or NULL. No name can fake one: newlines are escaped. */
static const char *status_field(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? at + strlen(key) : NULL;
}

/* The line has the real id first, then the effective one. `ret_real` may be NULL. */
static void status_ids(const char *status, const char *key, unsigned int *ret_real, unsigned int *ret_effective)
{
	const char *at = status_field(status, key);
	unsigned int real, effective;

	if (!at || sscanf(at, "%u %u", &real, &effective) != 2)
		return;
	*ret_effective = effective;
	if (ret_real)
		*ret_real = real;
}

/* NSpid: has one number per pid namespace, the innermost last. Absent before Linux 4.1. */
static void status_ns_pid(const char *status, pid_t *ret)
{
	const char *at = status_field(status, "\nNSpid:");
	int number, len;

	while (at && *at != '\n' && sscanf(at, "%*[ \t]%d%n", &number, &len) == 1) {
		*ret = number;
		at += len;
	}
}

/* The real user pays for the process: anybody may start programs that become root's. */
static void read_status(struct process *process, int proc_fd, struct buf *text)
{
	uid_t real;

	if (proc_read(proc_fd, "status", text) < 0)
		return;
	real = process->uid;
	status_ids(text->data, "\nUid:", &real, &process->uid);
	status_ids(text->data, "\nGid:", NULL, &process->gid);
	status_ns_pid(text->data, &process->ns_pid);
	process->payer = allowance_payer(proc_fd, real);
}

/* Replaces the mappings. If the user has his share of them, there are none. */
static void set_maps(struct process *process, struct maps *maps)
{
	room_give(ROOM_MAPS, &process->payer, process->maps.list.len);
	maps_release(&process->maps);
	process->is_over_share = !room_take(ROOM_MAPS, &process->payer, maps->list.len);
	if (process->is_over_share)
		maps_release(maps);
	process->maps = *maps;
	*maps = (struct maps){0};
}

static void read_executable(struct process *process, int proc_fd)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(proc_fd, "exe", target, sizeof(target));

	free(process->executable);
	process->executable = len > 0 ? strndup(target, (size_t)len) : NULL;
}

/* Fails for kernel threads, and for some processes even as root. maps_ns is set, so as not to retry at once. */
static void read_first_maps(struct process *process, int proc_fd)
{
	struct maps maps = {0};
	struct charge charge;

	process->maps_ns = 0;
	if (!charge_begin(&charge, process))
		return;
	(void)maps_read_at(&maps, &charge, proc_fd);
	set_maps(process, &maps);
	process->maps_ns = clock_monotonic_ns();
	process->maps_cost_ns += charge_end(&charge);
}

/* If the first thread has ended, which has no memory and files then, takes a living one's folder instead. */
static void find_living(struct process *process, int *proc_fd, const struct proc_stat *stat)
{
	pid_t tid = is_living(stat) ? process->pid : process_living_thread(process->pid);
	char name[32];
	int fd;

	process->living = process->pid;
	if (!tid || tid == process->pid)
		return;
	snprintf(name, sizeof(name), "task/%d", tid);
	fd = openat(*proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	io_close(proc_fd);
	*proc_fd = fd;
	process->living = tid;
}

/* Reads all there is of the process with that start time (0 = any). Returns 0, -ESRCH, or another -errno. */
static int read_all(struct process *process, const struct charge *charge)
{
	IO_FD(proc_fd) = proc_open(charge, "");
	struct proc_stat stat;
	BUF(text);
	int err;

	process->is_unread = proc_fd >= 0 && process->start_ticks && allowance_is_spent(proc_fd, &process->payer);
	if (process->is_unread)
		return 0;
	err = proc_fd < 0 ? proc_fd : proc_stat_read(&stat, proc_fd, "stat");
	if (!err && process->start_ticks && process->start_ticks != stat.fields[STAT_START])
		err = -ESRCH;
	if (err)
		return err;
	process->read_ns = clock_monotonic_ns();
	process->start_ticks = stat.fields[STAT_START];
	snprintf(process->comm, sizeof(process->comm), "%.15s", stat.comm);
	find_living(process, &proc_fd, &stat);
	read_status(process, proc_fd, &text);
	read_executable(process, proc_fd);
	read_first_maps(process, proc_fd);
	return 0;
}

/* Whoever pays is known afterwards. */
static int process_read(struct process *process)
{
	struct charge charge;
	int err;

	charge_begin_unknown(&charge, process->pid);
	err = read_all(process, &charge);
	charge.payer = process->payer;
	(void)charge_end(&charge);
	return err;
}

void *process_state(struct process *process, enum process_folder folder)
{
	return &process->states[folder];
}

static void process_free(struct process *process)
{
	set_maps(process, &(struct maps){0});
	free(process->executable);
	free(process);
}

void process_table_init(struct process_table *table)
{
	*table = (struct process_table){0};
}

void process_table_release(struct process_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->all.len; i++)
		process_free(table->all.items[i]);
	vec_release(&table->all);
	map_release(&table->by_pid);
}

void process_exit(struct process *process)
{
	if (!process->exited)
		process->exited_ns = clock_monotonic_ns();
	process->exited = true;
}

static struct process *process_add(struct process_table *table, pid_t pid, uint64_t start_ticks)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->ns_pid = process->living = pid;
	process->start_ticks = start_ticks;
	process->payer = (struct payer){PROCESS_OF_NOBODY, (uid_t)-1};
	if (process_read(process) == -ESRCH)
		process_exit(process);
	if (vec_push(&table->all, process) < 0) {
		process_free(process);
		return NULL;
	}
	return process;
}

static struct process *find_started(const struct process_table *table, pid_t pid, uint64_t start_ticks)
{
	for (size_t i = table->all.len; i-- > 0;)
		if (table->all.items[i]->pid == pid && table->all.items[i]->start_ticks == start_ticks)
			return table->all.items[i];
	return NULL;
}

struct process *process_get(struct process_table *table, pid_t pid, uint64_t start_ticks)
{
	struct process *current = process_find(table, pid), *process;

	if (current && !start_ticks && process_read_start_ticks(pid, &start_ticks) < 0)
		return current;
	if (current && current->start_ticks == start_ticks)
		return current;
	process = current ? find_started(table, pid, start_ticks) : NULL;
	if (!process)
		process = process_add(table, pid, start_ticks);
	/* A late record of an earlier process does not make that one current again. */
	if (!process || (current && process->start_ticks < current->start_ticks))
		return process;
	if (map_put_ptr(&table->by_pid, (uint64_t)pid, process) < 0)
		return NULL;
	if (current)
		process_exit(current);
	return process;
}

uint64_t process_mapping_id(const struct process *process, const struct mapping *mapping)
{
	const uint64_t identity[] = {(uint64_t)process->pid, process->start_ticks, mapping->start, mapping->end,
				     mapping->offset, mapping->inode,
				     ((uint64_t)mapping->dev_major << 32) | mapping->dev_minor};

	return hash_bytes(identity, sizeof(identity), 0);
}

struct process *process_find(const struct process_table *table, pid_t pid)
{
	return map_get_ptr(&table->by_pid, (uint64_t)pid);
}

void process_exec(struct process *process)
{
	set_maps(process, &(struct maps){0});
	process->maps_ns = 0;
	process->maps_version++;
	process->programs++;
	process->exited = false;
	free(process->executable);
	process->executable = NULL;
	if (process_read(process) == -ESRCH)
		process_exit(process);
}

void process_adopt_maps(struct process *process, struct maps *maps)
{
	set_maps(process, maps);
	process->maps_version++;
	process->read_ns = 0; /* these are of an older program, even if /proc has shown a newer one */
}

size_t process_table_sweep(struct process_table *table, uint64_t before_ns,
			   void (*on_free)(void *context, struct process *process), void *context)
{
	size_t kept = 0, count = table->all.len;

	for (size_t i = 0; i < count; i++) {
		struct process *process = table->all.items[i];

		if (!process->exited || process->references || process->exited_ns >= before_ns) {
			table->all.items[kept++] = process;
			continue;
		}
		on_free(context, process);
		if (process_find(table, process->pid) == process)
			map_remove(&table->by_pid, (uint64_t)process->pid);
		process_free(process);
	}
	table->all.len = kept;
	vec_shrink(&table->all);
	return count - kept;
}

static int read_own_maps(struct process *process, const struct charge *charge, struct maps *ret)
{
	IO_FD(proc_fd) = proc_open(CHARGE_OWN(process->pid), "");
	struct proc_stat stat;
	int err = proc_fd < 0 ? proc_fd : proc_stat_read(&stat, proc_fd, "stat");

	if (err)
		return err;
	if (stat.fields[STAT_START] != process->start_ticks)
		return -ESRCH;
	find_living(process, &proc_fd, &stat);
	return maps_read_at(ret, charge, proc_fd);
}

static bool has_cost_too_much(struct process *process)
{
	uint64_t now_ns = clock_monotonic_ns(), forgiven_ns = (now_ns - process->maps_paid_ns) / MAPS_COST_SHARE;

	process->maps_paid_ns = now_ns;
	process->maps_cost_ns -= forgiven_ns < process->maps_cost_ns ? forgiven_ns : process->maps_cost_ns;
	return process->maps_cost_ns > MAPS_COST_NS;
}

/* Reads all of a process that was not read when it was new, or when it had executed its program. */
static int read_late(struct process *process)
{
	int err = process_read(process);

	if (err == -ESRCH)
		process_exit(process);
	process->maps_version += !process->is_unread;
	return err ? err : !process->is_unread;
}

int process_refresh_maps(struct process *process, uint64_t now_ns, uint64_t min_age_ns)
{
	struct maps fresh = {0};
	struct charge charge;
	int err;

	if (process->exited)
		return -ESRCH;
	/* Not `now - maps_ns`: maps_ns may be later than the caller's now_ns, which is the time of a record. */
	if (min_age_ns && process->maps_ns && now_ns < process->maps_ns + min_age_ns)
		return 0;
	if ((min_age_ns && has_cost_too_much(process)) || !charge_begin(&charge, process))
		return 0;
	if (process->is_unread)
		return read_late(process);
	process->maps_ns = now_ns;
	err = read_own_maps(process, &charge, &fresh);
	process->maps_cost_ns += charge_end(&charge);
	if (err < 0) {
		if (err == -ESRCH)
			process_exit(process);
		return err;
	}
	/* No mappings: the process has dropped its memory while exiting. Its last samples still need the old ones. */
	if (!fresh.list.len || maps_equal(&process->maps, &fresh)) {
		maps_release(&fresh);
		return 0;
	}
	set_maps(process, &fresh);
	process->maps_version++;
	return 1;
}

int process_read_start_ticks(pid_t pid, uint64_t *ret_ticks)
{
	struct proc_stat stat;
	int err = proc_read_stat(pid, &stat);

	if (!err)
		*ret_ticks = stat.fields[STAT_START];
	return err;
}

static int proc_read_status(pid_t pid, struct buf *status)
{
	IO_FD(proc_fd) = proc_open(CHARGE_OWN(pid), "");

	return proc_fd < 0 ? proc_fd : proc_read(proc_fd, "status", status);
}

int process_read_leader(pid_t tid, pid_t *ret_pid)
{
	const char *field;
	BUF(status);
	int err = proc_read_status(tid, &status);

	field = err ? NULL : status_field(status.data, "\nTgid:");
	if (field)
		*ret_pid = atoi(field);
	return err ? err : field ? 0 : -EPROTO;
}

int process_read_uid(pid_t pid, uid_t *ret_uid)
{
	BUF(status);
	int err = proc_read_status(pid, &status);

	if (!err)
		status_ids(status.data, "\nUid:", NULL, ret_uid);
	return err;
}

/* Any process may read the clock of another. It is to the nanosecond, where /proc/PID/stat counts ticks. */
uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used) ? 0 : clock_ns_of(&used);
}

int process_read_thread_cpu(pid_t pid, pid_t tid, uint64_t *ret_ns)
{
	BUF(text);
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	err = io_read_file(AT_FDCWD, path, SCHEDSTAT_MAX, &text);
	if (!err)
		*ret_ns = strtoull(text.data, NULL, 10); /* the first of three numbers: time on a CPU */
	return err;
}

bool process_is_hidden(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) < 0 && errno == ENOENT && kill(pid, 0) < 0 && errno == EPERM;
}

char process_read_state(pid_t pid)
{
	struct proc_stat stat;

	return proc_read_stat(pid, &stat) ? 0 : stat.state;
}

/* Returns false when the process has ended or its pid was reused. */
static bool read_own_stat(const struct process *process, struct proc_stat *ret)
{
	return !proc_read_stat(process->pid, ret) && ret->fields[STAT_START] == process->start_ticks;
}

bool process_is_there(const struct process *process)
{
	struct proc_stat stat;

	return read_own_stat(process, &stat);
}

static bool is_thread_living(int threads_fd, const char *tid)
{
	struct proc_stat stat;
	char name[32];

	snprintf(name, sizeof(name), "%.16s/stat", tid);
	return isdigit((unsigned char)*tid) && !proc_stat_read(&stat, threads_fd, name) && is_living(&stat);
}

pid_t process_living_thread(pid_t pid)
{
	const struct dirent *entry;
	char name[32];
	pid_t living = 0;
	DIR *threads;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	threads = opendir(name);
	if (!threads)
		return 0;
	snprintf(name, sizeof(name), "%d", pid);
	if (is_thread_living(dirfd(threads), name))
		living = pid;
	for (int i = 0; !living && i < THREADS_ASKED && (entry = readdir(threads)); i++)
		if (is_thread_living(dirfd(threads), entry->d_name))
			living = atoi(entry->d_name);
	closedir(threads);
	return living;
}

bool process_is_ending(const struct process *process)
{
	struct proc_stat stat;

	return !read_own_stat(process, &stat) ||
	       (stat.fields[STAT_FLAGS] & PF_EXITING && !process_living_thread(process->pid));
}

bool process_is_kernel_thread(const struct process *process)
{
	struct proc_stat stat;

	return read_own_stat(process, &stat) && stat.fields[STAT_FLAGS] & PF_KTHREAD;
}

pid_t process_next(DIR *folder)
{
	const struct dirent *entry;

	while ((entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			return atoi(entry->d_name);
	return 0;
}

int process_each(process_visit visit, void *context)
{
	DIR *folder = opendir("/proc");
	pid_t pid;

	if (!folder)
		return -errno;
	while ((pid = process_next(folder)))
		visit(context, pid);
	closedir(folder);
	return 0;
}

void process_read_thread_comm(const struct charge *charge, pid_t tid, char *comm, size_t size)
{
	BUF(text);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", charge->pid, tid);
	if (io_read_file(AT_FDCWD, path, size, &text) < 0)
		buf_clear(&text);
	snprintf(comm, size, "%.*s", (int)strcspn(text.data, "\n"), text.data);
}

uint64_t process_age_ns(const struct process *process)
{
	uint64_t born_ns = process->start_ticks * NS_PER_TICK, now_ns = clock_boottime_ns();

	return now_ns > born_ns ? now_ns - born_ns : 0;
}
