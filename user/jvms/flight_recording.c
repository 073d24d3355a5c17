/* SPDX-License-Identifier: MIT */
#include "jvms/flight_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/packet.h"
#include "base/redact.h"
#include "base/root.h"
#include "base/signals.h"
#include "base/text.h"
#include "writers/jfr/file.h"
#include "writers/writer.h"

static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};

#define PLACES (sizeof(places) / sizeof(*places))

/* What the child needs to know. */
struct task {
	const char *name; /* of the folder */
	const char *settings;
};

/* What the child has made. */
struct made {
	int parent, folder;
};

static int write_settings(int folder, const char *settings)
{
	IO_FD(fd) = openat(folder, FLIGHT_SETTINGS, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : io_write_all(fd, settings, strlen(settings));
}

/* Nobody knows the name, so a folder that exists is somebody's mistake: it is an error. */
static int make_in(int root, const char *place, const struct task *task, struct made *ret)
{
	int err;

	ret->parent = root_open(root, place, O_RDONLY | O_DIRECTORY, false);
	if (ret->parent < 0)
		return ret->parent;
	err = mkdirat(ret->parent, task->name, 0700) < 0 ? -errno : 0;
	if (!err) {
		ret->folder = root_open_entry(ret->parent, task->name, O_RDONLY | O_DIRECTORY);
		err = ret->folder < 0 ? ret->folder : write_settings(ret->folder, task->settings);
		if (err)
			unlinkat(ret->parent, task->name, AT_REMOVEDIR);
	}
	if (err)
		close(ret->parent);
	return err;
}

/* Returns the index of the place, or -errno. */
static int make(int root, const struct task *task, struct made *ret)
{
	int err = -ENOENT;

	for (size_t i = 0; i < PLACES; i++) {
		err = make_in(root, places[i], task, ret);
		if (!err)
			return (int)i;
	}
	return err;
}

/*
 * Only a regular file of this user's. One with holes is no JVM's, and its copy would be larger. Half of the room where
 * `to` is stays free.
 */
static int check(int fd, const struct stat *st, int to)
{
	struct statvfs fs;

	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid())
		return -EPERM;
	if (!st->st_size)
		return -ENODATA;
	if (!root_is_stored(fd, st))
		return -EPERM;
	if (!fstatvfs(to, &fs) && fs.f_blocks && (uint64_t)st->st_size / fs.f_frsize > fs.f_bavail / 2)
		return -ENOSPC;
	return lseek(fd, 0, SEEK_HOLE) < st->st_size ? -EFBIG : 0;
}

