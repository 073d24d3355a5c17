/* SPDX-License-Identifier: MIT */
/*
 * Captures walks of a running JVM, for tests/unit/test_walk_corpus.c to walk again:
 *
 *	capture [-b] PID FILE KIND WALKS SECONDS [SEED]
 *
 * Its threads are stopped one at a time and led on instruction by instruction, while the walk that BPF has runs here as
 * ordinary code. One that takes a way through that code which none before took is kept, with all that it has read, when
 * a second witness agrees: AsyncGetCallTrace, called by the agent at the same instruction, as in a recording.
 * With -b those are kept that fail or are contradicted: to pin a bug. README.md in tests/fixtures/walk says the rest.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "agents.h"
#include "collect/unwind_tables.h"
#include "corpus/tracee.h"
#include "fixtures/walk_corpus.h"
#include "join/splice.h"
#include "unwinding.h"

#define UNTRACED __attribute__((no_sanitize_coverage))

/* What a walk has read. */
struct read {
	uint64_t address;
	uint32_t bytes;
	uint32_t at; /* in shot.bytes */
};

/* One walk, as it is taken. */
static struct shot {
	struct walk_regs regs;
	bool in_kernel;
	uint64_t time_ns;
	struct vec(struct read) reads;
	struct vec(uint8_t) bytes;
	struct vec(struct walk_native) natives;
} shot;

/* Ways through the walk's code, by a hash of two places that follow each other. */
#define WAYS 65536
#define WAY_TRIES 12 /* of walks that go a way before it is given up: none was agreed to */
static struct {
	bool is_on;
	uint32_t last;
	uint16_t taken[WAYS];
	uint32_t count; /* of `taken` */
	bool is_taken[WAYS];
	uint8_t tries[WAYS];
	bool is_kept[WAYS];
} ways;

static struct {
	pid_t pid;
	bool wants_bad;
	struct process_table processes;
	struct process *process;
	struct intern strings;
	struct agent *agent;
	struct unwinding unwinding;
	const struct duet_unwind_row *rows; /* of the tables, in memory of our own */
	const struct duet_unwind_page *pages;
	const struct duet_unwind_module *modules;
	struct splice splice;
	uint64_t cookie;
	struct vec(uint64_t) answer; /* struct duet_java_sample and what follows */
	FILE *file;
	struct corpus_memory written; /* what the file says so far */
	struct vec(struct walk_native) written_natives;
	struct duet_jvm_layout written_layout;
	unsigned int random;
	unsigned int tried, kept;
} capture;

/* ---- the walk ---- */

