/* SPDX-License-Identifier: MIT */
#include "proc/helper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/vec.h"
#include "proc/process.h"
#include "proc/supervisor.h"

#define DEADLINE_NS NS_PER_SEC
/* shortest deadline, after the wait budget is used up; an honest answer takes far less */
#define LEAST_DEADLINE_NS (10 * NS_PER_MS)
#define WAIT_BUDGET_NS (3 * NS_PER_SEC) /* time that may be lost on waiting before deadlines get shorter */
#define WAIT_BUDGET_SHARE 20 /* that time is regained over 20 times as long */
#define BUSY_NS (5 * NS_PER_SEC) /* extra time for a helper that only waits for a CPU: at load 30 that took 3 s */
#define BUSY_STEP_NS (50 * NS_PER_MS)
#define REFUSED_NS (60 * NS_PER_SEC)
#define REFUSALS_MAX 1024
#define LOST_MAX 32 /* helpers that cannot be killed; at this number no new one is started */
/* The supervisor never blocks: if it takes longer, it was stopped or has ended. */
#define SUPERVISOR_NS (2 * NS_PER_SEC)
#define END_STEPS 1200 /* how long the loader waits for the supervisor; more than ORPHAN_STEPS */
#define TEXT_MAX (512u << 20) /* bytes of one answer; the names of a file have 256 MB at most, see elf_reader.h */
#define PARSER_NS (60 * NS_PER_SEC) /* longest task of a parser, waiting for a CPU or the disk */

struct refusal {
	uint64_t key;
	uint64_t until_ns;
};

static struct {
	pid_t owner; /* the process that called helper_start(); 0 = none */
	pid_t supervisor;
	int orders; /* socket to the supervisor */
	struct helper_worker opener;
	struct parser idle; /* a parser without a task; worker.pid is 0: there is none */
	struct vec(int) lost; /* sockets to helpers that were given up and have not ended yet */
	struct vec(struct refusal) refusals;
	uint64_t wait_budget_ns;
	uint64_t wait_budget_seen_ns;
	uint64_t cpu_ns;
	pid_t lost_for; /* of the first parser that failed; 0: none; -1: it has been returned */
} helper = {.orders = -1, .opener.socket = -1};

void helper_start(void)
{
	int pair[2];
	pid_t pid;

	if (helper.owner == getpid() && helper.orders >= 0)
		return;
	if (!helper.owner)
		helper.wait_budget_ns = WAIT_BUDGET_NS;
	/* Set even if the rest fails: then the next task tries again instead of running in the loader. */
	helper.owner = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	pid = fork();
	if (!pid) {
		supervise(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return;
	}
	helper.supervisor = pid;
	helper.orders = pair[0];
}

static void end_supervisor(void)
{
	int status;

	io_close(&helper.opener.socket);
	parser_end(&helper.idle);
	io_close(&helper.orders);
	if (helper.supervisor && !supervisor_await_end(helper.supervisor, END_STEPS)) {
		kill(helper.supervisor, SIGKILL); /* its helper is killed with it */
		(void)child_await(helper.supervisor, &status);
	}
	helper.supervisor = 0;
}

void helper_end(void)
{
	if (helper.owner != getpid())
		return;
	end_supervisor();
	for (size_t i = 0; i < helper.lost.len; i++)
		close(helper.lost.items[i]);
	vec_release(&helper.lost);
	vec_release(&helper.refusals);
	helper.owner = 0;
}

/* ---- time for waiting ---- */

/* Returns the key for refusals: the payer. Processes that have no limit are refused one by one. */
static uint64_t key_of(const struct charge *charge)
{
	return charge->payer.key ? charge->payer.key : (uint64_t)charge->pid;
}

static bool is_refused(const struct charge *charge, uint64_t now_ns)
{
	uint64_t key = key_of(charge);
	size_t kept = 0;
	bool found = false;

	for (size_t i = 0; i < helper.refusals.len; i++) {
		if (now_ns >= helper.refusals.items[i].until_ns)
			continue;
		found |= helper.refusals.items[i].key == key;
		helper.refusals.items[kept++] = helper.refusals.items[i];
	}
	helper.refusals.len = kept;
	return found;
}

static uint64_t deadline(uint64_t now_ns)
{
	helper.wait_budget_ns += (now_ns - helper.wait_budget_seen_ns) / WAIT_BUDGET_SHARE;
	helper.wait_budget_seen_ns = now_ns;
	if (helper.wait_budget_ns > WAIT_BUDGET_NS)
		helper.wait_budget_ns = WAIT_BUDGET_NS;
	if (helper.wait_budget_ns < LEAST_DEADLINE_NS)
		return now_ns + LEAST_DEADLINE_NS;
	return now_ns + (helper.wait_budget_ns < DEADLINE_NS ? helper.wait_budget_ns : DEADLINE_NS);
}

/* Drops the helper, whose wait may never end. Its socket stays open until it shows that it has ended. */
static void give_up(const struct charge *charge, uint64_t begun_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), waited_ns = now_ns - begun_ns;
	const struct refusal refusal = {key_of(charge), now_ns + REFUSED_NS};

	log_debug("reading for process %d is given up after %.2f s", charge->pid,
		  (double)waited_ns / NS_PER_SEC);
	helper.wait_budget_ns -= waited_ns < helper.wait_budget_ns ? waited_ns : helper.wait_budget_ns;
	if (helper.refusals.len == REFUSALS_MAX)
		memmove(helper.refusals.items, helper.refusals.items + 1, --helper.refusals.len * sizeof(refusal));
	(void)vec_push(&helper.refusals, refusal);
	if (vec_push(&helper.lost, helper.opener.socket) < 0)
		close(helper.opener.socket);
	helper.opener.socket = -1;
}

