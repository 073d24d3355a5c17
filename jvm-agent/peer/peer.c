/* SPDX-License-Identifier: MIT */
#include "peer/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine.h"
#include "hotspot/clock.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"

#define BACKLOG 16
#define CANDIDATES 8
#define OVERFLOW_UID 65534 /* what the kernel shows for a user without a name in our user namespace */

int peer_listen(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	int fd;

	if (length > DUET_NAME_MAX)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(address.sun_path + 1, name, length);
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, BACKLOG)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* In the initial user namespace every uid maps to itself: one line, "0 0 4294967295". */
static bool in_user_namespace(void)
{
	char map[64] = "";
	unsigned int inside, outside, count;
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, map, sizeof(map) - 1);
	close(fd);
	return got > 0 && (sscanf(map, "%u %u %u", &inside, &outside, &count) != 3 || outside || count != UINT32_MAX);
}

/*
 * Returns true for root and for the JVM's own user. In a user namespace of our own, the host's root has no name and
 * appears as the overflow uid. So does every other unmapped user; only the secret distinguishes them.
 */
static bool is_allowed(int peer)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &credentials, &size))
		return false;
	return credentials.uid == 0 || credentials.uid == geteuid() ||
	       (credentials.uid == OVERFLOW_UID && in_user_namespace());
}

static bool is_head(const struct duet_message *message, ssize_t got, enum duet_message_type type, size_t size)
{
	return got == (ssize_t)size && message->size == size && message->type == type &&
	       message->version == DUET_AGENT_VERSION;
}

/* Takes the same time whichever digit is wrong. */
static bool is_proof(const struct duet_message_proof *proof, ssize_t got, const char secret[DUET_SECRET_DIGITS])
{
	unsigned char difference = 0;

	for (int i = 0; i < DUET_SECRET_DIGITS; i++)
		difference |= (unsigned char)(proof->secret[i] ^ secret[i]);
	return is_head(&proof->head, got, DUET_MESSAGE_PROOF, sizeof(*proof)) && !difference;
}

/* Peers that have connected but have not sent the secret yet, oldest first. */
struct candidates {
	struct pollfd fds[CANDIDATES];
	int count;
};

static int candidates_take(struct candidates *candidates, int index)
{
	int peer = candidates->fds[index].fd;

	candidates->count--;
	memmove(&candidates->fds[index], &candidates->fds[index + 1],
		(size_t)(candidates->count - index) * sizeof(candidates->fds[0]));
	return peer;
}

/* Removes and returns the peer that sent the secret, or returns -1. Peers that sent anything else are dropped. */
static int candidates_choose(struct candidates *candidates, const char secret[DUET_SECRET_DIGITS])
{
	struct duet_message_proof proof = {0};
	ssize_t got;

	for (int i = candidates->count - 1; i >= 0; i--) {
		got = recv(candidates->fds[i].fd, &proof, sizeof(proof), MSG_DONTWAIT | MSG_TRUNC);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (is_proof(&proof, got, secret))
			return candidates_take(candidates, i);
		close(candidates_take(candidates, i));
	}
	return -1;
}

