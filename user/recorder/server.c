/* SPDX-License-Identifier: MIT */
#include "recorder/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "status/status.h"

#define BACKLOG 32
#define REQUEST_MAX (80 << 10) /* bytes: 64 kB of arguments and the lines of the head */
#define CLIENT_TIMEOUT_NS (10 * NS_PER_SEC)
#define PAGE "<!DOCTYPE html>"
#define FLIGHT_RECORDING "FLR"

struct place {
	char host[256];
	char port[8];
};

static bool parse_place(const char *address, struct place *ret)
{
	const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address, *host = address;
	size_t length = colon ? (size_t)(colon - address) : 0, digits = strspn(port, "0123456789");
	unsigned long number = strtoul(port, NULL, 10);

	if (!digits || digits >= sizeof(ret->port) || port[digits] || !number || number > UINT16_MAX)
		return false;
	if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	}
	if (length >= sizeof(ret->host))
		return false;
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)length, host);
	if (!length)
		strcpy(ret->host, "127.0.0.1");
	strcpy(ret->port, port);
	return true;
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

/*
 * Makes "start,event=cpu,threads" of "GET /start?event=cpu&threads HTTP/1.1". Returns false for other requests, and for
 * control characters.
 */
static bool make_command(const char *request, struct buf *command)
{
	size_t length = 0;
	const char *at = http_address(request, &length);

	if (!at)
		return false;
	for (const char *end = at + length; at < end; at++) {
		char c = *at == '?' || *at == '&' ? ',' : *at;

		if (c == '%' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
			c = (char)(hex_digit(at[1]) << 4 | hex_digit(at[2]));
			at += 2;
		}
		if (iscntrl((unsigned char)c))
			return false;
		buf_add_char(command, c);
	}
	return true;
}

/* Returns true if the first word of the arguments, as asprof_arguments_parse() ends it, is one of these short ones. */
static bool is_word(const char *arguments, const char *words)
{
	char word[16];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(arguments, ",="), arguments);
	return text_is_word(word, words);
}

/* Whoever reaches the server may not write files as this user. */
static bool names_file(const char *command)
{
	for (const char *at = command; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (is_word(at, "file log server jfrsync"))
			return true;
	}
	return false;
}

/* Returns the status code. The answer's report, if there is one, is the client's. */
static int execute(const struct server *server, struct server_client *client, const char *command, struct buf *body)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	int code;

	server->execute(server->context, command, &answer);
	code = !answer.code ? 200 : answer.code == DUET_ANSWER_NOT_UNDERSTOOD ? 400 : 500;
	buf_add(body, answer.text.data, answer.text.len);
	client->report = answer.report;
	answer.report = -1;
	recorder_answer_release(&answer);
	return code;
}

/* Fills the body. Returns the status code. */
static int answer_command(const struct server *server, struct server_client *client, struct buf *body)
{
	static const char actions[] = "start resume stop dump status metrics list version check meminfo";
	BUF(command);

	if (!make_command(client->request.data, &command) || (command.len && !is_word(command.data, actions)))
		return buf_explain(body, 404, "Unknown command\n");
	if (http_is_of_other_site(client->request.data, server->is_local))
		return buf_explain(body, 403, "pages of other sites may not send commands\n");
	if (!command.len)
		return buf_explain(body, 200, "Async-profiler server\n");
	if (names_file(command.data))
		return buf_explain(body, 400,
				   "the server writes no files: leave out file=, log=, jfrsync and server=; "
				   "the answer is the report\n");
	return execute(server, client, command.data, body);
}

static const char *type_of(const struct server_client *client, const struct buf *body)
{
	char begin[sizeof(PAGE)] = "";

	if (client->report >= 0)
		(void)!pread(client->report, begin, sizeof(begin) - 1, 0);
	else
		snprintf(begin, sizeof(begin), "%s", body->data);
	if (!strcmp(begin, PAGE))
		return "text/html; charset=utf-8";
	return strncmp(begin, FLIGHT_RECORDING, strlen(FLIGHT_RECORDING)) ? "text/plain; charset=utf-8"
									  : "application/octet-stream";
}

static void answer(const struct server *server, struct server_client *client)
{
	static const char *const codes[] = {"200 OK", "400 Bad Request", "403 Forbidden", "404 Not Found",
					    "500 Internal Server Error"};
	const char *text = "";
	BUF(body);
	struct stat st;
	int code;

	code = answer_command(server, client, &body);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (atoi(codes[i]) == code)
			text = codes[i];
	if (client->report >= 0 && !fstat(client->report, &st))
		client->report_bytes = st.st_size;
	http_add_head(&client->answer, text, type_of(client, &body), body.len + (uint64_t)client->report_bytes);
	buf_add(&client->answer, body.data, body.len);
	client->until_ns = clock_monotonic_ns() + CLIENT_TIMEOUT_NS;
}

