/* SPDX-License-Identifier: MIT */
/* JFR files, written and read. */
#include "fixtures/read_back.h"

#include <endian.h>
#include <errno.h>

#include "profile/jfr.h"
#include "readers/jfr/bytes.h"
#include "writers/jfr/bytes.h"
#include "writers/jfr/stream.h"

static void add(struct profile *p, const char *event, uint32_t thread, uint32_t count, uint64_t weight,
		const uint32_t *frames, uint32_t depth)
{
	const struct profile_sample sample = {
		.time_ns = p->start_ns + p->samples.len * MS,
		.weight = weight,
		.thread = thread,
		.node = profile_stack(p, frames, depth),
		.count = count,
		.event = profile_event(p, event, PROFILE_COUNT, 0),
	};

	assert_int_equal(profile_add(p, &sample), 0);
}

/* CPU time with all kinds of frames, and events of each other form. */
static void profile_of_events(struct profile *p)
{
	uint32_t run, wait, object, array, thread, two, park, held;

	profile_of_everything(p);
	p->processes = PROFILE_ALWAYS;
	p->start_realtime_ns = 1700000000 * (1000 * MS);
	p->end_ns = p->start_ns + 5000 * MS;
	(void)profile_event(p, "offcpu", PROFILE_NS, 10 * MS);
	(void)profile_event(p, "alloc", PROFILE_BYTES, 512 << 10);
	(void)profile_event(p, "lock", PROFILE_NS, 10000);
	(void)profile_event(p, "wait", PROFILE_NS, MS);
	(void)profile_event(p, "page-faults", PROFILE_COUNT, 1);
	(void)profile_event(p, "9/weight", PROFILE_BYTES, 0);
	(void)profile_event(p, "wall", PROFILE_NS, MS); /* the form of offcpu */
	(void)profile_event(p, "live", PROFILE_BYTES, 1);
	(void)profile_event(p, "nativemem", PROFILE_BYTES, 2);
	(void)profile_event(p, "leak", PROFILE_BYTES, 3);
	(void)profile_event(p, "nativelock", PROFILE_NS, 4);
	(void)profile_event(p, "span", PROFILE_NS, 1);
	(void)profile_event(p, "window", PROFILE_NS, 1);
	thread = profile_virtual_thread(p, 100, 5, "alone", "java", owner_of(p, 100, "prod/pod-1/app"));
	two = profile_thread(p, 300, 101, "main", "java", 0); /* another process, the same tid */
	run = java_frame(p, FRAME_COMPILED, "com.acme.Main", "run", "()V", 10);
	wait = frame_of(p, FRAME_STATE, "[futex]", "");
	object = frame_of(p, FRAME_CLASS, "java.lang.String", "");
	array = frame_of(p, FRAME_CLASS, "java.lang.String[][]", "");
	add(p, "offcpu", thread, 3, 77 * MS, (uint32_t[]){run, wait}, 2);
	add(p, "offcpu", two, 1, 1, (uint32_t[]){run}, 1);
	add(p, "alloc", two, 5, 1003, (uint32_t[]){run, object}, 2);
	add(p, "alloc", two, 1, 524288, (uint32_t[]){array}, 1);
	add(p, "alloc", thread, 1, 16, (uint32_t[]){run}, 1);
	add(p, "lock", two, 1, 3 * MS, (uint32_t[]){run, object}, 2);
	add(p, "lock", two, 4, 50001, (uint32_t[]){run, array}, 2);
	add(p, "wait", thread, 1, 2000 * MS, (uint32_t[]){run, object}, 2);
	add(p, "wait", two, 1, 7 * MS, (uint32_t[]){run}, 1);
	park = java_frame(p, FRAME_JAVA_NATIVE, "jdk.internal.misc.Unsafe", "park", "(ZJ)V", -1);
	add(p, "lock", two, 2, 11 * MS, (uint32_t[]){run, park, wait, object}, 4);
	add(p, "wait", two, 1, 5 * MS, (uint32_t[]){run, park, object}, 3);
	held = frame_of(p, FRAME_WAKER, "[held by]", "");
	add(p, "lock", two, 3, 30 * MS, (uint32_t[]){run, object, held, run, array}, 5);
	add(p, "lock", two, 1, 4 * MS, (uint32_t[]){run, park, object, held, run}, 5);
	add(p, "lock", two, 1, 4 * MS, (uint32_t[]){run, object}, 2);
	add(p, "nativelock", two, 1, 6 * MS, (uint32_t[]){run, held, run}, 3);
	add(p, "wall", two, 3, 9 * MS, (uint32_t[]){run, wait}, 2);
	add(p, "live", two, 2, 4001, (uint32_t[]){run, object}, 2);
	add(p, "live", two, 1, 7, (uint32_t[]){array}, 1);
	add(p, "nativemem", two, 1, 64, (uint32_t[]){run, wait}, 2);
	add(p, "leak", thread, 3, 100, (uint32_t[]){run}, 1);
	add(p, "nativelock", thread, 1, 2 * MS, (uint32_t[]){run}, 1);
	add(p, "span", two, 1, 3 * MS, (uint32_t[]){frame_of(p, FRAME_SPAN, "GET /cart", "")}, 1);
	add(p, "span", thread, 1, 2 * MS, (uint32_t[]){frame_of(p, FRAME_SPAN, "", "")}, 1);
	add(p, "window", thread, 1, 6 * MS, NULL, 0);
	add(p, "page-faults", two, 4, 4, (uint32_t[]){run}, 1);
	add(p, "9/weight", two, 1, 1ull << 40, (uint32_t[]){run, run, run}, 3);
	add(p, "cpu", thread, 7, 70 * MS, (uint32_t[]){run}, 1);
	add(p, "cpu", thread, 2, 5, (uint32_t[]){run}, 1);
}

