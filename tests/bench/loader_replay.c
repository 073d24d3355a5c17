/* SPDX-License-Identifier: MIT */
/*
 *   loader_replay [SECONDS [STACKS [LIBJVM]]]
 *
 * What the loader makes of a large host: 128 CPUs at 1 kHz, all busy with 500 JVMs of 20 threads and STACKS distinct
 * stacks. The records are made up, all that happens to them is real: validate, join, splice, resolve, profile_add,
 * in the order of session.c, 50 ms of the host at a time. SECONDS are the host's; only the loader's work is timed.
 *
 * A stack has 14 to 25 compiled frames, half of them with something inlined, one in ten interpreted. Every seventh
 * sample hits the kernel, below libc and libjvm; every tenth a thread of the JVM itself, GC or compiler.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "collect/records/validate.h"
#include "join/join.h"
#include "join/resolve.h"
#include "profile/profile.h"

#define CPUS 128
#define JVMS 500
#define THREADS 20 /* of a JVM */
#define METHODS 500
#define PCS 4 /* debug information entries of a method */
#define PERIOD_NS NS_PER_MS
#define WINDOW_NS (50 * NS_PER_MS) /* session.c empties the rings this often */
#define WINDOW_SAMPLES (WINDOW_NS / PERIOD_NS * CPUS)
#define MAX_RECORD 2048 /* bytes, of either half */
#define FIRST_PID 10000000 /* above any real pid: nothing of /proc is read */
#define FIRST_ADDRESS 0x7e0000000000ull
#define CODE_BYTES 1024
#define KERNEL_TEXT 0xffffffff81000000ull
#define WARM_SECONDS 10 /* of the host: time to meet nearly every stack */

struct java_process {
	struct origin origin; /* first: the join passes it on */
	struct jvm *jvm;
};

struct window {
	uint32_t count;
	uint32_t jvm[WINDOW_SAMPLES];
	uint32_t java_bytes[WINDOW_SAMPLES];
	union {
		struct duet_sample sample;
		char bytes[MAX_RECORD];
	} kernel[WINDOW_SAMPLES];
	union {
		struct duet_java_sample sample;
		char bytes[MAX_RECORD];
	} agent[WINDOW_SAMPLES];
};

struct replay {
	struct java_process jvms[JVMS];
	struct process_table processes;
	struct symbols *symbols;
	struct profile profile;
	struct resolver resolver;
	struct join *join;
	struct mapping libc, libjvm; /* code of real files: every process has them at our own addresses */
	uint32_t stacks; /* of a JVM */
	uint64_t now_ns;
	uint64_t random;
	uint64_t refused, lost, joined, samples;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "loader_replay: %s\n", what);
	exit(1);
}

static void *must(void *made)
{
	if (!made)
		die("out of memory");
	return made;
}

/* ---- the host ---- */

/* The form of a stack depends on its number only. */
static uint32_t pick(uint64_t of, uint64_t at, uint32_t below)
{
	return (uint32_t)(hash_u64(of << 32 ^ at) % below);
}

static uint32_t draw(struct replay *replay, uint32_t below)
{
	replay->random = hash_u64(replay->random + 0x9e3779b97f4a7c15ull);
	return (uint32_t)(replay->random % below);
}

static uint64_t method_id(uint32_t jvm, uint32_t method)
{
	return (uint64_t)(jvm + 1) << 32 | method;
}

static uint64_t code_address(uint32_t method)
{
	return FIRST_ADDRESS + (uint64_t)method * CODE_BYTES;
}

/* The debug information of one pc: the method itself, in odd ones below a method that was inlined there. */
static uint32_t compiled_frames(uint32_t jvm, uint32_t method, uint32_t pc, struct duet_java_frame *frames)
{
	uint32_t depth = 0;

	if (pc % 2)
		frames[depth++] = (struct duet_java_frame){method_id(jvm, (method * 7 + 3) % METHODS), 5, 0};
	frames[depth++] = (struct duet_java_frame){method_id(jvm, method), (int32_t)pc * 10, 0};
	return depth;
}

