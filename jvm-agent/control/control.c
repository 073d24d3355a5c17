/* SPDX-License-Identifier: MIT */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "hotspot/answers.h"
#include "hotspot/clock.h"
#include "jvm/code.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "libc_versions.h"
#include "locked.h"
#include "own_thread.h"
#include "peer/peer.h"
#include "sample/newest.h"
#include "sample/pages.h"
#include "sample/sample.h"
#include "tap.h"
#include "wait/waiting.h"

#define THREAD_NAME "duet agent"
#define THREAD_STACK_BYTES (512u << 10)
#define CONNECT_TIMEOUT_NS 10000000000ull
#define PERSISTENT_TIMEOUT_NS (100ull * 365 * 86400 * 1000000000)
#define START_TIMEOUT_MS 10000
#define SWEEP_NS 1000000000ull
/* Threads that a program starts at its beginning are often renamed at once, and some end soon. */
#define EARLY_NS 3000000000ull
#define EARLY_SWEEP_NS 200000000ull
#define RESCAN_NS 100000000
#define FULL_STEP_MS 1
/* How long the JVM's end waits for the loader's last requests; up to three times as long while answers are due. */
#define LAST_WORDS_NS 100000000
#define LAST_WORDS_TIMES 3
#define LEAVE_NS 100000000
#define ENDING_STEP_NS 1000000
#define ENDING_STEPS 2000

enum control_state {
	CONTROL_FREE,
	CONTROL_LISTENING, /* waits for a loader; the loader may have died, so the next attach takes over */
	CONTROL_HELD,	   /* a loader holds the agent */
	CONTROL_ENDING,
};

static struct {
	pthread_mutex_t lock; /* guards all members below */
	enum control_state state;
	int listener;
	int peer; /* the loader's socket while state is CONTROL_HELD; control_main() closes it */
	char secret[DUET_SECRET_DIGITS]; /* the secret that a loader must send */
	unsigned int wait_ms;
	bool persists; /* the listener stays open while a loader is served */
	bool answers; /* a request is being answered; atomic */
	bool settled; /* the start of the JVM may go on: the handler is live, or never will be */
	pthread_cond_t changed; /* signalled when settled or state changes; waits for it use CLOCK_MONOTONIC */
} control = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.listener = -1,
	.changed = PTHREAD_COND_INITIALIZER,
};

