/* SPDX-License-Identifier: MIT */
/* A child writes one window after the other. A loader that is far behind writes each of them. */
#include "fixtures/profiles.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "join/pending.h"
#include "jvms/agents.h"
#include "proc/process.h"
#include "windows/window_files.h"
#include "windows/windows.h"

struct fixture {
	char folder[64];
	int gate[2]; /* the child that writes waits for a byte */
	struct profile profile;
	struct pending pending;
	struct process_table processes;
	struct agents agents;
	struct options options;
	struct windows windows;
};

static void ignore(void *context)
{
}

static void await_gate(void *context)
{
	struct fixture *f = context;
	char byte;

	close(f->gate[1]); /* ends with the test */
	(void)!read(f->gate[0], &byte, 1);
}

static void open_gate(struct fixture *f)
{
	assert_int_equal(write(f->gate[1], "1", 1), 1);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(loader_counters, 0, sizeof(loader_counters));
	strcpy(f->folder, "/tmp/duet-windows-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	assert_int_equal(pipe(f->gate), 0);
	assert_int_equal(profile_init(&f->profile), 0);
	assert_int_equal(profile_event(&f->profile, "cpu", PROFILE_NS, 0), 0);
	assert_int_equal(pending_open(&f->pending, &(struct pending_deps){.sink = {.options = &f->options,
										   .profile = &f->profile}}),
			 0);
	f->options.window_ns = NS_PER_SEC;
	f->options.folder.folder = f->folder;
	writer_options_default(&f->options.style);
	assert_true(vec_push(&f->options.outputs, (struct session_output){.writer = writer_by_name("col")}) >= 0);
	assert_int_equal(windows_open(&f->windows, &(struct windows_deps){.options = &f->options,
									  .profile = &f->profile,
									  .pending = &f->pending,
									  .processes = &f->processes,
									  .agents = &f->agents,
									  .report = ignore,
									  .before_write = await_gate,
									  .release_dead = ignore,
									  .context = f}),
			 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
	windows_release(&f->windows);
	pending_release(&f->pending);
	profile_release(&f->profile);
	vec_release(&f->options.outputs);
	close(f->gate[0]);
	close(f->gate[1]);
	free(f);
	return system(command);
}

static size_t files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += !strncmp(entry->d_name, "profile_2", 9);
	closedir(dir);
	return count;
}

/* Begins the next window as soon as the child has ended. */
static void step_when_written(struct fixture *f, uint64_t read_ns)
{
	siginfo_t info;

	open_gate(f);
	assert_int_equal(waitid(P_PID, (id_t)f->windows.writer, &info, WEXITED | WNOWAIT), 0);
	windows_step(&f->windows, read_ns);
}

/* What the child of the window before is still busy with is no reason to drop the next one, however old it is. */
static void loader_behind(void **state)
{
	struct fixture *f = *state;
	const uint64_t late_ns = 1000000 * NS_PER_SEC, window_ns = 3600 * NS_PER_SEC;

	f->options.window_ns = window_ns;
	windows_start(&f->windows, NS_PER_SEC, 0);
	windows_step(&f->windows, late_ns);
	assert_int_equal(f->windows.written, 1);
	windows_step(&f->windows, late_ns);
	assert_int_equal(f->windows.written, 1);
	step_when_written(f, late_ns);
	step_when_written(f, late_ns);
	open_gate(f);
	open_gate(f);
	assert_int_equal(windows_end(&f->windows, NS_PER_SEC + 3 * window_ns + 1), 0);
	assert_int_equal(files_in(f->folder), 4);
	assert_int_equal(loader_counters[DUET_LOADER_WINDOW_LOST], 0);
}

/* Windows that end faster than they are written would fill the memory. Those that are dropped are counted. */
static void slow_disk(void **state)
{
	struct fixture *f = *state;
	const uint64_t late_ns = 1000 * NS_PER_SEC, window_ns = 20 * MS;
	uint32_t frame = 0;

	f->options.window_ns = window_ns;
	windows_start(&f->windows, NS_PER_SEC, 0);
	windows_step(&f->windows, late_ns);
	add_cpu_sample(&f->profile, profile_stack(&f->profile, &frame, 0),
		       profile_thread(&f->profile, 1, 1, "one", "one", 0), NS_PER_SEC + window_ns, MS);
	usleep(2 * window_ns / 1000);
	windows_step(&f->windows, late_ns);
	assert_int_equal(f->windows.written, 2);
	assert_true(f->windows.is_failing);
	assert_int_equal(loader_counters[DUET_LOADER_WINDOW_LOST], 1);
	step_when_written(f, late_ns);
	assert_false(f->windows.is_failing);
	open_gate(f);
	open_gate(f);
	assert_int_equal(windows_end(&f->windows, NS_PER_SEC + 3 * window_ns + 1), 0);
	assert_int_equal(files_in(f->folder), 3);
	assert_int_equal(loader_counters[DUET_LOADER_WINDOW_LOST], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(slow_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(loader_behind, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
