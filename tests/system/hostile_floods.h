/* SPDX-License-Identifier: MIT */
/* A part of hostile_agent.c, which includes it after put(): floods of well-formed records. */
#pragma once

static void flood_samples(int peer)
{
	struct {
		struct duet_java_sample sample;
		struct duet_java_frame frames[64];
	} record = {.sample = {.time_ns = noise(), .tid = (uint32_t)noise(), .status = 64, .java_depth = 64}};

	fill_noise(record.frames, sizeof(record.frames));
	put(DUET_LANE_SAMPLE, DUET_AGENT_JAVA_SAMPLE, &record, sizeof(record));
}

static void flood_one_thread(int peer)
{
	struct duet_java_sample sample = {.time_ns = noise(), .tid = (uint32_t)getpid(), .status = -3};

	put(DUET_LANE_SAMPLE, DUET_AGENT_JAVA_SAMPLE, &sample, sizeof(sample));
}

static void flood_standalone(int peer)
{
	struct duet_sample sample = {
		.head = {sizeof(sample), DUET_RECORD_SAMPLE, DUET_RECORD_VERSION, noise(), 1, 1},
		.weight = noise(), .ns_tid = (uint32_t)noise(), .flags = (uint16_t)noise(),
	};

	put(DUET_LANE_SAMPLE, DUET_AGENT_SAMPLE, &sample, sizeof(sample));
}

/* Samples of allocations. Some have attributes with wrong lengths, and all have a new class. */
static void flood_classes(int peer)
{
	struct {
		struct duet_sample sample;
		struct duet_attribute class_head;
		char class_name[DUET_MAX_CLASS_BYTES];
		struct duet_attribute odd;
	} record = {
		.sample = {.head = {sizeof(record), DUET_RECORD_SAMPLE, DUET_RECORD_VERSION, noise() >> 2, 1, 1},
			   .weight = 1 << 20,
			   .event = 1,
			   .ns_tid = (uint32_t)getpid(),
			   .cgroup_id = noise(),
			   .walk_end = DUET_WALK_ENTRY,
			   .flags = DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_COMPLETE,
			   .attribute_bytes = sizeof(record) - sizeof(record.sample)},
		.class_head = {DUET_ATTRIBUTE_CLASS, DUET_MAX_CLASS_BYTES, 0},
		.odd = {(uint16_t)noise(), noise() % 2 ? (uint16_t)noise() : 0, 0},
	};

	fill_noise(record.class_name, sizeof(record.class_name));
	record.class_name[0] = '[';
	put(DUET_LANE_SAMPLE, DUET_AGENT_SAMPLE, &record, sizeof(record));
}

/* Text without a NUL, so that all of it counts. */
static void fill_text(char *text, size_t len)
{
	fill_noise(text, len);
	for (size_t i = 0; i < len; i++)
		text[i] |= 1;
}

static void flood_methods(int peer)
{
	static struct {
		struct duet_method method;
		char text[60000];
	} record;

	record.method = (struct duet_method){noise(), 15000, 15000, 15000, 15000, .line_count = 0};
	fill_text(record.text, sizeof(record.text));
	put(DUET_LANE_METADATA, DUET_AGENT_METHOD, &record, sizeof(record));
}

static void flood_code(int peer)
{
	static struct {
		struct duet_code_load load;
		struct duet_java_frame frames[1000];
	} record;

	record.load = (struct duet_code_load){.frame_count = 1000, .code_bytes = (uint32_t)noise()};
	record.load.address = 0x10000 + noise() % 1000000;
	record.load.time_ns = noise();
	put(DUET_LANE_METADATA, DUET_AGENT_CODE_LOAD, &record, sizeof(record));
}

/* Every pc has all the frames, which would be quadratic work in the record's size. */
static void flood_inlining(int peer)
{
	static struct {
		struct duet_code_load load;
		struct duet_code_pc pcs[20000];
		struct duet_java_frame frames[20000];
	} record = {.load = {.address = 0x10000, .code_bytes = 1 << 20, .pc_count = 20000, .frame_count = 20000}};

	for (uint32_t i = 0; i < 20000; i++)
		record.pcs[i] = (struct duet_code_pc){.offset = i, .depth = i % DUET_JAVA_DEPTH};
	record.load.method = record.load.time_ns = noise();
	put(DUET_LANE_METADATA, DUET_AGENT_CODE_LOAD, &record, sizeof(record));
}

static void flood_threads(int peer)
{
	static struct {
		struct duet_thread thread;
		char name[60000];
	} record;

	record.thread = (struct duet_thread){.tid = (uint32_t)noise(), .name_len = sizeof(record.name)};
	fill_text(record.name, sizeof(record.name));
	put(DUET_LANE_METADATA, DUET_AGENT_THREAD, &record, sizeof(record));
}

static void flood_heaps(int peer)
{
	struct duet_code_heap heap = {.low = noise() / 2, .high = UINT64_MAX};

	put(DUET_LANE_METADATA, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap));
}

static void flood_stacks(int peer)
{
	__atomic_store_n(&self.writes_stacks, true, __ATOMIC_RELEASE);
}

static void flood_everything(int peer)
{
	static void (*const floods[])(int) = {flood_samples, flood_one_thread, flood_standalone, flood_methods,
					      flood_code,    flood_threads,    flood_heaps,	 flood_stacks};

	floods[noise() % (sizeof(floods) / sizeof(floods[0]))](peer);
}