/* Empties the file but does not remove it: the JVM appends as it exits. */
static int take(int socket, int folder, int to)
{
	IO_FD(fd) = openat(folder, FLIGHT_FILE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int err;

	if (fd < 0)
		return errno == ENOENT ? -ENODATA : -errno;
	err = fstat(fd, &st) < 0 ? -errno : check(fd, &st, to);
	if (!err)
		err = user_child_copy(socket, fd, (uint64_t)st.st_size, to);
	return !err && ftruncate(fd, 0) < 0 ? -errno : err;
}

/* Each packet is a request to take the recording, and brings the descriptor to write to; one without ends the child. */
static void work(int socket, int root, const void *context)
{
	const struct task *task = context;
	struct made made = {-1, -1};
	char none;
	int to, place = make(root, task, &made);

	user_child_answer(socket, place);
	if (place < 0)
		return;
	while (packet_receive(socket, &none, sizeof(none), -1, &to) > 0 && to >= 0) {
		user_child_answer(socket, take(socket, made.folder, to));
		close(to);
	}
	unlinkat(made.folder, FLIGHT_FILE, 0);
	unlinkat(made.folder, FLIGHT_SETTINGS, 0);
	unlinkat(made.parent, task->name, AT_REMOVEDIR);
	user_child_answer(socket, 0);
}

int flight_folder_open(struct flight_folder *folder, pid_t pid, uint64_t start_ticks, const char *settings)
{
	struct task task = {.settings = settings};
	uint64_t random[2];
	char name[48];
	int place;

	*folder = (struct flight_folder)FLIGHT_FOLDER_NONE;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	snprintf(name, sizeof(name), ".duet-jfr-%016lx%016lx", random[0], random[1]);
	task.name = name;
	place = user_child_start(&folder->child, pid, start_ticks, work, &task);
	if (!place)
		place = user_child_await(&folder->child, USER_CHILD_MS);
	if (place >= (int)PLACES)
		place = -EPROTO;
	if (place < 0)
		user_child_release(&folder->child);
	else
		snprintf(folder->path, sizeof(folder->path), "%s/%s", places[place], name);
	return place < 0 ? place : 0;
}

/* A child that was waited for in vain is not waited for again. */
int flight_folder_take(struct flight_folder *folder, int to)
{
	int err = packet_send(folder->child.socket, "", 1, to, MSG_DONTWAIT);

	if (!err)
		err = user_child_await_copy(&folder->child);
	if (err == -ETIMEDOUT || err == -EINTR)
		user_child_release(&folder->child);
	return err;
}

void flight_folder_release(struct flight_folder *folder)
{
	if (folder->child.pid && !packet_send(folder->child.socket, "", 1, -1, MSG_DONTWAIT))
		(void)user_child_await(&folder->child, USER_CHILD_MS);
	user_child_release(&folder->child);
	*folder = (struct flight_folder)FLIGHT_FOLDER_NONE;
}

#define ASK_NS (10 * NS_PER_SEC) /* until the JVM has taken the command */
#define REPLY_NS (60 * NS_PER_SEC) /* the first command loads the JVM's recorder; others write a file */
#define REPLY_MAX 4096
#define COMMAND_MAX 1000 /* bytes of an argument that HotSpot takes: 1024 */
#define NO_LIMIT "1000g" /* without a size, JFR.start keeps only 250 MB */

static const struct {
	unsigned int without;
	const char *event;
} left_out[] = {
	{FLIGHT_WITHOUT_CPU, "jdk.ExecutionSample"},
	{FLIGHT_WITHOUT_CPU, "jdk.NativeMethodSample"},
	{FLIGHT_WITHOUT_ALLOC, "jdk.ObjectAllocationInNewTLAB"},
	{FLIGHT_WITHOUT_ALLOC, "jdk.ObjectAllocationOutsideTLAB"},
	{FLIGHT_WITHOUT_ALLOC, "jdk.ObjectAllocationSample"},
	{FLIGHT_WITHOUT_ALLOC, "jdk.OldObjectSample"},
	{FLIGHT_WITHOUT_LOCK, "jdk.JavaMonitorEnter"},
	{FLIGHT_WITHOUT_LOCK, "jdk.ThreadPark"},
	{WRITER_WITHOUT_SYSTEM, "jdk.OSInformation"},
	{WRITER_WITHOUT_SYSTEM, "jdk.CPUInformation"},
	{WRITER_WITHOUT_SYSTEM, "jdk.JVMInformation"},
	{WRITER_WITHOUT_PROPERTIES, "jdk.InitialSystemProperty"},
	{WRITER_WITHOUT_LIBRARIES, "jdk.NativeLibrary"},
	{WRITER_WITHOUT_LOAD, "jdk.CPULoad"},
	{WRITER_WITHOUT_HEAP, "jdk.GCHeapSummary"},
};

/* They have command lines, properties and variables as they are, at least before JDK 27. */
static const char with_secrets[] = "jdk.JVMInformation jdk.InitialSystemProperty jdk.InitialEnvironmentVariable "
				   "jdk.StringFlag jdk.SystemProcess jdk.ProcessStart";

static void put_event(struct buf *out, const char *name, size_t len, bool is_enabled)
{
	buf_printf(out, "  <event name=\"%.*s\"><setting name=\"enabled\">%s</setting></event>\n", (int)len, name,
		   is_enabled ? "true" : "false");
}

static bool is_name(const char *name, size_t len)
{
	return len && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$-") >= len;
}

/* Appends the events of "+Event+Event". */
static int put_chosen(struct buf *out, const char *settings, struct buf *why)
{
	BUF(name);

	for (const char *at = settings; *at; at += strcspn(at, "+")) {
		size_t len;

		at += strspn(at, "+");
		len = strcspn(at, "+");
		if (!is_name(at, len))
			return buf_explain(why, -EINVAL, "jfrsync: '%.*s' is not the name of an event", (int)len, at);
		buf_clear(&name);
		buf_add(&name, at, len);
		if (redact_is_on() && text_is_word(name.data, with_secrets))
			return buf_explain(why, -EPERM,
					   "jfrsync: %s may have secrets, and needs duet record --no-redact",
					   name.data);
		put_event(out, at, len, true);
	}
	return 0;
}

static void put_left_out(struct buf *out, unsigned int without)
{
	size_t len;

	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (left_out[i].without & without)
			put_event(out, left_out[i].event, strlen(left_out[i].event), false);
	for (const char *name = with_secrets; redact_is_on() && *name; name += len + (name[len] == ' ')) {
		len = strcspn(name, " ");
		put_event(out, name, len, false);
	}
}

/* The file that is added to the settings. The JVM takes a later one's values. */
static int make_file(struct buf *out, const char *settings, unsigned int without, struct buf *why)
{
	int err = 0;

	buf_add_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			 "<configuration version=\"2.0\" label=\"duet\" description=\"\" provider=\"duet\">\n");
	if (*settings == '+')
		err = put_chosen(out, settings, why);
	else
		put_left_out(out, without);
	buf_add_str(out, "</configuration>\n");
	return out->failed ? -ENOMEM : err;
}

