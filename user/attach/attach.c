/* SPDX-License-Identifier: MIT */
#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/children.h"
#include "attach/hotspot.h"
#include "attach/place.h"
#include "attach/visit.h"
#include "base/buf.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/packet.h"
#include "base/root.h"
#include "base/signals.h"

#define GRACE_NS NS_PER_SEC /* extra time for a child on a busy machine, after the child's own deadline */
#define LEFT_MAX 8 /* most hanging attaches to JVMs of one user */
#define ABORT_GRACE_NS (1500 * NS_PER_MS) /* longer than the child waits for a JVM to which it has sent SIGQUIT */
#define EXIT_PAUSE_NS (20 * NS_PER_MS)
/* Both last only a moment: an agent that has not yet noticed its last loader's end, and a JVM that is starting. */
#define BUSY_TIMEOUT_NS NS_PER_SEC
#define BUSY_PAUSE_NS (20 * NS_PER_MS)
#define SETTLE_STEPS 10
#define SETTLE_STEP_NS (100 * NS_PER_MS)

/* Sent by the child to the loader; when error is 0 it carries the control socket (SCM_RIGHTS). */
struct packet {
	int error;
	char why[sizeof(((struct attach_result *)0)->why)];
};

static void print_hex(char digits[DUET_SECRET_DIGITS + 1], const uint64_t words[2])
{
	snprintf(digits, DUET_SECRET_DIGITS + 1, "%016lx%016lx", words[0], words[1]);
}

int attach_control_new(struct attach_control *ret_control, pid_t pid)
{
	char digits[DUET_SECRET_DIGITS + 1];
	uint64_t random[4];

	/* For so few bytes getrandom() neither fails nor blocks once the host has booted. */
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	print_hex(digits, random);
	snprintf(ret_control->name, sizeof(ret_control->name), "duet-%d-%s", pid, digits);
	print_hex(ret_control->secret, random + 2);
	return 0;
}

static int load_from(struct visit *visit, const struct vm_options *options, const char *path,
		     const struct attach_control *control)
{
	uint64_t busy_until_ns = clock_monotonic_ns() + BUSY_TIMEOUT_NS;
	int err;

	do {
		err = hotspot_load(visit, options, path, control);
	} while (err == -EBUSY && clock_monotonic_ns() < busy_until_ns && visit_pause(visit, BUSY_PAUSE_NS) == 0);
	return err;
}

static int load_agent(struct visit *visit, const struct vm_options *options, const struct place_mount *mount,
		      const struct attach_control *control)
{
	struct place place;
	int err;

	if (mount->helper)
		return load_from(visit, options, mount->path, control);
	err = place_library(visit, &place);
	if (err)
		return err;
	err = load_from(visit, options, place.path, control);
	place_remove(&place);
	return err;
}

/*
 * Waits a moment before attaching to a new JVM. One that ends within the first step, such as java -version, is not
 * worth an agent. A JVM that prints a warning when an agent is loaded gets a second: if it still runs then, it is
 * hardly one whose output a script reads. Its hsperfdata shows the JDK version after about 50 ms.
 */
static int settle(struct visit *visit, struct vm_options *options)
{
	int err = 0;

	for (int i = 0; !err && i < SETTLE_STEPS && (!i || vm_options_warn_of_agents(options)); i++) {
		err = visit_pause(visit, SETTLE_STEP_NS);
		vm_options_read_hsperfdata(options, visit);
	}
	return err;
}

/* Ignores most failures: place_library() then reports what is wrong with every place. */
static int open_place_mount(struct visit *visit, struct place_mount *ret_mount)
{
	if (place_mount_open(visit, ret_mount) != -ENOSYS)
		return 0;
	return visit_fail(visit, -ENOSYS,
			  "no place for the agent in JVM %d: /tmp, /dev/shm, /var/tmp, /run are read-only or noexec, "
			  "and making one safely takes Linux 5.2",
			  visit->target->pid);
}

/* A better error if another /tmp was mounted since: then JVM and duet do not see each other's files there. */
static int blame_tmp(struct visit *visit, int tmp, int error)
{
	struct stat before, now;
	IO_FD(fd) = root_open(visit->root, "tmp", O_PATH | O_DIRECTORY, true);
	bool replaced = fd >= 0 && fstat(tmp, &before) == 0 && fstat(fd, &now) == 0 &&
			(before.st_dev != now.st_dev || before.st_ino != now.st_ino);

	if (!replaced)
		return error;
	return visit_fail(visit, error, "/tmp of JVM %d was replaced while duet attached: attach again",
			  visit->target->pid);
}

