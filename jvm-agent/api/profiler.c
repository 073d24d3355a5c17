/* SPDX-License-Identifier: MIT */
#include "api/profiler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "control/control.h"
#include "jvm/jvm.h"
#include "libc_versions.h"
#include "locked.h"
#include "own_thread.h"

#define PREPARER_STACK_BYTES (1u << 20)
#define END_WAIT_S 30 /* the JVM's end waits for the file */

static struct {
	pthread_mutex_t lock;
	char *kept; /* arguments until the JVM runs; owned */
	pthread_t preparer; /* sends the kept arguments ahead */
	bool prepares; /* there is a preparer to join */
	struct duet_question agent; /* where the agent listens; name[0] is 0: it does not listen yet */
	bool has_begun; /* atomic: a recording was begun here */
	pid_t owner; /* process of the agent's thread: a child of fork() has no such thread */
} profiler = {.lock = PTHREAD_MUTEX_INITIALIZER};

int profiler_owns(const char *text)
{
	return !text || !(strstr(text, "control=") || strstr(text, "secret="));
}

static bool random_bytes(unsigned char *bytes, size_t count)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, bytes, count);

	if (fd >= 0)
		close(fd);
	return got == (ssize_t)count;
}

/* Listens for the recorder for as long as the process runs: also without a JVM, for events that need none. */
static void listen_for_recorder(void)
{
	struct agent_options options = {.persists = true};
	unsigned char random[DUET_SECRET_DIGITS];
	char secret[DUET_SECRET_DIGITS + 1];

	if (!random_bytes(random, sizeof(random)))
		return;
	for (size_t i = 0; i < DUET_SECRET_DIGITS / 2; i++)
		snprintf(secret + 2 * i, 3, "%02x", random[i]);
	snprintf(options.control, sizeof(options.control), "duet-own-%d-%02x%02x%02x%02x", getpid(), random[16],
		 random[17], random[18], random[19]);
	memcpy(options.secret, secret, sizeof(options.secret));
	if (control_open(&options) != DUET_ATTACH_OK || control_run() != DUET_ATTACH_OK)
		return;
	memcpy(profiler.agent.name, options.control, sizeof(profiler.agent.name));
	memcpy(profiler.agent.secret, options.secret, sizeof(profiler.agent.secret));
	profiler.owner = getpid();
}

/* Stores where the agent listens. Makes it listen if it does not yet. */
static void add_agent(struct duet_question *question)
{
	LOCKED(&profiler.lock);

	if (profiler.owner != getpid() || !control_listens())
		profiler.agent.name[0] = '\0';
	if (!profiler.agent.name[0])
		listen_for_recorder();
	memcpy(question->name, profiler.agent.name, sizeof(question->name));
	memcpy(question->secret, profiler.agent.secret, sizeof(question->secret));
}

/* Of either case, as async-profiler has it. */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (; *text; text += strcspn(text, ",")) {
		text += *text == ',';
		if (!strncasecmp(text, word, length) && (!text[length] || text[length] == ','))
			return true;
	}
	return false;
}

void profiler_execute(enum duet_question_kind kind, const char *text, struct link_answer *ret)
{
	struct duet_question question = {.kind = kind};

	/* a Java class checks so whether the library exists, which needs no recorder */
	if (kind == DUET_QUESTION_API && !strcmp(text, "version")) {
		*ret = (struct link_answer){.report = -1, .text = strdup(PROFILER_VERSION)};
		ret->bytes = ret->text ? strlen(ret->text) : 0;
		return;
	}
	/* a server in the recorder may get a request to start later */
	if (has_word(text, "start") || has_word(text, "resume") || strcasestr(text, "server=")) {
		__atomic_store_n(&profiler.has_begun, true, __ATOMIC_RELAXED);
		add_agent(&question);
	}
	link_ask(&question, text, ret);
}

void profiler_choose(int tid, bool is_added)
{
	const struct duet_question question = {.kind = DUET_QUESTION_CHOOSE};
	struct link_answer answer;
	char text[16];

	if (!__atomic_load_n(&profiler.has_begun, __ATOMIC_RELAXED))
		return;
	snprintf(text, sizeof(text), "%c%d", is_added ? '+' : '-', tid);
	link_ask(&question, text, &answer);
	link_answer_release(&answer);
}

static void print_report(const char *bytes, size_t count)
{
	(void)link_write(STDOUT_FILENO, bytes, count);
}

void profiler_print_log(const struct link_answer *answer)
{
	int fd = answer->head.stream == DUET_ANSWER_STDERR ? STDERR_FILENO : STDOUT_FILENO;

	if (answer->head.stream != DUET_ANSWER_NOWHERE && answer->text)
		(void)link_write(fd, answer->text, answer->head.log_bytes);
}

/* The recorder moves an agent's answer to the log. An answer that was made here does not come from the recorder. */
static void print_reply(const struct link_answer *answer)
{
	const char *reply = link_reply(answer);

	if (!*reply)
		return;
	(void)link_write(STDOUT_FILENO, "[ERROR] ", 8);
	(void)link_write(STDOUT_FILENO, reply, strlen(reply));
	(void)link_write(STDOUT_FILENO, "\n", 1);
}

int profiler_execute_agent(const char *text)
{
	struct link_answer answer;
	int code;

	profiler_execute(DUET_QUESTION_AGENT, text, &answer);
	profiler_print_log(&answer);
	print_reply(&answer);
	link_pass_report(&answer, print_report);
	code = answer.head.code == DUET_ANSWER_NO_FILE ? DUET_ANSWER_REFUSED : (int)answer.head.code;
	link_answer_release(&answer);
	return code;
}

static void *prepare(void *text)
{
	struct link_answer answer;

	link_ask(&(struct duet_question){.kind = DUET_QUESTION_PREPARE}, text, &answer);
	link_answer_release(&answer);
	return NULL;
}

/* Returns the number of bytes of the last word "alloc=NUMBER[UNIT]", or 0. */
static uint32_t alloc_bytes(const char *text)
{
	static const char word[] = "alloc=", units[] = "bkmg";
	unsigned long long bytes = 0;
	const char *unit;
	char *end;

	for (; *text; text += strcspn(text, ",")) {
		text += *text == ',';
		if (strncasecmp(text, word, strlen(word)) != 0)
			continue;
		bytes = strtoull(text + strlen(word), &end, 10);
		unit = *end && *end != ',' ? strchr(units, *end | 0x20) : units;
		bytes = unit && bytes <= UINT32_MAX ? bytes << 10 * (unit - units) : 0;
	}
	return bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
}

int profiler_keep(const char *text)
{
	if (has_word(text, "start") && alloc_bytes(text))
		jvm_set_alloc_interval(alloc_bytes(text));
	profiler.kept = strdup(text);
	if (!profiler.kept)
		return -ENOMEM;
	/* the recorder starts and loads BPF while the JVM starts */
	profiler.prepares = has_word(text, "start") &&
			    !own_thread_start(&profiler.preparer, PREPARER_STACK_BYTES, prepare, profiler.kept);
	return 0;
}

void profiler_begin(void)
{
	char *text = profiler.kept;

	profiler.kept = NULL;
	if (profiler.prepares)
		pthread_join(profiler.preparer, NULL);
	profiler.prepares = false;
	if (text && *text)
		(void)profiler_execute_agent(text);
	free(text);
}

void profiler_end(void)
{
	struct link_answer answer;

	link_ask_if_started(&(struct duet_question){.kind = DUET_QUESTION_EXIT}, END_WAIT_S, &answer);
	profiler_print_log(&answer);
	link_answer_release(&answer);
}
