/* SPDX-License-Identifier: MIT */
/* perf script's text, speedscope, callgrind. */
#include "fixtures/read_back.h"

#include <errno.h>
#include <jansson.h>

/* CPU time of all kinds of frames, and two other events. */
static void profile_of_events(struct profile *p)
{
	uint32_t run, object, thread;

	profile_of_everything(p);
	(void)profile_event(p, "alloc", PROFILE_BYTES, 512 << 10);
	thread = profile_thread(p, 300, 301, "Main Thread 1", "java", 0);
	run = java_frame(p, FRAME_COMPILED, "Main", "run", "()V", 10);
	object = frame_of(p, FRAME_CLASS, "java.lang.String", "");
	assert_int_equal(profile_add(p, &(struct profile_sample){.time_ns = 7, .weight = 1003, .thread = thread,
								 .node = profile_stack(p, (uint32_t[]){run, object}, 2),
								 .count = 5, .event = 1}),
			 0);
	p->start_realtime_ns = 1700000000 * (1000 * MS);
	p->end_ns = p->start_ns + 5000 * MS;
}

static void perf_round_trip(void **state)
{
	struct profile first, second;

	profile_of_events(&first);
	read_back("perf", &first, &second);
	assert_int_equal(second.events.len, 2);
	assert_int_equal(second.events.items[0].interval, 10 * MS);
	assert_int_equal(second.events.items[1].unit, PROFILE_BYTES);
	assert_int_equal(second.start_ns, first.start_realtime_ns);
	assert_int_equal(second.end_ns - second.start_ns, 5000 * MS);
	for (uint32_t event = 0; event < 2; event++) {
		struct writer_options options;

		writer_options_default(&options);
		options.event = event;
		assert_same_stacks(&first, &second, &options);
		options.style.annotate = true;
		options.threads = options.processes = options.total = true;
		assert_same_stacks(&first, &second, &options);
	}
	profile_release(&first);
	profile_release(&second);
}

static int take_weight(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context = sample->weight;
	return 0;
}

/* Of a thread, and of a sample that has all of a signed number. */
static void perf_round_trip_of(const char *name, const char *want)
{
	const uint64_t weight = INT64_MAX;
	uint64_t read = 0;
	struct profile first, second;

	assert_int_equal(profile_init(&first), 0);
	(void)profile_event(&first, "cycles", PROFILE_COUNT, 1);
	assert_int_equal(profile_add(&first, &(struct profile_sample){
						     .weight = weight, .count = 1,
						     .thread = profile_thread(&first, 8, 9, name, "java", 0)}),
			 0);
	read_back("perf", &first, &second);
	assert_int_equal(second.events.len, 1);
	assert_int_equal(second.threads.len, 1);
	assert_int_equal(second.threads.items[0].tid, 9);
	assert_string_equal(intern_text(&second.strings, second.threads.items[0].name), want);
	assert_int_equal(second.samples.len, 1);
	assert_int_equal(timeline_each(&second.samples, take_weight, &read), 0);
	assert_int_equal(read, weight);
	profile_release(&first);
	profile_release(&second);
}

/* perf's text does not mark the end of a name. */
static void perf_names_like_samples(void **state)
{
	perf_round_trip_of("a 1/2 6.1: sched:", "a 1/2 6.1_ sched:");
	perf_round_trip_of("a 2 6.1: 7 sched\tswitch: x", "a 2 6.1_ 7 sched?switch: x");
	perf_round_trip_of("7.5:", "7.5_");
	perf_round_trip_of("# 1 [000] 7.5: x:  ", "_ 1 [000] 7.5_ x:");
	perf_round_trip_of("GC Thread#12: 1.5:a", "GC Thread#12: 1.5:a");
}

