/* SPDX-License-Identifier: MIT */
/*
 * Captures walks of a running JVM, for tests/unit/test_walk_corpus.c to walk again:
 *
 *	capture [-b] [-w WAYS] PID FILE KIND WALKS SECONDS
 *
 * Its threads are stopped one at a time and led on instruction by instruction, while the walk that BPF has runs here as
 * ordinary code. One that takes a way through that code which none before took is kept, with all that it has read, when
 * a second witness agrees: AsyncGetCallTrace, called by the agent at the same instruction, as in a recording.
 * WAYS is a file of the ways that captures of other kinds of JVM have kept: a few common ones more, then only new ones.
 * With -b those are kept that fail or are contradicted: to pin a bug. README.md in tests/fixtures/walk says the rest.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

#include "collect/tables/unwind_tables.h"
#include "corpus/witness.h"
#include "corpus/writer.h"

/* ---- choosing ---- */

/* Returns true if the walk took a path that no walk in the file has taken. */
static bool is_wanted(void)
{
	const bool *before = capture.kept < COMMON_WALKS ? ways.is_kept : ways.is_known;
	bool is_new = false;

	if (shot->walk.sample.walk_end == DUET_WALK_DEPTH)
		return false;
	if (capture.wants_bad && !is_complete())
		return true;
	for (uint32_t i = 0; i < shot->way_count && !is_new; i++)
		is_new = !before[shot->ways[i]] && ways.tries[shot->ways[i]] < WAY_TRIES;
	for (uint32_t i = 0; is_new && i < shot->way_count; i++)
		ways.tries[shot->ways[i]] += ways.tries[shot->ways[i]] < WAY_TRIES;
	return is_new;
}

static void keep(const char *why)
{
	for (uint32_t i = 0; i < shot->way_count; i++)
		ways.is_kept[shot->ways[i]] = ways.is_known[shot->ways[i]] = true;
	write_walk(why);
}

/* The walk out of the handler must lead through exactly the frames that it interrupted. */
static bool goes_on(const struct walk *from, const struct walk *to)
{
	uint32_t more = from->walked - to->walked;

	if (from->walked < to->walked + 2 || from->sample.walk_end != to->sample.walk_end ||
	    from->sample.guessed_depth != to->sample.guessed_depth)
		return false;
	for (uint32_t i = 1; i < to->walked; i++)
		if (from->sample.stack[more + i] != to->sample.stack[i] || from->ids[more + i] != to->ids[i])
			return false;
	return from->ids[more] == to->ids[0] && from->sample.stack[more] - to->sample.stack[0] <= 1;
}

static void keep_handled(void)
{
	bool is_right = goes_on(&handled.walk, &plain.walk);

	shot = &handled;
	if (is_right != capture.wants_bad && is_wanted())
		keep(is_right ? "in a handler" : "in a handler, not through to what it interrupted");
}

/* With what else is known of the place where the thread stands; that may be all that is wanted. */
static void judge(struct tracee *tracee, bool wants_walk)
{
	const struct duet_java_sample *java;
	const char *right, *wrong;
	bool has_handled;

	for (uint32_t i = 0; i < plain.walk.walked; i++)
		if (plain.walk.ids[i] & DUET_ID_INTERPRETED && plain.walk.sample.stack[i])
			agent_want(capture.agent,
				   &(struct duet_want){.key = plain.walk.sample.stack[i], .kind = DUET_WANT_METHOD},
				   clock_monotonic_ns());
	agent_ask(capture.agent);
	has_handled = ask_agent(tracee);
	java = (const void *)capture.answer.items;
	if (!capture.answer.len || !is_same_place(java))
		return;
	right = verdict(java);
	wrong = right ? NULL : objection();
	capture.refused += wrong != NULL;
	shot = &plain;
	if (wants_walk && (capture.wants_bad ? wrong : right))
		keep(capture.wants_bad ? wrong : right);
	if (right && has_handled)
		keep_handled();
}

/* Follows the thread from a random moment on. */
static void follow(pid_t tid)
{
	int steps = rand_r(&capture.random) % 4 ? rand_r(&capture.random) % 3000 : 0;
	struct tracee tracee;
	bool wants_walk;

	if (!tracee_stop(&tracee, tid))
		return;
	while (take_shot(&plain, &tracee)) {
		wants_walk = is_wanted();
		if (wants_walk || !steps) {
			judge(&tracee, wants_walk);
			break;
		}
		steps = tracee_step(&tracee) ? steps - 1 : 0;
	}
	tracee_leave(&tracee);
}

static bool is_running(pid_t tid)
{
	char path[64], text[512], *at;
	int fd;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", capture.pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = 0;
	at = strrchr(text, ')');
	return at && at[1] && at[2] == 'R';
}

/* A random thread, as a rule one that runs; 0: none. */
static pid_t choose_thread(void)
{
	bool any = rand_r(&capture.random) % 8 == 0;
	unsigned int seen = 0;
	struct dirent *entry;
	char path[32];
	pid_t chosen = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", capture.pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && (uint32_t)tid != capture.agent->tid && (any || is_running(tid)) &&
		    rand_r(&capture.random) % ++seen == 0)
			chosen = tid;
	}
	if (folder)
		closedir(folder);
	return chosen;
}

/* ---- begin and end ---- */

/* The loader's arrays in memory of our own, where BPF has its maps. */
static void *make_array(struct unwind_tables_map *map, uint32_t entries, size_t element_bytes)
{
	size_t bytes = entries * element_bytes;
	int fd = memfd_create("duet-capture", MFD_CLOEXEC);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return NULL;
	at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	*map = (struct unwind_tables_map){.fd = fd, .entries = entries};
	return at == MAP_FAILED ? NULL : at;
}

