/* SPDX-License-Identifier: MIT */
#include "status/status.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define BACKLOG 128 /* many peers may connect and send nothing */
#define ACCEPT_AT_ONCE 64
#define REQUEST_MAX 4096 /* bytes */
#define CLIENT_TIMEOUT_NS (2 * NS_PER_SEC)
#define ASK_MS 15000 /* `duet status` waits this long for the next piece: at load 30 it took more than 3 s */
#define ANSWER_MAX (1u << 20) /* bytes */
#define FULL_NS (3 * NS_PER_SEC) /* longest wait of `duet status` for all sockets whose queue is full */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static socklen_t control_address(int pid, union address *address)
{
	int len;

	memset(address, 0, sizeof(*address));
	address->local.sun_family = AF_UNIX;
	len = snprintf(address->local.sun_path + 1, sizeof(address->local.sun_path) - 1, STATUS_NAME "%d", pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* Parses "localhost:9100", "127.0.0.1:9100", "[::1]:9100" or "/run/duet.sock". Returns 0 if it is none. */
static socklen_t metrics_address(const char *text, union address *address)
{
	static const char *const v4[] = {"localhost:", "127.0.0.1:"};
	const char *port = NULL;
	char *end = NULL;
	unsigned long number;

	memset(address, 0, sizeof(*address));
	if (text[0] == '/' && strlen(text) < sizeof(address->local.sun_path)) {
		address->local.sun_family = AF_UNIX;
		strcpy(address->local.sun_path, text);
		return sizeof(address->local);
	}
	for (size_t i = 0; i < 2 && !port; i++)
		if (!strncmp(text, v4[i], strlen(v4[i])))
			port = text + strlen(v4[i]);
	address->v4.sin_family = AF_INET;
	if (!port && !strncmp(text, "[::1]:", 6)) {
		port = text + 6;
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_addr = in6addr_loopback;
	}
	number = port && port[0] >= '0' && port[0] <= '9' ? strtoul(port, &end, 10) : UINT16_MAX + 1ul;
	if (number > UINT16_MAX || *end)
		return 0;
	if (address->any.sa_family == AF_INET6) {
		address->v6.sin6_port = htons((uint16_t)number);
		return sizeof(address->v6);
	}
	address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address->v4.sin_port = htons((uint16_t)number);
	return sizeof(address->v4);
}

/* Removes a socket on which nobody listens any more. Anything else is left alone, and bind() fails. */
static void remove_stale(const union address *address, socklen_t len)
{
	struct stat st;
	IO_FD(fd) = -1;

	if (lstat(address->local.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	/* Another user's socket whose queue is full would block us for ever. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, &address->any, len) < 0 && errno == ECONNREFUSED)
		unlink(address->local.sun_path);
}

/* The socket's folder is looked up once, by the rules of -f. */
static int find_place(struct status *status, const char *path, union address *address, socklen_t len)
{
	int err = out_path_open(&status->at, path, false);

	if (!err && snprintf(address->local.sun_path, sizeof(address->local.sun_path), "/proc/self/fd/%d/%s",
			     status->at.dir, status->at.name) >= (int)sizeof(address->local.sun_path))
		err = -ENAMETOOLONG;
	if (!err)
		remove_stale(address, len);
	return err;
}

int http_listen(const struct sockaddr *address, socklen_t len, int backlog)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1, err = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 || bind(fd, address, len) < 0 ||
	    listen(fd, backlog) < 0)
		err = -errno;
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int listen_on(const union address *address, socklen_t len)
{
	mode_t mask = umask(0177);
	int fd = http_listen(&address->any, len, BACKLOG);

	umask(mask);
	return fd;
}

static void say_where(int fd, const char *text)
{
	union address address;
	socklen_t len = sizeof(address);

	if (getsockname(fd, &address.any, &len) < 0 || address.any.sa_family == AF_UNIX)
		return log_info("metrics on the socket %s", text);
	/* sin_port and sin6_port have the same offset. */
	log_info("metrics on http://%s:%u/metrics", address.any.sa_family == AF_INET6 ? "[::1]" : "localhost",
		 ntohs(address.v4.sin_port));
}

static int open_metrics(struct status *status, const char *text)
{
	union address address;
	socklen_t len = metrics_address(text, &address);
	int err = 0;

	if (!len)
		return log_refuse(
			"--metrics '%s': localhost:PORT or the /path of a socket is accepted, no address outside "
			"this host",
			text);
	if (address.any.sa_family == AF_UNIX)
		err = find_place(status, text, &address, len);
	status->metrics_fd = err ? err : listen_on(&address, len);
	if (status->metrics_fd < 0) {
		out_path_release(&status->at); /* somebody else's socket stays */
		return log_fail(status->metrics_fd, "--metrics %s: %s", text, strerror(-status->metrics_fd));
	}
	say_where(status->metrics_fd, text);
	return 0;
}

void status_init(struct status *status, status_answer answer, void *context)
{
	status->answer = answer;
	status->context = context;
	status->control_fd = status->metrics_fd = -1;
	for (size_t i = 0; i < STATUS_CLIENTS; i++)
		status->clients[i].fd = -1;
}

int status_open(struct status *status, const char *metrics)
{
	union address address;
	socklen_t len = control_address(getpid(), &address);

	status->control_fd = listen_on(&address, len);
	if (status->control_fd < 0)
		log_debug("duet status will not find this one: %s", strerror(-status->control_fd));
	return metrics ? open_metrics(status, metrics) : 0;
}

static void close_client(struct status_client *client)
{
	close(client->fd);
	buf_release(&client->request);
	client->fd = -1;
}

void status_close(struct status *status)
{
	for (size_t i = 0; i < STATUS_CLIENTS; i++)
		if (status->clients[i].fd >= 0)
			close_client(&status->clients[i]);
	io_close(&status->control_fd);
	io_close(&status->metrics_fd);
	if (status->at.name)
		unlinkat(status->at.dir, status->at.name, 0);
	out_path_release(&status->at);
}

int http_receive(int fd, size_t max, struct buf *request)
{
	char bytes[4096];
	ssize_t got;

	while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		if (memchr(bytes, '\0', (size_t)got) || request->len + (size_t)got > max)
			return -EMSGSIZE;
		else
			buf_add(request, bytes, (size_t)got);
	if (request->failed)
		return -ENOMEM;
	if (strstr(request->data, "\r\n\r\n"))
		return 1;
	return !got ? -EPIPE : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

const char *http_address(const char *request, size_t *ret_len)
{
	const char *slash = strchr(request, '/');

	if (strncmp(request, "GET /", 5) != 0 && strncmp(request, "POST /", 6) != 0)
		return NULL;
	*ret_len = strcspn(slash + 1, " \r\n");
	return strncmp(slash + 1 + *ret_len, " HTTP/1.", 8) ? NULL : slash + 1;
}

bool http_is_local_name(const char *name, size_t length)
{
	static const char *const names[] = {"localhost", "[::1]", "::1"};
	char text[sizeof("255.255.255.255")];
	struct in_addr v4;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (length == strlen(names[i]) && !strncasecmp(name, names[i], length))
			return true;
	if (length >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

/* Returns the value of a line of the request's head, with its length, or NULL. */
static const char *find_header(const char *request, const char *name, size_t *ret_length)
{
	const size_t length = strlen(name);

	for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, length) || line[length] != ':')
			continue;
		line += length + 1;
		line += strspn(line, " \t");
		*ret_length = strcspn(line, "\r\n");
		return line;
	}
	return NULL;
}

/* Of "HOST:PORT". */
static size_t host_length(const char *host, size_t length)
{
	size_t before = length;

	while (before && isdigit((unsigned char)host[before - 1]))
		before--;
	return before && host[before - 1] == ':' ? before - 1 : length;
}

bool http_is_of_other_site(const char *request, bool is_local)
{
	size_t length = 0;
	const char *site = find_header(request, "Sec-Fetch-Site", &length), *host;

	if (site && strncmp(site, "none", length) != 0 && strncmp(site, "same-origin", length) != 0)
		return true;
	if (find_header(request, "Origin", &length))
		return true;
	host = find_header(request, "Host", &length);
	return is_local && host && !http_is_local_name(host, host_length(host, length));
}

void http_add_head(struct buf *answer, const char *status, const char *type, uint64_t bytes)
{
	buf_printf(answer,
		   "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %llu\r\nX-Content-Type-Options: nosniff\r\n"
		   "Connection: close\r\n\r\n",
		   status, type, (unsigned long long)bytes);
}

/* Sends as much as fits into the socket's buffer at once. A peer that does not read gets no more. */
static void answer_http(const struct status *status, const struct status_client *client)
{
	size_t len = 0;
	const char *page = http_address(client->request.data, &len);
	bool is_found = page && *client->request.data == 'G' && (!len || (len == 7 && !memcmp(page, "metrics", 7)));
	const char *code = is_found ? "200 OK" : "404 Not Found";
	BUF(body);
	BUF(text);

	if (http_is_of_other_site(client->request.data, !status->at.name)) {
		code = "403 Forbidden";
		buf_add_str(&body, "pages of other sites get no metrics: ask this host as localhost\n");
	} else if (is_found) {
		status->answer(status->context, false, &body);
	} else {
		buf_add_str(&body, "only GET /metrics is served here\n");
	}
	http_add_head(&text, code, "text/plain; version=0.0.4", body.len);
	buf_add(&text, body.data, body.len);
	(void)!send(client->fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static void answer_control(const struct status *status, int fd)
{
	BUF(text);

	if (may_ask(fd))
		status->answer(status->context, true, &text);
	(void)!send(fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Also accepts peers that may not ask, so that they do not fill the queue for those that may. */
static void accept_control(const struct status *status)
{
	for (size_t i = 0; i < ACCEPT_AT_ONCE; i++) {
		int fd = accept4(status->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		answer_control(status, fd);
		close(fd);
	}
}

static void serve(const struct status *status, struct status_client *client, uint64_t now_ns)
{
	int got = http_receive(client->fd, REQUEST_MAX, &client->request);

	if (got > 0)
		answer_http(status, client);
	if (got || now_ns >= client->until_ns)
		close_client(client);
}

/* Returns a free place. If there is none, closes the client that has been waiting longest. */
static struct status_client *make_place(struct status *status)
{
	struct status_client *oldest = &status->clients[0];

	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		if (status->clients[i].fd < 0)
			return &status->clients[i];
		if (status->clients[i].until_ns < oldest->until_ns)
			oldest = &status->clients[i];
	}
	close_client(oldest);
	return oldest;
}

/* Serves each client at once: one whose request is already here is answered before a newer client can replace it. */
static void accept_metrics(struct status *status, uint64_t now_ns)
{
	for (size_t i = 0; i < ACCEPT_AT_ONCE; i++) {
		int fd = accept4(status->metrics_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct status_client *client;

		if (fd < 0)
			return;
		client = make_place(status);
		client->fd = fd;
		client->until_ns = now_ns + CLIENT_TIMEOUT_NS + i; /* keeps the order among clients of one step */
		buf_init(&client->request);
		serve(status, client, now_ns);
	}
}

void status_step(struct status *status, uint64_t now_ns)
{
	if (status->control_fd >= 0)
		accept_control(status);
	if (status->metrics_fd < 0)
		return;
	for (size_t i = 0; i < STATUS_CLIENTS; i++)
		if (status->clients[i].fd >= 0)
			serve(status, &status->clients[i], now_ns);
	accept_metrics(status, now_ns);
}

static int read_answer(int fd, struct buf *text)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char bytes[4096];
	ssize_t got;

	do {
		if (poll(&wait, 1, ASK_MS) <= 0)
			return -ETIMEDOUT;
		got = recv(fd, bytes, sizeof(bytes), 0);
		if (got > 0)
			buf_add(text, bytes, (size_t)got);
	} while (got > 0 && text->len < ANSWER_MAX);
	return got < 0 ? -errno : text->len ? 0 : -EACCES;
}

/* Anybody may bind such a name and fill its queue. connect() waits for SO_SNDTIMEO; all together, FULL_NS. */
static int connect_in_time(int fd, const union address *address, socklen_t len)
{
	static uint64_t waited_ns;
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t left_us = waited_ns < FULL_NS ? (FULL_NS - waited_ns) / NS_PER_US : 0;
	struct timeval timeout = {
		.tv_sec = (time_t)(left_us / 1000000),
		/* both fields 0 would mean an endless wait */
		.tv_usec = left_us ? (suseconds_t)(left_us % 1000000) : 1,
	};
	int err;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return -errno;
	err = connect(fd, &address->any, len) < 0 ? -errno : 0;
	if (err == -EAGAIN)
		waited_ns += clock_monotonic_ns() - begin_ns;
	return err;
}

/* Only root's or our own user's answer is trusted. */
int status_ask(int pid, struct buf *ret_text)
{
	union address address;
	socklen_t len = control_address(pid, &address);
	IO_FD(fd) = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : connect_in_time(fd, &address, len);

	if (err)
		return err;
	return may_ask(fd) ? read_answer(fd, ret_text) : -EACCES;
}