static void assert_perf(const char *text, bool annotate, const char *want, const char *cause)
{
	struct writer_options options;
	struct profile profile;
	struct buf why;
	char *got;

	buf_init(&why);
	assert_int_equal(read_bytes(&profile, text, strlen(text), &why), cause ? -EINVAL : 0);
	assert_string_equal(why.data, cause ? cause : "");
	if (!cause) {
		writer_options_default(&options);
		options.style = (struct frame_style){.annotate = annotate, .libraries = true};
		options.threads = options.total = true;
		got = written("collapsed", &profile, &options);
		assert_string_equal(got, want);
		free(got);
	}
	profile_release(&profile);
	buf_release(&why);
}

/* The forms in which perf writes them. */
static void perf_of_others(void **state)
{
	assert_perf("# cmdline : perf record\n"
		    "java 25607 4794564.109216:          2 cycles:P: \n"
		    "\tffffffff8105b9a2 do_syscall_64+0x12 ([kernel.kallsyms])\n"
		    "\tffffffffc05b9a2f nft_do_chain+0x12 ([nf_tables])\n"
		    "\t    7f1234567890 [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)\n"
		    "\t    7f1234567890 Lcom/acme/Main;::run+0x1 (/tmp/perf-7.map)\n"
		    "\t    7f1234567890 com.acme.Main.run (/tmp/perf-7.map)\n"
		    "\t    7f1234567890 operator()(int)+0x12 (/usr/bin/a b)\n\n"
		    "V8 WorkerThread 24636/25607 [000] 94564.109216: 100 cycles:P: \n"
		    "            1234 main (inlined)\n",
		    true,
		    "[V8 WorkerThread tid=25607];main 100\n"
		    "[java tid=25607];a b`operator()(int);com/acme/Main.run_[j];Lcom/acme/Main|::run;"
		    "libc.so.6`[unknown];nf_tables`nft_do_chain_[k];kernel`do_syscall_64_[k] 2\n",
		    NULL);
	assert_perf("a 1/2 [001] 5.000001: sched:sched_switch: prev_comm=x ==> 7\n\n", false, "[a tid=2];[unknown] 1\n",
		    NULL);
	assert_perf("a 1/2 5.0: PERF_RECORD_COMM exec: a:1/2\na 1/2 5.1: PERF_RECORD_FORK(1:3):(1:1)\n"
		    "a 1/2 5.2: 1 x:\n\t1 f (g)\n\n"
		    "a 1 5.3: PERF_RECORD_MMAP2 1/2: [0x400000(0x1000) @ 0 fe:00 1 2]: r-xp /a b\n"
		    "a 1 5.3: PERF_RECORD_COMM: b:1/2\n"
		    "a 1/2 5.4: 1 x:\n\t1 f (g)\n\nx PERF_RECORD_ 1/3 5.4: 1 x:\n\t1 f (g)\n\n",
		    false, "[a tid=2];g`f 2\n[x PERF_RECORD_ tid=3];g`f 1\n", NULL);
	assert_perf("a 1/2 5.0: 1 x:\n\t1 like 9 6.0: 1 y: (g)\n\n", false, "[a tid=2];g`like 9 6.0: 1 y: 1\n", NULL);
	assert_perf("a 1/2 5.000001: 1 x:\n\t1 f (g)\n\nnothing\n", false, NULL,
		    "line 4 is no sample, as \"comm 12/34 5.678901: 1 cycles:\"");
}

/* Without -g, the frame is in the sample's line, and the thread's name is aligned to the right. */
static void perf_without_chains(void **state)
{
	assert_perf("               w 58 [001] 27.5: 5 cpu-clock:      559b5163416a leaf+0x21 (/tmp/w)\n"
		    "            java 59 [001] 27.6: 7 cpu-clock:  ffffffff821f3125 do_exit+0x5 ([kernel.kallsyms])\n"
		    "               w 58 [001] 27.7: 1 cpu-clock:      559b5163416a leaf+0x1e (/tmp/w)\n",
		    true, "[java tid=59];kernel`do_exit_[k] 7\n[w tid=58];w`leaf 6\n", NULL);
	assert_perf("   w 30902 [001] 22.19: sched:sched_switch: prev_comm=w prev_pid=30902 ==> next_comm=x\n"
		    "   v 30903 [001] 22.20: sched:sched_switch: 559b5163416a prev_comm=w prev_pid=30902\n",
		    false, "[v tid=30903];[unknown] 1\n[w tid=30902];[unknown] 1\n", NULL);
}

