/* SPDX-License-Identifier: MIT */
/* async-profiler's words: those of its command line, of its agent's arguments, and of its file names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "asprof/asprof.h"
#include "base/clock.h"
#include "recorder/arguments.h"
#include "recorder/report_file.h"

static struct asprof_arguments arguments;
static struct buf warnings, why, list;

static int set_up(void **state)
{
	buf_init(&warnings);
	buf_init(&why);
	buf_init(&list);
	return 0;
}

static int tear_down(void **state)
{
	asprof_arguments_release(&arguments);
	buf_release(&warnings);
	buf_release(&why);
	buf_release(&list);
	return 0;
}

static void parse(const char *text)
{
	asprof_arguments_release(&arguments);
	buf_clear(&warnings);
	buf_clear(&why);
	assert_int_equal(asprof_arguments_parse(&arguments, text, &warnings, &why), 0);
}

/* Returns why it is refused. */
static const char *refused(const char *text)
{
	asprof_arguments_release(&arguments);
	buf_clear(&why);
	assert_int_equal(asprof_arguments_parse(&arguments, text, &warnings, &why), -22);
	return why.data;
}

static const char *events_of(const char *text)
{
	const char *engine;

	parse(text);
	buf_clear(&list);
	assert_int_equal(asprof_arguments_events(&arguments, &list, &engine, &why), 0);
	return list.data;
}

static const char *events_refused(const char *text)
{
	const char *engine;

	parse(text);
	buf_clear(&list);
	assert_int_equal(asprof_arguments_events(&arguments, &list, &engine, &why), -22);
	return why.data;
}

/* ---- arguments ---- */

static void actions_and_files(void **state)
{
	parse("start,event=cpu,interval=1ms,jstackdepth=50/20,file=/tmp/a.html,threads,title=a&#44;b &lt;c&gt;,"
	      "timeout=2m");
	assert_int_equal(arguments.action, ASPROF_START);
	assert_string_equal(arguments.writer->name, "flamegraph");
	assert_string_equal(arguments.file, "/tmp/a.html");
	assert_string_equal(arguments.style.title, "a,b <c>");
	assert_int_equal(arguments.depth, 50);
	assert_int_equal(arguments.kept_depth, 20);
	assert_true(arguments.style.threads);
	assert_true(arguments.timeout_ns == 120 * NS_PER_SEC);
	parse("collapsed,total");
	assert_int_equal(arguments.action, ASPROF_DUMP);
	assert_true(arguments.style.total);
	parse("stop");
	assert_null(arguments.writer);
	parse("stop,file=x.folded");
	assert_string_equal(arguments.writer->name, "collapsed");
	parse("stop,file=x.txt");
	assert_string_equal(arguments.writer->name, "text=full");
	parse("");
	assert_int_equal(arguments.action, ASPROF_NONE);
	parse("start,memlimit=4m");
	assert_int_equal(arguments.memory_bytes, 4 << 20);
	parse("start,memlimit=5000000");
	assert_int_equal(arguments.memory_bytes, 5000000);
	assert_string_equal(refused("start,memlimit=much"), "Invalid value of memlimit: 'much'");
}

static void texts_have_rows(void **state)
{
	parse("dump,traces=5");
	assert_string_equal(arguments.writer->name, "traces");
	assert_int_equal(arguments.style.traces, 5);
	parse("dump,flat=10,traces=5");
	assert_string_equal(arguments.writer->name, "text=full");
	assert_int_equal(arguments.style.traces, 5);
	assert_int_equal(arguments.style.flat, 10);
}

/* gProfiler sends empty words, words of its own, and those of old versions. */
static void strange_words(void **state)
{
	parse("start,event=cpu,file=/tmp/x,collapsed,ann,sig,interval=11000000,log=/tmp/l,"
	      "fdtransfer=@async-profiler-1-2,safemode=0,,features=probesp+vtable,timeout=66");
	assert_string_equal(warnings.data, "");
	assert_true(arguments.style.style.annotate && arguments.style.style.signatures);
	parse("stop,log=/tmp/l,mcache=30,meminfolog,includemm,includeln,file=/tmp/x,collapsed,ann,sig");
	assert_string_equal(warnings.data, "");
	parse("start,foo=1,tlab");
	assert_string_equal(warnings.data, "[WARN] Unknown argument: foo\n");
	assert_true(arguments.record.tlab);
}