static int sum_times(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context += sample->time_ns;
	return 0;
}

static void round_trip_keeps_all(void **state)
{
	struct profile first, second;
	uint64_t times = 0;
	size_t len;

	profile_of_events(&first);
	read_back("jfr", &first, &second);
	assert_int_equal(second.events.len, first.events.len);
	for (size_t i = 0; i < first.events.len; i++) {
		const struct profile_event *a = &first.events.items[i], *b = &second.events.items[i];

		assert_string_equal(intern_text(&first.strings, a->name), intern_text(&second.strings, b->name));
		assert_int_equal(a->unit, b->unit);
		assert_int_equal(a->interval, b->interval);
	}
	assert_same_in_all_styles(&first, &second);
	len = second.frames.len;
	(void)frame_of(&second, FRAME_WAKER, "[held by]", "");
	assert_int_equal(second.frames.len, len); /* that frame is there */
	assert_int_equal(second.processes, PROFILE_ALWAYS);
	assert_int_equal(second.losses.len, 1);
	assert_int_equal(second.losses.items[0].count, 7);
	assert_int_equal(second.facts.len, 2);
	assert_int_equal(second.start_ns, first.start_realtime_ns);
	assert_int_equal(second.end_ns - second.start_ns, 5000 * MS);
	assert_int_equal(timeline_each(&second.samples, sum_times, &times), 0);
	assert_true(times > second.samples.len * second.start_ns); /* each has its own */
	profile_release(&first);
	profile_release(&second);
}

