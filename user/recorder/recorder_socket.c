/* SPDX-License-Identifier: MIT */
#include "recorder/recorder_socket.h"

#include <dirent.h>
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

#include "base/clock.h"
#include "base/io.h"
#include "base/packet.h"
#include "base/signals.h"
#include "base/text.h"
#include "proc/cgroup.h"
#include "proc/process.h"
#include "recorder/arguments.h"

#define BACKLOG 16
#define SWEEP_MAX 4096 /* names that a recorder looks at when it begins */

#define ROOT_FOLDER "/run/duet-recorders"
#define CONNECT_NS (2 * NS_PER_SEC) /* for a recorder that accepts nobody; an honest one does so all the time */
#define CONNECT_PAUSE_NS (10 * NS_PER_MS)
/* Longest waits for an answer. Another user's recorder may do as it likes; ours ends its own waits before. */
#define OTHER_STATUS_NS (10 * NS_PER_SEC)
#define OTHER_NS (30 * NS_PER_SEC)
#define OWN_NS (900 * NS_PER_SEC)
#define LOOK_NS (300 * NS_PER_MS) /* how often a recorder that does not answer is looked at */

/* A folder whose path this user's environment does not change. */
static bool usual_path(uid_t uid, unsigned int choice, struct buf *path)
{
	if (!uid)
		buf_add_str(path, ROOT_FOLDER);
	else if (choice == 0)
		buf_printf(path, "/run/user/%u/duet-asprof", uid);
	else
		buf_printf(path, "/tmp/.duet-asprof-%u", uid);
	return choice < (uid ? 2 : 1);
}

/*
 * Path of the folder; the first choice is tried first. Root's is below /run, where no other user can create a folder of
 * this name. In /tmp any user can, so there is a second choice there.
 */
static bool folder_path(unsigned int choice, struct buf *path)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
	uid_t uid = geteuid();

	if (uid && choice == 0 && runtime && *runtime == '/')
		buf_printf(path, "%s/duet-asprof", runtime);
	else if (uid && choice == 2 && home && *home == '/')
		buf_printf(path, "%s/.duet-asprof", home);
	else
		return usual_path(uid, choice, path);
	return true;
}

/* Returns a descriptor of a user's folder at `path`, or -errno: -EPERM when others may enter it or have made it. */
static int open_of(uid_t uid, const char *path)
{
	/* others may use a name in root's folder if they know it; in other folders they may not */
	mode_t forbidden = uid ? 077 : 066;
	struct stat st;
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == uid && !(st.st_mode & forbidden))
		return fd;
	close(fd);
	return -EPERM;
}

static int open_own(const char *path, bool create)
{
	uid_t uid = geteuid();

	if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (create && !uid && chmod(path, 0711) < 0)
		return -errno;
	return open_of(uid, path);
}

/*
 * Opens the first folder from *choice on that belongs to this user alone, and sets *choice to the next one. Returns its
 * descriptor, or -ENOENT; if it was to be created, with one sentence in `why`.
 */
static int open_folder(unsigned int *choice, bool create, struct buf *why)
{
	BUF(path);
	int fd = -ENOENT;

	for (; fd < 0 && folder_path(*choice, &path) && !path.failed; (*choice)++) {
		fd = open_own(path.data, create);
		if (fd < 0 && create)
			buf_printf(why, "%s%s %s", why->len ? "; " : "", path.data,
				   fd == -EPERM ? "must belong to this user alone (mode 0700)" : strerror(-fd));
		buf_clear(&path);
	}
	if (fd >= 0)
		buf_clear(why);
	return fd < 0 ? -ENOENT : fd;
}

/* The folder is given by its descriptor: its path may be longer than an address allows. */
static struct sockaddr_un address_of(int folder, pid_t pid, uint64_t start_ticks)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%d-%llu", folder, pid,
		 (unsigned long long)start_ticks);
	return address;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int bytes = 2 * DUET_RECORDER_TEXT_MAX;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

