/* SPDX-License-Identifier: MIT */
#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/children.h"
#include "attach/connect.h"
#include "attach/hotspot.h"
#include "attach/namespaces.h"
#include "attach/place.h"
#include "attach/stage.h"
#include "attach/visit.h"
#include "base/clock.h"
#include "base/root.h"

#define PATIENCE_NS NS_PER_SEC /* with a child on a busy machine, beyond its own deadline */
#define LEFT_MAX 8 /* attaches to JVMs of one user that do not end */
#define ABORT_GRACE_NS (1500 * NS_PER_MS) /* longer than the child waits for a JVM that SIGQUIT is on its way to */
#define EXIT_PAUSE_NS (20 * NS_PER_MS)
/* An agent that notices its last loader's end, and a JVM that is about to start, are busy for a moment only. */
#define BUSY_PATIENCE_NS NS_PER_SEC
#define BUSY_PAUSE_NS (20 * NS_PER_MS)
#define SETTLE_STEPS 10
#define SETTLE_STEP_NS (100 * NS_PER_MS)

/* From child to loader, with the control socket by SCM_RIGHTS when error is 0. */
struct packet {
	int error;
	char why[sizeof(((struct attach_result *)0)->why)];
};

union fd_message { /* aligned for struct cmsghdr */
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void print_hex(char digits[DUET_SECRET_DIGITS + 1], const uint64_t words[2])
{
	snprintf(digits, DUET_SECRET_DIGITS + 1, "%016llx%016llx", (unsigned long long)words[0],
		 (unsigned long long)words[1]);
}

int attach_control_new(struct attach_control *ret_control, pid_t pid)
{
	char digits[DUET_SECRET_DIGITS + 1];
	uint64_t random[4];

	/* Neither fails nor blocks for so few bytes once the host has booted. */
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
	uint64_t patience_ns = clock_monotonic_ns() + BUSY_PATIENCE_NS;
	int err;

	do {
		err = hotspot_load(visit, options, path, control);
	} while (err == -EBUSY && clock_monotonic_ns() < patience_ns && visit_pause(visit, BUSY_PAUSE_NS) == 0);
	return err;
}

static int load_agent(struct visit *visit, const struct vm_options *options, const struct stage *stage,
		      const struct attach_control *control)
{
	struct place place;
	int err;

	if (stage->helper)
		return load_from(visit, options, stage->path, control);
	err = place_library(visit, &place);
	if (err)
		return err;
	err = load_from(visit, options, place.path, control);
	place_remove(&place);
	return err;
}

/* When the loader dies the child still removes its files. The kernel forgets this wish with every change of user. */
static void end_with(pid_t loader)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != loader)
		visit_cancel(SIGTERM);
}

/*
 * A JVM that is over after a step, as java -version, is not worth an agent. One that would warn of it gets a second,
 * and is then hardly one whose words a script is about to read. Its hsperfdata tell what JDK it is after some 50 ms.
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

/* Most failures are left to place_library(), which says what is wrong with all places. */
static int open_stage(struct visit *visit, struct stage *ret_stage)
{
	if (stage_open(visit, ret_stage) != -ENOSYS)
		return 0;
	return visit_fail(visit, -ENOSYS,
			  "no place for the agent in JVM %d: /tmp, /dev/shm, /var/tmp, /run are read-only or noexec, "
			  "and making one safely takes Linux 5.2",
			  visit->target->pid);
}

/* Somebody has mounted another /tmp: what we put there is not where the JVM looks, nor is its socket where we do. */
static int blame_tmp(struct visit *visit, int tmp, int error)
{
	struct stat before, now;
	int fd = root_open(visit->root, "tmp", O_PATH | O_DIRECTORY, true);
	bool replaced = fd >= 0 && fstat(tmp, &before) == 0 && fstat(fd, &now) == 0 &&
			(before.st_dev != now.st_dev || before.st_ino != now.st_ino);

	if (fd >= 0)
		close(fd);
	if (!replaced)
		return error;
	return visit_fail(visit, error, "/tmp of JVM %d was replaced while duet attached: attach again",
			  visit->target->pid);
}

/* The control socket or -errno with its sentence. */
static int run(struct visit *visit, const struct attach_control *control, pid_t loader)
{
	const struct attach_target *target = visit->target;
	struct vm_options options = {0};
	struct stage stage = {0};
	bool is_loaded = target->kind == ATTACH_LOADED;
	int tmp = -1, err = is_loaded ? 0 : visit_check_hotspot(visit);

	if (err)
		return err;
	vm_options_read(&options, visit);
	err = namespaces_enter(visit);
	if (!err && !is_loaded)
		tmp = root_open(visit->root, "tmp", O_PATH | O_DIRECTORY, true);
	if (!err && !is_loaded && !place_exists(visit))
		err = open_stage(visit, &stage);
	if (!err)
		err = namespaces_become_user(visit);
	end_with(loader);
	if (!err && target->kind == ATTACH_STARTING)
		err = settle(visit, &options);
	else if (!err && !is_loaded)
		vm_options_read_hsperfdata(&options, visit);
	if (!err && !is_loaded)
		err = load_agent(visit, &options, &stage, control);
	if (err && tmp >= 0)
		err = blame_tmp(visit, tmp, err);
	stage_close(&stage);
	if (tmp >= 0)
		close(tmp);
	return err ? err : connect_control(visit, control);
}