/* The other forms of CPU time and allocations are read as the same; parks of waits alone are jdk.ThreadPark. */
static void other_types(void **state)
{
	struct writer_options options;
	struct frame outside = {.kind = FRAME_CLASS, .bci = FRAME_BCI_OUTSIDE};
	struct profile first, second;
	char *bytes = NULL;
	struct buf why;
	size_t len;
	FILE *out;

	buf_init(&why);
	writer_options_default(&options);
	options.cpu_time = options.tlab = true;
	profile_of_everything(&first);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	(void)profile_event(&first, "wait", PROFILE_NS, MS);
	(void)profile_event(&first, "alloc", PROFILE_BYTES, MS);
	add(&first, "wait", 0, 1, 5 * MS,
	    (uint32_t[]){java_frame(&first, FRAME_COMPILED, "sun.misc.Unsafe", "park", "(ZJ)V", 1),
			 frame_of(&first, FRAME_CLASS, "a.Lock", "")},
	    2);
	add(&first, "alloc", 0, 2, 99, (uint32_t[]){frame_of(&first, FRAME_CLASS, "a.Lock", "")}, 1);
	(void)profile_event(&first, "class-load", PROFILE_COUNT, 1);
	add(&first, "class-load", 0, 1, 1, (uint32_t[]){frame_of(&first, FRAME_CLASS, "a.Lock", "")}, 1);
	outside.name = intern_str(&first.strings, "a.Lock");
	add(&first, "alloc", 0, 1, 50, (uint32_t[]){profile_frame(&first, &outside)}, 1);
	out = open_memstream(&bytes, &len);
	assert_int_equal(writer_by_name("jfr")->write(&first, &options, out), 0);
	fclose(out);
	assert_int_equal(read_bytes(&second, bytes, len, &why), 0);
	assert_int_equal(second.events.len, first.events.len);
	assert_same_in_all_styles(&first, &second);
	profile_release(&first);
	profile_release(&second);
	buf_release(&why);
	free(bytes);
}

/* A file that is cut or has a damaged byte is refused, or read in part. If it was cut, that is always reported. */
static void cut_and_damaged(void **state)
{
	struct profile first, second;
	struct buf why, two;
	size_t len;
	char *file;

	buf_init(&why);
	buf_init(&two);
	profile_of_events(&first);
	file = written_file("jfr", &first, &len);
	for (size_t cut = 4; cut < len; cut += cut < 100 ? 1 : 97) {
		buf_clear(&why);
		assert_int_equal(read_bytes(&second, file, cut, &why), -EINVAL);
		assert_non_null(strstr(why.data, "the recording was not finished"));
		profile_release(&second);
	}
	for (size_t at = sizeof(struct jfr_header); at < len; at += 7) {
		buf_clear(&why);
		file[at] ^= 0x55;
		assert_true(!read_bytes(&second, file, len, &why) || why.len);
		file[at] ^= 0x55;
		profile_release(&second);
	}

	/* The first of two chunks is read. */
	buf_add(&two, file, len);
	buf_add(&two, file, len - 1);
	buf_clear(&why);
	assert_int_equal(read_bytes(&second, two.data, two.len, &why), 0);
	assert_string_equal(why.data, "the file ends in a chunk, which is left out");
	assert_same_in_all_styles(&first, &second);
	profile_release(&second);
	profile_release(&first);
	buf_release(&why);
	buf_release(&two);
	free(file);
}

/* A file with one number of its header changed. */
static void refused(void (*change)(struct jfr_header *), const char *cause)
{
	struct profile first, second;
	struct buf why;
	size_t len;
	char *file;

	buf_init(&why);
	profile_of_everything(&first);
	file = written_file("jfr", &first, &len);
	change((struct jfr_header *)file);
	assert_true(read_bytes(&second, file, len, &why) < 0);
	assert_non_null(strstr(why.data, cause));
	profile_release(&first);
	profile_release(&second);
	buf_release(&why);
	free(file);
}

static void version_1(struct jfr_header *header)
{
	header->major = htobe16(1);
}

static void not_compressed(struct jfr_header *header)
{
	header->features = 0;
}

static void no_ticks(struct jfr_header *header)
{
	header->ticks_per_second = 0;
}

static void metadata_elsewhere(struct jfr_header *header)
{
	header->metadata_at = header->pools_at;
}

static void too_large(struct jfr_header *header)
{
	header->bytes = htobe64(1ull << 40);
}

static void too_short(struct jfr_header *header)
{
	header->bytes = htobe64(be64toh(header->pools_at) + 9);
}

