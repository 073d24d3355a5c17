/* SPDX-License-Identifier: MIT */
#include "attach/hotspot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/root.h"

#define REQUEST_MAX 2048 /* HotSpot takes at most 1024 bytes per argument */

/* Parses a decimal number that ends its line. Returns the text after that line, or NULL. */
static const char *parse_number(const char *text, int *ret_number)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (end == text || errno || number != (int)number || (*end != '\n' && *end != '\0'))
		return NULL;
	*ret_number = number;
	return *end ? end + 1 : end;
}

/*
 * The first line is the status of the command. The second is what Agent_OnAttach returned: JDK 8 prints the bare
 * number, JDK 9 and later "return code: N". When the library did not load, JDK 8 sends only a status; JDK 9 to 20, and
 * 21 and later, send a text (even with status 0): "PATH was not loaded.", "Dynamic agent loading is not enabled…".
 */
int hotspot_parse_reply(const char *text, size_t len, struct hotspot_reply *ret)
{
	static const char prefix[] = "return code: ";
	struct hotspot_reply reply = {0};
	char copy[HOTSPOT_REPLY_MAX];
	const char *line;

	if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len))
		return -EBADMSG;
	memcpy(copy, text, len);
	copy[len] = '\0';
	/* Without a line end the reply is incomplete. */
	line = strchr(copy, '\n') ? parse_number(copy, &reply.status) : NULL;
	if (!line)
		return -EBADMSG;
	if (strncmp(line, prefix, strlen(prefix)) == 0)
		line += strlen(prefix);
	reply.attached = reply.status == 0 && parse_number(line, &reply.code);
	if (!reply.attached)
		snprintf(reply.message, sizeof(reply.message), "%.*s", (int)strcspn(line, "\r\n"), line);
	*ret = reply;
	return 0;
}

/* What each return value of Agent_OnAttach means; %d is the JVM's pid. */
static const struct {
	int code;
	int error;
	const char *why;
} refusals[] = {
	{DUET_ATTACH_BUSY, -EBUSY, "another duet is profiling JVM %d: wait for it or stop it"},
	{DUET_ATTACH_BAD_OPTIONS, -EPROTO, "JVM %d holds the agent of another duet version: restart it"},
	{DUET_ATTACH_NO_JVMTI, -EBUSY, "JVM %d refuses a JVMTI capability: does another agent hold it?"},
	{DUET_ATTACH_NO_SOCKET, -EMFILE, "the agent in JVM %d got no control socket: is it out of descriptors?"},
	{DUET_ATTACH_NO_THREAD, -EAGAIN, "the agent in JVM %d got no thread: is the JVM at its thread limit?"},
};

static int judge_code(struct visit *visit, int code)
{
	pid_t pid = visit->target->pid;

	if (code == DUET_ATTACH_OK)
		return 0;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i].code == code)
			return visit_fail(visit, refusals[i].error, refusals[i].why, pid);
	return visit_fail(visit, -EPROTO, "the agent in JVM %d refused to start (code %d)", pid, code);
}

int hotspot_judge(struct visit *visit, const struct hotspot_reply *reply)
{
	pid_t pid = visit->target->pid;

	if (reply->attached)
		return judge_code(visit, reply->code);
	if (strstr(reply->message, "Dynamic agent loading is not enabled"))
		return visit_fail(visit, -EPERM,
				  "JVM %d runs with -XX:-EnableDynamicAgentLoading: restart it without, or start it by "
				  "`duet record -- java`",
				  pid);
	if (reply->message[0])
		return visit_fail(visit, -ENOEXEC, "JVM %d did not load the agent: %s", pid, reply->message);
	return visit_fail(visit, -ENOEXEC, "JVM %d did not load the agent (status %d): does it use another libc?", pid,
			  reply->status);
}

/* HotSpot always uses /tmp, whatever java.io.tmpdir says. */
static int open_tmp(struct visit *visit)
{
	int fd = root_open(visit->root, "tmp", O_PATH | O_DIRECTORY, true);

	if (fd < 0)
		visit_fail(visit, fd, "cannot open /tmp of JVM %d, where HotSpot keeps its attach socket: %s",
			   visit->target->pid, strerror(-fd));
	return fd;
}