UNTRACED static int walk_read(void *to, uint32_t bytes, uint64_t address)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
	struct read read = {address, bytes, (uint32_t)shot.bytes.len};

	if (process_vm_readv(capture.pid, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
		return -1;
	if (vec_push(&shot.reads, read) < 0 || vec_reserve(&shot.bytes, shot.bytes.len + bytes) < 0)
		return -1;
	memcpy(shot.bytes.items + shot.bytes.len, to, bytes);
	shot.bytes.len += bytes;
	return 0;
}

UNTRACED static const struct duet_unwind_row *walk_row(uint32_t index)
{
	return &capture.rows[index];
}

#include "fixtures/walk_turns.h"

static struct walk walk;

void __sanitizer_cov_trace_pc(void);
/* The compiler calls it at each branch's ends. */
UNTRACED void __sanitizer_cov_trace_pc(void)
{
	uint32_t place, way;

	if (!ways.is_on)
		return;
	place = (uint32_t)((uintptr_t)__builtin_return_address(0) * 0x9e3779b97f4a7c15ull >> 48);
	way = (place ^ ways.last >> 1) % WAYS;
	ways.last = place;
	if (!ways.is_taken[way])
		ways.taken[ways.count++] = (uint16_t)way;
	ways.is_taken[way] = true;
}

/* As bpf/unwind_native.bpf.h. */
UNTRACED static const struct duet_unwind_row *find_row(const struct duet_unwind_mapping *mapping, uint64_t pc)
{
	uint64_t offset = pc - mapping->base, index = offset >> DUET_UNWIND_PAGE_SHIFT;
	const struct duet_unwind_module *module;
	const struct duet_unwind_page *page;

	if (mapping->module == DUET_UNWIND_NO_MODULE)
		return NULL;
	module = &capture.modules[mapping->module];
	if (offset > UINT32_MAX || index >= module->pages)
		return NULL;
	page = &capture.pages[module->first_page + index];
	return walk_search_rows(module->first_row + page->first, module->first_row + page->end, (uint32_t)offset);
}

UNTRACED static int walk_native(uint64_t pc, struct walk_native *ret)
{
	for (size_t i = 0; i < capture.unwinding.mappings.len; i++) {
		const struct duet_unwind_mapping *mapping = &capture.unwinding.mappings.items[i];
		const struct duet_unwind_row *row;

		if (pc < mapping->start || pc >= mapping->end)
			continue;
		row = find_row(mapping, pc);
		*ret = (struct walk_native){.pc = pc, .has_row = row != NULL, .is_file = (uint8_t)mapping->is_file};
		if (row)
			ret->row = *row;
		return vec_push(&shot.natives, *ret) == 0;
	}
	return 0;
}

static bool take_shot(const struct tracee *tracee)
{
	vec_clear(&shot.reads);
	vec_clear(&shot.bytes);
	vec_clear(&shot.natives);
	for (; ways.count; ways.count--)
		ways.is_taken[ways.taken[ways.count - 1]] = false;
	if (!tracee_regs(tracee, &shot.regs, &shot.in_kernel))
		return false;
	shot.time_ns = clock_monotonic_ns();
	memset(&walk.java, 0, sizeof(walk.java));
	walk.java.layout = *jvm_layout(capture.agent->jvm);
	ways.last = 0;
	ways.is_on = true;
	walk_run(&walk, &shot.regs);
	ways.is_on = false;
	return true;
}

/* ---- the second witness ---- */

static void on_java_sample(void *context, uint16_t type, const void *payload, uint32_t size)
{
	const struct duet_java_sample *sample = payload;

	(void)context;
	if (type != DUET_AGENT_JAVA_SAMPLE || sample->cookie != capture.cookie)
		return;
	if (vec_reserve(&capture.answer, (size + 7) / 8) < 0)
		return;
	memcpy(capture.answer.items, payload, size);
	capture.answer.len = size;
}

/* Lets the thread run until the agent has answered. */
static bool ask_agent(struct tracee *tracee)
{
	uint64_t until_ns = clock_monotonic_ns() + 300 * NS_PER_MS;

	capture.answer.len = 0;
	capture.cookie++;
	if (!tracee_signal(capture.pid, tracee->tid, (int)capture.agent->signo, capture.cookie))
		return false;
	while (!capture.answer.len && !tracee->is_gone && clock_monotonic_ns() < until_ns) {
		if (tracee->is_stopped)
			tracee_go(tracee, PTRACE_CONT);
		tracee_look(tracee);
		agent_read(capture.agent, on_java_sample, NULL);
	}
	return capture.answer.len != 0;
}

/* The kernel moves pc back onto a system call that it restarts. */
static bool is_same_place(const struct duet_java_sample *java)
{
	return java->sp == shot.regs.general[4] &&
	       (java->pc == shot.regs.pc || (shot.in_kernel && java->pc + 2 == shot.regs.pc));
}

static bool has_java(void)
{
	for (uint32_t i = 0; i < walk.depth; i++)
		if (walk.frames[i].id)
			return true;
	return false;
}

static bool is_complete(void)
{
	return walk.end == DUET_WALK_ENTRY && !walk.cursor.is_guess;
}

/* What BPF would have sent. */
static const struct duet_sample *make_sample(void)
{
	static struct {
		struct duet_sample sample;
		uint64_t stack[DUET_MAX_USER_STACK * 2];
	} record;
	uint32_t *ids = (uint32_t *)(record.stack + walk.depth);

	record.sample = (struct duet_sample){
		.head = {.time_ns = shot.time_ns, .tgid = (uint32_t)capture.pid},
		.flags = DUET_SAMPLE_USER_REGS | DUET_SAMPLE_JVM | (is_complete() ? DUET_SAMPLE_USER_COMPLETE : 0),
		.user_depth = (uint16_t)walk.depth,
		.id_depth = (uint16_t)walk.depth,
		.walk_end = (uint16_t)walk.end,
	};
	for (uint32_t i = 0; i < walk.depth; i++) {
		record.stack[i] = walk.frames[i].address;
		ids[i] = walk.frames[i].id;
	}
	return &record.sample;
}

/* Names and code may be told a little later. NULL: nobody has agreed to the walk. */
static const char *verdict(const struct duet_java_sample *java)
{
	for (int i = 0; i < 20; i++) {
		if (splice_stack(&capture.splice, capture.process, capture.agent->jvm, make_sample(), java,
				 JOIN_JOINED) < 0)
			return NULL;
		if (!capture.splice.is_missing_code)
			break;
		usleep(20000);
		agent_read(capture.agent, on_java_sample, NULL);
	}
	if (!is_complete() || capture.splice.is_missing_code)
		return NULL;
	if (!has_java())
		return java->java_depth ? NULL : "without Java";
	if (capture.splice.witnesses == SPLICE_AGREED)
		return "agreed";
	return capture.splice.witnesses == SPLICE_SAW_LESS ? "AsyncGetCallTrace saw less" : NULL;
}

/* ---- writing ---- */

static void write_layout(void)
{
	if (!memcmp(&capture.written_layout, &walk.java.layout, sizeof(walk.java.layout)))
		return;
	capture.written_layout = walk.java.layout;
	for (size_t i = 0; i < CORPUS_FIELD_COUNT; i++) {
		const struct corpus_field *field = &corpus_fields[i];

		fprintf(capture.file, "layout %s", field->name);
		for (uint32_t k = 0; k < field->count; k++) {
			uint64_t value = 0;

			memcpy(&value, corpus_field_at(&capture.written_layout, field, k), field->width);
			fprintf(capture.file, " %llx", (unsigned long long)value);
		}
		fputc('\n', capture.file);
	}
}

static bool is_written(const struct walk_native *code)
{
	for (size_t i = 0; i < capture.written_natives.len; i++)
		if (capture.written_natives.items[i].pc == code->pc)
			return true;
	return false;
}

static void write_natives(void)
{
	for (size_t i = 0; i < shot.natives.len; i++) {
		const struct walk_native *code = &shot.natives.items[i];

		if (is_written(code) || vec_push(&capture.written_natives, *code) < 0)
			continue;
		fprintf(capture.file, "native %llx %d", (unsigned long long)code->pc, code->is_file);
		if (code->has_row)
			fprintf(capture.file, " %d %d %x", code->row.cfa, code->row.saved, code->row.rule);
		fputc('\n', capture.file);
	}
}

/* Only what the file does not say yet. */
static bool is_news(const struct corpus_page *page, size_t at)
{
	uint8_t known;

	return page->is_known[at] &&
	       !(corpus_get(&capture.written, page->address + at, &known, 1) && known == page->bytes[at]);
}

static void write_page(const struct corpus_page *page)
{
	for (size_t at = 0, count; at < CORPUS_PAGE; at += count ? count : 1) {
		for (count = 0; at + count < CORPUS_PAGE && count < CORPUS_LINE_BYTES && is_news(page, at + count);)
			count++;
		if (!count)
			continue;
		fprintf(capture.file, "memory %llx ", (unsigned long long)(page->address + at));
		for (size_t i = 0; i < count; i++)
			fprintf(capture.file, "%02x", page->bytes[at + i]);
		fputc('\n', capture.file);
		(void)corpus_put(&capture.written, page->address + at, page->bytes + at, count);
	}
}

static void write_memory(void)
{
	struct corpus_memory memory = {0};

	for (size_t i = 0; i < shot.reads.len; i++)
		(void)corpus_put(&memory, shot.reads.items[i].address, shot.bytes.items + shot.reads.items[i].at,
				 shot.reads.items[i].bytes);
	for (size_t i = 0; i < memory.pages.len; i++)
		write_page(&memory.pages.items[i]);
	corpus_forget(&memory);
}

static const char *text_of(uint32_t id)
{
	return intern_text(&capture.strings, id);
}

static void name_method(char *name, size_t size, uint64_t id)
{
	const struct jvm_method *method = jvm_method(capture.agent->jvm, id);

	if (method)
		snprintf(name, size, "%s.%s", text_of(method->class_name), text_of(method->name));
	else
		snprintf(name, size, "?");
}

/* For people. */
static void name_frame(char *name, size_t size, uint32_t index)
{
	const struct walk_frame *frame = &walk.frames[index];
	uint64_t pc = frame->address - (index > 0);
	const struct mapping *mapping = maps_find(&capture.process->maps, pc);
	const struct jvm_code *code =
		jvm_code_at(capture.agent->jvm, pc, shot.time_ns, frame->id & DUET_ID_INTERPRETED ? 0 : frame->id);

	if (frame->id & DUET_ID_INTERPRETED)
		return name_method(name, size, frame->address);
	if (code && code->method)
		return name_method(name, size, code->method);
	if (jvm_is_call_stub(capture.agent->jvm, frame->address))
		snprintf(name, size, "call stub");
	else if (code)
		snprintf(name, size, "%s", text_of(code->stub_name));
	else if (mapping && strrchr(mapping->path, '/'))
		snprintf(name, size, "%s", strrchr(mapping->path, '/') + 1);
	else
		snprintf(name, size, "%s", mapping && *mapping->path ? mapping->path : "?");
}

static void write_walk(const char *why)
{
	char name[160];

	write_layout();
	write_natives();
	write_memory();
	name_frame(name, sizeof(name), 0);
	fprintf(capture.file, "walk in %s: %s\nregs %llx", name, why, (unsigned long long)shot.regs.pc);
	for (int i = 0; i < DUET_X86_REGISTERS; i++)
		fprintf(capture.file, " %llx", (unsigned long long)shot.regs.general[i]);
	fputc('\n', capture.file);
	for (uint32_t i = 0; i < walk.depth; i++) {
		name_frame(name, sizeof(name), i);
		fprintf(capture.file, "frame %llx %x %s\n", (unsigned long long)walk.frames[i].address,
			walk.frames[i].id, name);
	}
	fprintf(capture.file, "end %s %u\n", corpus_ends[walk.end], walk.guessed);
	capture.kept++;
}

/* ---- choosing ---- */

/* Does it go a way that no walk in the file went? */
static bool is_wanted(void)
{
	bool is_new = false;

	if (walk.end == DUET_WALK_DEPTH)
		return false;
	if (capture.wants_bad)
		return true;
	for (uint32_t i = 0; i < ways.count && !is_new; i++)
		is_new = !ways.is_kept[ways.taken[i]] && ways.tries[ways.taken[i]] < WAY_TRIES;
	for (uint32_t i = 0; is_new && i < ways.count; i++)
		ways.tries[ways.taken[i]] += ways.tries[ways.taken[i]] < WAY_TRIES;
	return is_new;
}

static void keep(const char *why)
{
	for (uint32_t i = 0; i < ways.count; i++)
		ways.is_kept[ways.taken[i]] = true;
	write_walk(why);
}

static void judge(struct tracee *tracee)
{
	const struct duet_java_sample *java = (const void *)capture.answer.items;
	const char *why;

	capture.tried++;
	for (uint32_t i = 0; i < walk.depth; i++)
		if (walk.frames[i].id & DUET_ID_INTERPRETED && walk.frames[i].address)
			agent_want_name(capture.agent, walk.frames[i].address);
	agent_ask(capture.agent);
	if (!ask_agent(tracee))
		return;
	java = (const void *)capture.answer.items;
	if (!is_same_place(java))
		return;
	why = verdict(java);
	if (capture.wants_bad && !why && !capture.splice.is_missing_code)
		keep(is_complete() ? "contradicted" : "not complete");
	else if (!capture.wants_bad && why)
		keep(why);
}

/* From a random moment on. */
static void follow(pid_t tid)
{
	struct tracee tracee;
	int steps = rand_r(&capture.random) % 4 ? rand_r(&capture.random) % 3000 : 0;

	if (!tracee_stop(&tracee, tid))
		return;
	do {
		if (!take_shot(&tracee))
			break;
		if (is_wanted()) {
			judge(&tracee);
			break;
		}
	} while (steps-- && tracee_step(&tracee));
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
	*map = (struct unwind_tables_map){fd, entries};
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
	unwinding_publish(&capture.unwinding, capture.process);
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
		.interval_ns = NS_PER_MS,
		.java_depth = DUET_MAX_JAVA_DEPTH,
		.sample_lane_bytes = 1 << 20,
		.metadata_lane_bytes = 4 << 20,
	};
	char control[DUET_NAME_MAX + 1];

	attach_control_name(control, sizeof(control), capture.pid);
	capture.agent = agent_new(capture.process, &capture.strings, &start, false, control);
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

	while (capture.kept < walks && clock_monotonic_ns() < until_ns &&
	       capture.agent->state == AGENT_RUNNING) {
		pid_t tid = choose_thread();

		if (tid)
			follow(tid);
		agent_read(capture.agent, on_java_sample, NULL);
		poll_agent(0);
		process_refresh_maps(capture.process, clock_monotonic_ns(), 100 * NS_PER_MS);
		unwinding_publish(&capture.unwinding, capture.process);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "-b")) {
		capture.wants_bad = true;
		argv++;
		argc--;
	}
	if (argc < 6 || argc > 7) {
		fprintf(stderr, "usage: capture [-b] PID FILE KIND WALKS SECONDS [SEED]\n");
		return 2;
	}
	capture.pid = atoi(argv[1]);
	capture.random = argc > 6 ? (unsigned int)atoi(argv[6]) : 1;
	if (!begin(argv[2], argv[3])) {
		fprintf(stderr, "capture: %s\n", capture.agent ? capture.agent->why : "no such process, or no memory");
		return 1;
	}
	run((unsigned int)atoi(argv[4]), (unsigned int)atoi(argv[5]));
	end_agent();
	printf("%s: %u walks kept, %u not agreed to\n", argv[2], capture.kept, capture.tried - capture.kept);
	return fclose(capture.file) ? 1 : capture.kept == 0;
}
