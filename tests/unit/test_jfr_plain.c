/* SPDX-License-Identifier: MIT */
/*
 * What readers of async-profiler's files know by heart: numbers of types, fields of the rows of pools, which pools
 * there are, and one setting "event". The numbers are async-profiler 4.5's.
 */
#include "fixtures/read_back.h"

#include <endian.h>

#include "profile/jfr.h"
#include "readers/jfr/bytes.h"
#include "readers/jfr/types.h"

static const struct {
	const char *name;
	uint64_t id;
	size_t fields; /* of a row; 0: not looked at */
} known[] = {
	{"boolean", 4, 0},
	{"char", 5, 0},
	{"float", 6, 0},
	{"double", 7, 0},
	{"byte", 8, 0},
	{"short", 9, 0},
	{"int", 10, 0},
	{"long", 11, 0},
	{"java.lang.String", 20, 0},
	{"java.lang.Class", 21, 4},
	{"java.lang.Thread", 22, 4},
	{"jdk.types.ClassLoader", 23, 2},
	{"jdk.types.FrameType", 24, 1},
	{"jdk.types.ThreadState", 25, 1},
	{"jdk.types.StackTrace", 26, 2},
	{"jdk.types.StackFrame", 27, 4},
	{"jdk.types.Method", 28, 5},
	{"jdk.types.VirtualSpace", 29, 5},
	{"jdk.types.Package", 30, 1},
	{"jdk.types.Symbol", 31, 1},
	{"jdk.types.GCWhen", 32, 1},
	{"profiler.types.LogLevel", 33, 1},
	{"profiler.types.UserEventType", 34, 1},
	{"jdk.ExecutionSample", 101, 4},
	{"jdk.ObjectAllocationInNewTLAB", 102, 6},
	{"jdk.ObjectAllocationOutsideTLAB", 103, 5},
	{"jdk.JavaMonitorEnter", 104, 7},
	{"jdk.ThreadPark", 105, 8},
	{"jdk.CPULoad", 106, 4},
	{"jdk.ActiveRecording", 107, 8},
	{"jdk.ActiveSetting", 108, 4},
	{"jdk.OSInformation", 109, 2},
	{"jdk.CPUInformation", 110, 6},
	{"jdk.JVMInformation", 111, 8},
	{"jdk.InitialSystemProperty", 112, 3},
	{"jdk.NativeLibrary", 113, 4},
	{"jdk.GCHeapSummary", 114, 5},
	{"jdk.MethodTrace", 115, 5},
	{"profiler.Log", 116, 3},
	{"profiler.Window", 117, 3},
	{"profiler.LiveObject", 118, 6},
	{"profiler.WallClockSample", 119, 6},
	{"profiler.Malloc", 120, 5},
	{"profiler.Free", 121, 4},
	{"profiler.NativeLock", 122, 5},
	{"profiler.Span", 123, 4},
	{"profiler.UserEvent", 124, 4},
	{"profiler.ProcessSample", 125, 21},
	{"jdk.jfr.Label", 201, 0},
	{"jdk.jfr.Timestamp", 204, 0},
};

#define START_TICKS 5000000000000

/* Rows of the chunks before have lower numbers. */
#define FIRST_ROW (1u << 24)

/* A file as asprof's, of one chunk. */
struct file {
	char *bytes;
	size_t len;
	struct jfr_types types;
};

static void add(struct profile *p, const char *event, enum profile_unit unit, uint32_t count, uint64_t weight)
{
	uint32_t thread = profile_thread(p, 100, 7, "main", "java", owner_of(p, 100, "prod/pod-1/app"));
	uint32_t frames[] = {java_frame(p, FRAME_COMPILED, "com.acme.Main", "run", "()V", 10),
			     frame_of(p, FRAME_CLASS, "java.lang.String", "")};
	const struct profile_sample sample = {
		.time_ns = p->start_ns + 100 * MS,
		.weight = weight,
		.thread = thread,
		.node = profile_stack(p, frames, unit == PROFILE_BYTES ? 2 : 1),
		.count = count,
		.event = profile_event(p, event, unit, 10 * MS),
	};

	assert_int_equal(profile_add(p, &sample), 0);
}