static void refuses_what_does_not_fit(void **state)
{
	refused(version_1, "JFR of version 1: duet reads version 2");
	refused(not_compressed, "its integers are not compressed");
	refused(no_ticks, "a chunk has no ticks");
	refused(metadata_elsewhere, "of a chunk, is damaged");
	refused(too_large, "a chunk has more than 1024 MB");
	refused(too_short, "is damaged");
}

/* ---- a recording that goes on ---- */

struct state {
	char *bytes;
	size_t len, written; /* by the last write */
};

/* A file in memory; a copy of it after each write. */
struct disk {
	struct buf bytes;
	size_t at;
	size_t room; /* the disk is full there */
	struct vec(struct state) states;
	size_t begun; /* number of states before the file had its first part */
};

static ssize_t disk_write(void *cookie, const char *bytes, size_t len)
{
	struct disk *disk = cookie;
	size_t left = disk->at < disk->room ? disk->room - disk->at : 0, fits = left < len ? left : len;

	if (fits && disk->at + fits > disk->bytes.len) {
		assert_true(buf_reserve(&disk->bytes, disk->at + fits - disk->bytes.len));
		memset(disk->bytes.data + disk->bytes.len, 0, disk->at + fits - disk->bytes.len);
		disk->bytes.len = disk->at + fits;
	}
	memcpy(disk->bytes.data + disk->at, bytes, fits);
	disk->at += fits;
	assert_int_equal(
		vec_push(&disk->states, (struct state){.bytes = buf_duplicate(disk->bytes.data, disk->bytes.len),
						       .len = disk->bytes.len,
						       .written = len}),
		0);
	return (ssize_t)fits;
}

static int disk_seek(void *cookie, off64_t *offset, int whence)
{
	struct disk *disk = cookie;

	disk->at = (size_t)*offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? disk->at : disk->bytes.len);
	*offset = (off64_t)disk->at;
	return 0;
}

static void disk_open(struct disk *disk, FILE **ret_file)
{
	*disk = (struct disk){.room = SIZE_MAX / 2};
	buf_init(&disk->bytes);
	*ret_file = fopencookie(disk, "w", (cookie_io_functions_t){.write = disk_write, .seek = disk_seek});
	assert_non_null(*ret_file);
}

static void disk_release(struct disk *disk)
{
	for (size_t i = 0; i < disk->states.len; i++)
		free(disk->states.items[i].bytes);
	vec_release(&disk->states);
	buf_release(&disk->bytes);
}

/* The number of samples in the bytes, or -1 if they cannot be read. */
static int samples_in(const char *bytes, size_t len)
{
	struct profile profile;
	struct buf why;
	int count;

	buf_init(&why);
	count = len < 4 || read_bytes(&profile, bytes, len, &why) < 0 || why.len ? -1 : (int)profile.samples.len;
	if (len >= 4)
		profile_release(&profile);
	buf_release(&why);
	return count;
}

#define STEPS 12

/* New frames and threads in each step, and stacks of earlier ones. */
static void add_step(struct profile *p, uint32_t step)
{
	char name[16];
	uint32_t run, again = java_frame(p, FRAME_COMPILED, "com.acme.Main", "run", "()V", 10), thread;

	snprintf(name, sizeof(name), "step%u", step);
	run = java_frame(p, FRAME_INLINED, "com.acme.Main", name, "()V", 1);
	thread = profile_thread(p, 100, 200 + step / 2, "worker", "java", 0);
	for (int i = 0; i < 5; i++)
		add(p, "cpu", thread, 1, 10 * MS, (uint32_t[]){again, run}, 2);
	add(p, "cpu", thread, 1, 10 * MS, (uint32_t[]){again}, 1);
	p->end_ns = p->start_ns + (step + 1) * 1000 * MS;
}