/* A process that is about to exit fails in many ways: no mappings, no namespaces, half an answer. */
static int blame_exit(struct visit *visit, int error)
{
	const struct timespec pause = {.tv_nsec = EXIT_PAUSE_NS};
	int gone;

	nanosleep(&pause, NULL);
	gone = visit_check(visit);
	return gone ? gone : error;
}

static void send_packet(const struct packet *packet, int control)
{
	struct iovec body = {.iov_base = (void *)packet, .iov_len = sizeof(*packet)};
	union fd_message rights = {
		.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};

	if (control >= 0) {
		memcpy(CMSG_DATA(&rights.head), &control, sizeof(control));
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof(rights.bytes);
	}
	sendmsg(VISIT_RESULT_FD, &message, MSG_NOSIGNAL);
}

/* By way of numbers that neither of them has. */
static void inherit(int result, int life)
{
	result = fcntl(result, F_DUPFD, VISIT_LIFE_FD + 1);
	life = fcntl(life, F_DUPFD, VISIT_LIFE_FD + 1);
	dup2(result, VISIT_RESULT_FD);
	dup2(life, VISIT_LIFE_FD);
	closefrom(VISIT_LIFE_FD + 1);
}

/* The loader's handlers, mask and descriptors are not the child's. SIGALRM kills it, SIGTERM makes it tidy up. */
static void shed_inheritance(int result, int life, uint64_t timeout_ns)
{
	struct itimerval limit = {
		.it_value = {.tv_sec = timeout_ns / NS_PER_SEC, .tv_usec = timeout_ns % NS_PER_SEC / 1000 + 1}};
	struct sigaction tidy = {.sa_handler = visit_cancel}; /* without SA_RESTART: waits must end */
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the loader decides */
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
	/* Its own deadline comes first: a killed child could not remove its files or say why. */
	uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns - timeout_ns / 8;
	struct packet packet;
	struct visit visit;
	int ret;

	memset(&packet, 0, sizeof(packet));
	shed_inheritance(result, life, timeout_ns);
	end_with(loader);
	ret = visit_open(&visit, target, deadline_ns);
	if (!ret)
		ret = run(&visit, control, loader);
	if (ret < 0 && visit.proc >= 0)
		ret = blame_exit(&visit, ret);
	packet.error = ret < 0 ? ret : 0;
	memcpy(packet.why, visit.why, ret < 0 ? sizeof(packet.why) : 0);
	send_packet(&packet, ret);
	visit_release(&visit);
}

/* What the loader shares with the child, with the loader's ends first. 0 or -errno. */
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
		.deadline_ns = clock_monotonic_ns() + timeout_ns + PATIENCE_NS,
	};
	return 0;
}

static int received_socket(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* false when the child died without a word. */
static bool receive_packet(int fd, struct attach_result *ret)
{
	struct packet packet;
	union fd_message rights;
	struct iovec body = {.iov_base = &packet, .iov_len = sizeof(packet)};
	struct msghdr message = {
		.msg_iov = &body, .msg_iovlen = 1, .msg_control = rights.bytes, .msg_controllen = sizeof(rights.bytes)};
	ssize_t len;

	do {
		len = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len != sizeof(packet))
		return false;
	packet.why[sizeof(packet.why) - 1] = '\0';
	ret->error = packet.error;
	ret->socket = received_socket(&message);
	memcpy(ret->why, packet.why, sizeof(ret->why));
	return ret->error != 0 || ret->socket >= 0;
}

/* It has nothing left to do but to end, which it, or what it started, might be kept from. */
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

void attach_finish(struct attach *attach, struct attach_result *ret)
{
	int status = 0;
	bool told;

	*ret = (struct attach_result){.socket = -1};
	told = receive_packet(attach->fd, ret);
	close(attach->fd);
	if (told)
		kill(attach->child, SIGKILL);
	end_child(attach, &status, &ret->cpu_ns);
	if (!told)
		blame_child(attach, status, ret);
}

void attach_abort(struct attach *attach)
{
	kill(attach->child, SIGTERM);
	kill(attach->child, SIGCONT); /* the target's user may have stopped it */
	close(attach->fd); /* with the control socket in it, if that came first */
	children_leave(attach->child, attach->life, attach->uid, clock_monotonic_ns() + ABORT_GRACE_NS);
}

void attach_collect(uint64_t now_ns)
{
	children_collect(now_ns);
}

void attach_wait_aborted(void)
{
	children_wait();
}
