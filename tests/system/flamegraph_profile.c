/* SPDX-License-Identifier: MIT */
/*
 * flamegraph_profile [-i] [-d DEPTH] [-t TITLE] FRAMES OUT...: the profile of a made-up server with that many frames,
 * the same in every run, in the format of each file's extension. A quarter of its samples is below
 * com.acme.shop.Known.quarter, half of those below Known.eighth, which calls itself DEPTH times. -i: root at the top.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/profile.h"
#include "writers/writer.h"

#define DEEPEST 90
#define DEEPEST_RECURSION 1000
#define INTERVAL_NS 10000000ull

struct name {
	enum frame_kind kind;
	const char *class_name;
	const char *name;
	const char *module;
};

struct options {
	struct writer_options writer;
	uint32_t recursion; /* calls of Known.eighth by itself */
};

struct stack {
	uint32_t frames[DEEPEST + DEEPEST_RECURSION + 16];
	uint32_t depth;
	uint64_t path; /* hash of the frames so far, which decides their callees */
};

static const struct name entry[] = {
	{FRAME_NATIVE, NULL, "clone3", "libc.so.6"},
	{FRAME_NATIVE, NULL, "start_thread", "libc.so.6"},
	{FRAME_JVM, NULL, "thread_native_entry(Thread*)", "libjvm.so"},
	{FRAME_JVM, NULL, "JavaThread::thread_main_inner()", "libjvm.so"},
	{FRAME_JVM, NULL, "JavaCalls::call_virtual", "libjvm.so"},
	{FRAME_INTERPRETED, "java.lang.Thread", "run", "Thread.java"},
	{FRAME_COMPILED, "java.util.concurrent.ThreadPoolExecutor$Worker", "run", "ThreadPoolExecutor.java"},
};

static const struct name collector[] = {
	{FRAME_NATIVE, NULL, "clone3", "libc.so.6"},
	{FRAME_NATIVE, NULL, "start_thread", "libc.so.6"},
	{FRAME_JVM, NULL, "thread_native_entry(Thread*)", "libjvm.so"},
	{FRAME_JVM, NULL, "GangWorker::loop()", "libjvm.so"},
	{FRAME_JVM, NULL, "G1ParEvacuateFollowersClosure::do_void()", "libjvm.so"},
	{FRAME_JVM, NULL, "G1ParScanThreadState::trim_queue_to_threshold", "libjvm.so"},
};

static const struct name inflate[] = {
	{FRAME_JAVA_NATIVE, "java.util.zip.Inflater", "inflateBytesBytes", "Inflater.java"},
	{FRAME_NATIVE, NULL, "Java_java_util_zip_Inflater_inflateBytesBytes", "libzip.so"},
	{FRAME_NATIVE, NULL, "inflate", "libz.so.1"},
	{FRAME_NATIVE, NULL, "inflate_fast", "libz.so.1"},
};

static const struct name read_file[] = {
	{FRAME_JAVA_NATIVE, "java.io.FileInputStream", "readBytes", "FileInputStream.java"},
	{FRAME_NATIVE, NULL, "readBytes", "libjava.so"},
	{FRAME_NATIVE, NULL, "read", "libc.so.6"},
	{FRAME_KERNEL, NULL, "entry_SYSCALL_64_after_hwframe", NULL},
	{FRAME_KERNEL, NULL, "do_syscall_64", NULL},
	{FRAME_KERNEL, NULL, "ksys_read", NULL},
	{FRAME_KERNEL, NULL, "vfs_read", NULL},
	{FRAME_KERNEL, NULL, "ext4_file_read_iter", "ext4"},
	{FRAME_KERNEL, NULL, "filemap_read", NULL},
	{FRAME_KERNEL, NULL, "copy_page_to_iter", NULL},
};

/* Text that would end the page's data if it were written without escapes. */
#define HOSTILE "</script><script>throw new Error('escaped')</script>"

static const struct name lost[] = {
	{FRAME_NATIVE, NULL, HOSTILE, HOSTILE},
	{FRAME_MARK, NULL, "[unknown_Java]", NULL},
};

static const char *const classes[] = {
	"com.acme.shop.http.RequestDispatcher",
	"com.acme.shop.http.JsonCodec",
	"com.acme.shop.cart.CartService",
	"com.acme.shop.cart.PriceCalculator",
	"com.acme.shop.stock.StockRepository",
	"com.acme.shop.search.QueryPlanner",
	"com.acme.shop.search.IndexReader",
	"io.netty.channel.AbstractChannelHandlerContext",
	"io.netty.handler.codec.ByteToMessageDecoder",
	"java.util.HashMap",
	"java.util.ArrayList",
	"java.util.stream.ReferencePipeline",
	"java.util.concurrent.locks.ReentrantLock",
	"java.lang.String",
	"java.lang.StringBuilder",
	"jdk.internal.util.ArraysSupport",
	"com.fasterxml.jackson.databind.ObjectMapper",
	"org.hibernate.engine.internal.StatefulPersistenceContext",
};

static const char *const methods[] = {
	"handle", "invoke", "apply",   "get",	 "put",	    "resize",	"encode", "decode",
	"find",	  "lookup", "compute", "accept", "forEach", "read",	"write",  "flush",
	"merge",  "sort",   "indexOf", "append", "equals",  "hashCode", "next",
};

static uint64_t random_state = 20260401;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % bound;
}

static void push(struct profile *profile, struct stack *stack, const struct name *name, int32_t line)
{
	struct frame frame = {
		.kind = name->kind,
		.name = intern_str(&profile->strings, name->name),
		.class_name = name->class_name ? intern_str(&profile->strings, name->class_name) : 0,
		.module = name->module ? intern_str(&profile->strings, name->module) : 0,
		.line = line,
		.bci = -1,
	};
	uint32_t id = profile_frame(profile, &frame);

	stack->frames[stack->depth++] = id;
	stack->path *= 31;
	for (const char *at = name->name; *at; at++)
		stack->path = hash_u64(stack->path + (unsigned char)*at);
}

