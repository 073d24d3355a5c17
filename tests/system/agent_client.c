/* SPDX-License-Identifier: MIT */
/*
 * The agent's other end, as small as it can be: attaches to the control socket,
 * makes the ring, takes records for some seconds, stops, prints what came.
 *
 *   agent_client NAME SECRET SECONDS bpf|ctimer|itimer INTERVAL_NS [top]
 *
 * With `bpf` there is no BPF here: the client itself signals the JVM's threads in
 * turn, one each interval, with a cookie. `top` prints the hottest leaf methods too.
 * Exit code: 0 all well, 1 the handshake failed, 2 usage, 3 a record was malformed.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "duet_agent.h"
#include "duet_record.h"
#include "duet_ring.h"

#define SAMPLE_BYTES (4u << 20)
#define METADATA_BYTES (8u << 20)
#define MAX_STATUS 16 /* failure codes 0 … -15 */
#define MAX_METHODS 65536
#define MAX_TIDS 4096
#define CONNECT_TRIES 300

struct method {
	uint64_t id;
	uint64_t samples; /* as the leaf */
	unsigned int mentions;
	bool asked;
	char *name;
};

static struct {
	unsigned char *page;
	unsigned char *lanes[DUET_LANES];
	uint64_t lane_bytes[DUET_LANES];
	uint64_t tails[DUET_LANES];
	uint64_t records[DUET_AGENT_RECORD_TYPE_MAX];
	uint64_t failures[MAX_STATUS];
	uint64_t walked, no_thread, java_frames, native_frames, weight_ns;
	uint64_t first_sample_ns;
	uint64_t signals;
	unsigned int malformed;
} client;

static struct method methods[MAX_METHODS];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct method *find_method(uint64_t id)
{
	size_t slot = (id * 0x9e3779b97f4a7c15ull) >> 48;

	for (size_t i = 0; i < MAX_METHODS; i++) {
		struct method *method = &methods[(slot + i) % MAX_METHODS];

		if (!method->id || method->id == id) {
			method->id = id;
			return method;
		}
	}
	return &methods[0];
}

/* ---- ring ---- */

