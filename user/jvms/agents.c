/* SPDX-License-Identifier: MIT */
#include "jvms/agents.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "base/log.h"
#include "base/packet.h"
#include "collect/records/validate.h"
#include "reader/reader.h"

#define MAX_ASKED 65536
#define MAX_UNANSWERED 1024 /* requests above this wait in the loader: the agent may hardly get a CPU */
#define ASK_AGAIN_MS 50 /* after an answer to the same request: the loader refused or dropped the answer */
#define ASK_LOST_AGAIN_MS 5000 /* without an answer: the agent had no room for it */
#define MESSAGE_MAX 512 /* bytes of the largest control message, with room */
#define HANDLER_MAX_NS NS_PER_MS /* longest handler time that a JVM may claim for one signal */
#define METADATA_BUDGET 16384 /* metadata records read in one step: they cost more than samples, and other JVMs wait */
#define LAYOUT_NS NS_PER_SEC /* wait for a reader to find the layout; a JVM that is starting may take longer */
#define READER_LEAST_NS (2 * NS_PER_MS) /* CPU time that one costs at least: it may end before it was looked at */
#define READER_BYTES (2u << 20) /* memory of its own that a reader touches */
#define MAPPED_MIN_AGE_NS NS_PER_MS
#define HANDSHAKE_TIMEOUT_NS (10 * NS_PER_SEC) /* the agent's timeout for the loader is the same */

static void agent_fail(struct agent *agent, int error, const char *why)
{
	agent->error = error;
	snprintf(agent->why, sizeof(agent->why), "JVM %d: %s", agent->origin.process->pid, why);
	io_close(&agent->socket);
	agent->state = AGENT_FAILED;
}

static struct agent *agent_alloc(struct process *process, struct intern *strings, const struct agent_start *start)
{
	struct agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return NULL;
	agent->origin.process = process_ref(process);
	agent->start = *start;
	agent->socket = -1;
	agent->begun_ns = clock_monotonic_ns();
	agent->jvm = jvm_new(strings);
	if (agent->jvm)
		return agent;
	process_unref(process);
	free(agent);
	return NULL;
}

void agent_set_outside(struct agent *agent, struct agent *reader)
{
	if (reader)
		origin_ref(&reader->origin);
	if (agent->outside)
		origin_unref(&agent->outside->origin);
	agent->outside = reader;
	jvm_set_other(agent->jvm, NULL);
}

struct agent *agent_new_outside(const struct charge *charge, struct process *process, struct intern *strings,
				const struct agent_start *start)
{
	struct agent *agent = agent_alloc(process, strings, start);
	int socket;

	if (!agent)
		return NULL;
	socket = reader_start(charge, process->start_ticks, &agent->reader);
	if (socket < 0) {
		agent_fail(agent, socket, "the process that reads it from outside could not be started");
		return agent;
	}
	agent->socket = socket;
	agent->state = AGENT_GREETING;
	agent->deadline_ns = clock_monotonic_ns() + HANDSHAKE_TIMEOUT_NS;
	agent->paid_ns = READER_LEAST_NS;
	charge_cpu(&process->payer, agent->paid_ns);
	return agent;
}

struct agent *agent_new(struct process *process, struct intern *strings, const struct agent_start *start,
			enum attach_kind kind, const char *cause, const struct attach_control *control)
{
	struct attach_target target = {
		.pid = process->pid,
		.ns_pid = process->ns_pid,
		.start_ticks = process->start_ticks,
		.uid = process->uid,
		.gid = process->gid,
		.kind = kind,
	};
	struct agent *agent = agent_alloc(process, strings, start);
	int err;

	if (!agent)
		return NULL;
	snprintf(agent->cause, sizeof(agent->cause), "%s", cause);
	err = attach_start(&agent->attach, &target, control);
	if (err < 0)
		agent_fail(agent, err,
			   err == -EBUSY ? "too many attaches to JVMs of its user hang"
					 : "the attach process could not be started");
	return agent;
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	if (agent->state == AGENT_ATTACHING)
		attach_abort(&agent->attach);
	io_close(&agent->socket);
	agent_set_outside(agent, NULL);
	process_unref(agent->origin.process);
	agent_ring_free(agent->ring);
	deep_stacks_release(&agent->deep_stacks);
	unwinding_release(&agent->unwinding);
	unwind_tables_close(agent->unwinding.tables);
	jvm_free(agent->jvm);
	map_release(&agent->asked);
	free(agent);
}

struct agent *agent_in_charge(struct agent *agent)
{
	bool is_out = agent && (agent->state < AGENT_RUNNING || agent->state == AGENT_FAILED || agent->is_native);