static void apply(struct replay *replay, uint32_t jvm, uint16_t type, const void *record, size_t bytes)
{
	if (!agent_record_check(type, record, bytes) ||
	    jvm_apply(replay->jvms[jvm].jvm, type, record, (uint32_t)bytes) < 0)
		die("an agent record of ours was refused");
}

/* A fifth are the JDK's, of the same name in every JVM. */
static void publish_method(struct replay *replay, uint32_t jvm, uint32_t method)
{
	union {
		struct duet_method head;
		char bytes[512];
	} record = {.head = {.method = method_id(jvm, method), .line_count = 2}};
	char *text = (char *)(&record.head + 1), *start = text;
	const struct duet_line lines[] = {{0, method}, {8, method + 1}};

	if (method < METHODS / 5)
		text += sprintf(text, "Ljava/util/concurrent/Class%u;", method);
	else
		text += sprintf(text, "Lcom/example/service%u/Component%u;", jvm, method / 10);
	record.head.class_len = (uint16_t)(text - start);
	record.head.name_len = (uint16_t)sprintf(text, "method%u", method);
	text += record.head.name_len;
	record.head.signature_len = (uint16_t)sprintf(text, "(Ljava/lang/Object;I)V");
	text += record.head.signature_len;
	record.head.source_len = (uint16_t)sprintf(text, "Source%u.java", method / 10);
	text += record.head.source_len;
	memcpy(text, lines, sizeof(lines));
	text += sizeof(lines);
	apply(replay, jvm, DUET_AGENT_METHOD, &record, (size_t)(text - record.bytes + 7) & ~7ull);
}

static void publish_code(struct replay *replay, uint32_t jvm, uint32_t method)
{
	struct {
		struct duet_code_load head;
		struct duet_code_pc pcs[PCS];
		struct duet_java_frame frames[2 * PCS];
	} record = {.head = {.time_ns = replay->now_ns,
			     .method = method_id(jvm, method),
			     .address = code_address(method),
			     .code_bytes = CODE_BYTES,
			     .pc_count = PCS}};
	struct duet_java_frame *frames;
	uint32_t count = 0;

	for (uint32_t pc = 0; pc < PCS; pc++) {
		uint32_t depth = compiled_frames(jvm, method, pc, record.frames + count);

		record.pcs[pc] = (struct duet_code_pc){.offset = (pc + 1) * 64, .frame = count, .depth = depth};
		count += depth;
	}
	record.head.frame_count = count;
	frames = record.frames;
	apply(replay, jvm, DUET_AGENT_CODE_LOAD, &record, (size_t)((char *)(frames + count) - (char *)&record));
}

static void publish_thread(struct replay *replay, uint32_t jvm, uint32_t thread)
{
	union {
		struct duet_thread head;
		char bytes[64];
	} record = {.head = {.tid = thread + 1}};

	record.head.name_len = (uint16_t)sprintf((char *)(&record.head + 1), "http-nio-8080-exec-%02u", thread);
	apply(replay, jvm, DUET_AGENT_THREAD, &record, (sizeof(record.head) + record.head.name_len + 7) & ~7ull);
}

static void start_jvm(struct replay *replay, uint32_t jvm, const struct buf *maps)
{
	const struct duet_code_heap heap = {FIRST_ADDRESS, code_address(METHODS)};
	struct java_process *java = &replay->jvms[jvm];

	java->origin.process = must(process_get(&replay->processes, FIRST_PID + (pid_t)jvm, 1));
	java->jvm = must(jvm_new(&replay->profile.strings));
	if (maps_parse(&java->origin.process->maps, maps->data, maps->len) < 0)
		die("out of memory");
	apply(replay, jvm, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap));
	for (uint32_t method = 0; method < METHODS; method++) {
		publish_method(replay, jvm, method);
		publish_code(replay, jvm, method);
	}
	for (uint32_t thread = 0; thread < THREADS; thread++)
		publish_thread(replay, jvm, thread);
}

/* ---- the records ---- */