static int make_ring(uint64_t *ret_bytes)
{
	const uint64_t sizes[DUET_LANES] = {SAMPLE_BYTES, METADATA_BYTES};
	uint64_t total = DUET_RING_PAGE + SAMPLE_BYTES + METADATA_BYTES, offset = DUET_RING_PAGE;
	int fd = memfd_create("duet-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct duet_ring_page *page;

	if (fd < 0 || ftruncate(fd, (off_t)total) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -1;
	page = mmap(NULL, DUET_RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	page->magic = DUET_RING_MAGIC;
	page->version = DUET_AGENT_VERSION;
	page->total_bytes = total;
	client.page = (unsigned char *)page;
	for (int i = 0; i < DUET_LANES; i++) {
		unsigned char *lane = mmap(NULL, 2 * sizes[i], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int half = 0; half < 2; half++)
			mmap(lane + (size_t)half * sizes[i], sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			     fd, (off_t)offset);
		page->lanes[i].offset = offset;
		page->lanes[i].bytes = sizes[i];
		client.lanes[i] = lane;
		client.lane_bytes[i] = sizes[i];
		offset += sizes[i];
	}
	*ret_bytes = total;
	return fd;
}

/* ---- records ---- */

static void take_sample(const unsigned char *payload, size_t size)
{
	const struct duet_java_sample *sample = (const void *)payload;
	const struct duet_java_frame *frames;

	if (size < sizeof(*sample) ||
	    size < sizeof(*sample) + sample->java_depth * sizeof(*frames)) {
		client.malformed++;
		return;
	}
	if (!client.first_sample_ns)
		client.first_sample_ns = sample->time_ns;
	client.java_frames += sample->java_depth;
	if (sample->flags & DUET_JAVA_NO_THREAD)
		client.no_thread++;
	else if (sample->status > 0)
		client.walked++;
	else if (sample->status > -MAX_STATUS)
		client.failures[-sample->status]++;
	frames = (const void *)(payload + sizeof(*sample));
	for (uint32_t i = 0; i < sample->java_depth; i++)
		find_method(frames[i].method)->mentions++;
	if (sample->java_depth)
		find_method(frames[0].method)->samples++;
}

/* Takes a sample of a timer engine. Without unwind tables its walks end early, and AsyncGetCallTrace has been asked. */
static void take_walk(const unsigned char *payload, size_t size)
{
	const struct duet_sample *sample = (const void *)payload;

	if (size < sizeof(*sample) || size != sample->head.size ||
	    size != sizeof(*sample) + sample->user_depth * 8u + (sample->id_depth + 1u) / 2 * 8u) {
		client.malformed++;
		return;
	}
	client.weight_ns += sample->weight;
	client.native_frames += sample->user_depth;
}

static void take_method(const unsigned char *payload, size_t size)
{
	const struct duet_method *record = (const void *)payload;
	const char *text = (const char *)(record + 1);
	struct method *method;

	if (size < sizeof(*record) || size < sizeof(*record) + record->class_len + record->name_len +
						      record->signature_len + record->source_len +
						      record->line_count * sizeof(struct duet_line)) {
		client.malformed++;
		return;
	}
	method = find_method(record->method);
	free(method->name);
	if (asprintf(&method->name, "%.*s.%.*s", record->class_len, text, record->name_len, text + record->class_len) <
	    0)
		method->name = NULL;
}

static void take_code(const unsigned char *payload, size_t size)
{
	const struct duet_code_load *load = (const void *)payload;
	const struct duet_code_pc *pcs = (const void *)(load + 1);

	if (size < sizeof(*load) || size < sizeof(*load) + load->pc_count * sizeof(struct duet_code_pc) +
						    load->frame_count * sizeof(struct duet_java_frame)) {
		client.malformed++;
		return;
	}
	for (uint32_t i = 0; i < load->pc_count; i++)
		if (pcs[i].frame + pcs[i].depth > load->frame_count || (i && pcs[i].offset <= pcs[i - 1].offset))
			client.malformed++;
}

static void take_record(uint16_t type, const unsigned char *payload, size_t size)
{
	if (type < DUET_AGENT_RECORD_TYPE_MAX)
		client.records[type]++;
	else
		client.malformed++;
	if (type == DUET_AGENT_JAVA_SAMPLE)
		take_sample(payload, size);
	else if (type == DUET_AGENT_SAMPLE)
		take_walk(payload, size);
	else if (type == DUET_AGENT_METHOD)
		take_method(payload, size);
	else if (type == DUET_AGENT_CODE_LOAD)
		take_code(payload, size);
	else if (type == DUET_AGENT_THREAD && getenv("AGENT_CLIENT_THREADS"))
		printf("thread %u %s '%.*s'\n", ((const struct duet_thread *)(const void *)payload)->tid,
		       ((const struct duet_thread *)(const void *)payload)->ended ? "ended" : "named",
		       ((const struct duet_thread *)(const void *)payload)->name_len,
		       (const char *)payload + sizeof(struct duet_thread));
}

static void drain(void)
{
	struct duet_ring_page *page = (void *)client.page;

	for (int i = 0; i < DUET_LANES; i++) {
		for (;;) {
			unsigned char *at = client.lanes[i] + (client.tails[i] & (client.lane_bytes[i] - 1));
			struct duet_ring_record *record = (void *)at;
			uint32_t size = __atomic_load_n(&record->size, __ATOMIC_ACQUIRE);

			if (!size)
				break;
			if (size > DUET_RING_MAX_RECORD || size % DUET_RING_ALIGN) {
				client.malformed++;
				break;
			}
			take_record(record->type, at + sizeof(*record), size - sizeof(*record));
			memset(at, 0, size);
			client.tails[i] += size;
			__atomic_store_n(&page->lanes[i].tail, client.tails[i], __ATOMIC_RELEASE);
		}
	}
}

/* ---- signals ---- */

static size_t list_threads(int pid, int *tids)
{
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && count < MAX_TIDS && (entry = readdir(tasks)) != NULL)
		if (atoi(entry->d_name) > 0)
			tids[count++] = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return count;
}

static void signal_next(int pid, int signo)
{
	static int tids[MAX_TIDS];
	static size_t count, next;
	siginfo_t info = {.si_signo = signo, .si_code = SI_QUEUE};

	if (next >= count) {
		count = list_threads(pid, tids);
		next = 0;
	}
	if (!count)
		return;
	info.si_value.sival_ptr = (void *)(uintptr_t)(++client.signals);
	syscall(SYS_rt_tgsigqueueinfo, pid, tids[next++], signo, &info);
}

/* ---- handshake ---- */

static int connect_agent(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strnlen(name, DUET_NAME_MAX));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path + 1, name, strnlen(name, DUET_NAME_MAX));
	for (int i = 0; i < CONNECT_TRIES; i++) {
		if (!connect(fd, (struct sockaddr *)&address, size))
			return fd;
		usleep(10000);
	}
	return -1;
}