/* async-profiler compares five bits of each letter. */
static void words_of_either_case(void **state)
{
	parse("START,Event=wall,FILE=/tmp/X,Collapsed,Cpu-x,LOG=/tmp/Log");
	assert_int_equal(arguments.action, ASPROF_START);
	assert_string_equal(arguments.event, "wall");
	assert_string_equal(arguments.file, "/tmp/X");
	assert_string_equal(arguments.writer->name, "collapsed");
	assert_string_equal(warnings.data, "[WARN] Unknown argument: Cpu-x\n");
	assert_string_equal(arguments.log, "/tmp/Log");
}

static void empty_words(void **state)
{
	parse("start,title=,cstack=,include=,exclude=,begin=,end=,log=,filter=,features=,clock=");
	assert_null(arguments.style.title);
	assert_null(arguments.cstack);
	assert_null(arguments.begin);
	assert_null(arguments.log);
	assert_int_equal(arguments.style.include.len, 0);
	assert_string_equal(refused("start,event="), "event must not be empty");
	assert_string_equal(refused("start,event"), "event must not be empty");
	assert_string_equal(refused("start,loglevel="), "loglevel must not be empty");
}

static uint64_t seconds_until(const char *timeout, time_t from)
{
	BUF(text);

	buf_printf(&text, "start,timeout=%s", timeout);
	parse(text.data);
	return asprof_arguments_span_ns(arguments.timeout_ns, from) / NS_PER_SEC;
}

/* 2026-11-22, 10:20:30 of a zone without another time in summer */
static void times_of_day(void **state)
{
	const time_t from = 1795342830;

	setenv("TZ", "UTC", 1);
	tzset();
	assert_int_equal(seconds_until("90", from), 90);
	assert_int_equal(seconds_until("11:00:00", from), 39 * 60 + 30);
	assert_int_equal(seconds_until("10:20:30", from), 86400);
	assert_int_equal(seconds_until("9:00:00", from), 86400 - 80 * 60 - 30);
	assert_int_equal(seconds_until("12:00", from), 100 * 60);
	assert_int_equal(seconds_until(":21:00", from), 30);
	assert_int_equal(seconds_until("*:20:00", from), 3600 - 30);
	assert_int_equal(seconds_until("::10", from), 40);
	assert_string_equal(refused("start,loop=25:00:00"), "Invalid value of loop: '25:00:00'");
	assert_string_equal(refused("start,loop=::"), "Invalid value of loop: '::'");
	assert_string_equal(refused("start,loop=1:2:3:4"), "Invalid value of loop: '1:2:3:4'");
}

static uint64_t proc_of(const char *text)
{
	parse(text);
	return asprof_arguments_proc_ns(&arguments);
}

/* Seconds; 30 of them by default, also with all events in a JFR file. */
static void samples_of_processes(void **state)
{
	assert_int_equal(proc_of("start,jfr,file=/tmp/x"), 0);
	assert_int_equal(proc_of("start,jfr,proc"), 30000000000);
	assert_int_equal(proc_of("start,jfr,proc=2"), 2000000000);
	assert_int_equal(proc_of("start,jfr,proc=5m"), 300000000000);
	assert_int_equal(proc_of("start,jfr,all"), 30000000000);
	assert_int_equal(proc_of("start,jfr,all,proc=0"), 0);
	assert_string_equal(refused("start,proc=x"), "Invalid value of proc: 'x'");
}