/* Stacks share their roots as those of a server do: they part between the sixth and the fourteenth frame. */
static uint32_t java_stack(const struct replay *replay, uint32_t jvm, uint32_t stack, struct duet_java_frame *frames,
			   uint64_t *ret_leaf_pc)
{
	uint32_t count = 0;

	for (uint32_t level = 14 + stack % 12; level-- > 0;) {
		uint32_t sharing = level < 6 ? replay->stacks : replay->stacks >> (level - 5);
		uint32_t branch = stack / (sharing ? sharing : 1);
		uint32_t method = pick(branch, level, METHODS), pc = pick(branch, level + 1000, PCS);

		if (!count)
			*ret_leaf_pc = code_address(method) + (pc + 1) * 64;
		if (count && pick(branch, level + 2000, 10) == 0)
			frames[count++] = (struct duet_java_frame){method_id(jvm, method), 1000, 0};
		else
			count += compiled_frames(jvm, method, pc, frames + count);
	}
	return count;
}

static uint64_t somewhere(const struct mapping *mapping, uint32_t stack, uint32_t at)
{
	return mapping->start + pick(stack, at, (uint32_t)(mapping->end - mapping->start));
}

static void add_natives(const struct replay *replay, struct duet_sample *sample, uint32_t stack, uint32_t libjvm_frames)
{
	uint64_t *user = sample->stack + sample->kernel_depth;

	user[sample->user_depth++] = somewhere(&replay->libc, stack % 16, 1);
	for (uint32_t i = 0; i < libjvm_frames; i++)
		user[sample->user_depth++] = somewhere(&replay->libjvm, stack % 64, 2 + i);
}

static void fill_sample(const struct replay *replay, struct duet_sample *sample, uint32_t stack, uint64_t leaf_pc)
{
	bool in_java = stack % 10 != 9;

	if (stack % 7 == 0) {
		sample->flags |= DUET_SAMPLE_KERNEL;
		sample->kernel_depth = 10;
		for (uint32_t i = 0; i < sample->kernel_depth; i++)
			sample->stack[i] = KERNEL_TEXT + pick(stack % 32, i, 16 << 20);
	}
	if (sample->kernel_depth || !in_java)
		add_natives(replay, sample, stack, in_java ? 3 : 10);
	if (in_java)
		sample->stack[sample->kernel_depth + sample->user_depth++] = leaf_pc;
	sample->user_pc = sample->stack[sample->kernel_depth];
	sample->head.size =
		(uint32_t)(sizeof(*sample) + (sample->kernel_depth + sample->user_depth) * sizeof(uint64_t));
}

static void make_sample(struct replay *replay, struct window *window, uint32_t i)
{
	uint32_t jvm = window->jvm[i], thread = draw(replay, THREADS), stack = draw(replay, replay->stacks);
	struct duet_sample *sample = &window->kernel[i].sample;
	struct duet_java_sample *java = &window->agent[i].sample;
	uint64_t leaf_pc = 0;

	*sample = (struct duet_sample){
		.head = {.type = DUET_RECORD_SAMPLE,
			 .version = DUET_RECORD_VERSION,
			 .time_ns = replay->now_ns + i / CPUS * PERIOD_NS + i % CPUS,
			 .tgid = FIRST_PID + jvm,
			 .tid = FIRST_PID + JVMS + jvm * THREADS + thread},
		.start_ns = 10000000,
		.weight = PERIOD_NS,
		.user_sp = FIRST_ADDRESS - thread * 65536,
		.cookie = ++replay->samples,
		.ns_tgid = 1,
		.ns_tid = thread + 1,
		.flags = DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE | DUET_SAMPLE_JVM | DUET_SAMPLE_USER_REGS,
		.comm = "http-nio-8080-e",
		.process_comm = "java",
	};
	*java = (struct duet_java_sample){
		.time_ns = sample->head.time_ns + 2000,
		.cookie = sample->cookie,
		.sp = sample->user_sp,
		.tid = sample->ns_tid,
		.flags = stack % 10 == 9 ? DUET_JAVA_NO_THREAD : 0,
	};
	if (!java->flags)
		java->java_depth = java_stack(replay, jvm, stack, (struct duet_java_frame *)(java + 1), &leaf_pc);
	java->status = (int32_t)java->java_depth;
	window->java_bytes[i] = (uint32_t)(sizeof(*java) + java->java_depth * sizeof(struct duet_java_frame));
	fill_sample(replay, sample, stack, leaf_pc);
	java->pc = sample->user_pc;
}