/* No BPF map tells which process has which mappings: they are what the loader has collected last. */
static bool read_rows(void)
{
	struct unwind_tables_maps maps = {.processes = {-1, 0}};
	struct unwind_tables *tables = NULL;

	capture.rows = make_array(&maps.rows, DUET_UNWIND_MAX_ROWS, sizeof(*capture.rows));
	capture.pages = make_array(&maps.pages, DUET_UNWIND_MAX_PAGES, sizeof(*capture.pages));
	capture.modules = make_array(&maps.modules, DUET_UNWIND_MAX_MODULES, sizeof(*capture.modules));
	if (!make_array(&maps.mappings, DUET_UNWIND_MAX_MAPPINGS, sizeof(struct duet_unwind_mapping)) ||
	    !capture.rows || !capture.pages || !capture.modules || unwind_tables_open(&tables, &maps) < 0)
		return false;
	unwinding_init(&capture.unwinding, tables);
	process_refresh_maps(capture.process, clock_monotonic_ns(), 0);
	unwinding_publish(&capture.unwinding, capture.process, UINT64_MAX);
	return capture.unwinding.mappings.len != 0;
}

static bool poll_agent(int timeout_ms)
{
	struct pollfd poll_fd = {.fd = agent_fd(capture.agent), .events = POLLIN};

	if (poll(&poll_fd, 1, timeout_ms) > 0)
		agent_step(capture.agent);
	agent_expire(capture.agent, clock_monotonic_ns());
	return !agent_settled(capture.agent);
}

static bool begin_agent(void)
{
	const struct agent_start start = {
		.engine = DUET_ENGINE_BPF,
		.events = {{.interval = NS_PER_MS, .kind = DUET_AGENT_EVENT_CLOCK}},
		.event_count = 1,
		.java_depth = DUET_JAVA_DEPTH,
		.sample_lane_bytes = 1 << 20,
		.metadata_lane_bytes = 4 << 20,
	};
	struct attach_control control;

	if (attach_control_new(&control, capture.pid) < 0)
		return false;
	capture.agent = agent_new(capture.process, &capture.strings, &start, ATTACH_RUNNING, "the capture", &control);
	while (capture.agent && poll_agent(100))
		;
	if (!capture.agent || capture.agent->state != AGENT_RUNNING)
		return false;
	for (int i = 0; i < 100; i++) {
		usleep(10000);
		agent_read(capture.agent, on_java_sample, NULL);
	}
	return jvm_layout(capture.agent->jvm);
}

static void end_agent(void)
{
	agent_stop(capture.agent);
	for (int i = 0; i < 20 && capture.agent->state == AGENT_STOPPING; i++)
		poll_agent(100);
	agent_free(capture.agent);
}

static bool begin(const char *path, const char *kind)
{
	process_table_init(&capture.processes);
	capture.process = process_get(&capture.processes, capture.pid, 0);
	if (!capture.process || capture.process->exited || intern_init(&capture.strings) < 0 || !begin_agent())
		return false;
	capture.file = fopen(path, "w");
	if (capture.file)
		fprintf(capture.file, "%s\njvm %s\nkind %s\n", CORPUS_FIRST_LINE, capture.agent->vm, kind);
	return capture.file && read_rows(); /* with the agent's library */
}

static void run(unsigned int walks, unsigned int seconds)
{
	uint64_t until_ns = clock_monotonic_ns() + seconds * NS_PER_SEC;

	while (capture.kept < walks && clock_monotonic_ns() < until_ns && capture.agent->state == AGENT_RUNNING) {
		pid_t tid = choose_thread();

		if (tid)
			follow(tid);
		agent_read(capture.agent, on_java_sample, NULL);
		poll_agent(0);
		process_refresh_maps(capture.process, clock_monotonic_ns(), 100 * NS_PER_MS);
		unwinding_publish(&capture.unwinding, capture.process, UINT64_MAX);
	}
}

static void read_ways(const char *path)
{
	FILE *file = fopen(path, "r");

	if (file && fread(ways.is_known, sizeof(ways.is_known), 1, file) != 1)
		memset(ways.is_known, 0, sizeof(ways.is_known));
	if (file)
		fclose(file);
}

static bool write_ways(const char *path)
{
	FILE *file = fopen(path, "w");
	bool is_written = file && fwrite(ways.is_known, sizeof(ways.is_known), 1, file) == 1;

	return file && !fclose(file) && is_written;
}

int main(int argc, char **argv)
{
	const char *known = NULL;
	bool is_right = true;

	for (int option; (option = getopt(argc, argv, "bw:")) != -1;) {
		capture.wants_bad |= option == 'b';
		known = option == 'w' ? optarg : known;
		is_right &= option != '?';
	}
	argv += optind;
	if (!is_right || argc - optind != 5) {
		fprintf(stderr, "usage: capture [-b] [-w WAYS] PID FILE KIND WALKS SECONDS\n");
		return 2;
	}
	capture.pid = atoi(argv[0]);
	capture.random = 1;
	if (known)
		read_ways(known);
	if (!begin(argv[1], argv[2])) {
		fprintf(stderr, "capture: %s\n", capture.agent ? capture.agent->why : "no such process, or no memory");
		return 1;
	}
	run((unsigned int)atoi(argv[3]), (unsigned int)atoi(argv[4]));
	end_agent();
	printf("%s: %u walks kept, %u contradicted or not complete\n", argv[1], capture.kept, capture.refused);
	if (fclose(capture.file) || (known && !write_ways(known)))
		return 1;
	return capture.kept == 0;
}
