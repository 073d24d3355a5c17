/* SPDX-License-Identifier: MIT */
/* What JFR files tell of JVMs and the machine, written and read. */
#include "fixtures/read_back.h"

static void tell_all(struct profile *p)
{
	const struct profile_note notes[] = {
		{.kind = PROFILE_NOTE_PROPERTY, .pid = 100, .time_ns = p->start_ns + MS},
		{.kind = PROFILE_NOTE_COMMAND, .pid = 100, .time_ns = p->start_ns + MS},
		{.kind = PROFILE_NOTE_LIBRARY, .pid = 100, .time_ns = p->start_ns + MS, .numbers = {1ull << 47, 9}},
		{.kind = PROFILE_NOTE_LOAD, .time_ns = p->start_ns + 2 * MS, .numbers = {250, 125, 500, 1000}},
		{.kind = PROFILE_NOTE_HEAP, .pid = 100, .time_ns = p->start_ns + 3 * MS, .numbers = {7, 10, 20, 30}},
		{.kind = PROFILE_NOTE_THREADS, .pid = 100, .time_ns = p->start_ns + 3 * MS, .numbers = {5, 4, 9, 6}},
	};
	const struct profile_usage usage = {
		.time_ns = p->start_ns + 4 * MS,
		.started_ms = 1700000000000,
		.user_ns = 1500 * MS,
		.system_ns = 250 * MS,
		.load_ppm = 1250000,
		.size_bytes = 1ull << 40,
		.resident_bytes = 5,
		.anonymous_bytes = 4,
		.file_bytes = 3,
		.shared_bytes = 2,
		.minor_faults = 1,
		.major_faults = 6,
		.read_bytes = 7,
		.written_bytes = 8,
		.pid = 9,
		.parent = 1,
		.uid = 1000,
		.threads = 11,
		.state = 'S',
		.name = intern_str(&p->strings, "java"),
		.command = intern_str(&p->strings, "java -jar app.jar"),
	};

	profile_add_note(p, &notes[0], "user.dir", "/srv");
	profile_add_note(p, &notes[1], "-Xmx1g", "app.jar run");
	profile_add_note(p, &notes[2], "/lib/libjvm.so", NULL);
	profile_add_note(p, &notes[3], NULL, NULL);
	profile_add_note(p, &notes[4], NULL, NULL);
	profile_add_note(p, &notes[5], NULL, NULL);
	assert_int_equal(profile_add_usage(p, &usage), 0);
	p->host.processors = 4;
	p->host.memory_bytes = 1ull << 33;
	p->host.cpu_model = intern_str(&p->strings, "CPU of a test");
	p->host.os_name = intern_str(&p->strings, "Linux");
	p->host.usages_ns = 2000 * MS;
}

static void add_event(struct profile *p, uint32_t thread, const uint32_t frames[2])
{
	const struct profile_sample sample = {
		.time_ns = p->start_ns + 5 * MS,
		.weight = 1,
		.thread = thread,
		.node = profile_stack(p, frames, 2),
		.count = 1,
		.event = profile_event(p, "userevent", PROFILE_COUNT, 0),
	};

	assert_int_equal(profile_add(p, &sample), 0);
}

static uint32_t jvm_thread(struct profile *p)
{
	const struct profile_owner owner = {
		.pid = 100,
		.start_ticks = 5,
		.runtime = intern_str(&p->strings, "OpenJDK 64-Bit Server VM 17.0.15+6"),
		.vm_flags = intern_str(&p->strings, "MaxHeapSize=1073741824\nUseG1GC=false\n"),
	};

	return profile_thread(p, 100, 102, "main", "java", profile_owner(p, &owner));
}

static const struct profile_note *note_of(const struct profile *p, enum profile_note_kind kind)
{
	const struct profile_note *found = NULL;

	for (size_t i = 0; i < p->notes.len; i++)
		if (p->notes.items[i].kind == kind) {
			assert_null(found);
			found = &p->notes.items[i];
		}
	assert_non_null(found);
	return found;
}