/* O_PATH. Anyone can create that name in /tmp, but only the JVM's user a socket that this user owns. */
static int open_socket(const struct visit *visit, int tmp)
{
	char name[32];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), ".java_pid%d", visit->target->ns_pid);
	fd = openat(tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

/* Returns a connected socket, -ENOENT when nobody listens, or -errno. */
static int connect_tmp(struct visit *visit, int tmp)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	IO_FD(file) = open_socket(visit, tmp);
	int err = 0, fd;

	if (file < 0)
		return file;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Via the descriptor: by now the name may belong to another socket. */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err = errno == ECONNREFUSED ? -ENOENT : -errno; /* the socket file of a dead JVM with the same pid */
	if (!err)
		return fd;
	io_close(&fd);
	return err;
}

/* Retries while other tools fill the listener's backlog (5). */
static int connect_listener(struct visit *visit, int tmp)
{
	int err, fd;

	while ((fd = connect_tmp(visit, tmp)) == -EAGAIN) {
		err = visit_pause(visit, 10 * NS_PER_MS);
		if (err)
			return err;
	}
	if (fd == -EPERM)
		return visit_fail(visit, fd,
				  "/tmp/.java_pid%d, which JVM %d needs, belongs to another user: a dead JVM of that "
				  "pid left it, or it is a trap: remove it",
				  visit->target->ns_pid, visit->target->pid);
	if (fd < 0 && fd != -ENOENT)
		visit_fail(visit, fd, "cannot connect to the attach socket /tmp/.java_pid%d of JVM %d: %s",
			   visit->target->ns_pid, visit->target->pid, strerror(-fd));
	return fd;
}

/*
 * Returns true if the JVM still has its listening socket although the file was deleted. /proc/PID/net/unix shows the
 * path that the socket was bound to, which HotSpot renames after bind().
 */
static bool listener_lost_file(const struct visit *visit)
{
	char path[32], bound[48], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", visit->target->pid);
	snprintf(bound, sizeof(bound), " /tmp/.java_pid%d.tmp\n", visit->target->ns_pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, bound) != NULL;
	if (file)
		fclose(file);
	return found;
}

/* Fails if SIGQUIT would do something else than start the listener. */
static int check_options(struct visit *visit, const struct vm_options *options)
{
	pid_t pid = visit->target->pid, ns_pid = visit->target->ns_pid;

	if (options->attach_disabled)
		return visit_fail(visit, -ENOTSUP,
				  "JVM %d runs with -XX:+DisableAttachMechanism: restart it without, or start it by "
				  "`duet record -- java`",
				  pid);
	/* Such a JVM opens the socket only when it starts. It is gone, and the JVM cannot be made to open it again. */
	if (options->reduced_signals)
		return visit_fail(visit, -ENOTSUP,
				  "JVM %d runs with -Xrs and its attach socket /tmp/.java_pid%d is gone: restart it",
				  pid, ns_pid);
	/* JDK-8225690 (JDK 14): SIGQUIT opens the socket again. Before that, the JVM prints a thread dump. */
	if (options->jdk && options->jdk < 14 && listener_lost_file(visit))
		return visit_fail(visit, -ENOTSUP, "JVM %d lost its attach socket /tmp/.java_pid%d: restart it", pid,
				  ns_pid);
	return 0;
}

/* Waits for the handler, which a new JVM installs within its first 100 ms or so. */
static int wait_handler(struct visit *visit)
{
	int caught, err = 0;

	while (!err && (caught = visit_catches_quit(visit)) == 0)
		err = visit_pause(visit, 5 * NS_PER_MS);
	if (err == -ETIMEDOUT)
		visit_fail(
			visit, err,
			"JVM %d does not handle SIGQUIT and would die of it: restart it without -Xrs, or start it by "
			"`duet record -- java`",
			visit->target->pid);
	return err;
}