/* Closes the sockets of lost helpers that have ended or have sent a late answer; closing the socket ends the helper. */
static void forget_ended(void)
{
	size_t kept = 0;
	char byte;

	for (size_t i = 0; i < helper.lost.len; i++) {
		int fd = helper.lost.items[i];

		if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
			helper.lost.items[kept++] = fd;
		else
			close(fd);
	}
	helper.lost.len = kept;
}

/* ---- the loader ---- */

/* In slices, after which the rings are read. */
static int await_readable(int from, uint64_t deadline_ns)
{
	struct pollfd ready = {.fd = from, .events = POLLIN};
	uint64_t now_ns, left_ns;
	int count;

	do {
		charge_pause();
		now_ns = clock_monotonic_ns();
		left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
		const struct timespec slice = {.tv_nsec =
						       (long)(left_ns < CHARGE_SLICE_NS ? left_ns : CHARGE_SLICE_NS)};

		count = ppoll(&ready, 1, &slice, NULL);
	} while ((!count && left_ns > CHARGE_SLICE_NS) || (count < 0 && errno == EINTR));
	return count < 0 ? -errno : count;
}

/* A parser waits for nobody but the disk. */
static bool is_busy(const struct helper_worker *worker)
{
	int state = worker->pid ? process_read_state(worker->pid) : 0;

	return state == 'R' || (state == 'D' && worker->is_parser);
}

/* Waits until the deadline, longer if the worker is busy. The length, 0 at the other side's end, or -errno. */
static ssize_t await_message(const struct helper_worker *worker, struct iovec *part, int *ret_fd, uint64_t deadline_ns)
{
	const uint64_t last_ns = deadline_ns + (worker->is_parser ? PARSER_NS : BUSY_NS);
	int count = await_readable(worker->socket, deadline_ns);

	while (!count && clock_monotonic_ns() < last_ns && is_busy(worker))
		count = await_readable(worker->socket, clock_monotonic_ns() + BUSY_STEP_NS);
	if (!count) /* it may have answered, and then slept, before its state was read */
		count = await_readable(worker->socket, 0);
	if (count <= 0)
		return count ? count : -ETIMEDOUT;
	return packet_receive_parts(worker->socket, part, 1, 0, ret_fd);
}