/* Returns a descriptor of the target's namespace, -ENOENT when we are in it already, or another -errno. */
static int open_foreign(const struct visit *visit, const char *name)
{
	char ours[32], theirs[16];
	struct stat mine, other;
	int fd;

	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", name);
	snprintf(theirs, sizeof(theirs), "ns/%s", name);
	fd = openat(visit->proc, theirs, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (stat(ours, &mine) == 0 && fstat(fd, &other) == 0 &&
	    (mine.st_ino != other.st_ino || mine.st_dev != other.st_dev))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Returns 0 when the child is in the target's namespace. */
static int enter(const struct visit *visit, const char *name, int type)
{
	IO_FD(fd) = open_foreign(visit, name);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return setns(fd, type) < 0 ? -errno : 0;
}

/*
 * Enters the target's network namespace, which the agent's abstract socket belongs to. No mount namespace is entered:
 * files are reached below visit->root, and unix sockets in the file system work across namespaces. A user namespace is
 * entered only if the network namespace cannot be entered otherwise. Returns 0, or -errno with the reason in
 * visit->why.
 */
static int namespaces_enter(struct visit *visit)
{
	int err = enter(visit, "net", CLONE_NEWNET);

	/* The owner of a rootless container has rights over its network only inside its user namespace. */
	if (err == -EPERM) {
		err = enter(visit, "user", CLONE_NEWUSER);
		if (!err)
			err = enter(visit, "net", CLONE_NEWNET);
	}
	if (err)
		visit_fail(visit, err, "cannot enter the network namespace of JVM %d (%s): %s", visit->target->pid,
			   strerror(-err),
			   geteuid() ? "run duet as root" : "give duet CAP_SYS_ADMIN, or start it in that namespace");
	return err;
}

/* Reads the second column (effective) of "Uid:" or "Gid:". The ids are those of the user namespace that we are in. */
static bool read_id(const char *status, const char *field, unsigned int *ret_id)
{
	const char *line = strstr(status, field);

	return line && sscanf(line + strlen(field), "%*u %u", ret_id) == 1;
}

/*
 * Changes to the target's user and group and drops all capabilities, also when that user is root. HotSpot checks
 * SO_PEERCRED and accepts only its own user and group (JDK 11 and later also root). It also means that the child writes
 * into the target's file system with the target's rights, not the loader's. Cannot be undone. Returns 0, or -errno with
 * the reason in visit->why.
 */
static int namespaces_become_user(struct visit *visit)
{
	unsigned int uid = 0, gid = 0;
	BUF(status);
	int err = io_read_again(visit->status, 64u << 10, &status);

	if (!err && !(read_id(status.data, "\nUid:", &uid) && read_id(status.data, "\nGid:", &gid)))
		err = -EBADMSG;
	if (err)
		return visit_fail(visit, err, "cannot read the user of process %d: %s", visit->target->pid,
				  strerror(-err));
	err = children_become(uid, gid);
	if (err)
		visit_fail(visit, err, "JVM %d belongs to user %u, group %u: run duet as that user or %s",
			   visit->target->pid, uid, gid,
			   geteuid() ? "as root" : "give it CAP_SETUID and CAP_SETGID");
	return err;
}

/* ECONNREFUSED: nobody listens yet. EAGAIN: the backlog is full. */
static bool worth_retrying(int error)
{
	return error == -ECONNREFUSED || error == -EAGAIN || error == -EINTR;
}

static int connect_once(int fd, const char *control)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(control);

	if (len == 0 || len >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path + 1, control, len);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	return connect(fd, (struct sockaddr *)&address, len) < 0 ? -errno : 0;
}

/* A name given on a command line (-agentpath) is not secret, so another process may have bound it first. */
static int check_peer(struct visit *visit, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == visit->target->pid)
		return 0;
	return visit_fail(visit, -EPERM, "the control socket of JVM %d is held by another process: attach again",
			  visit->target->pid);
}

static int prove(struct visit *visit, int fd, const char *secret)
{
	struct duet_message_proof proof = {
		.head = {.size = sizeof(proof), .type = DUET_MESSAGE_PROOF, .version = DUET_AGENT_VERSION}};

	memcpy(proof.secret, secret, sizeof(proof.secret));
	if (send(fd, &proof, sizeof(proof), MSG_NOSIGNAL) == sizeof(proof))
		return 0;
	return visit_fail(visit, -EPIPE, "the agent in JVM %d closed its control socket", visit->target->pid);
}

/*
 * Retries until the agent listens on its abstract name, checks that the peer is the target, and sends the secret.
 * Returns a connected SOCK_SEQPACKET socket, owned by the caller, or -errno with the reason in visit->why.
 */