/* Creates the trigger file; HotSpot trusts it only if the JVM's own user owns it. Returns 0 or -errno. */
static int create_owned(int dir, const char *name)
{
	struct stat st;
	int fd;

	if (dir < 0)
		return -ENOENT;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid())
		return 0;
	unlinkat(dir, name, 0); /* NFS and similar file systems may change the owner */
	return -EACCES;
}

/* HotSpot looks in its working directory and in /tmp. Returns the file's directory, or -errno with visit->why. */
static int create_trigger(struct visit *visit, int tmp, const char *name)
{
	int tmp_error, cwd_error;

	tmp_error = create_owned(tmp, name);
	if (!tmp_error)
		return tmp;
	cwd_error = create_owned(visit->cwd, name);
	if (!cwd_error)
		return visit->cwd;
	return visit_fail(visit, tmp_error,
			  "JVM %d: cannot create %s in its /tmp (%s) or its working directory (%s): make it possible "
			  "in one of them, or record with --no-attach",
			  visit->target->pid, name, strerror(-tmp_error), strerror(-cwd_error));
}

/* Waits for the listener that SIGQUIT starts. Returns its connected socket, or -errno with the reason in visit->why. */
static int await_listener(struct visit *visit, int tmp)
{
	int err, fd;

	while ((fd = connect_listener(visit, tmp)) == -ENOENT) {
		err = visit_pause(visit, 5 * NS_PER_MS);
		if (err == -ETIMEDOUT)
			visit_fail(visit, err,
				   "JVM %d did not open its attach socket /tmp/.java_pid%d: does it get CPU time, or "
				   "is it at a long safepoint?",
				   visit->target->pid, visit->target->ns_pid);
		if (err)
			return err;
	}
	return fd;
}

/*
 * Called when SIGQUIT was sent but the attach was aborted. The JVM looks for the trigger file when its signal
 * dispatcher runs; if the file is gone, it prints a thread dump to the application's stdout. So the file stays for up
 * to a second, which is less than attach_abort() allows.
 */
static void let_dispatcher_see_trigger(const struct visit *visit, int tmp)
{
	struct stat st;
	char name[32];

	snprintf(name, sizeof(name), ".java_pid%d", visit->target->ns_pid);
	for (int i = 0; i < 100 && fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW) < 0; i++)
		clock_sleep(10 * NS_PER_MS);
}

/*
 * A JVM that cannot run now, or not for long, handles the SIGQUIT later. Then it must still find the trigger file, or
 * it prints a thread dump. The next attach removes the file.
 */
static bool will_look_later(const struct visit *visit, int error)
{
	return error == -EAGAIN || (error == -ETIMEDOUT && visit_quit_is_pending(visit));
}

/* Removes what will_look_later() has left, once the JVM listens. */
static void remove_left_trigger(const struct visit *visit, int tmp)
{
	const int places[] = {tmp, visit->cwd};
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), ".attach_pid%d", visit->target->ns_pid);
	for (int i = 0; i < 2; i++)
		if (places[i] >= 0 && !fstatat(places[i], name, &st, AT_SYMLINK_NOFOLLOW) && st.st_uid == geteuid() &&
		    S_ISREG(st.st_mode))
			unlinkat(places[i], name, 0);
}

static int start_listener(struct visit *visit, const struct vm_options *options, int tmp)
{
	char name[32];
	int dir, ret, waited = 0;

	ret = check_options(visit, options);
	if (!ret)
		ret = wait_handler(visit);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), ".attach_pid%d", visit->target->ns_pid);
	dir = create_trigger(visit, tmp, name);
	if (dir < 0)
		return dir;
	ret = visit_send_quit(visit);
	if (!ret)
		ret = waited = await_listener(visit, tmp);
	if (ret == -ECANCELED)
		let_dispatcher_see_trigger(visit, tmp);
	if (!will_look_later(visit, waited))
		unlinkat(dir, name, 0);
	return ret;
}