/* Requests the names of methods and code in samples. */
static void ask(int peer)
{
	struct duet_message_want message = {
		.head = {sizeof(message), DUET_MESSAGE_WANT, DUET_AGENT_VERSION},
	};

	for (size_t i = 0; i < MAX_METHODS && message.count < DUET_WANTS_AT_ONCE; i++) {
		if (!methods[i].id || methods[i].asked)
			continue;
		methods[i].asked = true;
		message.wants[message.count++] = (struct duet_want){.key = methods[i].id, .kind = DUET_WANT_METHOD};
	}
	if (message.count)
		send(peer, &message, sizeof(message), MSG_NOSIGNAL);
}

static int send_start(int peer, int ring_fd, struct duet_message_start *start)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iov = {start, sizeof(*start)};
	struct msghdr header = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &ring_fd, sizeof(int));
	return sendmsg(peer, &header, 0) == sizeof(*start) ? 0 : -1;
}

static int prove(int peer, const char *secret)
{
	struct duet_message_proof proof = {.head = {sizeof(proof), DUET_MESSAGE_PROOF, DUET_AGENT_VERSION}};

	memcpy(proof.secret, secret, strnlen(secret, DUET_SECRET_DIGITS));
	return send(peer, &proof, sizeof(proof), MSG_NOSIGNAL) == sizeof(proof) ? 0 : -1;
}

static int handshake(int peer, const char *secret, const char *engine, uint64_t interval_ns,
		     struct duet_message_hello *hello, struct duet_message_started *started)
{
	struct duet_message_start start = {
		.head = {sizeof(start), DUET_MESSAGE_START, DUET_AGENT_VERSION},
		.event_count = 1,
		.events = {{.interval = interval_ns, .kind = DUET_AGENT_EVENT_CLOCK}},
		.java_depth = DUET_JAVA_DEPTH,
		.engine = !strcmp(engine, "ctimer")   ? DUET_ENGINE_CTIMER
			  : !strcmp(engine, "itimer") ? DUET_ENGINE_ITIMER
						      : DUET_ENGINE_BPF,
	};
	int ring_fd = make_ring(&start.ring_bytes);

	if (ring_fd < 0 || prove(peer, secret) || recv(peer, hello, sizeof(*hello), 0) != sizeof(*hello) ||
	    send_start(peer, ring_fd, &start))
		return -1;
	close(ring_fd);
	return recv(peer, started, sizeof(*started), 0) == sizeof(*started) ? 0 : -1;
}

/* ---- report ---- */

static const char *const counter_texts[] = {
#define TEXT(name, loss, text) text,
	DUET_AGENT_COUNTERS(TEXT)
#undef TEXT
};