static void errors(void **state)
{
	assert_string_equal(refused("start,event=cpu,event=wall"), "Duplicate event argument");
	assert_string_equal(refused("start,interval=0"), "Invalid interval");
	assert_string_equal(refused("start,interval=-1"), "Invalid interval");
	assert_string_equal(refused("start,interval=5x"), "Invalid interval");
	assert_string_equal(refused("start,file="), "file must not be empty");
	assert_string_equal(refused("stop,file=a.svg"), "SVG format is obsolete, use .html for FlameGraph");
	assert_string_equal(refused("start,jstackdepth=x"), "Invalid value of jstackdepth: 'x'");
	assert_string_equal(refused("start,jstackdepth=50/"), "Invalid value of jstackdepth: '50/'");
	assert_string_equal(refused("start,jstackdepth=5/6"), "Invalid value of jstackdepth: '5/6'");
	assert_string_equal(refused("start,timeout=1y"), "Invalid value of timeout: '1y'");
	assert_string_equal(refused("start,interval=99999999999999999999"), "Invalid interval");
	assert_string_equal(refused("start,interval=99999999999s"), "Invalid interval");
}

static void events(void **state)
{
	assert_string_equal(events_of("start"), "cpu");
	assert_string_equal(events_of("start,interval=500us"), "cpu=500000");
	assert_string_equal(events_of("start,event=cpu-clock,interval=1m"), "cpu=1000000");
	assert_string_equal(events_of("start,event=ctimer,interval=1us"), "cpu=10000"); /* the shortest there is */
	assert_string_equal(events_of("start,event=alloc"), "alloc");
	assert_string_equal(events_of("start,event=wall,interval=1us"), "wall=10000");
	assert_string_equal(events_of("start,wall=1us,collapsed"), "wall=10000");
	assert_string_equal(events_of("start,event=wall,interval=1000s"), "wall=1000000000"); /* the longest */
	assert_string_equal(events_of("start,event=alloc,interval=512k"), "alloc"); /* interval= is cpu's alone */
	assert_string_equal(events_of("start,event=lock,interval=10ms"), "lock");
	assert_string_equal(events_of("start,nativelock,interval=10ms"), "nativelock=10000");
	assert_string_equal(events_of("start,event=nativemem"), "nativemem=0"); /* every call */
	assert_string_equal(events_of("start,nativemem=1k,event=nativemem"), "nativemem=1024");
	assert_string_equal(events_of("start,alloc=2m,live"), "live=2097152");
	assert_string_equal(events_of("start,jfr,event=cpu,interval=1ms,alloc,lock=1ms,wall"),
			    "cpu=1000000,wall=2500000,alloc=524287,lock=1000000");
	assert_string_equal(events_of("start,nativemem"), "nativemem=0");
	assert_string_equal(events_of("start,nativelock"), "nativelock=10000");
	assert_string_equal(events_of("start,all,jfr"),
			    "cpu,wall=2500000,alloc,live,lock,nativelock,free,nativemem=524287");
	assert_string_equal(events_of("start,nativemem=1k,jfr"), "free,nativemem=1024");
	assert_string_equal(events_of("start,nativemem,nofree,jfr"), "nativemem=0");
	assert_string_equal(events_of("start,event=java.lang.Thread.run"), "java.lang.Thread.run");
	assert_string_equal(events_of("start,event=a.B.c(Ljava/lang/Object;)V,interval=3"),
			    "a.B.c(Ljava/lang/Object;)V=3");
	assert_string_equal(events_of("start,trace=a.B.c:1ms,trace=a.B.d,interval=2,collapsed"),
			    "trace:a.B.c:1ms=2,trace:a.B.d=2");
	assert_string_equal(events_of("start,event=cpu,interval=20us,trace=a.B.c,jfr"), "cpu=20000,trace:a.B.c");
	/* more often than reports count */
	assert_string_equal(events_of("start,event=wall"), "wall=2500000");
	assert_string_equal(events_of("start,wall=10ms"), "wall=1000000");
	assert_string_equal(events_of("start,interval=10msec"), "cpu=10000000"); /* the first letter counts */
	assert_string_equal(events_of("start,interval=3Seconds"), "cpu=3000000000");
	assert_string_equal(events_of("start,alloc=2mb,interval=1"), "alloc=2097152");
	assert_string_equal(events_of("start,wall=500us"), "wall=500000");
	assert_true(asprof_arguments_wall_ns(&arguments) == 500 * NS_PER_US);
	assert_string_equal(events_of("start,event=malloc"), "mem:malloc:x");
	assert_string_equal(events_of("start,event=A::b,interval=2"), "mem:A::b:x=2");
	assert_string_equal(events_of("start,event=r1a8"), "r1a8");
	assert_string_equal(events_of("start,event=dTLB-load-misses"), "dTLB-load-misses");
	assert_string_equal(events_of("start,event=page-faults,interval=10"), "page-faults=10");
	assert_string_equal(events_of("start,event=sched:sched_switch"), "sched:sched_switch");
}

