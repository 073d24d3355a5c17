/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

static void assert_report(const char *golden, const struct profile *profile, const struct writer_options *options)
{
	char *text = written(strncmp(golden, "full_", 5) ? "text" : "text=full", profile, options);

	assert_golden(golden, text);
	free(text);
}

static void the_report_matches_golden(void **state)
{
	struct writer_options options;
	struct profile profile;

	profile_of_everything(&profile);
	writer_options_default(&options);
	assert_report("plain.txt", &profile, &options);
	assert_report("full_plain.txt", &profile, &options);
	options.title = HOSTILE;
	options.style.annotate = true;
	options.threads = options.total = true;
	options.traces = 2;
	options.flat = 3;
	assert_report("full_total.txt", &profile, &options);
	profile_release(&profile);
}

static void an_empty_profile_says_so(void **state)
{
	struct writer_options options;
	struct profile profile;

	assert_int_equal(profile_init(&profile), 0);
	writer_options_default(&options);
	assert_report("full_empty.txt", &profile, &options);
	assert_report("empty.txt", &profile, &options);
	profile_release(&profile);
}

static void one_sample_is_all(void **state)
{
	struct writer_options options;
	struct profile profile;

	profile_of_depth(&profile, 3);
	writer_options_default(&options);
	assert_report("full_one.txt", &profile, &options);
	profile_release(&profile);
}

static void ten_thousand_frames_are_printed(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *text;

	profile_of_depth(&profile, 10000);
	writer_options_default(&options);
	options.max_depth = 0;
	text = written("text=full", &profile, &options);
	assert_non_null(strstr(text, "\n  [9999] f0\n"));
	free(text);
	profile_release(&profile);
}

/* ---- the report of 60 lines ---- */

static char *short_report(struct profile *profile, const char *title)
{
	struct writer_options options;
	char *text;

	writer_options_default(&options);
	options.threads = options.processes = true;
	options.title = title;
	text = written("text", profile, &options);
	profile_release(profile);
	return text;
}

static size_t lines_of(const char *text)
{
	size_t lines = 0, columns = 0, most = 0;

	for (; *text; text++) {
		columns = *text == '\n' ? 0 : columns + (((unsigned char)*text & 0xc0) != 0x80);
		most = columns > most ? columns : most;
		lines += *text == '\n';
	}
	assert_true(most <= 140);
	return lines;
}

/* A method that calls itself is counted once; self and total are in the unit of the event. */
static void recursion_counts_once(void **state)
{
	struct profile profile;
	uint32_t run, walk, leaf;
	char *text;

	assert_int_equal(profile_init(&profile), 0);
	run = java_frame(&profile, FRAME_COMPILED, "shop.Main", "run", "()V", 1);
	walk = java_frame(&profile, FRAME_COMPILED, "shop.Tree", "walk", "()V", 1);
	leaf = java_frame(&profile, FRAME_COMPILED, "java.util.HashMap", "get", "()V", 1);
	ADD_STACK(&profile, profile_thread(&profile, 1, 1, "main", "java", 0), 30, run, walk, walk, walk, leaf);
	ADD_STACK(&profile, profile_thread(&profile, 1, 2, "other", "java", 0), 10, run, walk, walk);
	text = short_report(&profile, NULL);
	assert_non_null(strstr(text, " 75.0 %    300.0 ms    75.0 %    300.0 ms   java.util.HashMap.get\n"));
	assert_non_null(strstr(text, " 25.0 %    100.0 ms   100.0 %    400.0 ms   shop.Tree.walk\n"));
	assert_non_null(strstr(text, "  HashMap.get < Tree.walk ×3 < Main.run\n"));
	assert_non_null(strstr(text, " 25.0 %    100.0 ms   [other tid=2]\n"));
	free(text);
}

static void add_waits(struct profile *profile, uint32_t thread, uint32_t count, const uint32_t *frames, uint32_t depth)
{
	uint32_t event = profile_event(profile, "offcpu", PROFILE_NS, 10 * MS);

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(profile_add(profile,
					     &(struct profile_sample){
						     .weight = 1000 * MS,
						     .thread = thread,
						     .node = profile_stack(profile, frames, depth),
						     .count = 1,
						     .event = event,
					     }),
				 0);
}