/* perf script -F with fewer fields, and with more. */
static void perf_with_other_fields(void **state)
{
	assert_perf("w w  5.000001: cycles: \n\t1 f (g)\n\n  5.000002: cycles: \n\t1 f (g)\n\n", false,
		    "[ tid=0];g`f 1\n[w w tid=0];g`f 1\n", NULL);
	assert_perf("w w 18395 U      5.643336:    2 cycles: \n\t1 f (g)\n\n", false, "[w w tid=18395];g`f 2\n", NULL);
	assert_perf("w 1/2 5.0: 1 cycles: \n\t\tleaf (g)\n\t\tmain (g)\n\n", false, "[w tid=2];g`main;g`leaf 1\n",
		    NULL);
	assert_perf("w 1/2 5.0: 1 cycles: \n\t            116a leaf+0x21 (g)\n ilen: 2 insn: 75 db\n"
		    "\tffffffff81000e06 f (g)\n  [kernel.kallsyms][ffffffff81000e06]\n\n",
		    false, "[w tid=2];g`f;g`leaf 1\n", NULL);
}

/* perf script -F without the time, with chains and, as -G makes them, without. */
static void perf_without_times(void **state)
{
	static const char chain[] = "\t            1417 f (g)\n\tffffffff8142cccf h (g)\n\n";
	static const struct {
		const char *head, *want, *want_flat;
	} cases[] = {
		{"", "[ tid=0];g`h;g`f 2\n", "[ tid=0];g`f 2\n"},
		{"w ", "[w tid=0];g`h;g`f 2\n", "[w tid=0];g`f 2\n"},
		{"w w 7 ", "[w w tid=7];g`h;g`f 2\n", "[w w tid=7];g`f 2\n"},
		{"   7 ", "[ tid=7];g`h;g`f 2\n", "[ tid=7];g`f 2\n"},
		{"   2004008 ", "[ tid=0];g`h;g`f 4008016\n", "[ tid=0];g`f 4008016\n"},
		{"w 3/7 cycles: ", "[w tid=7];g`h;g`f 2\n", "[w tid=7];g`f 2\n"},
		{"w 3/7 [001]          9 cycles: ", "[w tid=7];g`h;g`f 18\n", "[w tid=7];g`f 18\n"},
		{"cycles: ", "[ tid=0];g`h;g`f 2\n", "[ tid=0];g`f 2\n"},
		{"w 7 5.000001: ", "[w tid=7];g`h;g`f 2\n", "[w tid=7];g`f 2\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s\n%s%s\n%s", cases[i].head, chain, cases[i].head, chain);
		assert_perf(text, false, cases[i].want, NULL);
		snprintf(text, sizeof(text), "%s    556891fc9417 f (g)\n%s    556891fc9417 f (g) 0x1/0x2/P/-/-/1\n",
			 *cases[i].head ? cases[i].head : " ", *cases[i].head ? cases[i].head : " ");
		assert_perf(text, false, cases[i].want_flat, NULL);
	}
	assert_perf("sched:sched_switch: prev_comm=a b 1\nsched:sched_switch: prev_comm=b c 2\n", false,
		    "[ tid=0];[unknown] 2\n", NULL);
	assert_perf("prev_comm=a prev_pid=7 ==> next_comm=b\n\tffffffff8142cccf h (g)\n\n", false,
		    "[ tid=0];g`h 1\n", NULL);
	assert_perf("  w 5.000001: \n  w 5.000002: \n", false, "[w tid=0];[unknown] 2\n", NULL);
	assert_perf("\n\t            1417\n\n", false, "[ tid=0];1417 1\n", NULL);
	assert_perf("w 7 \n\t            1417 f (g)\n\nx 7 \ny 7 \n", false, NULL,
		    "line 5 follows a sample without event and frame, which perf script -F +ip,sym shows");
	assert_perf("\n0x108@perf.data [0x50]: event: 69\n.\n", false, NULL,
		    "line 2 is of perf script -D, which duet does not read: leave out -D");
}