	return is_out && agent->outside ? agent->outside : agent;
}

int agent_fd(const struct agent *agent)
{
	return agent->state == AGENT_ATTACHING ? agent->attach.fd : agent->socket;
}

/* A hung JVM, another profiler or a resource limit may pass. Any other error is permanent. */
bool agent_may_try_again(const struct agent *agent)
{
	static const int passing[] = {EAGAIN, EBUSY, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, EPIPE, ETIMEDOUT};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (agent->state == AGENT_FAILED && agent->error == -passing[i])
			return true;
	return false;
}

bool agent_settled(const struct agent *agent)
{
	if (agent->state == AGENT_GONE || agent->state == AGENT_FAILED)
		return true;
	if (agent->reader && clock_monotonic_ns() > agent->begun_ns + LAYOUT_NS)
		return true;
	return agent->state == AGENT_RUNNING && (!agent->reader || jvm_layout(agent->jvm));
}

static void finish_attach(struct agent *agent)
{
	struct attach_result result;

	attach_finish(&agent->attach, &result);
	agent->attach_ns = result.cpu_ns;
	charge_cpu(&agent->origin.process->payer, result.cpu_ns);
	agent->socket = result.socket;
	agent->error = result.error;
	agent->state = result.error ? AGENT_FAILED : AGENT_GREETING;
	agent->deadline_ns = clock_monotonic_ns() + HANDSHAKE_TIMEOUT_NS;
	snprintf(agent->why, sizeof(agent->why), "%s", result.why);
}

/*
 * Fills the unwind tables before the first tick, so that the first stack is whole. Returns their descriptor, or -1
 * without tables. Without tables the agent walks by frame pointer.
 */
static int open_tables(struct agent *agent)
{
	struct unwind_tables *tables = NULL;
	int err = agent->start.tables_bytes ? unwind_tables_open_file(&tables, agent->start.tables_bytes) : 0;

	if (err)
		log_debug("JVM %d: no unwind tables: %s", agent->origin.process->pid, strerror(-err));
	unwinding_init(&agent->unwinding, tables);
	agent->unwinding.is_agents = true;
	loader_counters[DUET_LOADER_UNWIND_PROCESSES] += err != 0;
	if (tables)
		process_refresh_maps(agent->origin.process, clock_monotonic_ns(), 0);
	unwinding_publish_now(&agent->unwinding, agent->origin.process);
	return tables ? unwind_tables_fd(tables) : -1;
}

static int send_start(struct agent *agent)
{
	struct duet_message_start start = {
		.head = {.size = sizeof(start), .type = DUET_MESSAGE_START, .version = DUET_AGENT_VERSION},
		.ring_bytes = agent_ring_bytes(agent->ring),
		.engine = agent->start.engine,
		.java_depth = agent->start.java_depth,
		.event_count = agent->start.event_count,
		.newest = agent->reader ? DUET_NEWEST_OWN : agent->start.newest,
	};
	const struct iovec part = {&start, sizeof(start)};
	int fds[3] = {agent_ring_fd(agent->ring), open_tables(agent)};
	int err, count = fds[1] < 0 ? 1 : 2;

	memcpy(start.events, agent->start.events, sizeof(start.events));
	if (agent->unwinding.tables)
		start.tables_bytes = unwind_tables_bytes(agent->unwinding.tables);
	if (start.newest == DUET_NEWEST_SHARED)
		fds[count++] = agent->start.newest_fd;
	err = packet_send_parts(agent->socket, &part, 1, fds, count, MSG_DONTWAIT);
	agent_ring_close_fd(agent->ring);
	if (agent->unwinding.tables)
		unwind_tables_close_fd(agent->unwinding.tables);
	return err;
}

static void on_hello(struct agent *agent, const struct duet_message_hello *hello)
{
	int err;

	agent->is_native = !agent->reader && !hello->vm_name[0];
	if (!agent->is_native)
		snprintf(agent->vm, sizeof(agent->vm), "%s %s", hello->vm_name, hello->vm_version);
	if (!hello->has_asgct && !agent->reader && !agent->is_native)
		return agent_fail(agent, -ENOTSUP,
				  "the JVM has no AsyncGetCallTrace: HotSpot is needed for Java frames");
	err = agent_ring_new(&agent->ring, agent->start.sample_lane_bytes, agent->start.metadata_lane_bytes);
	if (err == -EFBIG)
		return agent_fail(agent, err, "the shared ring is larger than a file may be: raise ulimit -f");
	if (err < 0)
		return agent_fail(agent, -EMFILE, "the shared ring could not be created: out of memory or descriptors");
	if (send_start(agent) < 0)
		return agent_fail(agent, -EPIPE, "the agent closed the control socket before it was started");
	agent->state = AGENT_STARTING;
}

