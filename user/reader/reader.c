/* SPDX-License-Identifier: MIT */
#include "reader/reader.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/box.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/packet.h"
#include "duet_agent.h"
#include "hotspot/answers.h"
#include "hotspot/jvmstructs.h"
#include "proc/helper.h"
#include "proc/process.h"
#include "reader/counters.h"
#include "reader/image.h"
#include "reader/java_threads.h"
#include "reader/memory.h"
#include "reader/objects.h"

/* seconds for one piece of work, which usually takes milliseconds; then SIGALRM ends the process */
#define WORK_TIMEOUT_S 10
/* Interval between two looks at the JVM: at first, while it may be starting, and later. */
#define LOOK_FIRST_NS (2 * NS_PER_MS)
#define LOOK_LAST_NS (100 * NS_PER_MS)
#define UNBORN_NS (5 * NS_PER_SEC) /* who has loaded libjvm.so for so long without a JVM has none */
#define UNBORN_SHARE 8 /* until then, the interval is this part of the time since the reader began */
#define STEP_MS 1
#define ARENA_BYTES (1 << 20)
#define NAME_TRIES 10 /* failed looks at the names of threads, one after the other, after which they are not known */
#define NAMES_SINCE 10 /* since this JDK a list of threads can be read without its lock; see the manual for JDK 8 */
#define VIRTUAL_SINCE 21 /* this JDK has virtual threads */
#define LINKED_STEPS 10 /* waits of 1, 2, 4, … ms: the dynamic linker takes a few milliseconds */
#define LINKED_NS NS_PER_SEC /* tables that take longer to read are not HotSpot's */

struct outside {
	int loader;
	int jvm; /* pidfd: readable when the JVM has ended */
	struct image image;
	struct ring ring;
	struct duet_jvm_layout layout; /* the layout that was sent last */
	bool names_threads; /* the JVM exports where the names of its threads are */
	uint32_t names_failed; /* looks at them since one succeeded */
	struct java_threads threads;
	bool described_virtual; /* the last layout was made when the threads' vtable was known */
	uintptr_t unloads_at; /* address of the JVM's counter of unloaded classes; 0: it has none */
	uint64_t unloads; /* its value at unloads_ns */
	uint64_t unloads_ns; /* 0: not read yet */
	uint64_t noted_ns; /* when that value was noted, to be proven with what is read; 0: it was not */
	uint64_t began_ns;
	uint64_t look_ns; /* when to look at the JVM again */
	uint64_t step_ns; /* interval of later looks */
};

union packet {
	struct duet_message head;
	struct duet_message_start start;
	struct duet_message_want want;
	struct duet_message_finish rest;
};