static void engines(void **state)
{
	const char *engine;

	parse("start,clock=m"); /* the first letter counts, and others are no clock */
	assert_string_equal(arguments.clock, "monotonic");
	parse("start,clock=ticks");
	assert_string_equal(arguments.clock, "tsc");
	parse("start,clock=sun");
	assert_null(arguments.clock);
	parse("start,event=itimer");
	assert_int_equal(asprof_arguments_events(&arguments, &list, &engine, &why), 0);
	assert_string_equal(list.data, "cpu");
	assert_string_equal(engine, "itimer");
}

static const char *source_of(const char *text)
{
	parse(text);
	return asprof_arguments_source(&arguments);
}

static void sources(void **state)
{
	assert_string_equal(source_of("start"), "perf_events");
	assert_string_equal(source_of("start,event=itimer"), "itimer");
	assert_string_equal(source_of("start,event=cpu,alloc,jfr"), "perf_events");
	assert_string_equal(source_of("start,alloc=1k"), "object_sampler");
	assert_string_equal(source_of("start,event=lock"), "lock_tracer");
	assert_string_equal(source_of("start,wall"), "wall");
	assert_string_equal(source_of("start,event=a.B.c"), "instrument");
	assert_string_equal(source_of("start,event=kprobe:a.b"), "perf_events");
	assert_string_equal(source_of("start,trace=a.B.c"), "instrument");
}

static bool has_feature(const char *text, const char *feature)
{
	bool has;

	parse(text);
	has = asprof_arguments_has(&arguments, feature);
	asprof_arguments_release(&arguments);
	return has;
}

static void features_are_words(void **state)
{
	assert_true(has_feature("start,features=stats", "stats"));
	assert_true(has_feature("start,features=vtable+stats", "stats"));
	assert_true(has_feature("start,features=vtable+stats+comptask", "comptask"));
	assert_false(has_feature("start,features=stat+statss", "stats"));
	assert_false(has_feature("start,features=", "stats"));
	assert_false(has_feature("start", "stats"));
}

static void events_that_do_not_go(void **state)
{
	assert_string_equal(events_refused("start,event=cpu,alloc,collapsed"),
			    "Only JFR output supports multiple events");
	assert_string_equal(events_refused("start,event=wall,wall=10ms"), "wall is given twice");
	assert_string_equal(events_refused("start,event=cpu,trace=a.B.c,collapsed"),
			    "Only JFR output supports multiple events");
	assert_string_equal(events_refused("start,event=itimer,record-cpu"),
			    "record-cpu is only supported with perf_events");
	assert_string_equal(events_refused("start,event=ctimer,target-cpu=1"),
			    "target-cpu is only supported with perf_events");
}

/* ---- the command line ---- */

static struct asprof_options options;