/* Lines of the source are those of the frames above them. */
static void perf_with_lines(void **state)
{
	const char text[] = "w 1/2 5.0: 1 cycles: \n\t 116a leaf (g)\n  w.c:4\n\t 11ba main (g)\n  w.c:6\n\n"
			    "  w 1 5.1: 1 cycles:      559b5163416a leaf (g)\n  w.c:5\n"
			    "  w 1 5.2: 1 cycles:      559b5163416a leaf (g)\n";
	struct profile profile;
	struct buf why;
	int lines[4] = {0}, count = 0;

	buf_init(&why);
	assert_int_equal(read_bytes(&profile, text, strlen(text), &why), 0);
	assert_int_equal(profile.samples.len, 3);
	for (uint32_t i = 0; i < profile.samples.len; i++) {
		uint32_t node = profile.samples.recent.items[i].node;

		for (; node; node = profile.nodes.items[node].parent)
			lines[count++] = profile.frames.items[profile.nodes.items[node].frame].line;
	}
	assert_memory_equal(lines, ((int[]){4, 6, 5, 0}), sizeof(lines));
	profile_release(&profile);
	buf_release(&why);
}

static uint64_t sum_of(json_t *numbers)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < json_array_size(numbers); i++)
		sum += (uint64_t)json_integer_value(json_array_get(numbers, i));
	return sum;
}

/* Weights of the profile's samples, whose frames are of the file. */
static uint64_t check_speedscope(json_t *one, size_t frames, size_t *stacks)
{
	json_t *samples = json_object_get(one, "samples"), *weights = json_object_get(one, "weights");

	assert_int_equal(json_array_size(samples), json_array_size(weights));
	assert_int_equal(sum_of(weights), json_integer_value(json_object_get(one, "endValue")));
	for (size_t i = 0; i < json_array_size(samples); i++)
		for (size_t j = 0; j < json_array_size(json_array_get(samples, i)); j++)
			assert_true((size_t)json_integer_value(json_array_get(json_array_get(samples, i), j)) < frames);
	*stacks += json_array_size(samples);
	return sum_of(weights);
}

/* Of CPU time all threads, then two of them, the busier one first; of allocations the only thread. */
static void speedscope(void **state)
{
	static const char *const names[] = {"cpu: all threads", "cpu: ", "cpu: ", "alloc: "};
	struct profile profile;
	json_t *root, *profiles;
	uint64_t sums[4];
	size_t len, frames, stacks = 0;
	char *file;

	profile_of_events(&profile);
	file = written_file("speedscope", &profile, &len);
	root = json_loadb(file, len, 0, NULL);
	assert_non_null(root);
	frames = json_array_size(json_object_get(json_object_get(root, "shared"), "frames"));
	profiles = json_object_get(root, "profiles");
	assert_int_equal(json_array_size(profiles), 4);
	for (size_t i = 0; i < 4; i++) {
		json_t *one = json_array_get(profiles, i);
		const char *name = json_string_value(json_object_get(one, "name"));

		assert_memory_equal(name, names[i], strlen(names[i]));
		stacks = i == 1 ? 0 : stacks; /* those of all threads are not counted */
		sums[i] = check_speedscope(one, frames, &stacks);
	}
	assert_int_equal(sums[0], sums[1] + sums[2]);
	assert_true(sums[1] > sums[2] && sums[2]);
	assert_int_equal(stacks, 21);
	assert_int_equal(sums[1] + sums[2] + sums[3], 19 * 10 * MS + 123456789 + 1003);
	json_decref(root);
	profile_release(&profile);
	free(file);
}