/* Version 1 of the protocol, spoken by JDK 8 to 27: version, command and three arguments, each with its NUL. */
static int send_request(struct visit *visit, int fd, const char *const words[4])
{
	BUF(request);

	buf_add(&request, "1", sizeof("1"));
	for (int i = 0; i < 4; i++)
		buf_add(&request, words[i], strlen(words[i]) + 1);
	if (request.failed || request.len > REQUEST_MAX)
		return visit_fail(visit, -ENAMETOOLONG, "the request to JVM %d is longer than %d bytes",
				  visit->target->pid, REQUEST_MAX);
	/* The empty buffer of a new socket takes the whole request. */
	if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
		return visit_fail(visit, -EPIPE, "JVM %d closed the attach connection", visit->target->pid);
	return 0;
}

/* JDK 21+ also prints a warning about dynamic agents on the JVM's stderr, once per library: see attach/place.h. */
static int receive_reply(struct visit *visit, int fd, struct hotspot_reply *ret)
{
	char text[HOTSPOT_REPLY_MAX];
	size_t len = 0;
	ssize_t more;
	int err;

	do {
		err = visit_wait(visit, fd, POLLIN);
		if (err)
			return err;
		more = recv(fd, text + len, sizeof(text) - len, 0);
		len += more > 0 ? more : 0;
	} while ((more > 0 && len < sizeof(text)) || (more < 0 && (errno == EAGAIN || errno == EINTR)));
	if (hotspot_parse_reply(text, len, ret) == 0)
		return 0;
	err = visit_check(visit);
	if (err)
		return err;
	return visit_fail(visit, -EPROTO, "JVM %d %s: it accepts only its own user and group", visit->target->pid,
			  len ? "gave half an answer to the attach request" : "refused the attach request");
}

/* Returns a socket that is connected to the JVM's listener, which is started if there is none yet. */
static int open_listener(struct visit *visit, const struct vm_options *options, int tmp)
{
	int fd = connect_listener(visit, tmp);

	if (fd >= 0)
		remove_left_trigger(visit, tmp);
	return fd == -ENOENT ? start_listener(visit, options, tmp) : fd;
}

/* Sends one request and reads its reply. Every request needs its own connection. */
static int request_load(struct visit *visit, const struct vm_options *options, int tmp, const char *path,
			const struct attach_control *control, struct hotspot_reply *ret)
{
	char option[sizeof(*control) + 24];
	IO_FD(fd) = open_listener(visit, options, tmp);
	int err;

	if (fd < 0)
		return fd;
	snprintf(option, sizeof(option), "control=%s,secret=%s", control->name, control->secret);
	err = send_request(visit, fd, (const char *const[]){"load", path, "true" /* it is absolute */, option});
	return err ? err : receive_reply(visit, fd, ret);
}

/* JDK 21+ opens its socket before it is ready: "Dynamic agent loading is only permitted in the live phase". */
static bool asked_too_early(const struct hotspot_reply *reply)
{
	return !reply->attached && strstr(reply->message, "live phase");
}

int hotspot_load(struct visit *visit, const struct vm_options *options, const char *path,
		 const struct attach_control *control)
{
	struct hotspot_reply reply;
	IO_FD(tmp) = open_tmp(visit);
	int err;

	if (tmp < 0)
		return tmp;
	do {
		err = request_load(visit, options, tmp, path, control, &reply);
		if (err)
			return err;
	} while (asked_too_early(&reply) && (err = visit_pause(visit, 10 * NS_PER_MS)) == 0);
	return !err || err == -ETIMEDOUT ? hotspot_judge(visit, &reply) : err;
}

int hotspot_command(struct visit *visit, const struct vm_options *options, const char *const words[4])
{
	IO_FD(tmp) = open_tmp(visit);
	int err, fd;

	if (tmp < 0)
		return tmp;
	fd = open_listener(visit, options, tmp);
	if (fd < 0)
		return fd;
	err = send_request(visit, fd, words);
	if (err)
		close(fd);
	return err ? err : fd;
}