static int send_packet(int to, struct duet_message *message, enum duet_message_type type, size_t size)
{
	message->size = (uint32_t)size;
	message->type = (uint16_t)type;
	message->version = DUET_AGENT_VERSION;
	return send(to, message, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -EPIPE;
}

/* Returns the length; 0 when the loader has closed the socket. */
static ssize_t receive(const struct outside *outside, union packet *packet, int *ret_fd)
{
	const struct iovec part = {packet, sizeof(*packet)};
	ssize_t len = packet_receive_parts(outside->loader, &part, 1, 0, ret_fd);

	return len < (ssize_t)sizeof(packet->head) || packet->head.size != (size_t)len ? 0 : len;
}

/* Says hello, waits for START and maps the ring. STARTED has a field for why the JVM cannot be read. */
static int begin(struct outside *outside, int error, const char *why)
{
	struct duet_message_hello hello = {0};
	struct duet_message_started started = {.engine = DUET_ENGINE_NONE};
	union packet packet;
	int fd, err;

	snprintf(hello.vm_name, sizeof(hello.vm_name), "%s", outside->image.name);
	snprintf(hello.vm_version, sizeof(hello.vm_version), "%s", outside->image.release);
	err = send_packet(outside->loader, &hello.head, DUET_MESSAGE_HELLO, sizeof(hello));
	if (err)
		return err;
	if (!receive(outside, &packet, &fd) || packet.head.type != DUET_MESSAGE_START || fd < 0)
		return -EPROTO;
	err = error ? error : ring_map(&outside->ring, fd, packet.start.ring_bytes, &why);
	close(fd);
	started.error = err;
	snprintf(started.why, sizeof(started.why), "%s", err ? why : "");
	(void)send_packet(outside->loader, &started.head, DUET_MESSAGE_STARTED, sizeof(started));
	return err;
}

/* Waits for wait_ms, or until the loader or the JVM has ended. Returns true if one has. */
static bool is_over(const struct outside *outside, int wait_ms)
{
	struct pollfd fds[] = {{.fd = outside->loader}, {.fd = outside->jvm, .events = POLLIN}};

	return poll(fds, 2, wait_ms) > 0 && (fds[0].revents || fds[1].revents);
}

/* Compares with the last value that was read or proven. */
static bool is_of_now(const struct outside *outside, uint32_t unloads)
{
	return !unloads || (uint32_t)(outside->unloads + 1) == unloads;
}

/*
 * HotSpot counts a class as unloaded before it frees the class's memory. So while the counter does not change, an
 * address at which a sample has seen a method is still the same method's. Reports a change to the loader. Returns true
 * if the counter has the value that it had for the sample, or, if that is not known, if it has not changed since the
 * last call.
 */
static bool is_loaded(void *context, uint32_t unloads)
{
	struct outside *outside = context;
	struct duet_unloaded unloaded = {.until_ns = outside->unloads_ns};
	struct ring_part part = {&unloaded, sizeof(unloaded)};
	uint64_t now_ns = clock_monotonic_ns(), count;

	if (outside->noted_ns) {
		outside->unloads_ns = outside->noted_ns;
		outside->noted_ns = 0;
		return is_of_now(outside, unloads);
	}
	if (!outside->unloads_at || memory_copy(&count, outside->unloads_at, sizeof(count)) < sizeof(count))
		return true;
	if (outside->unloads_ns && count == outside->unloads) {
		outside->unloads_ns = now_ns;
		return is_of_now(outside, unloads);
	}
	unloaded.since_ns = clock_monotonic_ns();
	unloaded.unloads = count + 1;
	if (!ring_write(&outside->ring, DUET_AGENT_UNLOADED, &part, 1, RING_WAIT))
		return false;
	outside->unloads = count;
	outside->unloads_ns = now_ns;
	return unloads && is_of_now(outside, unloads);
}

/*
 * Makes the counter's value a part of what will be proven, which saves the system call that is_loaded() makes else. If
 * the last proof has failed, the value may have been the reason, so it is read again.
 */
static void note_loaded(void *context)
{
	struct outside *outside = context;
	bool has_failed = outside->noted_ns;

	outside->noted_ns = 0;
	if (has_failed)
		(void)is_loaded(outside, 0);
	if (!outside->unloads_at || !outside->unloads_ns)
		return;
	outside->noted_ns = clock_monotonic_ns();
	memory_note(outside->unloads_at, &outside->unloads, sizeof(outside->unloads));
}

/* How BPF finds a carrier's virtual thread. All 0 until carriers can be distinguished from other memory. */
static void describe_virtual(const struct outside *outside, struct duet_jvm_virtual *ret)
{
	struct duet_jvm_virtual how;
	bool reads_objects;

	if (outside->image.java_version < VIRTUAL_SINCE || !outside->threads.vtable ||
	    !jvmstructs_virtual(&how, &reads_objects))
		return;
	how.thread_vtable = outside->threads.vtable;
	if (reads_objects)
		objects_describe(&how);
	if (how.oop_bytes || (how.thread_owner != DUET_JVM_NO_FIELD && how.thread_entry != DUET_JVM_NO_FIELD))
		*ret = how;
}

static bool report_thread(void *context, uint32_t tid, const char *name, bool doubt)
{
	struct outside *outside = context;
	struct duet_thread record = {
		.time_ns = clock_monotonic_ns(), .tid = tid, .ended = !name, .doubted = doubt};
	struct ring_part parts[] = {{&record, sizeof(record)}, {name, name ? strlen(name) : 0}};

	record.name_len = (uint16_t)parts[1].bytes;
	return ring_write(&outside->ring, DUET_AGENT_THREAD, parts, 2, RING_DROP);
}

/* Without the names, the loader has those of the kernel. */
static void give_up_names(struct outside *outside)
{
	struct duet_message message = {0};

	outside->names_threads = false;
	(void)send_packet(outside->loader, &message, DUET_MESSAGE_UNNAMED, sizeof(message));
}

static void look_at_threads(struct outside *outside, uint64_t now_ns)
{
	int err;

	memory_renew();
	err = java_threads_step(&outside->threads, now_ns, report_thread, outside);
	outside->names_failed = err == -ENOTSUP ? outside->names_failed + 1 : 0;
	if (outside->names_failed == NAME_TRIES)
		give_up_names(outside);
}

/* A JVM has the counter before it has code, so it is searched once. */
static uintptr_t find_unloads(struct outside *outside)
{
	static const char name[] = "java.cls.unloadedClasses";
	uintptr_t at = jvmstructs_counter(name);

	if (at || outside->layout.call_stub_return)
		return at ? at : outside->layout.unloads;
	return counters_find(outside->image.libjvm, name);
}

/* Sends a changed layout, without jmethodIDs: they are made on request, and lead nowhere since JDK 26. */
static void send_layout(struct outside *outside)
{
	struct duet_jvm_layout layout;
	struct ring_part part = {&layout, sizeof(layout)};

	memory_renew();
	if (!jvmstructs_renew_heaps() || !jvmstructs_layout(&layout, outside->image.java_version))
		return;
	layout.holder_ids = DUET_JVM_NO_FIELD;
	layout.unloads = find_unloads(outside);
	describe_virtual(outside, &layout.virtual_threads);
	outside->described_virtual = outside->threads.vtable;
	if (!memcmp(&layout, &outside->layout, sizeof(layout)))
		return;
	if (!outside->layout.call_stub_return) {
		outside->unloads_at = layout.unloads;
		(void)is_loaded(outside, 0); /* read the counter before any name */
		answer_heaps(&(struct answers){.ring = &outside->ring});
	}
	if (ring_write(&outside->ring, DUET_AGENT_LAYOUT, &part, 1, RING_WAIT))
		outside->layout = layout;
}

/* While there is no JVM, looks become rarer: it may never come. */
static uint64_t next_step_ns(struct outside *outside, uint64_t now_ns)
{
	uint64_t step_ns = outside->layout.call_stub_return ? 2 * outside->step_ns
							    : (now_ns - outside->began_ns) / UNBORN_SHARE;

	outside->step_ns = step_ns < LOOK_FIRST_NS ? LOOK_FIRST_NS : step_ns < LOOK_LAST_NS ? step_ns : LOOK_LAST_NS;
	return outside->step_ns;
}

/* Returns false, and says so, if the process is none. */
static bool is_jvm(const struct outside *outside, uint64_t now_ns)
{
	struct duet_message message = {0};

	if (outside->layout.call_stub_return || now_ns - outside->began_ns < UNBORN_NS)
		return true;
	(void)send_packet(outside->loader, &message, DUET_MESSAGE_NO_JVM, sizeof(message));
	return false;
}

/*
 * A JVM makes the first code of each kind when it needs it. After that its layout does not change. Reading a layout
 * walks over all code. While a kind of code is missing, there is little code.
 */
static void look(struct outside *outside, uint64_t now_ns)
{
	const struct duet_jvm_layout *layout = &outside->layout;

	outside->look_ns = now_ns + next_step_ns(outside, now_ns);
	if (outside->names_threads && layout->call_stub_return)
		look_at_threads(outside, now_ns);
	if (!layout->compiled_name || !layout->native_name || !layout->frameless_names[0] ||
	    (outside->threads.vtable && !outside->described_virtual))
		send_layout(outside);
	(void)is_loaded(outside, 0);
}

/* A process that ends loses its memory before its pidfd shows that. */
static bool is_there(void *context)
{
	const struct outside *outside = context;
	char byte;

	return memory_copy(&byte, outside->image.libjvm, 1);
}

/* Returns false when the stay is over. */
static bool await_room(const struct outside *outside)
{
	bool goes_on = true;

	if (ring_has_room(&outside->ring))
		return true;
	alarm(0); /* the loader may be stopped for longer than the alarm */
	while (goes_on && !ring_has_room(&outside->ring))
		goes_on = !is_over(outside, STEP_MS);
	alarm(WORK_TIMEOUT_S);
	return goes_on;
}

/* Returns how many of the WANTs from the first one on are for methods, and for the same moment. */
static uint32_t methods_wanted(const struct duet_want *wants, uint32_t count, struct metadata_key *keys)
{
	uint32_t found = 0;

	for (; found < count && wants[found].kind == DUET_WANT_METHOD && wants[found].unloads == wants[0].unloads;
	     found++)
		keys[found] = (struct metadata_key){wants[found].key, wants[found].id};
	return found;
}

static void answer(struct outside *outside, const struct duet_message_want *want)
{
	uint32_t count = want->count < DUET_WANTS_AT_ONCE ? want->count : DUET_WANTS_AT_ONCE, some;
	struct metadata_key keys[DUET_WANTS_AT_ONCE];
	struct answers answers = {
		.ring = &outside->ring,
		.note_loaded = note_loaded,
		.is_loaded = is_loaded,
		.is_there = is_there,
		.context = outside,
	};

	for (uint32_t i = 0; i < count; i += some ? some : 1) {
		const struct duet_want *one = &want->wants[i];

		if (!await_room(outside))
			return;
		answers.unloads = one->unloads;
		some = methods_wanted(one, count - i, keys);
		if (some)
			answer_methods(&answers, keys, some);
		else
			answer_code(&answers, one->key, one->id, clock_monotonic_ns());
		outside->noted_ns = 0;
	}
}

/* Returns false when the stay is over. */
static bool serve_packet(struct outside *outside)
{
	struct duet_message stopped = {0};
	union packet packet;
	int fd;

	if (!receive(outside, &packet, &fd))
		return false;
	io_close(&fd);
	if (packet.head.type == DUET_MESSAGE_WANT && packet.head.size == sizeof(packet.want))
		answer(outside, &packet.want);
	if (packet.head.type == DUET_MESSAGE_REST && packet.head.size == sizeof(packet.rest))
		outside->look_ns = packet.rest.ended_ns;
	if (packet.head.type != DUET_MESSAGE_STOP)
		return true;
	(void)send_packet(outside->loader, &stopped, DUET_MESSAGE_STOPPED, sizeof(stopped));
	return false;
}

static void serve(struct outside *outside)
{
	struct pollfd fds[] = {{.fd = outside->loader, .events = POLLIN}, {.fd = outside->jvm, .events = POLLIN}};
	bool goes_on = true;

	outside->began_ns = clock_monotonic_ns();
	while (goes_on) {
		uint64_t now_ns = clock_monotonic_ns(), look_ns = outside->look_ns;

		alarm(0);
		if (poll(fds, 2, look_ns > now_ns ? (int)((look_ns - now_ns) / NS_PER_MS) + 1 : 0) < 0)
			return;
		alarm(WORK_TIMEOUT_S);
		if (fds[0].revents)
			goes_on = serve_packet(outside);
		if (fds[1].revents)
			return;
		now_ns = clock_monotonic_ns();
		if (now_ns >= outside->look_ns) {
			look(outside, now_ns);
			goes_on = goes_on && is_jvm(outside, now_ns);
		}
	}
}

/* The pidfd is opened before the start time is compared, so that it is not of a reused pid. */
static int open_jvm(pid_t pid, uint64_t start_ticks)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t ticks;
	int err = fd < 0 ? -errno : process_read_start_ticks(pid, &ticks);

	if (!err && ticks != start_ticks)
		err = -ESRCH;
	if (!err)
		return fd;
	io_close(&fd);
	return err;
}