static int connect_control(struct visit *visit, const struct attach_control *control)
{
	int err, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return visit_fail(visit, -errno, "cannot create a socket: %s", strerror(errno));
	while (worth_retrying(err = connect_once(fd, control->name))) {
		err = visit_pause(visit, 2 * NS_PER_MS);
		if (err)
			goto out;
	}
	if (err)
		visit_fail(visit, err, "cannot connect to the agent in JVM %d: %s", visit->target->pid, strerror(-err));
	else
		err = check_peer(visit, fd);
	if (!err)
		err = prove(visit, fd, control->secret);
out:
	if (err)
		close(fd);
	return err ? err : fd;
}

/* Returns the control socket, or -errno with the reason in visit->why. */
static int run(struct visit *visit, const struct attach_control *control, pid_t loader)
{
	const struct attach_target *target = visit->target;
	struct vm_options options = {0};
	struct vm_words words;
	struct place_mount mount = {0};
	bool is_loaded = target->kind == ATTACH_LOADED, is_command = target->kind == ATTACH_COMMAND;
	int err = is_loaded ? 0 : visit_check_hotspot(visit);
	IO_FD(tmp) = -1;

	if (err)
		return err;
	vm_words_read(&words, visit);
	err = namespaces_enter(visit);
	if (!err && !is_loaded)
		tmp = root_open(visit->root, "tmp", O_PATH | O_DIRECTORY, true);
	if (!err && !is_loaded && !is_command && !place_exists(visit))
		err = open_place_mount(visit, &mount);
	if (!err)
		err = namespaces_become_user(visit);
	child_end_with(loader, SIGTERM); /* again, after the change of user */
	if (!err)
		vm_options_read(&options, &words, visit);
	vm_words_release(&words);
	if (!err && target->kind == ATTACH_STARTING)
		err = settle(visit, &options);
	else if (!err && !is_loaded)
		vm_options_read_hsperfdata(&options, visit);
	if (!err && is_command)
		err = hotspot_command(visit, &options, target->command);
	else if (!err && !is_loaded)
		err = load_agent(visit, &options, &mount, control);
	if (err < 0 && tmp >= 0)
		err = blame_tmp(visit, tmp, err);
	place_mount_close(&mount);
	return err < 0 || is_command ? err : connect_control(visit, control);
}

/* A process that is about to exit causes many other errors (no mappings, half a reply): prefers "process exited". */
static int blame_exit(struct visit *visit, int error)
{
	int gone;

	clock_sleep(EXIT_PAUSE_NS);
	gone = visit_check(visit);
	return gone ? gone : error;
}

/* Moves both descriptors to their fixed numbers, first via numbers above them so that neither overwrites the other. */
static void inherit(int result, int life)
{
	result = fcntl(result, F_DUPFD, VISIT_LIFE_FD + 1);
	life = fcntl(life, F_DUPFD, VISIT_LIFE_FD + 1);
	dup2(result, VISIT_RESULT_FD);
	dup2(life, VISIT_LIFE_FD);
	closefrom(VISIT_LIFE_FD + 1);
}