/* A method that calls itself: the cost of its call is not counted twice. */
static void callgrind(void **state)
{
	struct profile profile;
	uint32_t outer, again, thread;
	size_t len;
	char *file;

	assert_int_equal(profile_init(&profile), 0);
	thread = profile_thread(&profile, 1, 1, "t", "p", 0);
	outer = frame_of(&profile, FRAME_NATIVE, "outer", "a.so");
	again = frame_of(&profile, FRAME_NATIVE, "again", "b.so");
	ADD_STACK(&profile, thread, 2, outer, again, again, again);
	ADD_STACK(&profile, thread, 1, outer);
	file = written_file("callgrind", &profile, &len);
	assert_string_equal(strstr(file, "events:"),
			    "events: weight samples\nsummary: 30000000 3\n\n"
			    "ob=a.so\nfn=(1) outer\n0 10000000 1\ncob=b.so\ncfn=(2) again\ncalls=2 0\n0 20000000 2\n\n"
			    "ob=b.so\nfn=(2) again\n0 20000000 2\ncob=b.so\ncfn=(2) again\ncalls=2 0\n0 20000000 2\n\n"
			    "totals: 30000000 3\n");
	profile_release(&profile);
	free(file);
}

static void put_slice(json_t *slice, struct buf *out)
{
	const char *phase = json_string_value(json_object_get(slice, "ph"));

	if (*phase == 'M')
		buf_printf(out, "%s=%s\n", json_string_value(json_object_get(slice, "name")),
			   json_string_value(json_object_get(json_object_get(slice, "args"), "name")));
	else if (*phase == 'X')
		buf_printf(out, "%s %.0f+%.0f\n", json_string_value(json_object_get(slice, "name")),
			   json_number_value(json_object_get(slice, "ts")),
			   json_number_value(json_object_get(slice, "dur")));
	else
		buf_printf(out, "%s %.0f %s\n", json_string_value(json_object_get(slice, "name")),
			   json_number_value(json_object_get(slice, "ts")),
			   json_string_value(json_object_get(json_object_get(slice, "args"), "stack")));
}

static int add_at(struct profile *p, uint32_t thread, uint64_t time_ms, uint32_t event, const uint32_t *frames,
		  uint32_t depth)
{
	return profile_add(p, &(struct profile_sample){.time_ns = p->start_ns + time_ms * MS, .weight = 10 * MS,
						       .thread = thread, .count = 1, .event = event,
						       .node = profile_stack(p, frames, depth)});
}

/* Three samples without a gap, one after a pause, and one of an event that has no time. */
static void chrome_trace(void **state)
{
	struct writer_options options;
	struct profile p;
	uint32_t run, a, b, thread;
	struct buf events;
	json_t *root, *slices;
	char *text;

	assert_int_equal(profile_init(&p), 0);
	(void)profile_event(&p, "cpu", PROFILE_NS, 10 * MS);
	(void)profile_event(&p, "page-faults", PROFILE_COUNT, 1);
	thread = profile_thread(&p, 7, 8, "worker", "app", 0);
	run = frame_of(&p, FRAME_NATIVE, "run", "");
	a = frame_of(&p, FRAME_NATIVE, "a", "");
	b = frame_of(&p, FRAME_NATIVE, "</script>", "");
	assert_int_equal(add_at(&p, thread, 10, 0, (uint32_t[]){run, a}, 2), 0);
	assert_int_equal(add_at(&p, thread, 20, 0, (uint32_t[]){run, a}, 2), 0);
	assert_int_equal(add_at(&p, thread, 31, 0, (uint32_t[]){run, b}, 2), 0); /* the tick was late */
	assert_int_equal(add_at(&p, thread, 90, 0, (uint32_t[]){run}, 1), 0);
	assert_int_equal(add_at(&p, thread, 95, 1, (uint32_t[]){run, a}, 2), 0);
	writer_options_default(&options);
	text = written("chrometrace", &p, &options);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	buf_init(&events);
	slices = json_object_get(root, "traceEvents");
	for (size_t i = 0; i < json_array_size(slices); i++)
		put_slice(json_array_get(slices, i), &events);
	assert_string_equal(events.data, "process_name=app\nthread_name=worker\na 0+20000\nrun 0+31000\n"
					 "</script> 20000+11000\nrun 80000+10000\n"
					 "process_name=app\nthread_name=worker (page-faults)\n"
					 "page-faults 95000 run;a\n");
	buf_release(&events);
	json_decref(root);
	free(text);
	profile_release(&p);
}