/*
 * BPF sends this signal with the loader's rights. Therefore the agent may name only signals that profilers use, and a
 * real handler: with SIG_DFL (0) or SIG_IGN (1) as the handler to look for, the signal could stop or kill the process,
 * or a program that it executes later.
 */
static bool signal_is_sound(const struct duet_message_started *started)
{
	int signo = (int)started->signo;

	if (started->engine == DUET_ENGINE_NONE)
		return !signo;
	if (started->handler <= 1)
		return false;
	if (started->engine == DUET_ENGINE_ITIMER)
		return signo == SIGPROF;
	return started->engine == DUET_ENGINE_PERF ? signo == SIGURG : signo >= SIGRTMIN && signo <= SIGRTMAX;
}

/* Where perf events are refused, the agent ticks by timers. */
static bool engine_is_sound(const struct agent *agent, const struct duet_message_started *started)
{
	return started->engine == agent->start.engine ||
	       (agent->start.engine == DUET_ENGINE_PERF && started->engine == DUET_ENGINE_CTIMER);
}

static void on_started(struct agent *agent, const struct duet_message_started *started)
{
	if (started->error)
		return agent_fail(agent, started->error, started->why[0] ? started->why : strerror(-started->error));
	if (!signal_is_sound(started) || !engine_is_sound(agent, started))
		return agent_fail(agent, -EPROTO,
				  "the agent claims a signal, handler or engine that cannot be its own: not trusted");
	if (started->engine != agent->start.engine && agent->start.is_engine_asked)
		return agent_fail(agent, -EPERM, started->why);
	agent->engine = (enum duet_engine_id)started->engine;
	snprintf(agent->why, sizeof(agent->why), "%s", started->why);
	agent->signo = started->signo;
	agent->handler = started->handler;
	agent->lock_waiters = started->lock_waiters;
	agent->tid = started->tid;
	agent->refused = started->refused & ((1u << agent->start.event_count) - 1);
	snprintf(agent->refused_why, sizeof(agent->refused_why), "%s", started->refused_why);
	agent->state = AGENT_RUNNING;
}

/* STOPPED answers STOP, or is sent because the JVM shuts down. Both may happen, so it may arrive twice. */
static void on_down(struct agent *agent, enum duet_message_type type)
{
	if (agent->state < AGENT_RUNNING)
		return agent_fail(agent, -ESRCH, "the JVM went down during the handshake");
	if (type == DUET_MESSAGE_ENDING)
		agent->ending_ns = clock_monotonic_ns();
	else if (agent->state != AGENT_FAILED)
		agent->state = AGENT_GONE;
}

/* A thread waits for the rows, and says so every millisecond. */
static void on_mapped(struct agent *agent)
{
	if (agent->state != AGENT_RUNNING || !agent->unwinding.tables)
		return;
	process_refresh_maps(agent->origin.process, clock_monotonic_ns(), MAPPED_MIN_AGE_NS);
	unwinding_publish_now(&agent->unwinding, agent->origin.process);
}

static void on_message(struct agent *agent, const struct duet_message *message)
{
	if (agent->state == AGENT_GREETING && message->type == DUET_MESSAGE_HELLO)
		on_hello(agent, (const struct duet_message_hello *)message);
	else if (agent->state == AGENT_STARTING && message->type == DUET_MESSAGE_STARTED)
		on_started(agent, (const struct duet_message_started *)message);
	else if (message->type == DUET_MESSAGE_STOPPED || message->type == DUET_MESSAGE_ENDING)
		on_down(agent, message->type);
	else if (message->type == DUET_MESSAGE_FINISHED)
		agent->is_finishing = false;
	else if (message->type == DUET_MESSAGE_MAPPED)
		on_mapped(agent);
	else if (message->type == DUET_MESSAGE_UNNAMED && agent->reader)
		agent->is_unnamed = true;
	else if (message->type == DUET_MESSAGE_NO_JVM && agent->reader)
		agent_fail(agent, -READER_NO_JVM, "it has loaded libjvm.so, but is none");
	else if (message->type != DUET_MESSAGE_HALF) /* it has woken the loop, which reads the ring now */
		agent_fail(agent, -EPROTO, "the agent sent a message out of turn");
}

static void on_closed(struct agent *agent)
{
	io_close(&agent->socket);
	if (agent->state == AGENT_RUNNING || agent->state == AGENT_STOPPING)
		agent->state = AGENT_GONE;
	else if (agent->state != AGENT_GONE)
		agent_fail(agent, -EPIPE, "the JVM or its agent closed the control socket during the handshake");
}

