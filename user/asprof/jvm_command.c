/* SPDX-License-Identifier: MIT */
#include "asprof/jvm_command.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/buf.h"
#include "base/clock.h"
#include "proc/process.h"

#define ARGUMENTS 3
#define COPY_BYTES 16384
#define FIRST_MAX 256 /* bytes of the lines with the codes */
#define ASK_NS (10 * NS_PER_SEC) /* until the JVM has taken the command; its reply may take longer */

/* ---- asking ---- */

/* What follows the third word belongs to it: jcmd takes a line. */
static void compose(char **words, int count, bool is_line, struct buf arguments[ARGUMENTS])
{
	for (int i = 0; i < count; i++) {
		struct buf *argument = &arguments[is_line ? 0 : i < ARGUMENTS ? i : ARGUMENTS - 1];

		if (argument->len)
			buf_add_char(argument, ' ');
		buf_add_str(argument, words[i]);
	}
}

/* Returns 0, or -errno after reporting it. */
static int describe(pid_t pid, struct process_table *processes, struct attach_target *ret)
{
	const struct process *process = process_get(processes, pid, 0);

	if (!process) {
		fprintf(stderr, "[ERROR] Process %d not found\n", pid);
		return -ESRCH;
	}
	*ret = (struct attach_target){
		.pid = pid,
		.ns_pid = process->ns_pid,
		.start_ticks = process->start_ticks,
		.uid = process->uid,
		.gid = process->gid,
		.kind = ATTACH_COMMAND,
		.timeout_ns = ASK_NS,
	};
	return 0;
}

/* Returns the socket that brings the reply, or -errno after reporting it. */
static int ask(const struct attach_target *target)
{
	const struct attach_control none = {0};
	struct attach_result result;
	struct attach attach;
	int err = attach_start(&attach, target, &none);

	if (err < 0) {
		fprintf(stderr, "[ERROR] No process to ask JVM %d: %s\n", target->pid, strerror(-err));
		return err;
	}
	attach_finish(&attach, &result);
	if (result.error)
		fprintf(stderr, "[ERROR] %s\n", result.why);
	return result.error ? result.error : result.socket;
}

/* ---- the reply ---- */

static ssize_t receive(int socket, char *bytes, size_t room)
{
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	ssize_t more;

	do {
		(void)poll(&fd, 1, -1);
		more = recv(socket, bytes, room, 0);
	} while (more < 0 && (errno == EINTR || errno == EAGAIN));
	return more;
}

/* Of `load`, JDK 8 answers "0\\nCODE", later ones "0\\nreturn code: CODE", or an error instead. */
static int exit_code(const char *first, bool is_load)
{
	static const char label[] = "return code: ";
	const char *second = strchr(first, '\n');
	int status = atoi(first);

	if (status || !is_load || !second)
		return status;
	second += 1 + (strncmp(second + 1, label, strlen(label)) ? 0 : strlen(label));
	return (*second >= '0' && *second <= '9') || *second == '-' ? atoi(second) : 1;
}

/* Copies the reply without its first line, and keeps its beginning. */
static int print_reply(int socket, bool is_load)
{
	char bytes[COPY_BYTES], first[FIRST_MAX] = "";
	bool has_status = false;
	ssize_t more;

	while ((more = receive(socket, bytes, sizeof(bytes) - 1)) > 0) {
		size_t kept = strlen(first), room = sizeof(first) - 1 - kept;
		const char *text = bytes;

		bytes[more] = '\0';
		strncat(first, bytes, room);
		if (!has_status) {
			const char *end = strchr(bytes, '\n');

			printf("JVM response code = %d\n", atoi(first));
			text = end ? end + 1 : bytes + more;
			has_status = true;
		}
		fwrite(text, 1, (size_t)(bytes + more - text), stdout);
	}
	if (!has_status)
		fputs("[ERROR] The JVM closed the connection without an answer\n", stderr);
	return has_status ? exit_code(first, is_load) : 1;
}

int jvm_command_run(pid_t pid, const char *name, char **words, int count)
{
	struct buf arguments[ARGUMENTS];
	struct process_table processes;
	struct attach_target target;
	int socket = -1, code = 1;

	process_table_init(&processes);
	for (int i = 0; i < ARGUMENTS; i++)
		buf_init(&arguments[i]);
	compose(words, count, !strcmp(name, "jcmd"), arguments);
	if (!describe(pid, &processes, &target)) {
		const char *const sent[] = {name, arguments[0].data, arguments[1].data, arguments[2].data};

		target.command = sent;
		socket = ask(&target);
	}
	if (socket >= 0) {
		puts("Connected to remote JVM");
		code = print_reply(socket, !strcmp(name, "load"));
		close(socket);
	}
	for (int i = 0; i < ARGUMENTS; i++)
		buf_release(&arguments[i]);
	process_table_release(&processes);
	return code;
}