static void open_file(struct file *file, const struct writer_jfr *jfr)
{
	struct writer_options options;
	struct profile p;
	FILE *out = open_memstream(&file->bytes, &file->len);
	struct jfr_cursor cursor;
	BUF(why);

	assert_int_equal(profile_init(&p), 0);
	p.start_ns = p.start_realtime_ns = 1700000000 * (1000 * MS);
	p.end_ns = p.start_ns + 1000 * MS;
	if (!jfr->settings)
		add(&p, "cpu", PROFILE_NS, 1, 10 * MS);
	add(&p, "wall", PROFILE_NS, 5, 50 * MS);
	add(&p, "alloc", PROFILE_BYTES, 1, 512);
	add(&p, "live", PROFILE_BYTES, 1, 512);
	writer_options_default(&options);
	options.tlab = true;
	options.jfr = *jfr;
	options.jfr.is_plain = true;
	options.jfr.start_ticks = START_TICKS;
	options.jfr.settings = jfr->settings ? jfr->settings : "event=wall\nfilter=\nalluser=false\nlive=true\n";
	assert_int_equal(writer_by_name("jfr")->write(&p, &options, out), 0);
	fclose(out);
	profile_release(&p);
	cursor = (struct jfr_cursor){(const unsigned char *)file->bytes, sizeof(struct jfr_header), file->len, false};
	assert_int_equal(jfr_types_init(&file->types), 0);
	assert_int_equal(jfr_types_read(&file->types, cursor, &why), 0);
}

static void close_file(struct file *file)
{
	jfr_types_release(&file->types);
	free(file->bytes);
}

static void types(void **state)
{
	struct file file;

	(void)state;
	open_file(&file, &(struct writer_jfr){0});
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const struct jfr_type *type = jfr_type_named(&file.types, known[i].name);

		if (!type || type->id != known[i].id || (known[i].fields && type->count != known[i].fields))
			fail_msg("%s: %d with %d fields", known[i].name, type ? (int)type->id : -1,
				 type ? (int)type->count : 0);
	}
	close_file(&file);
}

/* Readers that keep what chunks before had take a row for that with the same number. */
static bool is_numbered(uint64_t type, uint64_t row)
{
	bool is_fixed = type == 22 /* a thread's id */ || type == 24 || type == 25 || type == 32 || type == 33;

	return is_fixed || row > FIRST_ROW;
}

/* Other pools than async-profiler's end the parser of OpenTelemetry, which also knows the rows of those by heart. */
static void pools(void **state)
{
	const struct jfr_header *header;
	struct jfr_cursor cursor;
	struct file file;
	uint64_t count;

	(void)state;
	open_file(&file, &(struct writer_jfr){.first_row = FIRST_ROW});
	header = (const struct jfr_header *)file.bytes;
	assert_int_equal(be64toh(header->bytes), file.len);
	assert_int_equal(be64toh(header->start_ticks), START_TICKS); /* the caller's clock */
	cursor = (struct jfr_cursor){(const unsigned char *)file.bytes, be64toh(header->pools_at), file.len, false};
	(void)jfr_number(&cursor);
	assert_int_equal(jfr_number(&cursor), JFR_POOLS);
	for (int i = 0; i < 2; i++)
		(void)jfr_number(&cursor);
	assert_int_equal(jfr_number(&cursor), 0); /* there is no other event of pools */
	jfr_skip(&cursor, 1);
	for (count = jfr_number(&cursor); count; count--) {
		const struct jfr_type *type = jfr_type_by_id(&file.types, jfr_number(&cursor));
		uint64_t rows = jfr_number(&cursor);

		assert_non_null(type);
		assert_true(type->id >= 20 && type->id <= 34 && type->id != 23);
		for (; rows; rows--) {
			assert_true(is_numbered(type->id, jfr_number(&cursor)));
			assert_true(jfr_skip_value(&file.types, type, &cursor));
		}
	}
	assert_int_equal(cursor.at, file.len);
	close_file(&file);
}

/* A chunk that is appended: its rows have other numbers, wherever they are named. */
static void numbers_of_rows(void **state)
{
	struct writer_options options;
	struct profile first, second;
	struct buf why;
	char *bytes;
	size_t len;
	FILE *out = open_memstream(&bytes, &len);

	(void)state;
	buf_init(&why);
	profile_of_everything(&first);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	writer_options_default(&options);
	options.jfr.first_row = 63u << 24;
	assert_int_equal(writer_by_name("jfr")->write(&first, &options, out), 0);
	fclose(out);
	assert_int_equal(read_bytes(&second, bytes, len, &why), 0);
	assert_same_in_all_styles(&first, &second);
	profile_release(&first);
	profile_release(&second);
	buf_release(&why);
	free(bytes);
}