void agent_step(struct agent *agent)
{
	union {
		struct duet_message head;
		uint64_t align;
		char bytes[MESSAGE_MAX];
	} message = {0};
	ssize_t len;

	if (agent->state == AGENT_ATTACHING)
		return finish_attach(agent);
	if (agent->socket < 0)
		return;
	len = recv(agent->socket, &message, sizeof(message), MSG_DONTWAIT);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0)
		return on_closed(agent);
	if (!agent_message_check(&message, (size_t)len))
		return agent_fail(
			agent, -EPROTO,
			"the agent sent a malformed message: another version of duet may be loaded in that JVM");
	on_message(agent, &message.head);
}

static void expire_attach(struct agent *agent)
{
	char why[128];

	snprintf(why, sizeof(why), "attaching took longer than %.1f s: is the JVM hung, or was duet's process stopped?",
		 (double)agent->attach.timeout_ns / NS_PER_SEC);
	attach_abort(&agent->attach);
	agent_fail(agent, -ETIMEDOUT, why);
}

void agent_expire(struct agent *agent, uint64_t now_ns)
{
	if (agent->state == AGENT_ATTACHING && now_ns > agent->attach.deadline_ns)
		expire_attach(agent);
	if ((agent->state == AGENT_GREETING || agent->state == AGENT_STARTING) && now_ns > agent->deadline_ns)
		agent_fail(agent, -ETIMEDOUT,
			   "the agent did not answer for 10 s: is the JVM hung or at a long safepoint?");
}

/* One answer describes a whole compilation, so requests for different pcs in it have the same key. */
static uint64_t want_key(const struct duet_want *want)
{
	struct duet_want key = *want;

	if (want->kind == DUET_WANT_CODE)
		key.unloads = 0;
	if (want->kind == DUET_WANT_CODE && want->id)
		key.key = 0;
	return hash_bytes(&key, sizeof(key), 0);
}

static uint32_t in_ms(uint64_t ns)
{
	return (uint32_t)(ns / NS_PER_MS);
}

/*
 * Answers arrive in the order of requests. While an answer is still due, the same request is not sent again: that would
 * double the work of an agent that hardly gets a CPU, and delay it further.
 */
static bool was_just_asked(const struct agent *agent, uint64_t key, uint64_t now_ns)
{
	uint64_t asked;
	bool is_answered;

	if (!map_get(&agent->asked, key, &asked))
		return false;
	is_answered = (int32_t)((uint32_t)agent->answered - (uint32_t)asked) >= 0;
	return in_ms(now_ns) - (uint32_t)(asked >> 32) < (is_answered ? ASK_AGAIN_MS : ASK_LOST_AGAIN_MS);
}

bool agent_want(struct agent *agent, const struct duet_want *want, uint64_t now_ns)
{
	uint64_t key = want_key(want);
	uint64_t asked = (uint64_t)in_ms(now_ns) << 32 | (uint32_t)(agent->asked_count + 1);

	if (agent->state != AGENT_RUNNING || agent->is_resting || agent->unanswered >= MAX_UNANSWERED ||
	    was_just_asked(agent, key, now_ns))
		return false;
	if (agent->wants.count == DUET_WANTS_AT_ONCE)
		agent_ask(agent);
	if (agent->wants.count == DUET_WANTS_AT_ONCE || agent->asked.len >= MAX_ASKED ||
	    map_put(&agent->asked, key, asked) < 0)
		return false;
	agent->asked_count++;
	agent->wants.wants[agent->wants.count++] = *want;
	agent->unanswered++;
	return true;
}

