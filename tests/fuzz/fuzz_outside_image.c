/* SPDX-License-Identifier: MIT */
/*
 * Compilations and methods of real JVMs, as they were captured (tests/fixtures/outside), with bytes that a process has
 * changed: before they are read, and between two reads. What the reader answers must be what the loader takes.
 */
#include "base/intern.h"
#include "collect/records/agent_ring.h"
#include "fixtures/outside_image.h"
#include "fuzz.h"
#include "hotspot/answers.h"
#include "runtime/jvm.h"

#define LANE_BYTES (1u << 20)
#define MOST_EDITS 64
#define MOST_IMAGES 8

struct edit {
	uint64_t address;
	unsigned char was;
};

static struct {
	struct input input;
	struct edit edits[MOST_EDITS];
	size_t edit_count;
	unsigned int reads_left; /* until the next edit; 0: there is none */
	struct ring ring;
	struct agent_ring *consumer;
	struct intern strings;
	struct jvm *jvm;
} run;

/* Changes one byte of those that were captured, and plans the next change. */
static void edit(void)
{
	const struct image_place *place = &image.places.items[input_number(&run.input, 2) % image.places.len];
	uint64_t address = place->address + input_number(&run.input, 1) % place->bytes;
	unsigned char byte = (unsigned char)input_number(&run.input, 1);
	struct edit *done = &run.edits[run.edit_count++];

	*done = (struct edit){.address = address};
	(void)corpus_get(&image.memory, address, &done->was, 1);
	(void)corpus_put(&image.memory, address, &byte, 1);
	run.reads_left = 0;
	if (run.input.left && run.edit_count < MOST_EDITS)
		run.reads_left = 1 + (unsigned int)input_number(&run.input, 1);
}

static void before_read(void)
{
	if (run.reads_left && !--run.reads_left)
		edit();
}

static void take_back(void)
{
	while (run.edit_count--)
		(void)corpus_put(&image.memory, run.edits[run.edit_count].address, &run.edits[run.edit_count].was, 1);
	run.edit_count = 0;
}

static void apply(void *context, uint16_t type, const void *payload, uint32_t size)
{
	FUZZ_CHECK(jvm_apply(run.jvm, type, payload, size) == 0);
}

static void read_frames(uint64_t pc)
{
	struct duet_java_frame frames[JVM_INLINING_DEPTH];
	const struct jvm_code *code = jvm_code_at(run.jvm, pc, 2, 0);
	uint32_t flags;

	if (code)
		FUZZ_CHECK(jvm_code_frames(code, pc, false, frames, &flags) <= JVM_INLINING_DEPTH);
}

static void answer(const struct image_want *want)
{
	const struct answers answers = {.ring = &run.ring};
	uint64_t bad = 0;

	if (want->is_code)
		answer_code(&answers, want->key, input_number(&run.input, 1) & 1 ? want->id : 0, 1);
	else
		answer_methods(&answers, &(struct metadata_key){want->key, want->id}, 1);
	FUZZ_CHECK(agent_ring_read(run.consumer, DUET_LANE_METADATA, apply, NULL, INT32_MAX, &bad) > 0);
	FUZZ_CHECK(!bad);
	read_frames(want->key);
}

/* The captured JVMs. `image` and `tables` are copies of those of the one that is open. */
static struct {
	struct image_file images[MOST_IMAGES];
	struct hotspot_tables tables[MOST_IMAGES];
	size_t count, open;
} captured = {.open = MOST_IMAGES};

static void load_images(void)
{
	const char *why;
	glob_t files;

	FUZZ_CHECK(image_find(&files));
	for (size_t i = 0; i < files.gl_pathc && i < MOST_IMAGES; i++) {
		FUZZ_CHECK(image_load(files.gl_pathv[i]));
		image.before_read = before_read;
		captured.images[captured.count] = image;
		captured.tables[captured.count++] = tables;
		image = (struct image_file){0};
		tables = (struct hotspot_tables){0};
	}
	globfree(&files);
	FUZZ_CHECK(!agent_ring_new(&run.consumer, LANE_BYTES, LANE_BYTES));
	FUZZ_CHECK(!ring_map(&run.ring, agent_ring_fd(run.consumer), agent_ring_bytes(run.consumer), &why));
}

static void open_image(size_t number)
{
	if (number == captured.open)
		return;
	image = captured.images[number];
	tables = captured.tables[number];
	captured.open = number;
	FUZZ_CHECK(image_open_jvm());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!run.consumer)
		load_images();
	run.input = (struct input){data, size};
	open_image(input_number(&run.input, 1) % captured.count);
	FUZZ_CHECK(!intern_init(&run.strings));
	run.jvm = jvm_new(&run.strings);
	FUZZ_CHECK(run.jvm);
	memory_renew();
	FUZZ_CHECK(jvmstructs_renew_heaps());
	answers_reset();
	memory_forget();
	edit();
	for (int i = 0; i < 4; i++)
		answer(&image.wants.items[input_number(&run.input, 1) % image.wants.len]);
	run.reads_left = 0;
	take_back();
	jvm_free(run.jvm);
	intern_release(&run.strings);
	return 0;
}