/* In a process that has just mapped its libjvm.so, the dynamic linker has not relocated the tables yet. */
static int open_image(struct outside *outside, pid_t pid, const char **ret_why)
{
	uint64_t end_ns = clock_monotonic_ns() + LINKED_NS;
	int err = image_open(&outside->image, pid, ret_why);

	if (err && machine_foreign(pid)) {
		*ret_why = machine_foreign(pid);
		return -READER_FOREIGN;
	}
	for (int i = 0; i < LINKED_STEPS && err && err != -EPERM && clock_monotonic_ns() < end_ns &&
			!is_over(outside, STEP_MS << i);
	     i++)
		err = image_open(&outside->image, pid, ret_why);
	return err;
}

static void run(int loader, pid_t pid, uint64_t start_ticks)
{
	struct outside outside = {.loader = loader, .step_ns = LOOK_FIRST_NS};
	const char *why = "it has ended";
	int err;

	prctl(PR_SET_NAME, "duet-outside");
	mallopt(M_MMAP_THRESHOLD, ARENA_BYTES); /* memory for a record is allocated and freed for each answer */
	mallopt(M_TRIM_THRESHOLD, ARENA_BYTES);
	alarm(WORK_TIMEOUT_S);
	outside.jvm = open_jvm(pid, start_ticks);
	err = outside.jvm < 0 ? outside.jvm : rights_keep(RIGHT(CAP_SYS_PTRACE));
	if (!err)
		err = open_image(&outside, pid, &why);
	if (!err)
		outside.names_threads = java_threads_open(outside.image.java_version);
	err = begin(&outside, err, why);
	if (!err) /* from here on it opens nothing */
		err = box_enter(BOX_TALK | BOX_PEEK, &(struct box_limits){.peeked = pid});
	if (!err && !outside.names_threads && outside.image.java_version >= NAMES_SINCE)
		give_up_names(&outside);
	if (!err)
		serve(&outside);
	java_threads_release(&outside.threads);
}