static void push_all(struct profile *profile, struct stack *stack, const struct name *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		push(profile, stack, &names[i], frame_kind_is_java(names[i].kind) ? 100 + (int32_t)i : 0);
}

#define PUSH_ALL(profile, stack, names) push_all(profile, stack, names, sizeof(names) / sizeof((names)[0]))

/* Each caller has a few callees of its own; the first are called most. */
static void push_java(struct profile *profile, struct stack *stack)
{
	uint32_t choice = 0;
	uint64_t pick;

	while (choice < 5 && random_below(100) < 24)
		choice++;
	pick = hash_u64(stack->path + choice);
	push(profile, stack,
	     &(struct name){
		     .kind = pick % 7 < 4   ? FRAME_COMPILED
			     : pick % 7 < 6 ? FRAME_INLINED
					    : FRAME_INTERPRETED,
		     .class_name = classes[(pick >> 8) % (sizeof(classes) / sizeof(classes[0]))],
		     .name = methods[(pick >> 24) % (sizeof(methods) / sizeof(methods[0]))],
		     .module = "Shop.java",
	     },
	     20 + (int32_t)(pick >> 40) % 400);
}

static void push_leaf(struct profile *profile, struct stack *stack)
{
	uint32_t what = random_below(100);

	if (what < 18)
		PUSH_ALL(profile, stack, read_file);
	else if (what < 30)
		PUSH_ALL(profile, stack, inflate);
	else if (what == 30)
		PUSH_ALL(profile, stack, lost);
}

static void push_known(struct profile *profile, struct stack *stack, uint32_t index, uint32_t recursion)
{
	static const struct name quarter = {FRAME_COMPILED, "com.acme.shop.Known", "quarter", "Known.java"};
	static const struct name eighth = {FRAME_INLINED, "com.acme.shop.Known", "eighth", "Known.java"};

	if (index % 4 == 0)
		push(profile, stack, &quarter, 7);
	for (uint32_t calls = 0; index % 8 == 0 && calls <= recursion; calls++)
		push(profile, stack, &eighth, 11);
}

static int add_sample(struct profile *profile, uint32_t thread, uint32_t index, uint32_t recursion)
{
	struct stack stack = {0};
	uint32_t depth = 9 + random_below(8) * random_below(7);

	if (index % 16 == 1) {
		PUSH_ALL(profile, &stack, collector);
	} else {
		PUSH_ALL(profile, &stack, entry);
		push_known(profile, &stack, index, recursion);
		while (stack.depth < depth)
			push_java(profile, &stack);
		push_leaf(profile, &stack);
	}
	return profile_add(profile, &(struct profile_sample){
					    .time_ns = index * INTERVAL_NS,
					    .weight = INTERVAL_NS,
					    .thread = thread,
					    .node = profile_stack(profile, stack.frames, stack.depth),
					    .count = 1,
				    });
}

static int fill(struct profile *profile, size_t frames, uint32_t recursion)
{
	uint32_t thread = profile_thread(profile, 4711, 4712, "worker-1", "java", 0);
	int err = 0;

	(void)profile_event(profile, "cpu", PROFILE_NS, INTERVAL_NS);
	for (uint32_t i = 0; !err && (profile->nodes.len <= frames || i % 16); i++)
		err = add_sample(profile, thread, i, recursion);
	profile_add_fact(profile, "event", "cpu every 10 ms");
	profile_add_fact(profile, "engine", "bpf");
	profile_add_fact(profile, "target", "pid 4711, java -jar shop.jar --profile=prod");
	profile_add_fact(profile, "JVM", "OpenJDK 64-Bit Server VM 17.0.12+7");
	profile_add_fact(profile, "arguments", "%s", HOSTILE);
	profile_add_fact(profile, "kernel", "Linux 6.1.0-18-amd64 x86_64");
	profile_add_fact(profile, "taken", "2026-04-01 12:00:00 UTC, 60 s");
	profile_add_loss(profile, 17, "samples not joined: no agent record arrived for them");
	return err;
}

static int write_file(const struct profile *profile, const struct writer_options *options, const char *path)
{
	FILE *out = fopen(path, "w");
	int err;

	if (!out)
		return -errno;
	err = writer_by_path(path)->write(profile, options, out);
	fclose(out);
	return err;
}

static bool parse_options(struct options *options, int argc, char **argv)
{
	int option;

	writer_options_default(&options->writer);
	options->writer.title = "shop.jar, Wednesday noon";
	options->recursion = 0;
	while ((option = getopt(argc, argv, "id:t:")) != -1)
		if (option == 'i')
			options->writer.inverted = true;
		else if (option == 'd')
			options->recursion = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 't')
			options->writer.title = optarg;
		else
			return false;
	return options->recursion <= DEEPEST_RECURSION && argc - optind >= 2;
}

int main(int argc, char **argv)
{
	struct options options;
	struct profile profile;
	int err;

	if (!parse_options(&options, argc, argv)) {
		fprintf(stderr, "usage: flamegraph_profile [-i] [-d DEPTH] [-t TITLE] FRAMES OUT...\n");
		return 2;
	}
	err = profile_init(&profile);
	if (!err)
		err = fill(&profile, strtoul(argv[optind], NULL, 10), options.recursion);
	for (int i = optind + 1; !err && i < argc; i++)
		err = write_file(&profile, &options.writer, argv[i]);
	if (err)
		fprintf(stderr, "flamegraph_profile: %s\n", strerror(-err));
	profile_release(&profile);
	return err ? 1 : 0;
}