static int order_worker(bool is_parser, struct helper_worker *ret)
{
	const struct order order = {.kind = is_parser ? ORDER_PARSER : ORDER_OPENER};
	struct helper_worker supervisor;
	struct iovec part = {&ret->pid, sizeof(ret->pid)};
	ssize_t len = -EPIPE;

	*ret = (struct helper_worker){.socket = -1, .is_parser = is_parser};
	forget_ended();
	if (helper.lost.len >= LOST_MAX)
		return -EBUSY;
	helper_start();
	supervisor = (struct helper_worker){.socket = helper.orders};
	if (helper.orders >= 0 && !packet_send(helper.orders, &order, sizeof(order), -1, 0))
		len = await_message(&supervisor, &part, &ret->socket, clock_monotonic_ns() + SUPERVISOR_NS);
	if (len != sizeof(ret->pid) || ret->socket < 0) {
		end_supervisor(); /* the next task starts another supervisor */
		return -EIO;
	}
	return 0;
}

static int send_request(const struct helper_worker *worker, const struct helper_task *task)
{
	struct request request = {.work = task->work, .number = task->number, .charge = *task->charge};
	size_t path_len = strlen(task->path);
	struct iovec parts[] = {{&request, sizeof(request)}, {(char *)task->path, path_len}};

	if (path_len >= PATH_MAX)
		return -ENAMETOOLONG;
	return packet_send_parts(worker->socket, parts, 2, &task->fd, task->fd >= 0, 0);
}

static ssize_t await_text(const struct helper_worker *worker, struct buf *text, size_t left, uint64_t deadline_ns)
{
	ssize_t len = 1;

	if (left && !buf_reserve(text, left))
		return -ENOMEM;
	for (; left && len > 0; left -= len > 0 ? (size_t)len : 0) {
		struct iovec part = {text->data + text->len, left};
		IO_FD(fd) = -1;

		len = await_message(worker, &part, &fd, deadline_ns);
		text->len += len > 0 ? (size_t)len : 0;
		text->data[text->len] = '\0';
	}
	return len;
}

/* Returns 0 with the task's result in *ret_result, or -errno when there is no answer. */
static int await_answer(struct helper_worker *worker, struct helper_answer *answer, uint64_t deadline_ns,
			int *ret_result)
{
	struct reply reply;
	struct iovec part = {&reply, sizeof(reply)};
	ssize_t len = await_message(worker, &part, &answer->fd, deadline_ns);

	if (len == sizeof(reply)) {
		answer->st = reply.st;
		helper.cpu_ns += reply.cpu_ns - worker->cpu_ns;
		worker->cpu_ns = reply.cpu_ns;
		len = reply.text_len <= TEXT_MAX ? await_text(worker, &answer->text, reply.text_len, deadline_ns)
						 : -EPROTO;
	}
	if (len <= 0)
		return len ? (int)len : -EPIPE;
	*ret_result = reply.result;
	return 0;
}

static int run_aside(const struct helper_task *task, struct helper_answer *answer)
{
	uint64_t now_ns = clock_monotonic_ns();
	int result = 0, err = 0;

	if (is_refused(task->charge, now_ns))
		return -EBUSY;
	if (helper.opener.socket < 0)
		err = order_worker(false, &helper.opener);
	if (err)
		return err;
	err = send_request(&helper.opener, task);
	if (err == -ENAMETOOLONG)
		return err;
	if (!err)
		err = await_answer(&helper.opener, answer, deadline(now_ns), &result);
	if (err == -ETIMEDOUT)
		give_up(task->charge, now_ns);
	else if (err)
		io_close(&helper.opener.socket);
	return err ? err : result;
}

int helper_run(const struct helper_task *task, struct helper_answer *answer)
{
	int err;

	helper_answer_init(answer);
	if (helper.owner != getpid())
		return task->work(task, answer);
	err = run_aside(task, answer);
	loader_counters[DUET_LOADER_SILENT_TARGETS] += err == -ETIMEDOUT || err == -EBUSY;
	return err;
}

/* ---- parsers ---- */

static bool take_idle(struct parser *parser)
{
	if (!parser->origin || !helper.idle.worker.pid || helper.idle.origin != parser->origin)
		return false;
	parser->worker = helper.idle.worker;
	helper.idle.worker.pid = 0;
	return true;
}