static void assert_same_note(const struct profile *a, const struct profile *b, enum profile_note_kind kind)
{
	const struct profile_note *first = note_of(a, kind), *second = note_of(b, kind);

	assert_string_equal(intern_text(&a->strings, first->texts[0]), intern_text(&b->strings, second->texts[0]));
	assert_string_equal(intern_text(&a->strings, first->texts[1]), intern_text(&b->strings, second->texts[1]));
	if (first->pid)
		assert_int_equal(first->pid, second->pid);
	for (int i = 0; i < 4; i++)
		if (kind != PROFILE_NOTE_LOAD)
			assert_int_equal(first->numbers[i], second->numbers[i]);
		else /* parts of all */
			assert_int_equal(first->numbers[i] * 1000, second->numbers[i] * 1000 / 1000000);
}

static void assert_same_usage(const struct profile *a, const struct profile *b)
{
	struct profile_usage usage = b->usages.items[0];

	assert_int_equal(b->usages.len, 1);
	assert_int_equal(usage.time_ns - b->start_ns, a->usages.items[0].time_ns - a->start_ns);
	assert_string_equal(intern_text(&b->strings, usage.name), "java");
	assert_string_equal(intern_text(&b->strings, usage.command), "java -jar app.jar");
	usage.time_ns = a->usages.items[0].time_ns;
	assert_memory_equal(&usage, &a->usages.items[0], offsetof(struct profile_usage, name));
}

static void assert_same_jvm(const struct profile *a, const struct profile *b)
{
	const struct profile_owner *first = &a->owners.items[a->owners.len - 1], *second = NULL;

	for (size_t i = 0; i < b->owners.len; i++)
		if (b->owners.items[i].runtime)
			second = &b->owners.items[i];
	assert_non_null(second);
	assert_int_equal(second->pid, first->pid);
	assert_string_equal(intern_text(&b->strings, second->runtime), intern_text(&a->strings, first->runtime));
	assert_string_equal(intern_text(&b->strings, second->vm_flags), intern_text(&a->strings, first->vm_flags));
}

/* What JVMs and the machine tell is read, too, and events of the program's own. Two chunks tell it once. */
static void what_is_told(void **state)
{
	struct profile first, second;
	uint32_t thread, frames[2];
	char *file, *twice;
	struct buf why;
	size_t len;

	buf_init(&why);
	profile_of_everything(&first);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	tell_all(&first);
	thread = jvm_thread(&first);
	frames[0] = frame_of(&first, FRAME_SPAN, "checkout", "");
	frames[1] = frame_of(&first, FRAME_SPAN, "order 17", "");
	add_event(&first, thread, frames);
	frames[1] = frame_of(&first, FRAME_SPAN, "", "");
	add_event(&first, thread, frames);
	file = written_file("jfr", &first, &len);
	assert_int_equal(read_bytes(&second, file, len, &why), 0);
	assert_same_in_all_styles(&first, &second);
	for (enum profile_note_kind kind = 0; kind < PROFILE_NOTE_KINDS; kind++)
		assert_same_note(&first, &second, kind);
	assert_same_usage(&first, &second);
	assert_int_equal(second.host.processors, 4);
	assert_int_equal(second.host.memory_bytes, 1ull << 33);
	assert_same_jvm(&first, &second);
	assert_int_equal(second.host.usages_ns, first.host.usages_ns);
	assert_string_equal(intern_text(&second.strings, second.host.cpu_model), "CPU of a test");
	assert_string_equal(intern_text(&second.strings, second.host.os_name), "Linux");
	profile_release(&second);
	twice = malloc(2 * len);
	assert_non_null(twice);
	memcpy(twice, file, len);
	memcpy(twice + len, file, len);
	assert_int_equal(read_bytes(&second, twice, 2 * len, &why), 0);
	(void)note_of(&second, PROFILE_NOTE_PROPERTY);
	(void)note_of(&second, PROFILE_NOTE_COMMAND);
	(void)note_of(&second, PROFILE_NOTE_LIBRARY);
	assert_int_equal(second.usages.len, 2);
	profile_release(&first);
	profile_release(&second);
	buf_release(&why);
	free(file);
	free(twice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