static void report(void)
{
	const struct duet_ring_page *page = (const void *)client.page;
	uint64_t mentioned = 0, named = 0, named_all = 0;

	for (size_t i = 0; i < MAX_METHODS; i++) {
		named_all += methods[i].name != NULL;
		mentioned += methods[i].mentions > 0;
		named += methods[i].mentions > 0 && methods[i].name;
	}
	printf("samples %lu walked %lu no_thread %lu", (unsigned long)client.records[DUET_AGENT_JAVA_SAMPLE],
	       (unsigned long)client.walked, (unsigned long)client.no_thread);
	for (int i = 0; i < MAX_STATUS; i++)
		if (client.failures[i])
			printf(" [-%d] %lu", i, (unsigned long)client.failures[i]);
	printf("\nframes java %lu native %lu weight_ms %lu signals %lu\n", (unsigned long)client.java_frames,
	       (unsigned long)client.native_frames, (unsigned long)(client.weight_ns / 1000000),
	       (unsigned long)client.signals);
	printf("methods %lu sampled %lu of those named %lu\n", (unsigned long)named_all, (unsigned long)mentioned,
	       (unsigned long)named);
	printf("code_load %lu code_unload %lu stub %lu heap %lu thread %lu malformed %u\n",
	       (unsigned long)client.records[DUET_AGENT_CODE_LOAD],
	       (unsigned long)client.records[DUET_AGENT_CODE_UNLOAD], (unsigned long)client.records[DUET_AGENT_STUB],
	       (unsigned long)client.records[DUET_AGENT_CODE_HEAP], (unsigned long)client.records[DUET_AGENT_THREAD],
	       client.malformed);
	for (size_t i = 0; i < DUET_AGENT_COUNTER_MAX; i++)
		if (page->counters[i])
			printf("%lu %s\n", (unsigned long)page->counters[i], counter_texts[i]);
}

static int by_samples(const void *left, const void *right)
{
	const struct method *a = left, *b = right;

	return (a->samples < b->samples) - (a->samples > b->samples);
}

static void report_top(void)
{
	qsort(methods, MAX_METHODS, sizeof(methods[0]), by_samples);
	for (int i = 0; i < 20 && methods[i].samples; i++)
		printf("%6.2f %% %s\n",
		       100.0 * (double)methods[i].samples / (double)(client.walked ? client.walked : 1),
		       methods[i].name ? methods[i].name : "?");
}

int main(int argc, char **argv)
{
	struct duet_message stop = {sizeof(stop), DUET_MESSAGE_STOP, DUET_AGENT_VERSION}, stopped = {0};
	struct duet_message_started started;
	struct duet_message_hello hello;
	uint64_t begin = now_ns(), interval_ns, end, ready;
	bool by_signal;
	int peer;

	if (argc < 6) {
		fprintf(stderr, "usage: agent_client NAME SECRET SECONDS bpf|ctimer|itimer INTERVAL_NS [top]\n");
		return 2;
	}
	interval_ns = strtoull(argv[5], NULL, 10);
	by_signal = !strcmp(argv[4], "bpf");
	peer = connect_agent(argv[1]);
	if (peer < 0 || handshake(peer, argv[2], argv[4], interval_ns, &hello, &started)) {
		fprintf(stderr, "agent_client: no handshake with %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	ready = now_ns();
	printf("pid %u %s %s asgct %u; error %d signal %u %s\n", hello.pid, hello.vm_name, hello.vm_version,
	       hello.has_asgct, started.error, started.signo, started.why);
	if (started.error)
		return 1;
	end = ready + (uint64_t)(atof(argv[3]) * 1e9);
	while (now_ns() < end) {
		struct timespec pause = {.tv_nsec = by_signal ? (long)interval_ns : 5000000};
		struct pollfd gone = {.fd = peer};

		if (by_signal)
			signal_next((int)hello.pid, (int)started.signo);
		nanosleep(&pause, NULL);
		drain();
		ask(peer);
		if (poll(&gone, 1, 0) > 0)
			break;
	}
	ask(peer);
	send(peer, &stop, sizeof(stop), MSG_NOSIGNAL);
	for (struct pollfd answer = {.fd = peer, .events = POLLIN}; poll(&answer, 1, 5) == 0;)
		drain();
	recv(peer, &stopped, sizeof(stopped), 0);
	drain();
	printf("stopped %d; handshake %lu ms, first sample after %ld ms, stop took %lu ms\n",
	       stopped.type == DUET_MESSAGE_STOPPED, (unsigned long)((ready - begin) / 1000000),
	       client.first_sample_ns ? (long)((int64_t)(client.first_sample_ns - begin) / 1000000) : -1,
	       (unsigned long)((now_ns() - end) / 1000000));
	report();
	if (argc > 6)
		report_top();
	return client.malformed ? 3 : 0;
}