static void make_window(struct replay *replay, struct window *window)
{
	for (window->count = 0; window->count < WINDOW_SAMPLES; window->count++) {
		window->jvm[window->count] = draw(replay, JVMS);
		make_sample(replay, window, window->count);
	}
	replay->now_ns += WINDOW_NS;
}

/* ---- the loader, as in session.c ---- */

static uint32_t sample_thread(struct replay *replay, const struct java_process *java, const struct duet_sample *sample)
{
	uint32_t name = jvm_thread_name(java->jvm, sample->ns_tid, sample->head.time_ns, sample->comm);

	return profile_thread(&replay->profile, (uint32_t)java->origin.process->pid, sample->head.tid,
			      intern_text(&replay->profile.strings, name), java->origin.process->comm, 0);
}

static void on_decided(void *context, struct origin *origin, const struct duet_sample *sample,
		       const struct duet_java_sample *record, enum join_outcome outcome)
{
	struct replay *replay = context;
	struct java_process *java = (struct java_process *)origin;
	const struct decision decision = {origin, java->origin.process, java->jvm, sample, record, outcome, false};
	struct resolved resolved;
	int64_t node;

	resolved = resolve_stack(&replay->resolver, &decision);
	node = resolve_node(&replay->resolver, &decision, &resolved);
	if (node < 0 || profile_add(&replay->profile, &(struct profile_sample){
							      .time_ns = sample->head.time_ns,
							      .weight = sample->weight,
							      .thread = sample_thread(replay, java, sample),
							      .node = (uint32_t)node,
							      .count = 1,
						      }) < 0)
		replay->lost++;
	replay->joined += outcome == JOIN_JOINED;
}

static void offer(struct replay *replay, const struct window *window, uint32_t i)
{
	const struct duet_java_sample *record = &window->agent[i].sample;

	if (!agent_record_check(DUET_AGENT_JAVA_SAMPLE, record, window->java_bytes[i]) ||
	    join_offer(replay->join, &replay->jvms[window->jvm[i]].origin, record, window->java_bytes[i],
		       replay->now_ns) < 0)
		replay->refused++;
}

static void take(struct replay *replay, const struct duet_sample *sample)
{
	struct process *process;

	if (!record_check(sample, sample->head.size)) {
		replay->refused++;
		return;
	}
	process = process_get(&replay->processes, (pid_t)sample->head.tgid, sample->start_ns / 10000000);
	if (!process ||
	    join_sample(replay->join, &replay->jvms[process->pid - FIRST_PID].origin, sample, replay->now_ns) < 0)
		replay->refused++;
}

/* Ring after ring, then the kernel's in the order of time. */
static void load_window(struct replay *replay, const struct window *window, const uint32_t *by_jvm)
{
	for (uint32_t i = 0; i < window->count; i++)
		offer(replay, window, by_jvm[i]);
	for (uint32_t i = 0; i < window->count; i++)
		take(replay, &window->kernel[i].sample);
	join_run(replay->join, replay->now_ns);
}