static void expect_slice(const char *text, const char *ts, const char *dur, const char *span)
{
	char want[256];

	snprintf(want, sizeof(want),
		 "\"ts\":%s,\"dur\":%s,\"cat\":\"cpu\",\"name\":\"run\","
		 "\"args\":{\"trace\":\"000000000000000000000000000000ab\",\"span\":\"000000000000000%s\"}}",
		 ts, dur, span);
	assert_non_null(strstr(text, want));
}

/* A slice of each span: the same stack goes on in the next one. */
static void chrome_trace_of_spans(void **state)
{
	struct writer_options options;
	struct profile p;
	char *text;

	assert_int_equal(profile_init(&p), 0);
	(void)profile_event(&p, "cpu", PROFILE_NS, 10 * MS);
	(void)profile_thread(&p, 7, 8, "worker", "app", 0);
	for (uint64_t i = 1; i <= 4; i++) {
		uint32_t run = frame_of(&p, FRAME_NATIVE, "run", "");

		assert_int_equal(add_at(&p, 0, 10 * i, 0, &run, 1), 0);
		p.samples.recent.items[i - 1].trace_low = i < 4 ? 0xab : 0;
		p.samples.recent.items[i - 1].span = i < 3 ? 1 : i < 4 ? 2 : 0;
	}
	writer_options_default(&options);
	text = written("chrometrace", &p, &options);
	expect_slice(text, "0.000", "20000.000", "1");
	expect_slice(text, "20000.000", "10000.000", "2");
	assert_non_null(strstr(text, "\"ts\":30000.000,\"dur\":10000.000,\"cat\":\"cpu\",\"name\":\"run\"}"));
	free(text);
	profile_release(&p);
}

/* Formats that list threads have a renamed one once, under its last name, and its samples in the order of time. */
static void renamed_thread(void **state)
{
	static const struct {
		const char *format, *thread, *listed;
	} cases[] = {
		{"speedscope", " 7/8 ", "\"cpu: app 7/8 last\""},
		{"firefox", "\"tid\":8,", "{\"name\":\"last\""},
		{"chrometrace", "\"thread_name\"", "{\"name\":\"last\"}"},
		{"flamegraph", " 7/8 ", "\"app 7/8 last\",4"},
	};
	static const char *const names[] = {"app", "first", "app", "last"};
	struct writer_options options;
	struct profile p;

	assert_int_equal(profile_init(&p), 0);
	(void)profile_event(&p, "cpu", PROFILE_NS, 10 * MS);
	for (uint64_t i = 0; i < 4; i++) {
		uint32_t frame = frame_of(&p, FRAME_NATIVE, names[i], ""),
			 thread = profile_thread(&p, 7, 8, names[i], "app", 0);

		assert_int_equal(add_at(&p, thread, 10 * i + 10, 0, &frame, 1), 0);
	}
	writer_options_default(&options);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = written(cases[i].format, &p, &options), *found = strstr(text, cases[i].thread);

		assert_non_null(found);
		assert_null(strstr(found + 1, cases[i].thread));
		assert_non_null(strstr(text, cases[i].listed));
		free(text);
	}
	profile_release(&p);
}

