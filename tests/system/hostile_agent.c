/* SPDX-License-Identifier: MIT */
/*
 * A process that duet takes for a JVM with its agent, and that misbehaves in one way:
 *
 *   hostile_agent LIBJVM ATTACK     LIBJVM: any ELF file of the name libjvm.so
 *   hostile_agent --list
 *
 * It answers HotSpot's attach protocol on /tmp/.java_pidN, listens on the control socket it is told and burns CPU
 * meanwhile, so that it is sampled. Says READY when it can be attached, lives until it is killed. For hostile_agent.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#include "duet_agent.h"
#include "duet_jvm.h"
#include "duet_record.h"
#include "duet_ring.h"

#define ESCAPE "\033[2J\033]0;owned\a\n"

/* A way to misbehave. Steps that are NULL are done as an agent does them. */
struct attack {
	const char *name;
	void (*answer)(int client); /* answers the attach request */
	void (*hello)(int peer);
	void (*started)(int peer);
	void (*run)(int peer); /* called again and again while the loader listens */
	void (*stopped)(int peer);
};

static struct {
	char control[DUET_NAME_MAX + 1];
	int listener; /* of the control socket */
	int ring_fd;
	uint32_t engine; /* engine that START has */
	struct duet_ring_page *page;
	struct duet_lane_view lanes[DUET_LANES];
	bool writes_stacks; /* the signal handler writes new stacks */
} self = {.listener = -1, .ring_fd = -1};