static void forget_client(struct server_client *client)
{
	if (client->fd < 0)
		return;
	close(client->fd);
	io_close(&client->report);
	buf_release(&client->request);
	buf_release(&client->answer);
	*client = (struct server_client){.fd = -1, .report = -1};
}

/* Returns false when all is sent, or the client has gone. Each piece that the client takes gives it more time. */
static bool send_more(struct server_client *client)
{
	ssize_t sent;

	while (client->sent < client->answer.len) {
		sent = send(client->fd, client->answer.data + client->sent, client->answer.len - client->sent,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		client->sent += (size_t)sent;
	}
	while (client->report >= 0 && client->report_sent < client->report_bytes) {
		sent = sendfile(client->fd, client->report, &client->report_sent,
				(size_t)(client->report_bytes - client->report_sent));
		if (sent <= 0)
			return sent < 0 && (errno == EAGAIN || errno == EINTR);
		client->until_ns = clock_monotonic_ns() + CLIENT_TIMEOUT_NS;
	}
	return false;
}

static void step_client(const struct server *server, struct server_client *client)
{
	int got = client->answer.len ? 0 : http_receive(client->fd, REQUEST_MAX, &client->request);
	bool goes_on = got >= 0;

	if (got > 0)
		answer(server, client);
	if (goes_on && client->answer.len)
		goes_on = send_more(client);
	if (!goes_on || clock_monotonic_ns() > client->until_ns)
		forget_client(client);
}

static void take_client(struct server *server, int fd)
{
	struct server_client *place = &server->clients[0];

	for (size_t i = 0; i < SERVER_CLIENTS && place->fd >= 0; i++) {
		struct server_client *client = &server->clients[i];

		if (client->fd < 0 || client->until_ns < place->until_ns)
			place = client;
	}
	forget_client(place);
	place->fd = fd;
	place->until_ns = clock_monotonic_ns() + CLIENT_TIMEOUT_NS;
	buf_init(&place->request);
	buf_init(&place->answer);
	step_client(server, place);
}

/* Another network than the process's is not the one that was meant. Numbers of nsfs's files identify namespaces. */
static bool is_in_same_network(pid_t pid)
{
	struct stat own, other;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return !stat("/proc/self/ns/net", &own) && !stat(path, &other) && own.st_ino == other.st_ino;
}

int server_open(struct server *server, const char *address, pid_t pid, struct buf *why)
{
	const struct addrinfo how = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *list = NULL;
	struct place place;
	int fd = -EINVAL;

	if (server->is_open)
		return buf_explain(why, -EALREADY, "the server runs already");
	if (!is_in_same_network(pid))
		return buf_explain(why, -EXDEV, "server=%s: this process's recorder runs in another network", address);
	if (!parse_place(address, &place) || getaddrinfo(place.host, place.port, &how, &list))
		return buf_explain(why, -EINVAL,
				   "server=%s: PORT or HOST:PORT is accepted, with an address of this host", address);
	fd = http_listen(list->ai_addr, list->ai_addrlen, BACKLOG);
	freeaddrinfo(list);
	if (fd < 0)
		return buf_explain(why, fd, "server=%s: %s", address, strerror(-fd));
	server->is_open = true;
	server->listener = fd;
	server->is_local = http_is_local_name(place.host, strlen(place.host));
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		server->clients[i] = (struct server_client){.fd = -1, .report = -1};
	return 0;
}

void server_poll(const struct server *server, struct pollfd fds[SERVER_CLIENTS + 1])
{
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		fds[i] = (struct pollfd){.fd = server->is_open ? server->clients[i].fd : -1,
					 .events = server->clients[i].answer.len ? POLLOUT : POLLIN};
	fds[SERVER_CLIENTS] = (struct pollfd){.fd = server->is_open ? server->listener : -1, .events = POLLIN};
}

void server_step(struct server *server)
{
	int fd;

	if (!server->is_open)
		return;
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		if (server->clients[i].fd >= 0)
			step_client(server, &server->clients[i]);
	for (int i = 0; i < SERVER_CLIENTS; i++) {
		fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		take_client(server, fd);
	}
}

void server_close(struct server *server)
{
	if (!server->is_open)
		return;
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		forget_client(&server->clients[i]);
	close(server->listener);
	server->is_open = false;
}