/* Accepts one more peer, if it may be a loader. Returns 0, or -errno when the listener can no longer be used. */
static int accept_candidate(struct candidates *candidates, int listener)
{
	int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (peer < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	if (!is_allowed(peer)) {
		close(peer);
		return 0;
	}
	/* Without room, the oldest is dropped: a peer that sends nothing must not keep the loader out. */
	if (candidates->count == CANDIDATES)
		close(candidates_take(candidates, 0));
	candidates->fds[candidates->count++] = (struct pollfd){.fd = peer, .events = POLLIN};
	return 0;
}

/* Waits for one event. Returns the loader's socket, -EAGAIN when the loader may still come, or another -errno. */
static int accept_step(struct candidates *candidates, int listener, const char secret[DUET_SECRET_DIGITS],
		       uint64_t deadline_ns)
{
	struct pollfd fds[CANDIDATES + 1] = {{.fd = listener, .events = POLLIN}};
	uint64_t now = clock_ns();
	int peer, error = 0;

	if (now >= deadline_ns)
		return -ETIMEDOUT;
	memcpy(&fds[1], candidates->fds, (size_t)candidates->count * sizeof(fds[0]));
	if (poll(fds, (nfds_t)candidates->count + 1, (int)((deadline_ns - now) / 1000000u) + 1) <= 0)
		return -EAGAIN;
	peer = candidates_choose(candidates, secret);
	if (peer >= 0)
		return peer;
	if (fds[0].revents & POLLHUP)
		error = -ESHUTDOWN; /* end_listening() */
	else if (fds[0].revents)
		error = accept_candidate(candidates, listener);
	return error ? error : -EAGAIN;
}

int peer_accept(int listener, const char secret[DUET_SECRET_DIGITS], uint64_t timeout_ns)
{
	uint64_t deadline_ns = clock_ns() + timeout_ns;
	struct candidates candidates = {.count = 0};
	int peer;

	do {
		peer = accept_step(&candidates, listener, secret, deadline_ns);
	} while (peer == -EAGAIN);
	while (candidates.count)
		close(candidates_take(&candidates, 0));
	return peer;
}

static int send_message(int peer, struct duet_message *message, enum duet_message_type type, uint32_t size)
{
	message->size = size;
	message->type = type;
	message->version = DUET_AGENT_VERSION;
	/* a loader that is stopped reads nothing */
	return send(peer, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 : -EPIPE;
}

int peer_send_hello(int peer)
{
	struct duet_message_hello hello = {.pid = (uint32_t)getpid(), .has_asgct = jvm.asgct != NULL};

	jvm_property("java.vm.name", hello.vm_name, sizeof(hello.vm_name));
	jvm_property("java.vm.version", hello.vm_version, sizeof(hello.vm_version));
	return send_message(peer, &hello.head, DUET_MESSAGE_HELLO, sizeof(hello));
}

int peer_send_started(int peer, const struct peer_started *from)
{
	struct duet_message_started started = {
		.error = from->error, .tid = (uint32_t)syscall(SYS_gettid), .refused = (uint16_t)from->refused};

	snprintf(started.why, sizeof(started.why), "%s", from->why);
	snprintf(started.refused_why, sizeof(started.refused_why), "%s", from->refused_why);
	if (!from->error) {
		started.signo = (uint32_t)from->stay->signo;
		started.handler = from->handler;
		started.engine = (uint16_t)from->stay->engine->id;
		started.lock_waiters = from->lock_waiters;
	}
	return send_message(peer, &started.head, DUET_MESSAGE_STARTED, sizeof(started));
}

int peer_send(int peer, enum duet_message_type type)
{
	struct duet_message message = {0};

	return send_message(peer, &message, type, sizeof(message));
}

void peer_send_note(int peer, enum duet_message_type type)
{
	struct duet_message message = {sizeof(message), (uint16_t)type, DUET_AGENT_VERSION};

	(void)send(peer, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void peer_close_fds(const int fds[PEER_FDS])
{
	for (int i = 0; i < PEER_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static const struct duet_agent_event *peer_find_event(const struct duet_message_start *start,
						      enum duet_agent_event_kind kind)
{
	for (uint32_t i = 0; i < start->event_count; i++)
		if (start->events[i].kind == kind)
			return &start->events[i];
	return NULL;
}

const struct duet_agent_event *peer_find_ticks(const struct duet_message_start *start)
{
	const struct duet_agent_event *clock = peer_find_event(start, DUET_AGENT_EVENT_CLOCK);

	return clock ? clock : peer_find_event(start, DUET_AGENT_EVENT_PAGE_FAULTS);
}

static bool events_are_sound(const struct duet_message_start *start)
{
	if (start->event_count > DUET_MAX_EVENTS)
		return false;
	for (uint32_t i = 0; i < start->event_count; i++) {
		const struct duet_agent_event *event = &start->events[i];

		if (!event->kind || event->kind >= DUET_AGENT_EVENT_KIND_MAX || !event->interval ||
		    event->index >= DUET_MAX_EVENTS || !memchr(event->target, '\0', sizeof(event->target)) ||
		    (peer_find_event(start, event->kind) != event && event->kind != DUET_AGENT_EVENT_METHOD &&
		     event->kind != DUET_AGENT_EVENT_TRACE))
			return false;
	}
	return true;
}

static bool start_is_sound(const struct duet_message_start *start)
{
	const struct agent_engine *engine = engine_find(start->engine);
	const struct duet_agent_event *ticks;

	if (!engine || !events_are_sound(start))
		return false;
	ticks = peer_find_ticks(start);
	return (!engine->standalone || (ticks && (ticks->kind == DUET_AGENT_EVENT_CLOCK || engine->counts))) &&
	       start->newest < DUET_NEWEST_MAX && start->java_depth && start->java_depth <= DUET_MAX_JAVA_DEPTH &&
	       start->signo <= 64;
}

/* Puts each descriptor in its place. Returns false if there are others than START says. */
static bool sort_fds(const struct duet_message_start *start, int fds[PEER_FDS])
{
	int count = 0, wanted = 1 + (start->tables_bytes != 0) + (start->newest == DUET_NEWEST_SHARED);

	while (count < PEER_FDS && fds[count] >= 0)
		count++;
	if (count == wanted && start->newest == DUET_NEWEST_SHARED && !start->tables_bytes) {
		fds[2] = fds[1];
		fds[1] = -1;
	}
	return count == wanted;
}

int peer_receive_start(int peer, int timeout_ms, struct duet_message_start *ret_start, int ret_fds[PEER_FDS])
{
	union passed control = {.bytes = {0}};
	struct duet_message_start start;
	struct iovec iov = {.iov_base = &start, .iov_len = sizeof(start)};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct pollfd poll_fd = {.fd = peer, .events = POLLIN};
	ssize_t got;
	int fds[PEER_FDS];

	if (poll(&poll_fd, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	got = recvmsg(peer, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got < 0)
		return -errno;
	passed_take(&header, fds, PEER_FDS); /* an empty packet may bring descriptors too */
	if (fds[0] >= 0 && is_head(&start.head, got, DUET_MESSAGE_START, sizeof(start)) &&
	    !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && start_is_sound(&start) &&
	    sort_fds(&start, fds)) {
		*ret_start = start;
		memcpy(ret_fds, fds, sizeof(fds));
		return 0;
	}
	peer_close_fds(fds);
	return -EPROTO;
}

int peer_receive(int peer, union peer_message *ret)
{
	/* MSG_TRUNC: the packet's real length, so that a longer one is not taken for a good one. */
	ssize_t got = recv(peer, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);

	if (got < (ssize_t)sizeof(ret->head))
		return -EPROTO;
	if (is_head(&ret->head, got, DUET_MESSAGE_STOP, sizeof(ret->head)))
		return DUET_MESSAGE_STOP;
	if (is_head(&ret->head, got, DUET_MESSAGE_FINISH, sizeof(ret->finish)))
		return DUET_MESSAGE_FINISH;
	if (is_head(&ret->head, got, DUET_MESSAGE_FLUSH, sizeof(ret->finish)))
		return DUET_MESSAGE_FLUSH;
	if (is_head(&ret->head, got, DUET_MESSAGE_WANT, sizeof(ret->want)) && ret->want.count <= DUET_WANTS_AT_ONCE)
		return DUET_MESSAGE_WANT;
	return -EPROTO;
}

void passed_take(struct msghdr *message, int *ret_fds, int count)
{
	int taken = 0, fd;

	for (int i = 0; i < count; i++)
		ret_fds[i] = -1;
	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + CMSG_LEN(sizeof(fd)) <= head->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(head) + at, sizeof(fd));
			if (taken < count)
				ret_fds[taken++] = fd;
			else
				close(fd);
		}
	}
}