/* Anybody may fill the queue of a socket: tries until this time. */
static int connect_in(int folder, pid_t pid, uint64_t start_ticks, uint64_t until_ns)
{
	struct sockaddr_un address = address_of(folder, pid, start_ticks);
	int err, fd = new_socket();

	while (fd >= 0) {
		if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
			return fd;
		err = errno == ECONNREFUSED ? -ENOENT : -errno; /* a recorder that was killed leaves its name */
		if (err != -EAGAIN || clock_monotonic_ns() >= signals_limit(until_ns)) {
			close(fd);
			return err;
		}
		clock_sleep(CONNECT_PAUSE_NS);
	}
	return fd;
}

int recorder_connect(pid_t pid, uint64_t start_ticks, struct buf *why)
{
	uint64_t until_ns = clock_monotonic_ns() + CONNECT_NS;
	int folder, fd = -ENOENT;

	for (unsigned int choice = 0; fd == -ENOENT && (folder = open_folder(&choice, false, why)) >= 0;) {
		fd = connect_in(folder, pid, start_ticks, until_ns);
		close(folder);
	}
	if (fd < 0 && fd != -ENOENT)
		buf_printf(why, "the recorder of process %d does not answer: %s", pid, strerror(-fd));
	return fd;
}

/* Root's recorder is open to the process's own user, too. */
static int open_to_user(const char *path, pid_t pid)
{
	uid_t uid;

	if (geteuid() || process_read_uid(pid, &uid) < 0)
		return 0;
	return chown(path, uid, (gid_t)-1) < 0 || chmod(path, 0600) < 0 ? -errno : 0;
}

/* Returns true if the user at the other end is this one. */
static bool is_of(int connection, uid_t uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == uid;
}