static int parse_line(const char *line)
{
	static char copy[512], *words[64];
	int count = 0;

	buf_clear(&why);
	snprintf(copy, sizeof(copy), "asprof %s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		words[count++] = word;
	return asprof_options_parse(&options, count, words, &why);
}

static void expect_line(const char *line, const char *action, const char *format, const char *params)
{
	assert_int_equal(parse_line(line), 0);
	assert_string_equal(options.action, action);
	assert_string_equal(options.format.data, format);
	assert_string_equal(options.params.data, params);
	asprof_options_release(&options);
}

static void command_lines(void **state)
{
	expect_line("-d 30 -e alloc -i 512k -f x.html 8983", "collect", "", ",event=alloc,interval=512k");
	assert_string_equal(options.target, "8983");
	assert_string_equal(options.file, "x.html");
	assert_int_equal(options.duration_s, 30);
	expect_line("start -t -s -g -a -l -n --dot 1", "start", ",threads,simple,sig,ann,lib,norm,dot", "");
	expect_line("8983 stop -o flat=10,traces=5 --total", "stop", ",flat=10,traces=5,total", "");
	expect_line("-e cpu/event=0x3c,umask=1/ 1", "collect", "", ",event=cpu/event=0x3c:umask=1/");
	expect_line("-F a,b --filter 1,2 --title a&b,c 1", "collect",
		    ",features=a+b,filter=1;2,title=a&#38;b&#44;c", "");
	expect_line("--loop 1h -I a -I b -X c 1", "start", ",include=a,include=b,exclude=c", ",loop=1h");
	expect_line("--libpath /x.so --fdtransfer --all-user --cstack vm MyApp", "collect", "", ",alluser,cstack=vm");
	assert_string_equal(options.target, "MyApp");
	expect_line("jcmd 12 Thread.print -l", "jcmd", "", "");
	assert_int_equal(options.word_count, 2);
}

static void bad_command_lines(void **state)
{
	static const struct {
		const char *line, *why;
	} bad[] = {{"--foo 1", "Unrecognized option: --foo"},
		   {"foo 1", "Unrecognized option: foo"},
		   {"status 1 2", "Unrecognized option: 2"},
		   {"stop 1 foo", "Unrecognized option: foo"},
		   {"1 -e", "Missing required parameter"},
		   {"-d x 1", "Invalid duration: x"}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse_line(bad[i].line), -22);
		assert_string_equal(why.data, bad[i].why);
		asprof_options_release(&options);
	}
}

/* ---- file names ---- */

#define WHEN 1700000000

static const char *name_of(const char *path, unsigned int number)
{
	buf_clear(&list);
	report_file_name(path, 42, number, WHEN, &list);
	return list.data;
}

static void file_names(void **state)
{
	setenv("ASPROF_TEST", "value", 1);
	assert_string_equal(name_of("/a/%p.html", 0), "/a/42.html");
	assert_string_equal(name_of("%n-%n{3}", 7), "7-1");
	assert_string_equal(name_of("x%{ASPROF_TEST}y%{NO_SUCH_VARIABLE}z", 0), "xvalueyz");
	assert_string_equal(name_of("100%% %x %", 0), "100% %x %");
	setenv("TZ", "UTC0", 1);
	tzset();
	assert_string_equal(name_of("%t", 0), "20231114-221320");
	assert_string_equal(name_of("%{open", 0), "");
}

/* Even of arguments that are refused, the log is known. */
static void words_of_the_text(void **state)
{
	char *word = asprof_arguments_word("start,log=/a,event=cpu,event=wall,log=/b,catalog=/c", "log");

	assert_string_equal(word, "/b");
	free(word);
	assert_null(asprof_arguments_word("", "log"));
	assert_null(asprof_arguments_word("log=", "log"));
	assert_null(asprof_arguments_word("log,logs=/x", "log"));
	parse("start,log=stderr,loglevel=none");
	assert_string_equal(arguments.log, "stderr");
	assert_string_equal(arguments.log_level, "none");
}

int main(void)
{
#define WITH_BUFFERS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_BUFFERS(words_of_the_text), WITH_BUFFERS(words_of_either_case), WITH_BUFFERS(empty_words),
		WITH_BUFFERS(times_of_day),
		WITH_BUFFERS(actions_and_files), WITH_BUFFERS(texts_have_rows), WITH_BUFFERS(strange_words),
		WITH_BUFFERS(samples_of_processes),
		WITH_BUFFERS(errors),		 WITH_BUFFERS(events),		WITH_BUFFERS(engines),
		WITH_BUFFERS(sources),
		WITH_BUFFERS(features_are_words),
		WITH_BUFFERS(events_that_do_not_go), WITH_BUFFERS(command_lines), WITH_BUFFERS(bad_command_lines),
		WITH_BUFFERS(file_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