/* Resets signals and closes descriptors. Then SIGALRM kills the child, and SIGTERM makes it clean up. */
static void shed_inheritance(int result, int life, uint64_t timeout_ns)
{
	struct itimerval limit = {
		.it_value = {.tv_sec = timeout_ns / NS_PER_SEC, .tv_usec = timeout_ns % NS_PER_SEC / 1000 + 1}};
	struct sigaction tidy = {.sa_handler = visit_cancel}; /* no SA_RESTART: SIGTERM must interrupt waits */
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole process group; the loader decides what to do */
	signal(SIGQUIT, SIG_IGN); /* Ctrl-\ too */
	signal(SIGXFSZ, SIG_IGN); /* the error has a sentence */
	sigaction(SIGTERM, &tidy, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	inherit(result, life);
	umask(022);
	setitimer(ITIMER_REAL, &limit, NULL);
}

static void child(const struct attach_target *target, const struct attach_control *control, uint64_t timeout_ns,
		  int result, int life, pid_t loader)
{
	/* Earlier than the loader's deadline: a killed child could not remove its files or say why. */
	uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns - timeout_ns / 8;
	struct packet packet;
	struct visit visit;
	int ret;

	memset(&packet, 0, sizeof(packet));
	shed_inheritance(result, life, timeout_ns);
	child_end_with(loader, SIGTERM); /* it must still remove its files */
	ret = visit_open(&visit, target, deadline_ns);
	if (!ret)
		ret = run(&visit, control, loader);
	if (ret < 0 && visit.proc >= 0)
		ret = blame_exit(&visit, ret);
	packet.error = ret < 0 ? ret : 0;
	memcpy(packet.why, visit.why, ret < 0 ? sizeof(packet.why) : 0);
	(void)packet_send(VISIT_RESULT_FD, &packet, sizeof(packet), ret, 0);
	visit_release(&visit);
}

/* Opens the socket pair and the pipe that loader and child share; index 0 is the loader's end. Returns 0 or -errno. */
static int open_ends(int result[2], int life[2])
{
	int err;

	if (pipe2(life, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, result) == 0)
		return 0;
	err = -errno;
	close(life[0]);
	close(life[1]);
	return err;
}

int attach_start(struct attach *attach, const struct attach_target *target, const struct attach_control *control)
{
	uint64_t timeout_ns = target->timeout_ns ? target->timeout_ns : ATTACH_TIMEOUT_NS;
	pid_t pid, loader = getpid();
	int result[2], life[2], err;

	if (children_left(target->uid) >= LEFT_MAX)
		return -EBUSY;
	if (target->kind == ATTACH_STARTING)
		timeout_ns += SETTLE_STEPS * SETTLE_STEP_NS;
	err = open_ends(result, life);
	if (err)
		return err;
	pid = fork();
	if (pid == 0) {
		child(target, control, timeout_ns, result[1], life[1], loader);
		_exit(0);
	}
	err = pid < 0 ? -errno : 0;
	close(result[1]);
	close(life[1]);
	if (err) {
		close(result[0]);
		close(life[0]);
		return err;
	}
	*attach = (struct attach){
		.child = pid,
		.fd = result[0],
		.life = life[0],
		.pid = target->pid,
		.uid = target->uid,
		.timeout_ns = timeout_ns,
		.deadline_ns = clock_monotonic_ns() + timeout_ns + GRACE_NS,
	};
	return 0;
}

/* Returns false when the child died without sending a result. */
static bool receive_packet(int fd, struct attach_result *ret)
{
	struct packet packet;
	const struct iovec part = {&packet, sizeof(packet)};
	int control;

	if (packet_receive_parts(fd, &part, 1, 0, &control) != sizeof(packet)) {
		io_close(&control);
		return false;
	}
	packet.why[sizeof(packet.why) - 1] = '\0';
	ret->error = packet.error;
	ret->socket = control;
	memcpy(ret->why, packet.why, sizeof(ret->why));
	return ret->error != 0 || ret->socket >= 0;
}

/* Ends the child, which has nothing left to do. It, or a process that it started, may be blocked. */
static void end_child(const struct attach *attach, int *ret_status, uint64_t *ret_cpu_ns)
{
	bool collected = children_collect_soon(attach->child, ret_status, ret_cpu_ns);

	children_leave(collected ? 0 : attach->child, attach->life, attach->uid, 0);
}

static void blame_child(const struct attach *attach, int status, struct attach_result *ret)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		ret->error = -ETIMEDOUT;
		snprintf(ret->why, sizeof(ret->why), "attaching to JVM %d took longer than %.1f s: is it hung?",
			 attach->pid, (double)attach->timeout_ns / NS_PER_SEC);
	} else {
		ret->error = -EIO;
		snprintf(ret->why, sizeof(ret->why), "the process that attaches to JVM %d ended early (status 0x%x)",
			 attach->pid, status);
	}
}

void attach_abort(struct attach *attach)
{
	kill(attach->child, SIGTERM);
	kill(attach->child, SIGCONT); /* the target's user may have stopped it */
	close(attach->fd); /* drops the control socket too, if the child has already sent it */
	children_leave(attach->child, attach->life, attach->uid, clock_monotonic_ns() + ABORT_GRACE_NS);
}

void attach_finish(struct attach *attach, struct attach_result *ret)
{
	int status = 0, err = signals_wait(attach->fd, POLLIN, attach->deadline_ns);
	bool received;

	*ret = (struct attach_result){.error = err, .socket = -1};
	if (err) {
		attach_abort(attach);
		snprintf(ret->why, sizeof(ret->why),
			 "the process that attaches to JVM %d does not answer: %s: is it stopped?", attach->pid,
			 strerror(-err));
		return;
	}
	received = receive_packet(attach->fd, ret);
	close(attach->fd);
	if (received)
		kill(attach->child, SIGKILL);
	end_child(attach, &status, &ret->cpu_ns);
	if (!received)
		blame_child(attach, status, ret);
}