static void record_steps(struct profile *p, const struct writer_options *options, struct disk *disk, size_t room)
{
	const struct writer *jfr = writer_by_name("jfr");
	struct writer_stream *stream;
	int err = 0;
	FILE *out;

	profile_of_everything(p);
	p->end_ns = p->start_ns + 1;
	disk_open(disk, &out);
	stream = jfr->stream_open(p, options, out);
	assert_non_null(stream);
	assert_int_equal(jfr->stream_append(stream, false), 0);
	disk->begun = disk->states.len;
	for (uint32_t step = 0; step < STEPS && !err; step++) {
		add_step(p, step);
		disk->room = room ? room : disk->room;
		err = jfr->stream_append(stream, step == STEPS - 1);
		if (err)
			disk->bytes.len = (size_t)ftello(out); /* what the caller does */
	}
	assert_int_equal(err, room ? -EIO : 0);
	jfr->stream_close(stream);
	fclose(out);
}

/*
 * Killed between any two writes, the recorder leaves a file with all samples of the parts before. There are exceptions:
 * where the place of a part is made, three small writes, and where the chunk before gets its size back.
 */
static void killed(uint64_t chunk_ns, size_t chunks)
{
	struct writer_options options;
	struct profile p, second;
	struct disk disk;
	struct buf why;
	int last = 0;
	size_t unreadable = 0;

	writer_options_default(&options);
	options.chunk_ns = chunk_ns;
	buf_init(&why);
	record_steps(&p, &options, &disk, 0);
	for (size_t i = disk.begun - 1; i < disk.states.len; i++) {
		const struct state *state = &disk.states.items[i];
		int count = samples_in(state->bytes, state->len);

		unreadable += count < 0;
		assert_true(count < 0 || count >= last);
		assert_true(count >= 0 || state->written <= 6);
		last = count < 0 ? last : count;
	}
	assert_true(unreadable <= 2 * (STEPS + chunks) + chunks);
	assert_int_equal(last, p.samples.len);
	assert_int_equal(read_bytes(&second, disk.bytes.data, disk.bytes.len, &why), 0);
	assert_same_in_all_styles(&p, &second);
	assert_int_equal(second.end_ns - second.start_ns, STEPS * 1000 * MS);
	for (size_t i = 0; i + 4 < disk.bytes.len; i++)
		chunks -= !memcmp(disk.bytes.data + i, JFR_MAGIC, 4);
	assert_int_equal(chunks, 0);
	profile_release(&second);
	profile_release(&p);
	disk_release(&disk);
	buf_release(&why);
}

static void killed_between_writes(void **state)
{
	killed(3600000 * MS, 1);
	killed(5000 * MS, 3);
}

static void expect_told(const struct disk *disk, uint64_t lost, size_t facts)
{
	struct profile read;
	struct buf why;

	buf_init(&why);
	assert_int_equal(read_bytes(&read, disk->bytes.data, disk->bytes.len, &why), 0);
	assert_int_equal(read.losses.len, 1);
	assert_int_equal(read.losses.items[0].count, lost);
	assert_int_equal(read.facts.len, facts);
	profile_release(&read);
	buf_release(&why);
}

/* A recorder that is killed has told its facts, and what was lost until then; each is told once. */
static void told_before_the_end(void **state)
{
	const struct writer *jfr = writer_by_name("jfr");
	struct writer_options options;
	struct writer_stream *stream;
	struct disk disk;
	struct profile p;
	FILE *out;

	writer_options_default(&options);
	profile_of_everything(&p);
	p.end_ns = p.start_ns + 1;
	vec_clear(&p.losses);
	vec_clear(&p.facts);
	profile_add_fact(&p, "engine", "bpf");
	disk_open(&disk, &out);
	stream = jfr->stream_open(&p, &options, out);
	profile_add_loss(&p, 3, "samples that were late");
	assert_int_equal(jfr->stream_append(stream, false), 0);
	expect_told(&disk, 3, 1);
	p.losses.items[0].count = 8;
	profile_add_fact(&p, "joined", "all");
	assert_int_equal(jfr->stream_append(stream, true), 0);
	expect_told(&disk, 8, 2);
	jfr->stream_close(stream);
	fclose(out);
	profile_release(&p);
	disk_release(&disk);
}