static void profile_of_tree(struct profile *p)
{
	uint32_t a, b, c, thread;

	assert_int_equal(profile_init(p), 0);
	(void)profile_event(p, "cpu", PROFILE_NS, 10 * MS);
	thread = profile_thread(p, 1, 1, "t", "p", 0);
	a = frame_of(p, FRAME_NATIVE, "a", "");
	b = frame_of(p, FRAME_NATIVE, "b", "");
	c = frame_of(p, FRAME_NATIVE, "</script>", "");
	ADD_STACK(p, thread, 1, a, b);
	ADD_STACK(p, thread, 3, a, c, b);
	ADD_STACK(p, thread, 2, a);
}

/* The callees with more samples stand first; --reverse has the callers below the leaves. */
static void trees(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *text;

	profile_of_tree(&profile);
	writer_options_default(&options);
	text = written("tree-text", &profile, &options);
	assert_non_null(strstr(text, "Call tree of cpu: 6 samples\n"));
	assert_non_null(strstr(text, "           3   50.00%            3   50.00%  [ 3]   b\n"
				     "           1   16.67%            1   16.67%  [ 2]  b\n"));
	free(text);
	options.reverse = true;
	text = written("tree-text", &profile, &options);
	assert_non_null(strstr(text, "Backtraces of cpu: 6 samples\n"));
	assert_non_null(strstr(text, "           4   66.67%            0    0.00%  [ 1] b\n"));
	free(text);
	profile_release(&profile);
}

/* Tree and heat map are the flame graph's page, and say in which view it opens. */
static void views_of_one_page(void **state)
{
	static const struct {
		const char *format, *view;
	} cases[] = {{"tree", ",\"view\":\"tree\""}, {"heatmap", ",\"view\":\"heat\""}};
	struct writer_options options;
	struct profile profile;
	char *flames, *text, *view;

	profile_of_tree(&profile);
	writer_options_default(&options);
	flames = written("flamegraph", &profile, &options);
	for (size_t i = 0; i < 2; i++) {
		text = written(cases[i].format, &profile, &options);
		view = strstr(text, cases[i].view);
		assert_non_null(view);
		memmove(view, view + strlen(cases[i].view), strlen(view + strlen(cases[i].view)) + 1);
		assert_string_equal(text, flames);
		free(text);
	}
	free(flames);
	profile_release(&profile);
}

/* async-profiler's words. */
static void formats_with_numbers(void **state)
{
	struct writer_options options;
	struct writer nameless = {.name = "raw"};
	size_t len;

	writer_options_default(&options);
	assert_ptr_equal(writer_by_word("flat=3", &options), writer_by_name("flat"));
	assert_int_equal(options.flat, 3);
	assert_ptr_equal(writer_by_word("traces=7", &options), writer_by_name("traces"));
	assert_int_equal(options.traces, 7);
	assert_ptr_equal(writer_by_word("tree", &options), writer_by_name("tree"));
	assert_null(writer_by_word("tree=3", &options));
	for (size_t i = 0; i < 6; i++)
		assert_null(writer_by_word((const char *[]){"flat=", "flat=0", "flat=-1", "flat=1x", "flat=99999999999",
							    "no=1"}[i],
					   &options));
	assert_ptr_equal(writer_by_path("a/x.tree.html"), writer_by_name("tree"));
	assert_ptr_equal(writer_by_path("a/x.html"), writer_by_name("flamegraph"));
	assert_string_equal(writer_extension(&nameless, &len), "raw");
	assert_int_equal(len, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_round_trip),
		cmocka_unit_test(perf_names_like_samples),
		cmocka_unit_test(perf_of_others),
		cmocka_unit_test(perf_without_chains),
		cmocka_unit_test(perf_with_other_fields),
		cmocka_unit_test(perf_without_times),
		cmocka_unit_test(perf_with_lines),
		cmocka_unit_test(speedscope),
		cmocka_unit_test(callgrind),
		cmocka_unit_test(chrome_trace),
		cmocka_unit_test(chrome_trace_of_spans),
		cmocka_unit_test(renamed_thread),
		cmocka_unit_test(trees),
		cmocka_unit_test(views_of_one_page),
		cmocka_unit_test(formats_with_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