/* Calls the function for each event of the type. Returns how often it returned true. */
static size_t count(const struct file *file, uint64_t type, bool (*is_meant)(struct jfr_cursor *, const void *),
		    const void *context)
{
	struct jfr_cursor cursor = {(const unsigned char *)file->bytes, sizeof(struct jfr_header), file->len, false};
	size_t count = 0;

	while (cursor.at < cursor.end) {
		struct jfr_cursor event = cursor;
		uint64_t size = jfr_number(&event);

		count += jfr_number(&event) == type && is_meant(&event, context);
		cursor.at += size;
	}
	return count;
}

static bool is_any(struct jfr_cursor *event, const void *context)
{
	return true;
}

static size_t count_events(const struct file *file, uint64_t type)
{
	return count(file, type, is_any, NULL);
}

struct setting {
	uint64_t type; /* 0: of any */
	const char *name, *value; /* NULL: with any value */
};

static bool is_setting(struct jfr_cursor *event, const void *context)
{
	const struct setting *wanted = context;
	struct jfr_text text;
	uint64_t type;
	BUF(name);
	BUF(value);

	(void)jfr_number(event); /* its time */
	type = jfr_number(event);
	text = jfr_text(event);
	jfr_add_text(&name, &text);
	text = jfr_text(event);
	jfr_add_text(&value, &text);
	buf_add_char(&value, '\0');
	return (!wanted->type || wanted->type == type) && name.len == strlen(wanted->name) &&
	       !memcmp(name.data, wanted->name, name.len) && (!wanted->value || !strcmp(value.data, wanted->value));
}

static size_t count_settings(const struct file *file, uint64_t type, const char *name, const char *value)
{
	return count(file, 108, is_setting, &(struct setting){type, name, value});
}

static void settings(void **state)
{
	struct file file;

	(void)state;
	open_file(&file, &(struct writer_jfr){0});
	assert_int_equal(count_settings(&file, 0, "event", NULL), 1); /* readers keep the last one */
	assert_int_equal(count_settings(&file, 0, "event", "wall"), 1);
	assert_int_equal(count_settings(&file, 0, "filter", ""), 1);
	assert_int_equal(count_settings(&file, 0, "alluser", "false"), 1);
	assert_int_equal(count_settings(&file, 0, "live", "true"), 1);
	close_file(&file);
}

/* Whether there are CPU samples: for readers those of the wall clock are such, too. */
static void setting_of_wall(void **state)
{
	struct file file;

	(void)state;
	open_file(&file, &(struct writer_jfr){.settings = "event=wall\n"});
	assert_int_equal(count_events(&file, 101), 0);
	assert_int_equal(count_settings(&file, 101, "enabled", "true"), 1);
	assert_int_equal(count_settings(&file, 101, "enabled", "false"), 0);
	assert_int_equal(count_settings(&file, 104, "enabled", "false"), 1);
	close_file(&file);
}

/* Programs find their threads by Thread.threadId(). */
static void ids_of_threads(void **state)
{
	static const char *const formats[] = {"duet", "jfr"};
	struct profile p, back;
	uint64_t id;

	(void)state;
	assert_int_equal(profile_init(&p), 0);
	add(&p, "cpu", PROFILE_NS, 1, 10 * MS);
	assert_false(profile_java_id(&p, 0, &id));
	profile_set_java_id(&p, 0, 33);
	for (size_t i = 0; i < 2; i++) {
		read_back(formats[i], &p, &back);
		assert_int_equal(back.threads.len, 1);
		assert_int_equal(back.threads.items[0].tid, 7);
		assert_true(profile_java_id(&back, 0, &id));
		assert_int_equal(id, 33);
		assert_int_equal(profile_virtual_id(&back, 0), 0);
		profile_release(&back);
	}
	profile_release(&p);
}

/* A sleep of five periods is one event, or with nobatch five. */
static void batches(void **state)
{
	struct file file;

	(void)state;
	open_file(&file, &(struct writer_jfr){0});
	assert_int_equal(count_events(&file, 119), 1);
	assert_int_equal(count_events(&file, 101), 1);
	close_file(&file);
	open_file(&file, &(struct writer_jfr){.no_batch = true});
	assert_int_equal(count_events(&file, 119), 0);
	assert_int_equal(count_events(&file, 101), 6);
	close_file(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(pools),
		cmocka_unit_test(numbers_of_rows),
		cmocka_unit_test(settings),
		cmocka_unit_test(setting_of_wall),
		cmocka_unit_test(ids_of_threads),
		cmocka_unit_test(batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