/* At any size of the disk, the file has what was whole before: steps of 1 to 127 bytes try a sixtieth of the sizes. */
static void full_disk(void **state)
{
	struct writer_options options;
	struct profile p;
	struct disk disk;
	size_t len, begin;

	writer_options_default(&options);
	options.chunk_ns = 5000 * MS;
	record_steps(&p, &options, &disk, 0);
	begin = disk.states.items[disk.begun - 1].len;
	len = disk.bytes.len;
	profile_release(&p);
	disk_release(&disk);
	for (size_t room = begin + 1; room < len; room += room % 127 + 1) {
		record_steps(&p, &options, &disk, room);
		assert_true(samples_in(disk.bytes.data, disk.bytes.len) > 0);
		profile_release(&p);
		disk_release(&disk);
	}
}

/* ---- options ---- */

static char *written_with(const struct profile *p, const struct writer_jfr *jfr, size_t *ret_len)
{
	struct writer_options options;
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, ret_len);

	writer_options_default(&options);
	options.jfr = *jfr;
	assert_int_equal(writer_by_name("jfr")->write(p, &options, out), 0);
	fclose(out);
	return bytes;
}

/* A file of the JDK's chunks, with another clock. */
static int file_with(const char *bytes, size_t len)
{
	int fd = memfd_create("jdk", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, len), len);
	return fd;
}

static const struct jfr_header *last_header(const char *bytes, size_t len)
{
	const struct jfr_header *header = (const struct jfr_header *)bytes;

	while (bytes + len > (const char *)header + be64toh(header->bytes))
		header = (const struct jfr_header *)((const char *)header + be64toh(header->bytes));
	return header;
}

/* The JDK's chunks come first, and duet's have their clock: ticks of equal moments are equal. */
static void chunks_of_the_jdk(void **state)
{
	struct profile first, second, both;
	struct writer_jfr jfr = {.ticks_per_second = 2500000000};
	const struct jfr_header *mine;
	size_t jdk_len, len;
	struct buf why;
	char *jdk, *file;
	int fd;

	buf_init(&why);
	profile_of_everything(&first);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	jdk = written_with(&first, &jfr, &jdk_len);
	fd = file_with(jdk, jdk_len);
	profile_of_everything(&second);
	second.start_realtime_ns = first.start_realtime_ns + 3000 * MS;
	jfr = (struct writer_jfr){.jdk_file = &fd, .settings = "engine=ctimer\ncstack=vm\nodd\n"};
	file = written_with(&second, &jfr, &len);
	assert_memory_equal(file, jdk, jdk_len);
	mine = last_header(file, len);
	assert_int_equal((const char *)mine - file, jdk_len);
	assert_int_equal(be64toh(mine->ticks_per_second), 2500000000);
	assert_int_equal(be64toh(mine->start_ticks) - be64toh(((struct jfr_header *)jdk)->start_ticks), 7500000000);
	assert_int_equal(read_bytes(&both, file, len, &why), 0);
	assert_int_equal(both.samples.len, 2 * first.samples.len);
	profile_release(&both);

	/* What is damaged is left out. */
	free(file);
	assert_int_equal(ftruncate(fd, (off_t)jdk_len - 1), 0);
	file = written_with(&second, &jfr, &len);
	assert_int_equal(be64toh(((struct jfr_header *)file)->ticks_per_second), 1000 * MS);
	assert_int_equal(read_bytes(&both, file, len, &why), 0);
	assert_int_equal(both.samples.len, second.samples.len);
	profile_release(&both);
	profile_release(&first);
	profile_release(&second);
	buf_release(&why);
	close(fd);
	free(file);
	free(jdk);
}