/* A clock that is set back by an hour must not hold the JVM for an hour. */
static void make_monotonic(void)
{
	pthread_condattr_t attributes;

	if (pthread_condattr_init(&attributes))
		return;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&control.changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static int stay_fill(struct stay *stay, int peer, const struct duet_message_start *start, const int fds[PEER_FDS],
		     const char **ret_why)
{
	const struct duet_agent_event *ticks = peer_find_ticks(start);
	int error;

	stay->loader = fcntl(peer, F_DUPFD_CLOEXEC, 0);
	stay->engine = engine_find(start->engine);
	if (ticks)
		stay->ticks = *ticks;
	stay->java_depth = (int)start->java_depth;
	stay->pid = (uint32_t)getpid();
	error = ring_map(&stay->ring, fds[0], start->ring_bytes, ret_why);
	if (!error && fds[1] >= 0)
		error = tables_map(&stay->tables, fds[1], start->tables_bytes, ret_why);
	if (error)
		return error;
	*ret_why = "no memory for the unwind tables";
	stay->slots = sample_slots_new(stay->java_depth);
	return stay->slots ? 0 : -ENOMEM;
}

static void stay_free(struct stay *stay)
{
	sample_slots_free(stay->slots, stay->java_depth);
	pages_free(stay->waited_ns, STAY_TIDS * sizeof(*stay->waited_ns));
	tables_unmap(&stay->tables);
	ring_unmap(&stay->ring);
	if (stay->loader >= 0)
		close(stay->loader);
	free(stay);
}

static int begin_ticks(struct stay *stay, const struct agent_engine *engine, int wanted, const char **ret_why)
{
	stay->engine = engine;
	stay->signo = engine->take_signal ? engine->take_signal(wanted, ret_why) : 0;
	if (stay->signo < 0)
		return stay->signo;
	return engine->start ? engine->start(stay->signo, &stay->ticks, ret_why) : 0;
}

/* An engine that cannot start may name another one, for a clock only. *ret_why says then why the first did not. */
static int stay_tick(struct stay *stay, int wanted, const char **ret_why)
{
	const struct agent_engine *engine = stay->engine;
	int error = begin_ticks(stay, engine, wanted, ret_why);
	const char *why;

	if (!error || !engine->instead || stay->ticks.kind != DUET_AGENT_EVENT_CLOCK)
		return error;
	engine->stop();
	error = begin_ticks(stay, engine->instead, 0, &why);
	if (error)
		*ret_why = why;
	return error;
}

/* Makes the handlers and taps live; all else waits until the loader knows it. Fills *started, returns its error. */
static int stay_start(struct stay *stay, const struct duet_message_start *start, struct peer_started *started)
{
	code_publish_layout(stay);
	stay_open(stay);
	jvm_events(JVMTI_ENABLE);
	started->stay = stay;
	started->error = stay_tick(stay, (int)start->signo, &started->why);
	if (!started->error)
		started->refused = taps_start(start->events, start->event_count, &started->refused_why);
	if (!started->error && stay->engine->id == start->engine)
		started->why = "";
	return started->error;
}

/* Leaks the stay when a handler or callback does not leave it: better than a JVM that writes into freed memory. */
static void stay_stop(struct stay *stay)
{
	taps_stop(clock_ns());
	if (stay->engine->stop)
		stay->engine->stop();
	newest_end();
	jvm_events(JVMTI_DISABLE);
	threads_forget();
	kept_forget();
	answers_reset();
	if (!stay_close())
		return;
	if (stay->engine->release)
		stay->engine->release();
	stay_free(stay);
}

/* Nothing is known of a process without a JVM: env is NULL. */
static void stay_answer(struct stay *stay, JNIEnv *env, const struct duet_want *want)
{
	const struct answers answers = {
		.ring = &stay->ring,
		.other_names = methods_ask_jvmti,
		.context = env,
		.other_stub = code_find_stub,
		.freed_code = kept_copy,
	};

	if (want->kind == DUET_WANT_METHOD)
		answer_methods(&answers, &(struct metadata_key){want->key, want->id}, 1);
	else if (want->kind == DUET_WANT_CODE)
		answer_code(&answers, want->key, want->id, clock_ns());
}

/* Waits for room in the ring, however long. Returns false when the loader has closed the socket. */
static bool await_room(struct stay *stay, int peer)
{
	struct pollfd fd = {.fd = peer}; /* no events: poll() then returns only when the loader has closed the socket */

	while (!ring_has_room(&stay->ring))
		if (poll(&fd, 1, FULL_STEP_MS) > 0)
			return false;
	return true;
}

/* Returns > 0 to go on, < 0 when the loader has closed the socket. */
static int stay_answer_all(struct stay *stay, JNIEnv *env, int peer, const struct duet_message_want *message)
{
	bool goes_on = true;

	__atomic_store_n(&control.answers, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; env && goes_on && i < message->count; i++) {
		goes_on = await_room(stay, peer);
		if (goes_on)
			stay_answer(stay, env, &message->wants[i]);
	}
	__atomic_store_n(&control.answers, false, __ATOMIC_RELAXED);
	return goes_on ? DUET_MESSAGE_WANT : -EPIPE;
}

/* Handles one message. Returns > 0 to go on, 0 after STOP, < 0 if the socket is closed or the message malformed. */
static int stay_obey(struct stay *stay, JNIEnv *env, int peer)
{
	union peer_message message;
	int type = peer_receive(peer, &message);

	if (type == DUET_MESSAGE_STOP)
		return 0;
	if (type == DUET_MESSAGE_FINISH)
		taps_stop(message.finish.ended_ns);
	else if (type == DUET_MESSAGE_FLUSH)
		taps_flush(message.finish.ended_ns);
	if (type == DUET_MESSAGE_FINISH || type == DUET_MESSAGE_FLUSH)
		return peer_send(peer, DUET_MESSAGE_FINISHED) ? -EPIPE : type;
	return type > 0 ? stay_answer_all(stay, env, peer, &message.want) : type;
}

/* Waits for one message and handles it. Returns what stay_obey() does, and > 0 when no message came. */
static int stay_listen(struct stay *stay, JNIEnv *env, int peer, int timeout_ms)
{
	struct pollfd fd = {.fd = peer, .events = POLLIN};

	poll(&fd, 1, timeout_ms);
	if (fd.revents & POLLIN)
		return stay_obey(stay, env, peer);
	return fd.revents ? -EPIPE : 1;
}

/* Prepares the loaded classes, and serves the loader in between, for names in the first second. As stay_listen(). */
static int stay_prepare(struct stay *stay, JNIEnv *env, int peer)
{
	struct jvm_preparing preparing;
	int goes_on = 1;

	if (!env || !jvm_prepare_begin(env, &preparing))
		return goes_on;
	while (goes_on > 0 && jvm_prepare_some(&preparing))
		goes_on = stay_listen(stay, env, peer, 0);
	jvm_prepare_end(env, &preparing);
	return goes_on;
}

/* Serves the loader. Returns true after STOP, false when the loader has closed the socket. */
static bool stay_serve(struct stay *stay, JNIEnv *env, int peer)
{
	uint64_t begun_ns = clock_ns(), next_sweep_ns = 0, next_rescan_ns = 0;
	int goes_on = stay_prepare(stay, env, peer);

	while (goes_on > 0) {
		uint64_t now = clock_ns();

		if (env && now >= next_sweep_ns) {
			threads_sweep(stay, env);
			kept_forget_old();
			next_sweep_ns = now + (now - begun_ns < EARLY_NS ? EARLY_SWEEP_NS : SWEEP_NS);
		}
		if (now >= next_rescan_ns) {
			if (stay->engine->rescan)
				stay->engine->rescan(stay);
			taps_rescan();
			code_publish_layout(stay);
			next_rescan_ns = now + RESCAN_NS;
		}
		goes_on = stay_listen(stay, env, peer, RESCAN_NS / 1000000);
	}
	return !goes_on;
}

/* Lets the start of the JVM continue. */
static void settle(void)
{
	LOCKED(&control.lock);

	control.settled = true;
	pthread_cond_broadcast(&control.changed);
}

static bool serve_start(JNIEnv *env, int peer, const struct duet_message_start *start, const int fds[PEER_FDS])
{
	struct peer_started started = {.error = -ENOMEM, .why = "no memory", .refused_why = ""};
	struct stay *stay = calloc(1, sizeof(*stay));
	bool stopped = false;
	int error;

	if (stay)
		started.error = stay_fill(stay, peer, start, fds, &started.why);
	if (stay && !started.error)
		newest_begin((enum duet_newest)start->newest, fds[2]);
	peer_close_fds(fds);
	if (started.error) {
		peer_send_started(peer, &started);
		if (stay)
			stay_free(stay);
		return false;
	}
	error = stay_start(stay, start, &started);
	started.handler = (uintptr_t)sample_handler;
	started.lock_waiters = lock_waiters_address();
	peer_send_started(peer, &started);
	settle();
	if (!error && env) {
		answer_heaps(&(struct answers){.ring = &stay->ring});
		threads_sweep(stay, env);
		code_learn_existing();
	}
	if (!error)
		stopped = stay_serve(stay, env, peer);
	stay_stop(stay);
	return stopped;
}

/* Returns true if the loader waits for STOPPED. */
static bool serve_peer(JNIEnv *env, int peer)
{
	struct duet_message_start start;
	int fds[PEER_FDS];

	if (peer_send_hello(peer) || peer_receive_start(peer, START_TIMEOUT_MS, &start, fds))
		return false;
	return serve_start(env, peer, &start, fds);
}

static void set_state(enum control_state state)
{
	LOCKED(&control.lock);

	if (control.listener >= 0 && !(control.persists && state == CONTROL_HELD)) {
		close(control.listener);
		control.listener = -1;
	}
	control.state = state;
	pthread_cond_broadcast(&control.changed);
}

/* Returns the loader's socket, or -1 when no loader came or another attach took over. */
static int accept_loader(void)
{
	uint64_t timeout_ns = control.persists ? PERSISTENT_TIMEOUT_NS : CONNECT_TIMEOUT_NS;
	int peer = peer_accept(control.listener, control.secret, timeout_ns);
	bool taken_over;

	pthread_mutex_lock(&control.lock);
	taken_over = control.state != CONTROL_LISTENING;
	control.peer = peer;
	if (!taken_over)
		control.state = CONTROL_HELD;
	pthread_mutex_unlock(&control.lock);
	if (peer >= 0 && taken_over) {
		close(peer);
		peer = -1;
	}
	set_state(peer >= 0 ? CONTROL_HELD : CONTROL_ENDING);
	return peer;
}

static void end_peer(int peer, bool stopped)
{
	if (stopped)
		peer_send(peer, DUET_MESSAGE_STOPPED);
	if (peer >= 0)
		close(peer);
}

/* Returns true if the next loader may come. It may have connected already: the listener was open meanwhile. */
static bool listen_again(void)
{
	LOCKED(&control.lock);

	if (!control.persists || control.state != CONTROL_HELD || control.listener < 0)
		return false;
	control.state = CONTROL_LISTENING;
	return true;
}

/* A program may create a JVM between two recordings. Stores NULL while there is none. */
static void join_jvm(JNIEnv **env)
{
	JavaVMAttachArgs args = {.version = JNI_VERSION_1_6, .name = (char *)THREAD_NAME};

	if (*env || !jvm.vm)
		return;
	if ((*jvm.vm)->AttachCurrentThreadAsDaemon(jvm.vm, (void **)env, &args))
		*env = NULL;
	else
		jvm_learn(*env);
}

/* Serves one loader, and those that come after it where they may. Returns the last one's socket. */
static int serve_loaders(JNIEnv **env, bool *ret_stopped)
{
	int peer;

	for (;;) {
		peer = accept_loader();
		join_jvm(env);
		*ret_stopped = peer >= 0 && serve_peer(*env, peer);
		if (peer < 0 || !listen_again())
			return peer;
		end_peer(peer, *ret_stopped);
	}
}

static void *control_main(void *unused)
{
	bool stopped = false;
	int peer = -1;
	JNIEnv *env = NULL;

	prctl(PR_SET_NAME, THREAD_NAME);
	join_jvm(&env);
	if (env || !jvm.vm) {
		peer = serve_loaders(&env, &stopped);
		set_state(CONTROL_ENDING);
	}
	if (env)
		(*jvm.vm)->DetachCurrentThread(jvm.vm);
	settle();
	/* Free before the loader learns that this stay ends: its next attach must not find the agent busy. */
	set_state(CONTROL_FREE);
	end_peer(peer, stopped);
	return NULL;
}

/* Ends a thread that only listens. Call with the lock held. */
static void end_listening(void)
{
	if (control.state != CONTROL_LISTENING || control.listener < 0)
		return;
	control.state = CONTROL_ENDING;
	shutdown(control.listener, SHUT_RDWR); /* wakes the thread in poll() */
}

/*
 * Claims the agent if it is free. Ends a thread that only listens. Returns false while a thread is about to end because
 * its loader is gone or done. The caller then tries again. A thread that serves a loader is not disturbed.
 */
static bool try_claim(void)
{
	LOCKED(&control.lock);

	if (control.state != CONTROL_FREE) {
		end_listening();
		return false;
	}
	control.state = CONTROL_LISTENING;
	control.settled = false;
	return true;
}

/* Returns true if a living loader holds the agent: after its death the thread may still be busy with its work. */
static bool is_held(void)
{
	LOCKED(&control.lock);
	struct pollfd peer = {.fd = control.peer};

	if (control.state != CONTROL_HELD)
		return false;
	poll(&peer, 1, 0);
	return peer.fd >= 0 && !(peer.revents & (POLLHUP | POLLERR));
}

static bool claim(void)
{
	struct timespec step = {.tv_nsec = ENDING_STEP_NS};

	for (int i = 0; i < ENDING_STEPS && !is_held(); i++) {
		if (try_claim())
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

int control_open(const struct agent_options *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_monotonic);
	if (!claim())
		return DUET_ATTACH_BUSY;
	control.wait_ms = options->wait_ms;
	control.persists = options->persists;
	memcpy(control.secret, options->secret, sizeof(control.secret));
	control.listener = peer_listen(options->control);
	if (control.listener >= 0)
		return DUET_ATTACH_OK;
	set_state(CONTROL_FREE);
	return DUET_ATTACH_NO_SOCKET;
}

int control_run(void)
{
	pthread_t thread;

	if (!own_thread_start(&thread, THREAD_STACK_BYTES, control_main, NULL)) {
		pthread_detach(thread);
		return DUET_ATTACH_OK;
	}
	set_state(CONTROL_FREE);
	return DUET_ATTACH_NO_THREAD;
}

bool control_listens(void)
{
	LOCKED(&control.lock);

	return control.listener >= 0 && (control.state == CONTROL_LISTENING || control.state == CONTROL_HELD);
}

static struct timespec time_from_now(uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec += (long)(ns % 1000000000);
	if (until.tv_nsec >= 1000000000l) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000l;
	}
	return until;
}

/* Returns true if a request is being answered, or has arrived and waits until the agent's thread runs. */
static bool owes_answers(void)
{
	struct pollfd peer = {.fd = control.peer, .events = POLLIN};

	return poll(&peer, 1, 0) > 0 ? peer.revents == POLLIN : __atomic_load_n(&control.answers, __ATOMIC_RELAXED);
}

/* Waits until the state is another one. Call with the lock held. */
static void await_end_of(enum control_state state, uint64_t ns)
{
	struct timespec until = time_from_now(ns);
	int error = 0;

	while (control.state == state && !error)
		error = pthread_cond_timedwait(&control.changed, &control.lock, &until);
}

void control_last_words(void)
{
	LOCKED(&control.lock);
	int error = control.state == CONTROL_HELD ? peer_send(control.peer, DUET_MESSAGE_ENDING) : 0;

	for (int i = 0; i < LAST_WORDS_TIMES && control.state == CONTROL_HELD && !error; i++)
		if (!i || owes_answers())
			await_end_of(CONTROL_HELD, LAST_WORDS_NS);
}

void control_goodbye(void)
{
	LOCKED(&control.lock);

	if (control.state == CONTROL_HELD)
		peer_send(control.peer, DUET_MESSAGE_STOPPED);
}

void control_leave(void)
{
	LOCKED(&control.lock);

	end_listening();
	await_end_of(CONTROL_ENDING, LEAVE_NS);
}

void control_run_at_start(void)
{
	struct timespec until = time_from_now(control.wait_ms * 1000000ull);
	int error = 0;

	if (control.listener < 0 || control_run() != DUET_ATTACH_OK)
		return;
	pthread_mutex_lock(&control.lock);
	while (!control.settled && !error)
		error = pthread_cond_timedwait(&control.changed, &control.lock, &until);
	pthread_mutex_unlock(&control.lock);
}