static uint64_t noise(void)
{
	static _Thread_local uint64_t state;

	if (!state)
		state = (uint64_t)(uintptr_t)&state | 1;
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void fill_noise(void *bytes, size_t len)
{
	uint64_t word;

	for (unsigned char *at = bytes; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		word = noise();
		memcpy(at, &word, sizeof(word));
	}
}

/* ---- at any step ---- */

static void stay_silent(int fd)
{
	for (;;)
		pause();
}

static void hang_up(int fd)
{
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

static void send_noise(int fd)
{
	char bytes[300];

	fill_noise(bytes, sizeof(bytes));
	send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
}

/* ---- attach ---- */

static void say(int client, const char *text)
{
	send(client, text, strlen(text), MSG_NOSIGNAL);
	hang_up(client);
}

static void say_refused(int client)
{
	say(client, "-1\n" ESCAPE);
}

static void say_endlessly(int client)
{
	while (send(client, "0\n", 2, MSG_NOSIGNAL) == 2)
		usleep(100000);
}

static void listen_control(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(self.control);

	if (self.listener >= 0)
		close(self.listener);
	self.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path + 1, self.control, len);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	if (bind(self.listener, (struct sockaddr *)&address, (socklen_t)len) || listen(self.listener, 4))
		perror("hostile_agent: control socket");
}

static void say_loaded(int client)
{
	listen_control();
	say(client, "0\nreturn code: 0\n");
}

static void say_loaded_without_listening(int client)
{
	say(client, "0\nreturn code: 0\n");
}

/* ---- HELLO ---- */

static struct duet_message_hello honest_hello(void)
{
	return (struct duet_message_hello){
		.head = {sizeof(struct duet_message_hello), DUET_MESSAGE_HELLO, DUET_AGENT_VERSION},
		.pid = (uint32_t)getpid(),
		.has_asgct = 1,
		.vm_name = ESCAPE "</script>VM",
		.vm_version = "0",
	};
}

static void send_hello(int peer)
{
	struct duet_message_hello hello = honest_hello();

	send(peer, &hello, sizeof(hello), MSG_NOSIGNAL);
}

static void send_hello_twice(int peer)
{
	send_hello(peer);
	send_hello(peer);
}

static void send_hello_and_end(int peer)
{
	struct duet_message ending = {sizeof(ending), DUET_MESSAGE_ENDING, DUET_AGENT_VERSION};

	send_hello(peer);
	send(peer, &ending, sizeof(ending), MSG_NOSIGNAL);
}

static void send_hello_of_next_version(int peer)
{
	struct duet_message_hello hello = honest_hello();

	hello.head.version++;
	send(peer, &hello, sizeof(hello), MSG_NOSIGNAL);
}

static void send_hello_without_end(int peer)
{
	struct duet_message_hello hello = honest_hello();

	memset(hello.vm_name, 'x', sizeof(hello.vm_name) + sizeof(hello.vm_version));
	send(peer, &hello, sizeof(hello), MSG_NOSIGNAL);
}

static void send_hello_with_descriptors(int peer)
{
	struct duet_message_hello hello = honest_hello();
	struct iovec body = {&hello, sizeof(hello)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} rights = {.head = {CMSG_LEN(64 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr message = {NULL, 0, &body, 1, rights.bytes, sizeof(rights.bytes), 0};

	memset(CMSG_DATA(&rights.head), 0, 64 * sizeof(int)); /* 64 times our stdin */
	sendmsg(peer, &message, MSG_NOSIGNAL);
}

/* ---- STARTED ---- */

/* Writes a stack of new frames for each signal. */
static void write_stack(const siginfo_t *info, const ucontext_t *context)
{
	const uint32_t bytes = sizeof(struct duet_java_sample) + DUET_JAVA_DEPTH * sizeof(struct duet_java_frame);
	struct duet_ring_record *record = duet_ring_reserve(&self.lanes[DUET_LANE_SAMPLE], bytes);
	struct duet_java_sample *sample = (struct duet_java_sample *)(record + 1);
	struct duet_java_frame *frames = (struct duet_java_frame *)(sample + 1);

	if (!record)
		return;
	*sample = (struct duet_java_sample){
		.time_ns = UINT64_MAX / 2,
		.cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr,
#ifdef __x86_64__
		.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP],
		.sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP],
#else
		.pc = context->uc_mcontext.pc,
		.sp = context->uc_mcontext.sp,
#endif
		.tid = (uint32_t)gettid(),
		.status = DUET_JAVA_DEPTH,
		.java_depth = DUET_JAVA_DEPTH,
	};
	for (uint32_t i = 0; i < DUET_JAVA_DEPTH; i++)
		frames[i] = (struct duet_java_frame){.method = noise(), .bci = (int32_t)noise()};
	duet_ring_commit(record, DUET_AGENT_JAVA_SAMPLE, bytes);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	if (__atomic_load_n(&self.writes_stacks, __ATOMIC_ACQUIRE))
		write_stack(info, context);
}

static struct duet_message_started honest_started(void)
{
	return (struct duet_message_started){
		.head = {sizeof(struct duet_message_started), DUET_MESSAGE_STARTED, DUET_AGENT_VERSION},
		.signo = (uint32_t)SIGRTMIN + 3,
		.handler = (uintptr_t)on_signal,
		.engine = self.engine,
	};
}

static void send_started(int peer)
{
	struct duet_message_started started = honest_started();

	send(peer, &started, sizeof(started), MSG_NOSIGNAL);
}

static void send_started_twice(int peer)
{
	send_started(peer);
	send_started(peer);
}

static void claim(int peer, uint32_t signo, uint64_t handler)
{
	struct duet_message_started started = honest_started();

	started.signo = signo;
	started.handler = handler;
	send(peer, &started, sizeof(started), MSG_NOSIGNAL);
}

#define CLAIM(name, signo, handler)                     \
	static void claim_##name(int peer)              \
	{                                               \
		claim(peer, (signo), (uintptr_t)(handler)); \
	}
CLAIM(kill, SIGKILL, SIG_DFL)
CLAIM(stop, SIGSTOP, on_signal)
CLAIM(no_signal, 0, on_signal)
CLAIM(signal_65, 65, on_signal)
CLAIM(default_handler, (uint32_t)SIGRTMIN + 4, SIG_DFL)
CLAIM(ignoring_handler, (uint32_t)SIGRTMIN + 4, SIG_IGN)

/* The signal would be acceptable. */
static void claim_engine(int peer)
{
	self.engine = DUET_ENGINE_PERF;
	claim(peer, SIGURG, (uintptr_t)on_signal);
}

/* The answer of an agent in a JVM before JDK 11, which does not have this event. */
static void refuse_alloc(int peer)
{
	struct duet_message_started started = honest_started();

	started.refused = 1u << 0; /* BPF samples cpu itself */
	snprintf(started.refused_why, sizeof(started.refused_why), "a JVM before JDK 11 cannot sample allocations");
	send(peer, &started, sizeof(started), MSG_NOSIGNAL);
}

static void claim_error_with_escapes(int peer)
{
	struct duet_message_started started = honest_started();

	started.error = -EBUSY;
	snprintf(started.why, sizeof(started.why), "%s%%s%%n", ESCAPE);
	send(peer, &started, sizeof(started), MSG_NOSIGNAL);
}

/* ---- the ring ---- */

static int receive_start(int peer)
{
	struct duet_message_start start;
	struct iovec body = {&start, sizeof(start)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} rights;
	struct msghdr message = {NULL, 0, &body, 1, rights.bytes, sizeof(rights.bytes), 0};

	recv(peer, &start, sizeof(struct duet_message_proof), 0); /* the loader's, which no attacker needs */
	if (recvmsg(peer, &message, MSG_CMSG_CLOEXEC) != sizeof(start) || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&self.ring_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	self.engine = start.engine;
	return 0;
}

static int map_ring(void)
{
	const int access = PROT_READ | PROT_WRITE;

	self.page = mmap(NULL, DUET_RING_PAGE, access, MAP_SHARED, self.ring_fd, 0);
	if (self.page == MAP_FAILED)
		return -1;
	for (int i = 0; i < DUET_LANES; i++) {
		struct duet_ring_lane *lane = &self.page->lanes[i];
		unsigned char *data = mmap(NULL, 2 * lane->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (uint64_t half = 0; half < 2; half++)
			if (mmap(data + half * lane->bytes, lane->bytes, access, MAP_SHARED | MAP_FIXED, self.ring_fd,
				 (off_t)lane->offset) == MAP_FAILED)
				return -1;
		self.lanes[i] = (struct duet_lane_view){.lane = lane, .data = data, .bytes = lane->bytes};
	}
	return 0;
}

static void write_noise(int peer)
{
	for (int i = 0; i < DUET_LANES; i++) {
		fill_noise(self.lanes[i].data, 65536);
		__atomic_fetch_add(&self.lanes[i].lane->head, noise() % 65536, __ATOMIC_RELAXED);
	}
	fill_noise(self.page->counters, sizeof(self.page->counters));
}

/* Sizes change between every two looks at them. */
static void race_lengths(int peer)
{
	struct duet_lane_view *view = &self.lanes[noise() % DUET_LANES];
	uint32_t *word = (uint32_t *)(view->data + noise() % view->bytes / 8 * 8);

	for (int i = 0; i < 64; i++) {
		__atomic_store_n(word, (uint32_t)noise() % 512 * 8, __ATOMIC_RELAXED);
		__atomic_store_n(word + 1, (uint32_t)noise() % DUET_AGENT_RECORD_TYPE_MAX, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&view->lane->head, noise() % 64 * 8, __ATOMIC_RELAXED);
	__atomic_store_n(&view->lane->tail, noise(), __ATOMIC_RELAXED);
}

static void set_heads(uint64_t head)
{
	for (int i = 0; i < DUET_LANES; i++)
		__atomic_store_n(&self.lanes[i].lane->head, head, __ATOMIC_RELEASE);
}

static void put(enum duet_lane lane, uint16_t type, const void *payload, uint32_t bytes)
{
	struct duet_ring_record *record = duet_ring_reserve(&self.lanes[lane], bytes);

	if (!record)
		return;
	memcpy(record + 1, payload, bytes);
	duet_ring_commit(record, type, bytes);
}

static void move_head_back(int peer)
{
	struct duet_thread thread = {.tid = 1};

	for (int i = 0; i < DUET_LANES; i++)
		put((enum duet_lane)i, DUET_AGENT_THREAD, &thread, sizeof(thread));
	usleep(200000);
	set_heads(0);
	usleep(200000);
}

static void move_head_far(int peer)
{
	set_heads(UINT64_MAX - 7);
}

/* The memfd is sealed; these are all ways to change it. */
static void cut_file(int peer)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self.ring_fd);
	fd = open(path, O_RDWR | O_TRUNC);
	if (ftruncate(self.ring_fd, 0) == 0 || (fd >= 0 && ftruncate(fd, 1 << 30) == 0))
		fprintf(stderr, "hostile_agent: the ring's file is not sealed\n");
	if (fd >= 0)
		close(fd);
	fcntl(self.ring_fd, F_ADD_SEALS, F_SEAL_WRITE);
	fallocate(self.ring_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
}

#include "system/hostile_floods.h"
#include "system/hostile_layout.h"

/* ---- the socket while it runs ---- */

/* The handler disappears from one instruction to the next. */
static void become_another_program(int peer)
{
	usleep(300000);
	execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
}

static void send_stopped(int peer)
{
	struct duet_message stopped = {sizeof(stopped), DUET_MESSAGE_STOPPED, DUET_AGENT_VERSION};

	send(peer, &stopped, sizeof(stopped), MSG_NOSIGNAL);
}

static const struct attack attacks[] = {
	{"attach_silence", .answer = stay_silent},
	{"attach_close", .answer = hang_up},
	{"attach_noise", .answer = send_noise},
	{"attach_endless", .answer = say_endlessly},
	{"attach_refused", .answer = say_refused},
	{"attach_no_listener", .answer = say_loaded_without_listening},
	{"hello_silence", .hello = stay_silent},
	{"hello_close", .hello = hang_up},
	{"hello_noise", .hello = send_noise},
	{"hello_twice", .hello = send_hello_twice},
	{"hello_ending", .hello = send_hello_and_end},
	{"hello_version", .hello = send_hello_of_next_version},
	{"hello_without_end", .hello = send_hello_without_end},
	{"hello_descriptors", .hello = send_hello_with_descriptors},
	{"started_silence", .started = stay_silent},
	{"started_close", .started = hang_up},
	{"started_noise", .started = send_noise},
	{"started_twice", .started = send_started_twice},
	{"started_kill", .started = claim_kill},
	{"started_stop", .started = claim_stop},
	{"started_signal_0", .started = claim_no_signal},
	{"started_signal_65", .started = claim_signal_65},
	{"started_engine", .started = claim_engine},
	{"started_default_handler", .started = claim_default_handler},
	{"started_ignoring_handler", .started = claim_ignoring_handler},
	{"started_without_alloc", .started = refuse_alloc},
	{"started_escapes", .started = claim_error_with_escapes},
	{"ring_noise", .run = write_noise},
	{"ring_lengths", .run = race_lengths},
	{"ring_head_back", .run = move_head_back},
	{"ring_head_far", .run = move_head_far},
	{"ring_cut", .run = cut_file},
	{"flood_samples", .run = flood_samples},
	{"flood_one_thread", .run = flood_one_thread},
	{"flood_standalone", .run = flood_standalone},
	{"flood_classes", .run = flood_classes},
	{"flood_methods", .run = flood_methods},
	{"flood_code", .run = flood_code},
	{"flood_inlining", .run = flood_inlining},
	{"flood_threads", .run = flood_threads},
	{"flood_heaps", .run = flood_heaps},
	{"flood_stacks", .run = flood_stacks},
	{"flood_everything", .run = flood_everything},
	{"walk_long", .run = walk_long},
	{"run_close", .run = hang_up},
	{"run_noise", .run = send_noise},
	{"run_exec", .run = become_another_program},
	{"stop_silence", .stopped = stay_silent},
};

static const struct attack *attack_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (!strcmp(attacks[i].name, name))
			return &attacks[i];
	return NULL;
}

/* ---- the course of events ---- */

/* Runs until the loader sends a message (STOP) or closes the socket. */
static void run(const struct attack *attack, int peer)
{
	struct pollfd heard = {.fd = peer, .events = POLLIN};

	while (poll(&heard, 1, attack->run ? 0 : 50) == 0)
		for (int i = 0; attack->run && i < 64; i++)
			attack->run(peer);
}

static void serve_control(const struct attack *attack)
{
	int peer = accept4(self.listener, NULL, NULL, SOCK_CLOEXEC);

	(attack->hello ? attack->hello : send_hello)(peer);
	if (receive_start(peer) || map_ring())
		return hang_up(peer);
	(attack->started ? attack->started : send_started)(peer);
	run(attack, peer);
	(attack->stopped ? attack->stopped : send_stopped)(peer);
	close(peer);
}

/* Parses "1", "load", path, "true", "control=NAME,secret=HEX", each with its NUL. Returns true when all are there. */
static bool take_request(const char *request, size_t len)
{
	const char *option = memmem(request, len, "control=", 8);

	if (!option || !memchr(option, '\0', (size_t)(request + len - option)))
		return false;
	snprintf(self.control, sizeof(self.control), "%.*s", (int)strcspn(option + 8, ","), option + 8);
	return true;
}

static int listen_attach(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/.java_pid%d", getpid());
	unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 5))
		return -1;
	return fd;
}

static void serve_attach(const struct attack *attack, int listener)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char request[4096];
	size_t len = 0;
	ssize_t more;

	do {
		more = recv(client, request + len, sizeof(request) - len, 0);
		len += more > 0 ? (size_t)more : 0;
	} while (more > 0 && len < sizeof(request) && !take_request(request, len));
	(attack->answer ? attack->answer : say_loaded)(client);
	if (!attack->answer)
		serve_control(attack);
}

static void *burn(void *unused)
{
	volatile uint64_t *sink = &(uint64_t){0};

	for (;;)
		*sink += noise();
	return NULL;
}

/* So that it appears as a mapping of code. */
static bool map_libjvm(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
}

static void install_handler(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGRTMIN + 3, &action, NULL);
}

int main(int argc, char **argv)
{
	const struct attack *attack = argc == 3 ? attack_by_name(argv[2]) : NULL;
	pthread_t burner;
	int listener;

	for (size_t i = 0; argc == 2 && !strcmp(argv[1], "--list") && i < sizeof(attacks) / sizeof(attacks[0]); i++)
		puts(attacks[i].name);
	if (!attack || !map_libjvm(argv[1]))
		return argc != 2;
	install_handler();
	listener = listen_attach();
	if (listener < 0 || (!attack->run && pthread_create(&burner, NULL, burn, NULL)))
		return 1;
	puts("READY");
	fflush(stdout);
	for (;;)
		serve_attach(attack, listener);
}