/* Returns 0 when the whole reply is there. */
static int receive(int socket, struct buf *reply)
{
	uint64_t until_ns = clock_monotonic_ns() + REPLY_NS;
	char bytes[1024];
	ssize_t more;
	int err;

	do {
		err = signals_wait(socket, POLLIN, until_ns);
		if (err)
			return err;
		more = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (more < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		buf_add(reply, bytes, more > 0 ? (size_t)more : 0);
	} while (more && reply->len < REPLY_MAX);
	return 0;
}

static int ask(const struct flight_recording *recording, const char *command, struct buf *reply, struct buf *why)
{
	const char *const words[] = {"jcmd", command, "", ""};
	const struct attach_control none = {0};
	struct attach_target target = recording->target;
	struct attach_result result = {.socket = -1};
	struct attach attach;
	int err;

	target.command = words;
	err = attach_start(&attach, &target, &none);
	if (err < 0)
		return buf_explain(why, err, "no process to ask JVM %d: %s", target.pid, strerror(-err));
	attach_finish(&attach, &result);
	if (result.error)
		return buf_explain(why, result.error, "%s", result.why);
	err = receive(result.socket, reply);
	close(result.socket);
	return err < 0 ? buf_explain(why, err, "the flight recorder of JVM %d does not answer: %s", target.pid,
				     strerror(-err))
		       : 0;
}

/* The first line is the status, 0 for some failures, too. Then an exception's name may follow. */
static int judge(const struct flight_recording *recording, const struct buf *reply, const char *done, struct buf *why)
{
	const char *text = strchr(reply->data, '\n'), *cause;

	text = text ? text + 1 : "";
	if (strstr(text, done) && !strtol(reply->data, NULL, 10))
		return 0;
	if (strstr(text, "Unknown diagnostic command"))
		return buf_explain(why, -ENOTSUP, "JVM %d has no flight recorder: jfrsync needs one",
				   recording->target.pid);
	cause = strstr(text, "Exception: ");
	cause = cause ? cause + strlen("Exception: ") : text;
	return buf_explain(why, -EINVAL, "the flight recorder of JVM %d refuses: %.*s", recording->target.pid,
			   (int)strcspn(cause, "\r\n"), cause);
}

/* `done` is a part of the reply of a command that has succeeded. */
__attribute__((format(printf, 4, 5))) static int order(const struct flight_recording *recording, const char *done,
						       struct buf *why, const char *format, ...)
{
	BUF(command);
	BUF(reply);
	va_list args;
	int err;

	va_start(args, format);
	buf_vprintf(&command, format, args);
	va_end(args);
	if (command.failed || command.len > COMMAND_MAX)
		return buf_explain(why, -ENAMETOOLONG, "jfrsync: its value is too long");
	err = ask(recording, command.data, &reply, why);
	return err ? err : judge(recording, &reply, done, why);
}

static int start(struct flight_recording *recording, const char *settings, struct buf *why)
{
	bool is_own = *settings == '+';

	return order(recording, "Started recording", why,
		     "JFR.start name=%s settings=%s%s%s%s%s/" FLIGHT_SETTINGS " filename=%s/" FLIGHT_FILE
		     " dumponexit=true maxsize=" NO_LIMIT,
		     recording->name, is_own ? "" : "\"", is_own ? "" : settings, is_own ? "" : "\"",
		     is_own ? "" : " settings=", recording->folder.path, recording->folder.path);
}

unsigned int flight_recording_has(const char *settings)
{
	const unsigned int of_duet = WRITER_WITHOUT_SYSTEM | WRITER_WITHOUT_PROPERTIES;

	return WRITER_WITHOUT_ALL & ~(redact_is_on() && *settings != '+' ? of_duet : 0u);
}

int flight_recording_start(struct flight_recording *recording, const struct process *process, const char *settings,
			   unsigned int without, struct buf *why)
{
	BUF(file);
	int err;

	*recording = (struct flight_recording){
		.target = {.pid = process->pid,
			   .ns_pid = process->ns_pid,
			   .start_ticks = process->start_ticks,
			   .uid = process->uid,
			   .gid = process->gid,
			   .kind = ATTACH_COMMAND,
			   .timeout_ns = ASK_NS},
		.folder = FLIGHT_FOLDER_NONE,
		.file = -1,
	};
	if (!*settings || strpbrk(settings, "\"\r\n"))
		return buf_explain(why, -EINVAL,
				   "jfrsync: default, profile, the path of a .jfc file, or +Event+Event is accepted");
	err = make_file(&file, settings, without, why);
	if (err)
		return err;
	err = flight_folder_open(&recording->folder, process->pid, process->start_ticks, file.data);
	if (err)
		return buf_explain(why, err, "no folder for the flight recorder of JVM %d: %s", process->pid,
				   strerror(-err));
	snprintf(recording->name, sizeof(recording->name), "%s", strrchr(recording->folder.path, '/') + 2);
	err = start(recording, settings, why);
	recording->is_running = !err;
	return err;
}

static int empty_file(struct flight_recording *recording)
{
	if (recording->file < 0)
		recording->file = io_open_unlinked();
	if (recording->file < 0)
		return recording->file;
	return ftruncate(recording->file, 0) < 0 || lseek(recording->file, 0, SEEK_SET) < 0 ? -errno : 0;
}

int flight_recording_update(struct flight_recording *recording, bool is_end, bool has_ended, struct buf *why)
{
	pid_t pid = recording->target.pid;
	struct jfr_header first;
	int err = 0, taken;

	if (!has_ended)
		err = order(recording, is_end ? "Stopped" : "Dumped", why, "JFR.%s name=%s filename=%s/" FLIGHT_FILE,
			    is_end ? "stop" : "dump", recording->name, recording->folder.path);
	taken = empty_file(recording);
	if (!taken)
		taken = flight_folder_take(&recording->folder, recording->file);
	if (is_end) {
		recording->is_running = err && err != -ETIMEDOUT && err != -EINTR && !has_ended;
		flight_folder_release(&recording->folder);
	}
	if (!taken && jfr_file_check(recording->file, &first) < 0)
		taken = -EBADMSG;
	if (taken && recording->file >= 0)
		(void)!ftruncate(recording->file, 0);
	if (!taken) { /* the JVM may have ended, and written its file, while it was asked */
		buf_clear(why);
		return 0;
	}
	if (!err)
		buf_printf(why, "the events of JVM %d itself are missing: %s", pid,
			   taken == -ENODATA ? "it did not write them before it ended" : strerror(-taken));
	return err ? err : taken;
}

void flight_recording_release(struct flight_recording *recording)
{
	BUF(why);

	if (recording->is_running)
		(void)order(recording, "Stopped", &why, "JFR.stop name=%s", recording->name);
	flight_folder_release(&recording->folder);
	io_close(&recording->file);
	*recording = (struct flight_recording)FLIGHT_RECORDING_NONE;
}