int parser_begin(struct parser *parser, const struct helper_task *task)
{
	int err;

	*parser = (struct parser){.worker.socket = -1, .pid = task->charge->pid, .origin = task->origin};
	parser->begun_ns = clock_monotonic_ns();
	helper_answer_init(&parser->answer);
	if (helper.owner != getpid()) {
		parser->result = task->work(task, &parser->answer);
		return 0;
	}
	err = take_idle(parser) ? send_request(&parser->worker, task) : -EPIPE;
	if (err == -EPIPE) {
		parser_end(parser);
		err = order_worker(true, &parser->worker);
		if (!err)
			err = send_request(&parser->worker, task);
	}
	if (err)
		parser_end(parser);
	return err;
}

/* What may have taken it over does not live on. */
void parser_end(struct parser *parser)
{
	const struct order order = {.kind = ORDER_END, .pid = parser->worker.pid};

	if (!parser->worker.pid) /* without this it has ended, or has never been begun */
		return;
	if (helper.owner == getpid() && helper.orders >= 0)
		(void)packet_send(helper.orders, &order, sizeof(order), -1, 0);
	io_close(&parser->worker.socket);
	parser->worker.pid = 0;
}

/* What it has used is not known, but it is not more than this. */
static void lose(const struct parser *parser, int err)
{
	uint64_t used_ns = clock_monotonic_ns() - parser->begun_ns;

	helper.cpu_ns += used_ns < PARSER_CPU_NS ? used_ns : PARSER_CPU_NS;
	loader_counters[DUET_LOADER_PARSERS_LOST]++;
	helper.lost_for = helper.lost_for ? helper.lost_for : parser->pid;
	log_debug("the parser of a file of process %d is lost: %s", parser->pid, strerror(-err));
}

static int take_answer(struct parser *parser, struct helper_answer *answer)
{
	int result = 0, err;

	if (!parser->worker.pid) {
		*answer = parser->answer;
		helper_answer_init(&parser->answer);
		return parser->result;
	}
	err = await_answer(&parser->worker, answer, clock_monotonic_ns() + DEADLINE_NS, &result);
	if (err)
		lose(parser, err);
	if (!err && parser->origin && parser->worker.cpu_ns < PARSER_CPU_NS / 4) {
		parser_end(&helper.idle);
		helper.idle = *parser;
		parser->worker.pid = 0;
	}
	parser_end(parser);
	return err ? -EPROTO : result;
}

pid_t parser_lost_for(void)
{
	pid_t pid = helper.lost_for;

	if (pid > 0)
		helper.lost_for = -1;
	return pid > 0 ? pid : 0;
}

int parser_await(struct parser *parser, uint64_t until_ns, struct helper_answer *answer)
{
	uint64_t last_ns = parser->begun_ns + PARSER_NS;
	int ready = 1;

	helper_answer_init(answer);
	if (parser->worker.pid)
		ready = await_readable(parser->worker.socket, until_ns < last_ns ? until_ns : last_ns);
	return !ready && clock_monotonic_ns() < last_ns ? -EAGAIN : take_answer(parser, answer);
}

int parser_run(const struct helper_task *task, struct helper_answer *answer)
{
	struct parser parser;
	int err = parser_begin(&parser, task);

	helper_answer_init(answer);
	return err ? err : take_answer(&parser, answer);
}

static int read_work(const struct helper_task *task, struct helper_answer *answer)
{
	return io_read_file(task->fd, task->path, task->number, &answer->text);
}

int helper_text(const struct helper_task *task, struct buf *text)
{
	struct helper_answer answer;
	int err = helper_run(task, &answer);

	buf_add(text, answer.text.data, answer.text.len);
	helper_answer_release(&answer);
	return err;
}

int helper_read(const struct charge *charge, int proc_fd, const char *name, size_t max, struct buf *text)
{
	return helper_text(&(struct helper_task){read_work, charge, proc_fd, name, max, 0}, text);
}

uint64_t helper_cpu_ns(void)
{
	return helper.cpu_ns;
}