/* ---- the figures ---- */

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double resident_mb(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%*u %lu", &pages) != 1)
		die("/proc/self/statm cannot be read");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static int compare_jvms(const void *a, const void *b, void *window)
{
	const uint32_t *jvm = ((struct window *)window)->jvm;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return jvm[x] != jvm[y] ? (jvm[x] > jvm[y]) - (jvm[x] < jvm[y]) : (x > y) - (x < y);
}

/* Returns the CPU-seconds that the loader took for this many seconds of the host. */
static double run(struct replay *replay, struct window *window, unsigned seconds)
{
	static uint32_t by_jvm[WINDOW_SAMPLES];
	double spent = 0;

	for (uint64_t end_ns = replay->now_ns + seconds * NS_PER_SEC; replay->now_ns < end_ns;) {
		make_window(replay, window);
		for (uint32_t i = 0; i < window->count; i++)
			by_jvm[i] = i;
		qsort_r(by_jvm, window->count, sizeof(by_jvm[0]), compare_jvms, window);
		spent -= cpu_seconds();
		load_window(replay, window, by_jvm);
		spent += cpu_seconds();
	}
	return spent;
}

static void report(struct replay *replay, struct window *window, unsigned seconds)
{
	double jvms_mb, warm_mb, end_mb, warm_spent, spent;
	double rate = (double)NS_PER_SEC / PERIOD_NS * CPUS;
	size_t nodes;

	jvms_mb = resident_mb();
	warm_spent = run(replay, window, WARM_SECONDS);
	warm_mb = resident_mb();
	nodes = replay->profile.nodes.len;
	spent = run(replay, window, seconds);
	end_mb = resident_mb();
	join_flush(replay->join, NULL);

	printf("| %u CPUs at 1 kHz, %u JVMs, %u stacks | |\n|---|---|\n", CPUS, JVMS, JVMS * replay->stacks);
	printf("| samples per second per core | %.0f |\n", rate * seconds / spent);
	printf("| while every stack was new | %.0f |\n", rate * WARM_SECONDS / warm_spent);
	printf("| cores that such a host needs | %.2f |\n", spent / seconds);
	printf("| samples, joined | %llu, %.3f %% |\n", (unsigned long long)replay->samples,
	       100.0 * (double)replay->joined / (double)replay->samples);
	printf("| MB resident with all JVMs known | %.0f |\n", jvms_mb);
	printf("| MB resident after %u s: %zu nodes in the tree | %.0f |\n", WARM_SECONDS, nodes, warm_mb);
	printf("| MB resident after %u s: %zu nodes in the tree | %.0f |\n", WARM_SECONDS + seconds,
	       replay->profile.nodes.len, end_mb);
}

/* ---- set up ---- */

static struct mapping find_code(const struct maps *maps, const char *name)
{
	const struct mapping *mapping = maps_find_file(maps, name);

	if (!mapping)
		die("libc or libjvm is not mapped");
	return *mapping;
}

static void read_own_maps(struct replay *replay, struct buf *text, struct maps *maps, const char *libjvm)
{
	if (libjvm && !dlopen(libjvm, RTLD_LAZY))
		die(dlerror());
	if (io_read_file(AT_FDCWD, "/proc/self/maps", MAPS_MAX_FILE, text) < 0 ||
	    maps_parse(maps, text->data, text->len) < 0)
		die("/proc/self/maps cannot be read");
	replay->libc = find_code(maps, "libc.so.6");
	replay->libjvm = find_code(maps, libjvm ? "libjvm.so" : "libc.so.6");
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 40;
	uint32_t stacks = argc > 2 ? (uint32_t)atoi(argv[2]) : 100000;
	struct replay *replay = must(calloc(1, sizeof(*replay)));
	struct window *window = must(calloc(1, sizeof(*window)));
	struct maps maps = {0};
	struct buf text;

	if (seconds < 1 || stacks < JVMS)
		die("usage: loader_replay [SECONDS [STACKS [LIBJVM]]], at least 1 second and a stack for each of 500 "
		    "JVMs");
	buf_init(&text);
	replay->stacks = stacks / JVMS;
	replay->now_ns = clock_monotonic_ns();
	replay->symbols = must(symbols_new());
	replay->join = must(join_new(on_decided, replay));
	process_table_init(&replay->processes);
	if (profile_init(&replay->profile) < 0 ||
	    profile_event(&replay->profile, "cpu", PROFILE_NS, PERIOD_NS) == UINT32_MAX)
		die("out of memory");
	resolver_init(&replay->resolver, &(struct options){0}, &replay->profile, replay->symbols);
	read_own_maps(replay, &text, &maps, argc > 3 ? argv[3] : NULL);
	for (uint32_t i = 0; i < JVMS; i++)
		start_jvm(replay, i, &text);
	report(replay, window, seconds);

	for (uint32_t i = 0; i < JVMS; i++)
		jvm_free(replay->jvms[i].jvm);
	maps_release(&maps);
	buf_release(&text);
	join_free(replay->join);
	resolver_release(&replay->resolver);
	profile_release(&replay->profile);
	symbols_free(replay->symbols);
	process_table_release(&replay->processes);
	if (replay->refused || replay->lost || replay->joined != replay->samples)
		die("some samples were refused or lost");
	free(window);
	free(replay);
	return 0;
}