static void limits(void **state)
{
	uint32_t rates[JFR_RATES] = {0};
	struct jfr_budget budget = {0};
	uint32_t taken = 0;
	struct buf why;

	buf_init(&why);
	assert_int_equal(jfr_rates_parse(rates, "cpu:50,alloc:100;span:7", &why), 0);
	assert_int_equal(rates[JFR_RATE_CPU], 50);
	assert_int_equal(rates[JFR_RATE_ALLOC], 100);
	assert_int_equal(rates[JFR_RATE_SPAN], 7);
	assert_int_equal(rates[JFR_RATE_LOCK], 0);
	for (size_t i = 0; i < 5; i++) {
		static const char *const wrong[] = {"cpu", "cpu:", "cpu:0", "nosuch:1", "cpu:1:2"};

		buf_clear(&why);
		assert_int_equal(jfr_rates_parse(rates, wrong[i], &why), -EINVAL);
		assert_non_null(strstr(why.data, "CATEGORY:NUMBER"));
	}
	for (uint64_t ms = 0; ms < 1000; ms++)
		taken += jfr_budget_take(&budget, 50, ms * MS, 1);
	assert_int_equal(taken, 50);
	for (uint64_t ms = 3000; ms < 4000; ms++) /* what was not used in the second before is carried over */
		taken += jfr_budget_take(&budget, 50, ms * MS, 1);
	assert_int_equal(taken, 150);
	for (uint64_t ms = 4000; ms < 5000; ms++)
		taken += jfr_budget_take(&budget, 50, ms * MS, 1);
	assert_int_equal(taken, 200);
	assert_false(jfr_budget_take(&budget, 50, 9000 * MS, 101));
	buf_release(&why);
}

static void assert_number(uint64_t number, size_t bytes)
{
	struct jfr_cursor cursor = {0};
	struct buf out;

	buf_init(&out);
	jfr_put_number(&out, number);
	assert_int_equal(out.len, bytes);
	cursor.bytes = (const unsigned char *)out.data;
	cursor.end = out.len;
	assert_true(jfr_number(&cursor) == number && !cursor.failed && cursor.at == bytes);
	cursor.at = 0;
	cursor.end--;
	assert_true(jfr_number(&cursor) == 0 && cursor.failed);
	buf_release(&out);
}

static void numbers(void **state)
{
	assert_number(0, 1);
	assert_number(127, 1);
	assert_number(128, 2);
	assert_number((1ull << 56) - 1, 8);
	assert_number(1ull << 56, 9);
	assert_number(UINT64_MAX, 9);
}

static void assert_text(const char *bytes, size_t len, const char *want)
{
	struct jfr_cursor cursor = {.bytes = (const unsigned char *)bytes, .end = len};
	struct jfr_text text = jfr_text(&cursor);
	struct buf out;

	buf_init(&out);
	jfr_add_text(&out, &text);
	assert_string_equal(out.data, want);
	assert_int_equal(cursor.failed, 0);
	assert_int_equal(cursor.at, len);
	buf_release(&out);
}

/* Every encoding that others write. */
static void strings(void **state)
{
	assert_text("\0", 1, "");
	assert_text("\1", 1, "");
	assert_text("\2\5", 2, "");
	assert_text("\3\2ab", 4, "ab");
	assert_text("\5\2\xe4z", 4, "\xc3\xa4z");
	assert_text("\4\3\xc1\x00" /* 'A', one byte more than needed */ "\xe5\xc9\x01\x62", 8,
		    "A\xe6\x93\xa5"
		    "b");
	assert_text("\4\2\xbd\xb0\x03\x80\xb8\x03", 8, "\xf0\x9f\x90\x80");
	assert_text("\4\1\xbd\xb0\x03", 5, "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip_keeps_all),
		cmocka_unit_test(other_types),
		cmocka_unit_test(cut_and_damaged),
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(killed_between_writes),
		cmocka_unit_test(told_before_the_end),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(chunks_of_the_jdk),
		cmocka_unit_test(limits),
		cmocka_unit_test(numbers),
		cmocka_unit_test(strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