static void send_stop(struct agent *agent)
{
	struct duet_message stop = {.size = sizeof(stop), .type = DUET_MESSAGE_STOP, .version = DUET_AGENT_VERSION};
	bool is_sent = send(agent->socket, &stop, sizeof(stop), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;

	agent->stop_is_unsent = !is_sent && errno == EAGAIN;
	if (!is_sent && !agent->stop_is_unsent)
		on_closed(agent);
}

/* The socket is full while the agent waits for room in its ring. Then the next call sends the requests. */
void agent_ask(struct agent *agent)
{
	if (agent->state == AGENT_STOPPING && agent->stop_is_unsent)
		return send_stop(agent);
	if (!agent->wants.count || agent->state != AGENT_RUNNING)
		return;
	agent->wants.head = (struct duet_message){
		.size = sizeof(agent->wants), .type = DUET_MESSAGE_WANT, .version = DUET_AGENT_VERSION};
	if (send(agent->socket, &agent->wants, sizeof(agent->wants), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	    errno != EAGAIN)
		agent->wants.count = 0;
}

void agent_forget_asked(struct agent *agent)
{
	map_release(&agent->asked);
	/* no answer since the last call: the missing ones will not arrive */
	if (agent->answered_before == agent->answered) {
		agent->unanswered = 0;
		agent->asked_count = agent->answered;
	}
	agent->answered_before = agent->answered;
}

static bool send_time(struct agent *agent, enum duet_message_type type, uint64_t time_ns)
{
	struct duet_message_finish finish = {
		.head = {.size = sizeof(finish), .type = type, .version = DUET_AGENT_VERSION},
		.ended_ns = time_ns,
	};

	return send(agent->socket, &finish, sizeof(finish), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* If the socket is full, the events end with STOP, and those that are not over then have no names. */
void agent_finish(struct agent *agent, enum duet_message_type type, uint64_t ended_ns)
{
	if (agent->state == AGENT_RUNNING && !agent->reader)
		agent->is_finishing = send_time(agent, type, ended_ns);
}

/* If the socket is full, the reader does not look either. */
void agent_rest(struct agent *reader, uint64_t until_ns)
{
	if (reader->state == AGENT_RUNNING)
		(void)send_time(reader, DUET_MESSAGE_REST, until_ns);
}

void agent_stop(struct agent *agent)
{
	if (agent->state == AGENT_ATTACHING) {
		attach_abort(&agent->attach);
		agent_fail(agent, -ECANCELED, "the recording ended before the agent was attached");
	} else if (agent->state == AGENT_RUNNING) {
		agent->state = AGENT_STOPPING;
		send_stop(agent);
	} else if (agent->state == AGENT_GREETING || agent->state == AGENT_STARTING) {
		agent_fail(agent, -ECANCELED, "the recording ended before the agent was started");
	}
}

/* Returns true for the record types that answer a request; each request has one answer. */
static bool is_answer(uint16_t type, const void *payload)
{
	if (type == DUET_AGENT_METHOD)
		return !((const struct duet_method *)payload)->is_extra;
	return type == DUET_AGENT_CODE_LOAD || type == DUET_AGENT_STUB || type == DUET_AGENT_GONE;
}

static void on_metadata(void *context, uint16_t type, const void *payload, uint32_t size)
{
	struct agent *agent = context;

	loader_counters[DUET_LOADER_JVM_FULL] += jvm_apply(agent->jvm, type, payload, size) == -ENOSPC;
	if (agent->unanswered && is_answer(type, payload))
		agent->unanswered--;
	agent->answered += is_answer(type, payload);
	if (type == DUET_AGENT_LAYOUT)
		agent->layout_published = false;
}

static void read_lane(struct agent *agent, enum duet_lane lane, agent_ring_handler handler, void *context, int budget)
{
	if (agent->state == AGENT_FAILED)
		return;
	if (agent_ring_read(agent->ring, lane, handler, context, budget,
			    &loader_counters[DUET_LOADER_BAD_AGENT_RECORD]) >= 0)
		return;
	agent->hostile = true;
	loader_counters[DUET_LOADER_RING_HOSTILE]++;
	agent_fail(agent, -EPROTO,
		   "its agent broke the rules of the shared ring: it is hostile or its memory is damaged");
}

void agent_read(struct agent *agent, agent_ring_handler on_sample, void *context)
{
	if (!agent->ring)
		return;
	read_lane(agent, DUET_LANE_METADATA, on_metadata, agent, METADATA_BUDGET);
	read_lane(agent, DUET_LANE_SAMPLE, on_sample, context, INT32_MAX);
}

size_t agent_shared_bytes(const struct agent *agent)
{
	size_t ring = agent->ring ? agent_ring_touched(agent->ring) : 0;

	if (agent->reader && agent->socket >= 0)
		ring += READER_BYTES;
	return ring + (agent->unwinding.tables ? unwind_tables_touched(agent->unwinding.tables) : 0);
}

uint64_t agent_handler_ns(const struct agent *agent)
{
	uint64_t most_ns = agent->signalled * HANDLER_MAX_NS;
	uint64_t claimed_ns = agent->ring && !agent->hostile ? agent_ring_handler_ns(agent->ring) : 0;

	return claimed_ns < most_ns ? claimed_ns : most_ns;
}

uint64_t agent_lost(const struct agent *agent, enum duet_agent_counter counter)
{
	return agent->ring && !agent->hostile ? agent_ring_counter(agent->ring, counter) : 0;
}