/*
 * The reader becomes a child of the helper's supervisor, which collects it, and has the socket alone. Its pid, or -1.
 * The helper waits for nobody, so that it answers in time on a busy machine, too.
 */
static pid_t fork_reader(int socket, pid_t pid, uint64_t start_ticks)
{
	pid_t reader = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

	if (reader)
		return reader;
	dup2(socket, 3);
	closefrom(4);
	run(3, pid, start_ticks);
	_exit(0);
}

/* Runs in the helper. The answer is the reader's pid and the other end of its socket. */
static int fork_work(const struct helper_task *task, struct helper_answer *answer)
{
	int pair[2];
	pid_t reader;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	reader = fork_reader(pair[1], task->charge->pid, task->number);
	close(pair[1]);
	answer->fd = pair[0];
	buf_add(&answer->text, (const char *)&reader, sizeof(reader));
	return reader > 0 ? 0 : -EAGAIN;
}

int reader_start(const struct charge *charge, uint64_t start_ticks, pid_t *ret_reader)
{
	const struct helper_task task = {
		.work = fork_work, .charge = charge, .fd = -1, .path = "", .number = start_ticks};
	struct helper_answer answer;
	int fd, err = helper_run(&task, &answer);

	if (!err && (answer.fd < 0 || answer.text.len != sizeof(*ret_reader)))
		err = -EAGAIN;
	if (!err && fcntl(answer.fd, F_SETFL, O_NONBLOCK) < 0)
		err = -errno;
	if (!err) {
		memcpy(ret_reader, answer.text.data, sizeof(*ret_reader));
		fd = answer.fd;
		answer.fd = -1;
	}
	helper_answer_release(&answer);
	return err ? err : fd;
}