/* Returns a connection to that user's recorder, or -errno. */
static int connect_to(uid_t uid, pid_t pid, uint64_t start_ticks)
{
	uint64_t until_ns = clock_monotonic_ns() + CONNECT_NS;
	BUF(path);
	int fd = -ENOENT;

	for (unsigned int choice = 0; fd < 0 && usual_path(uid, choice, &path) && !path.failed; choice++) {
		IO_FD(folder) = open_of(uid, path.data);

		fd = folder < 0 ? folder : connect_in(folder, pid, start_ticks, until_ns);
		buf_clear(&path);
	}
	if (fd >= 0 && !is_of(fd, uid)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/*
 * As recorder_connect(), for a recorder that another user runs: the process's own if we are root, else root's. A user
 * may stop his recorder, so questions time out.
 */
static int recorder_connect_peer(pid_t pid, uint64_t start_ticks)
{
	uid_t own = geteuid(), uid = 0;

	if (!own && process_read_uid(pid, &uid) < 0)
		return -ESRCH;
	return uid == own ? -ENOENT : connect_to(uid, pid, start_ticks);
}

bool recorder_permits(int connection, pid_t pid, bool *ret_is_other)
{
	uid_t uid;

	*ret_is_other = !is_of(connection, geteuid());
	if (!*ret_is_other || is_of(connection, 0))
		return true;
	return !process_read_uid(pid, &uid) && is_of(connection, uid);
}

/* Returns true if the name is that of a process that has ended, and its recorder has, too. */
static bool is_left(int folder, const char *name)
{
	unsigned long long start_ticks;
	uint64_t now_ticks;
	int pid, length = 0, fd;

	if (sscanf(name, "%d-%llu%n", &pid, &start_ticks, &length) != 2 || name[length] || pid <= 0)
		return false;
	if (!process_read_start_ticks(pid, &now_ticks) && now_ticks == start_ticks)
		return false;
	fd = connect_in(folder, pid, start_ticks, 0);
	if (fd >= 0)
		close(fd);
	return fd == -ENOENT;
}

void recorder_sweep_sockets(void)
{
	unsigned int choice = 0;
	BUF(why);
	IO_FD(folder) = open_folder(&choice, true, &why);
	int fd = folder < 0 ? folder : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (fd >= 0 && !names)
		close(fd);
	for (unsigned int i = 0; names && i < SWEEP_MAX && (entry = readdir(names)); i++)
		if (is_left(folder, entry->d_name))
			unlinkat(folder, entry->d_name, 0);
	if (names)
		closedir(names);
}

static int listen_in(int folder, pid_t pid, uint64_t start_ticks)
{
	struct sockaddr_un address = address_of(folder, pid, start_ticks);
	int fd = connect_in(folder, pid, start_ticks, 0);

	if (fd >= 0 || fd == -EAGAIN) {
		io_close(&fd);
		return -EADDRINUSE;
	}
	unlink(address.sun_path);
	fd = new_socket();
	if (fd >= 0 && (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
			open_to_user(address.sun_path, pid) < 0 || listen(fd, BACKLOG) < 0)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int recorder_listen(pid_t pid, uint64_t start_ticks, struct buf *why)
{
	unsigned int choice = 0;
	IO_FD(folder) = open_folder(&choice, true, why);
	int fd;

	if (folder < 0)
		return folder;
	fd = listen_in(folder, pid, start_ticks);
	if (fd < 0)
		buf_printf(why, "the recorder of process %d cannot listen: %s", pid, strerror(-fd));
	return fd;
}

void recorder_unlink_socket(pid_t pid, uint64_t start_ticks)
{
	unsigned int choice = 0;
	BUF(why);
	IO_FD(folder) = open_folder(&choice, true, &why); /* the folder that recorder_listen() has used */

	if (folder >= 0)
		unlink(address_of(folder, pid, start_ticks).sun_path);
}

/* ---- packets ---- */

/* Returns 0 or -errno. `fd`: -1 for none. Text that is too long is cut. Who reads nothing must not hold us. */
static int send_packet(int connection, const struct iovec *head, const struct buf *const texts[2], int fd)
{
	struct iovec parts[3] = {*head};
	size_t room = DUET_RECORDER_TEXT_MAX;

	for (size_t i = 0; i < 2; i++) {
		size_t bytes = texts[i] && texts[i]->data ? texts[i]->len : 0;

		parts[1 + i].iov_len = bytes < room ? bytes : room;
		parts[1 + i].iov_base = bytes ? texts[i]->data : NULL;
		room -= parts[1 + i].iov_len;
	}
	return packet_send_parts(connection, parts, 3, &fd, fd >= 0, MSG_DONTWAIT);
}

/* Returns 0 or -errno: -EPIPE at the end. *ret_fd is -1 when there is none. */
static int receive_packet(int connection, const struct iovec *head, struct buf *text, int *ret_fd)
{
	char *bytes = malloc(DUET_RECORDER_TEXT_MAX);
	const struct iovec parts[] = {*head, {bytes, DUET_RECORDER_TEXT_MAX}};
	ssize_t len;
	int err = 0;

	*ret_fd = -1;
	len = bytes ? packet_receive_parts(connection, parts, 2, MSG_DONTWAIT, ret_fd) : -ENOMEM;
	if (len < (ssize_t)head->iov_len)
		err = len < 0 ? (int)len : -EPIPE;
	else
		buf_add(text, bytes, (size_t)len - head->iov_len);
	if (err)
		io_close(ret_fd);
	free(bytes);
	return err;
}

/* ---- answers ---- */

/* The process that listens at the other end; 0 if it is not in our namespace. */
static pid_t peer_pid(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? 0 : peer.pid;
}

/* Returns true if the process cannot run: somebody has stopped it, or frozen its cgroup. */
static bool is_stopped(pid_t pid)
{
	struct cgroup_freezer freezer;
	struct proc_stat stat;
	bool ret;

	if (!pid || proc_stat_of(&stat, pid))
		return false;
	cgroup_freezer_open(&freezer, pid);
	ret = stat.state == 'T' || stat.state == 't' || cgroup_is_frozen(&freezer);
	cgroup_freezer_release(&freezer);
	return ret;
}

/* As signals_wait(), and -EHOSTDOWN if the recorder is stopped; only twice in a row, as a debugger stops it briefly. */
static int await_answer(int connection, uint64_t until_ns)
{
	uint64_t look_ns = clock_monotonic_ns();
	int stops = 0, err;

	do {
		look_ns += LOOK_NS;
		err = signals_wait(connection, POLLIN, look_ns < until_ns ? look_ns : until_ns);
		stops = err == -ETIMEDOUT && is_stopped(peer_pid(connection)) ? stops + 1 : 0;
	} while (err == -ETIMEDOUT && look_ns < until_ns && stops < 2);
	return stops == 2 ? -EHOSTDOWN : err;
}

static int receive_answer(int connection, uint64_t until_ns, struct recorder_answer *ret)
{
	struct duet_answer answer;
	struct iovec head = {&answer, sizeof(answer)};
	int err = await_answer(connection, until_ns);

	if (!err)
		err = receive_packet(connection, &head, &ret->text, &ret->report);
	if (!err) {
		ret->code = (enum duet_answer_code)answer.code;
		ret->is_private = answer.is_private;
	}
	return err;
}

static int ask(int connection, enum duet_question_kind kind, const char *arguments, uint64_t timeout_ns,
	       struct recorder_answer *ret, struct buf *why)
{
	struct duet_question question = {.kind = kind};
	struct iovec head = {&question, sizeof(question)};
	BUF(text);
	int err;

	*ret = (struct recorder_answer)RECORDER_ANSWER_NONE;
	buf_add_str(&text, arguments);
	err = text.failed ? -ENOMEM : text.len > DUET_RECORDER_TEXT_MAX ? -E2BIG : 0;
	if (!err)
		err = send_packet(connection, &head, (const struct buf *const[]){&text, NULL}, -1);
	if (!err)
		err = receive_answer(connection, clock_monotonic_ns() + timeout_ns, ret);
	if (err == -EINTR)
		buf_add_str(why, "interrupted while the recorder was waited for");
	else if (err == -EHOSTDOWN)
		buf_printf(why,
			   "the recorder is stopped, or frozen with its cgroup: kill -CONT %1$d, or thaw it; "
			   "kill -KILL %1$d ends it, and its recording is lost",
			   peer_pid(connection));
	else if (err < 0)
		buf_printf(why, err == -EPIPE ? "the recorder has ended" : "the recorder does not answer: %s",
			   strerror(-err));
	return err;
}

int recorder_request(int connection, const char *arguments, struct recorder_answer *ret, struct buf *why)
{
	return ask(connection, DUET_QUESTION_COMMAND, arguments, OWN_NS, ret, why);
}

void recorder_answer_release(struct recorder_answer *answer)
{
	buf_release(&answer->text);
	buf_release(&answer->log);
	io_close(&answer->report);
}

int recorder_reply(int connection, const struct recorder_answer *answer)
{
	struct duet_answer packet = {
		.code = answer->code,
		.stream = answer->stream,
		.log_bytes = (uint32_t)answer->log.len,
		.is_private = answer->is_private,
	};
	struct iovec head = {&packet, sizeof(packet)};

	return send_packet(connection, &head, (const struct buf *const[]){&answer->log, &answer->text}, answer->report);
}

/* ---- questions ---- */

int recorder_receive(int connection, struct recorder_question *ret)
{
	struct iovec head = {&ret->head, sizeof(ret->head)};
	int err;

	buf_init(&ret->arguments);
	err = receive_packet(connection, &head, &ret->arguments, &ret->socket);
	if (err)
		return err;
	if (ret->head.kind >= DUET_QUESTION_KIND_MAX || memchr(ret->head.name, '\0', sizeof(ret->head.name)) == NULL)
		return -EPROTO;
	return 0;
}

void recorder_question_release(struct recorder_question *question)
{
	buf_release(&question->arguments);
	io_close(&question->socket);
}

int recorder_hand_over(int connection, int socket)
{
	struct duet_question question = {.kind = DUET_QUESTION_ADOPT};
	struct iovec head = {&question, sizeof(question)};
	struct recorder_answer answer;
	BUF(why);
	int err = ask(connection, DUET_QUESTION_ADOPT, "", CONNECT_NS, &answer, &why);

	if (!err && answer.code)
		err = -EBUSY;
	recorder_answer_release(&answer);
	if (err)
		return err;
	return send_packet(connection, &head, (const struct buf *const[]){NULL, NULL}, socket);
}

#define RUNNING "Profiling is running"
#define REPORT_MAX (1ull << 30) /* bytes of another user's report */

bool peer_recorder_may_request(const struct asprof_arguments *arguments)
{
	bool is_about_one = arguments->action == ASPROF_STATUS || arguments->action == ASPROF_STOP ||
			    arguments->action == ASPROF_DUMP || arguments->action == ASPROF_METRICS;

	return is_about_one && !arguments->file && !arguments->log;
}

static int ask_peer(int connection, const char *words, uint64_t timeout_ns, struct recorder_answer *ret,
		    struct buf *why)
{
	int err = ask(connection, DUET_QUESTION_SHARED, words, timeout_ns, ret, why);

	if (!err && ret->report >= 0 && io_sealed_bytes(ret->report, REPORT_MAX) < 0) {
		io_close(&ret->report);
		err = buf_explain(why, -EPROTO, "the other user's recorder sent what is no report");
	}
	ret->is_private = false;
	if (!err && ret->text.len)
		text_clean_lines(&ret->text);
	return err;
}

int peer_recorder_find(pid_t pid, uint64_t start_ticks)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	int connection = recorder_connect_peer(pid, start_ticks), err;
	BUF(why);

	if (connection < 0)
		return connection;
	err = ask_peer(connection, "status", OTHER_STATUS_NS, &answer, &why);
	if (!err && (answer.code || strncmp(answer.text.data, RUNNING, strlen(RUNNING))))
		err = -ENOENT;
	recorder_answer_release(&answer);
	if (err)
		close(connection);
	return err ? err : connection;
}

/* Without its file, a report still has the format of the file's extension. */
static void compose(const struct asprof_arguments *arguments, const char *words, struct buf *ret)
{
	char *copy = strdup(words), *rest = copy, *word;

	while (rest && (word = strsep(&rest, ",")) != NULL)
		if (*word && !text_begins_with(word, "file= log= loglevel="))
			buf_printf(ret, "%s%s", ret->len ? "," : "", word);
	free(copy);
	if (arguments->file && arguments->writer)
		buf_printf(ret, ",%s", arguments->writer->name);
}

int peer_recorder_request(int connection, const struct asprof_arguments *arguments, const char *words,
			  struct recorder_answer *ret, struct buf *why)
{
	BUF(left);

	compose(arguments, words, &left);
	return left.failed ? -ENOMEM : ask_peer(connection, left.data, OTHER_NS, ret, why);
}

void peer_recorder_answer(int connection, const struct asprof_arguments *arguments, const char *words,
			  struct recorder_answer *answer)
{
	struct recorder_answer got = RECORDER_ANSWER_NONE;
	BUF(why);

	if (peer_recorder_request(connection, arguments, words, &got, &why)) {
		answer->code = DUET_ANSWER_REFUSED;
		buf_add_str(&answer->text, why.data);
	} else {
		answer->code = got.code;
		buf_add_str(&answer->text, got.text.data);
		answer->report = got.report;
		got.report = -1;
	}
	recorder_answer_release(&got);
}