/* Waits are shown under the program's own frame; what waits for work all the time is left out. */
static void a_wait_counts_for_the_program(void **state)
{
	struct profile profile;
	uint32_t idle, take, park, futex, kernel, wait, thread;
	char *text;

	assert_int_equal(profile_init(&profile), 0);
	thread = profile_thread(&profile, 1, 1, "main", "java", 0);
	idle = frame_of(&profile, FRAME_STATE, "[idle]", "");
	take = java_frame(&profile, FRAME_COMPILED, "shop.Queue", "take", "()V", 1);
	park = java_frame(&profile, FRAME_COMPILED, "java.util.concurrent.locks.LockSupport", "park", "()V", 1);
	wait = frame_of(&profile, FRAME_NATIVE, "pthread_cond_wait", "libc.so.6");
	kernel = frame_of(&profile, FRAME_KERNEL, "do_futex", "");
	futex = frame_of(&profile, FRAME_STATE, "[futex]", "");
	add_waits(&profile, thread, 3, (uint32_t[]){take, park, wait, kernel, futex}, 5);
	add_waits(&profile, thread, 1, (uint32_t[]){park, wait, kernel, futex}, 4);
	add_waits(&profile, thread, 6, (uint32_t[]){idle, wait, kernel, futex}, 4);
	text = short_report(&profile, NULL);
	assert_non_null(strstr(text, "10 samples of java, none lost\n"));
	assert_non_null(strstr(text, "offcpu: 10000 ms in 10 samples; 6000 ms of it are left out here"));
	assert_non_null(strstr(text, " 75.0 %     3000 ms    75.0 %     3000 ms   shop.Queue.take\n"));
	assert_non_null(
		strstr(text, " 25.0 %     1000 ms   100.0 %     4000 ms   java.util.concurrent.locks.LockSupport"));
	assert_non_null(strstr(text, "100.0 %     4000 ms   [futex]: a lock, or to be notified\n"));
	assert_null(strstr(text, "pthread_cond_wait"));
	free(text);
}

/* Many methods, stacks, classes, threads and processes, of as many events as a recording can have. */
static void many_profile(struct profile *profile, uint32_t events)
{
	char name[200];

	assert_int_equal(profile_init(profile), 0);
	profile_add_loss(profile, 7, "samples dropped: the kernel ring was full");
	profile_add_loss(profile, 9, "user stacks cut: stack memory could not be read");
	for (uint32_t event = 0; event < events; event++) {
		snprintf(name, sizeof(name), "event%u", event);
		profile_event(profile, name, event % 3, 1);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t frames[3];

		snprintf(name, sizeof(name), "aVeryLongPackageName.%0*d.Class", 100, i);
		frames[0] = java_frame(profile, FRAME_COMPILED, "a.B", "run", "()V", 1);
		frames[1] = java_frame(profile, FRAME_COMPILED, name, "\xe6\x97\xa5\xe6\x97\xa5method", "()V", 1);
		frames[2] = frame_of(profile, FRAME_CLASS, name, "");
		assert_int_equal(profile_add(profile,
					     &(struct profile_sample){
						     .weight = i,
						     .thread = profile_thread(profile, i % 30, i, "t", "p", 0),
						     .node = profile_stack(profile, frames, 3),
						     .count = 1,
						     .event = i % events,
					     }),
				 0);
	}
}

static void it_fits_on_a_screen(void **state)
{
	for (uint32_t events = 1; events <= 16; events++) {
		struct profile profile;
		char *text;

		many_profile(&profile, events);
		text = short_report(&profile, "a title");
		assert_in_range(lines_of(text), events == 1 ? 50 : 25, 60);
		assert_non_null(strstr(text, "7 lost, 9 with incomplete stacks (mostly: the kernel ring was full; "));
		free(text);
	}
}

/* "java" says little of a process. */
static void processes_have_their_program(void **state)
{
	struct profile profile;
	uint32_t owner, frame;
	char *text;

	assert_int_equal(profile_init(&profile), 0);
	profile_event(&profile, "cpu", PROFILE_NS, 1);
	owner = profile_owner(&profile, &(struct profile_owner){
						.pid = 1,
						.application = intern_str(&profile.strings, "java: shop.jar"),
					});
	frame = frame_of(&profile, FRAME_NATIVE, "f", "");
	add_stack(&profile, profile_thread(&profile, 1, 1, "main", "java", owner), 3, &frame, 1);
	add_stack(&profile, profile_thread(&profile, 2, 2, "main", "bash", 0), 1, &frame, 1);
	text = short_report(&profile, NULL);
	assert_non_null(strstr(text, "  [java pid=1] shop.jar\n"));
	assert_non_null(strstr(text, "  [bash pid=2]\n"));
	free(text);
	profile_release(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_report_matches_golden), cmocka_unit_test(an_empty_profile_says_so),
		cmocka_unit_test(one_sample_is_all),	     cmocka_unit_test(ten_thousand_frames_are_printed),
		cmocka_unit_test(recursion_counts_once),     cmocka_unit_test(a_wait_counts_for_the_program),
		cmocka_unit_test(it_fits_on_a_screen),	     cmocka_unit_test(processes_have_their_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
