/* SPDX-License-Identifier: MIT */
/* The report for a terminal: what takes most, in at most 60 lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "writers/text/headline.h"
#include "writers/shared/tree.h"
#include "writers/text/tables.h"
#include "writers/writer.h"

#define NAME_BYTES 78 /* of a method; lines have at most 118 columns, if one byte is one column */
#define PROGRAM_AT (NAME_BYTES / 2) /* what a process runs needs some room */
#define STACK_BYTES 96
#define USAGES_MAX 10
#define ELLIPSIS "…"

/*
 * ---- what takes most ----
 *
 * Methods with their self and total, stacks, and what was waited for or allocated.
 *
 * A sample that waited counts for the first frame of the program's own code, because most threads wait in the same few
 * functions of the kernel and the C library. What threads do that wait all the time, below [idle], is left out.
 */
struct ranking {
	const struct tree *tree;
	struct ranking_row {
		uint32_t id; /* label of a method or leaf; of a stack, the node of the innermost frame that is shown */
		uint64_t self, total; /* in the event's unit */
	} * methods, *stacks, *leaves; /* the most first */
	size_t method_count, stack_count, leaf_count;
	uint64_t all, idle; /* all that is ranked; what was left out */
};

#define IDLE "[idle]" /* the root of stacks of threads that wait all the time */

/* Whose code a frame is; the highest is what the user wrote. */
enum code { NO_CODE, OF_KERNEL, OF_LIBRARY, OF_JVM, OF_JDK, OF_PROGRAM };

/* What is known of the stack that ends at a node. */
struct place {
	uint32_t first; /* node of the frame nearest the leaf that is code; 0 = none */
	uint32_t own; /* the same of the highest enum code */
	uint32_t leaf; /* label of what was waited for or allocated; 0 = none */
	bool is_idle;
	bool is_of_waker; /* frames of the thread that ended the wait */
};

/* True for a frame of a stack's root that is not code: its thread, process … */
static bool is_leading(enum frame_kind kind)
{
	return kind == FRAME_THREAD || kind == FRAME_PROCESS || kind == FRAME_CONTAINER || kind == FRAME_CPU ||
	       kind == FRAME_SPAN;
}

static bool begins_with_any(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(text, *beginnings, strlen(*beginnings)))
			return true;
	return false;
}

/* The tools of the JDK, such as javac, are programs. Names have dots or, without --dot, slashes. */
static enum code code_of(const struct path_label *label)
{
	static const char *const packages[] = {"java.",	 "javax.",	  "jdk.internal.", "sun.", "java/",
					       "javax/", "jdk/internal/", "sun/",	   NULL};
	static const char *const libraries[] = {"lib", "ld-", "[vdso]", NULL};
	static const enum code codes[FRAME_KIND_MAX] = {[FRAME_KERNEL] = OF_KERNEL,
							[FRAME_MARK] = OF_KERNEL,
							[FRAME_NATIVE] = OF_PROGRAM,
							[FRAME_JVM] = OF_JVM};

	if (frame_kind_is_java(label->kind))
		return begins_with_any(label->text, packages) ? OF_JDK : OF_PROGRAM;
	if (label->kind == FRAME_NATIVE && (!*label->module || begins_with_any(label->module, libraries)))
		return OF_LIBRARY;
	return codes[label->kind];
}

static void find_place(const struct tree *tree, struct place *places, uint32_t node)
{
	const struct path_label *label = tree_label(tree, node);
	const struct place *above = &places[tree->nodes.items[node].parent];
	struct place *place = &places[node];
	enum code code = code_of(label);

	*place = *above;
	place->is_idle |= label->kind == FRAME_STATE && !strcmp(label->text, IDLE);
	place->is_of_waker |= label->kind == FRAME_WAKER;
	if (place->is_of_waker)
		return;
	place->leaf = label->kind == FRAME_STATE || label->kind == FRAME_CLASS ? tree->nodes.items[node].label : 0;
	if (!code)
		return;
	place->first = node;
	if (!above->own || code >= code_of(tree_label(tree, above->own)))
		place->own = node;
}

/* The node for which a stack counts that ends at this place: a class that is not of a lock was allocated. */
static uint32_t shown_node(const struct tree *tree, const struct place *place, bool is_time)
{
	bool waits = place->leaf && (is_time || tree->labels.items[place->leaf].kind == FRAME_STATE);

	return waits || place->is_of_waker ? place->own : place->first;
}

static int most_first(const void *a, const void *b)
{
	const struct ranking_row *x = a, *y = b;

	return vec_order(y->self, x->self) ?: vec_order(y->total, x->total) ?: vec_order(x->id, y->id);
}

/* Moves the rows with a weight to the front, the most first. Returns their number. */
static size_t rank(struct ranking_row *rows, size_t count)
{
	size_t kept = 0;

	for (size_t i = 1; i < count; i++)
		if (rows[i].self)
			rows[kept++] = rows[i];
	qsort(rows, kept, sizeof(*rows), most_first);
	return kept;
}

/* Adds what each stack weighs to its method, to the stack as it is shown, and to its leaf. */
static void add_selves(struct ranking *r, const struct place *places, bool is_time)
{
	for (uint32_t i = 1; i < r->tree->nodes.len; i++) {
		uint64_t amount = r->tree->nodes.items[i].self.amount;
		uint32_t shown = shown_node(r->tree, &places[i], is_time);

		if (places[i].is_idle) {
			r->idle += amount;
			continue;
		}
		r->all += amount;
		r->leaves[places[i].leaf].self += amount;
		r->stacks[shown].self += amount;
		r->methods[shown ? r->tree->nodes.items[shown].label : 0].self += amount;
	}
}

/* Of a method that calls itself, the outermost frame counts. `open`: by label, how many frames of the path have it. */
static void add_totals(struct ranking *r, const struct place *places, uint32_t *open)
{
	const struct tree_node *nodes = r->tree->nodes.items;
	uint32_t at = 0;

	for (uint32_t node = tree_next(r->tree, 0, false); node;) {
		bool skips = places[node].is_idle || places[node].is_of_waker;

		for (; at != nodes[node].parent; at = nodes[at].parent)
			open[nodes[at].label]--;
		if (!open[nodes[node].label]++ && !skips)
			r->methods[nodes[node].label].total += nodes[node].total.amount;
		at = node;
		node = tree_next(r->tree, node, skips);
	}
}

static int open_rows(struct ranking *r)
{
	size_t labels = r->tree->labels.len, nodes = r->tree->nodes.len;

	r->methods = calloc(labels, sizeof(*r->methods));
	r->leaves = calloc(labels, sizeof(*r->leaves));
	r->stacks = calloc(nodes, sizeof(*r->stacks));
	if (!r->methods || !r->leaves || !r->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < labels; i++)
		r->methods[i].id = r->leaves[i].id = i;
	for (uint32_t i = 0; i < nodes; i++)
		r->stacks[i].id = i;
	return 0;
}

static void ranking_release(struct ranking *ranking)
{
	free(ranking->methods);
	free(ranking->leaves);
	free(ranking->stacks);
	*ranking = (struct ranking){0};
}

/* Ranks a tree, and sorts it: tree_sort(). `is_time`: weights are ns. Returns 0, or -ENOMEM: then nothing is held. */
static int ranking_make(struct ranking *ranking, struct tree *tree, bool is_time)
{
	struct place *places = calloc(tree->nodes.len, sizeof(*places));
	uint32_t *open = calloc(tree->labels.len, sizeof(*open));
	int err;

	*ranking = (struct ranking){.tree = tree};
	err = places && open ? open_rows(ranking) : -ENOMEM;
	if (!err)
		err = tree_sort(tree, NULL);
	if (err) {
		ranking_release(ranking);
		goto out;
	}
	for (uint32_t i = 1; i < tree->nodes.len; i++)
		find_place(tree, places, i);
	add_selves(ranking, places, is_time);
	add_totals(ranking, places, open);
	ranking->method_count = rank(ranking->methods, tree->labels.len);
	ranking->leaf_count = rank(ranking->leaves, tree->labels.len);
	ranking->stack_count = rank(ranking->stacks, tree->nodes.len);
out:
	free(places);
	free(open);
	return err;
}

/*
 * Ranks the leading frames of this kind, such as FRAME_THREAD, without what is idle. Returns how many there are, in
 * *ret_rows, which the caller frees; or -ENOMEM.
 */
static int64_t ranking_of_kind(const struct tree *tree, enum frame_kind kind, struct ranking_row **ret_rows)
{
	struct ranking_row *rows = calloc(tree->labels.len, sizeof(*rows));
	struct place *places = calloc(tree->nodes.len, sizeof(*places));
	uint32_t *heads = calloc(tree->nodes.len, sizeof(*heads)); /* by node: label of this kind above it */
	int64_t count = -ENOMEM;

	if (!rows || !places || !heads)
		goto out;
	for (uint32_t i = 1; i < tree->nodes.len; i++) {
		uint32_t label = tree->nodes.items[i].label;

		find_place(tree, places, i);
		heads[i] = tree_label(tree, i)->kind == kind ? label : heads[tree->nodes.items[i].parent];
		rows[heads[i]].id = heads[i];
		if (!places[i].is_idle)
			rows[heads[i]].self += tree->nodes.items[i].self.amount;
	}
	count = (int64_t)rank(rows, tree->labels.len);
	*ret_rows = rows;
	rows = NULL;
out:
	free(rows);
	free(places);
	free(heads);
	return count;
}

/* ---- the report ---- */

/* How many rows the lists of each event have, by the number of events: at most 60 lines together. */
struct rooms {
	size_t methods, stacks, leaves, table;
};
static const struct rooms rooms[] = {
	{20, 10, 4, 8}, {8, 4, 3, 3}, {7, 3, 1, 0}, {5, 2, 0, 0}, {4, 1, 0, 0},
	{3, 1, 0, 0},	{4, 0, 0, 0}, {4, 0, 0, 0}, {3, 0, 0, 0},
};
#define EVENTS_MAX (sizeof(rooms) / sizeof(*rooms)) /* more are in the whole report only */

/* A unit in which amounts are printed; the largest that leaves the sum at least `from` of the event's own unit. */
struct scale {
	const char *name;
	uint64_t from;
	double divisor;
	int decimals;
};
static const struct scale times[] = {
	{"s", 1000 * NS_PER_SEC, 1e9, 1},
	{"ms", NS_PER_SEC, 1e6, 0},
	{"ms", 10 * NS_PER_MS, 1e6, 1},
	{"us", 0, 1e3, 1},
};
static const struct scale sizes[] = {
	{"GiB", 100ull << 30, 1 << 30, 1},
	{"MiB", 1 << 20, 1 << 20, 1},
	{"KiB", 10 << 10, 1 << 10, 1},
	{"B", 0, 1, 0},
};
static const struct scale numbers[] = {{"", 0, 1, 0}};

/* The part of the report for one event. */
struct part {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	struct tree tree;
	struct ranking ranking;
	enum profile_unit unit;
	const struct scale *scale;
	const struct rooms *rooms;
};

/* Prints the part of all, and the amount itself. */
static void print_share(const struct part *part, uint64_t amount)
{
	fprintf(part->out, "  %5.1f %%%9.*f %-3s", text_percent(amount, part->ranking.all), part->scale->decimals,
		(double)amount / part->scale->divisor, part->scale->name);
}

/* Moves back to the beginning of a character. */
static size_t whole_characters(const char *text, size_t len)
{
	while (len && (text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

/* Appends the text as it may be shown, without its middle if it is longer than `most` bytes. */
static void add_fitting(struct buf *out, const char *text, size_t most)
{
	size_t head, tail;
	BUF(line);

	text_add_line(&line, text);
	head = tail = line.len;
	if (line.len > most) {
		head = whole_characters(line.data, (most - strlen(ELLIPSIS)) / 2);
		tail = whole_characters(line.data, line.len - (most - strlen(ELLIPSIS) - head));
	}
	buf_add(out, line.data, head);
	buf_add_str(out, head < line.len ? ELLIPSIS : "");
	buf_add(out, line.data + tail, line.len - tail);
}

/* Returns a Java method's name from its class on: "Position.build" of "com.sun.tools.javac.util.Position.build". */
static const char *without_package(const struct path_label *label)
{
	const char *name = label->text, *end = name + label->name_len;

	if (!frame_kind_is_java(label->kind) && label->kind != FRAME_CLASS)
		return name;
	for (const char *c = name; c < end && *c != '('; c++) {
		const char *dot = memchr(c, '.', (size_t)(end - c));

		/* the names of packages begin with a small letter; after them come the class and its method */
		if (!dot || *c < 'a' || *c > 'z' ||
		    (label->kind != FRAME_CLASS && !memchr(dot + 1, '.', (size_t)(end - dot - 1))))
			return c;
		c = dot;
	}
	return name;
}

/* What a thread waited for, where the name of the state needs an explanation; else "". */
static const char *explained(const struct path_label *label)
{
	static const char *const states[][2] = {
		{"[runnable]", ": a CPU"},
		{"[futex]", ": a lock, or to be notified"},
		{"[epoll]", ": something to read or write"},
		{"[poll]", ": something to read or write"},
		{"[sleep]", ": a time"},
		{"[child]", ": a child process"},
		{"[io]", ": a device or file system"},
	};

	for (size_t i = 0; label->kind == FRAME_STATE && i < sizeof(states) / sizeof(*states); i++)
		if (!strcmp(states[i][0], label->text))
			return states[i][1];
	return "";
}

/* What the process runs, where its name says less, as "java"; else "". */
static const char *program_in(const struct profile *profile, const struct path_label *label)
{
	const char *pid = label->kind == FRAME_PROCESS ? strrchr(label->text, '=') : NULL;

	for (size_t i = 0; pid && i < profile->threads.len; i++) {
		const struct profile_thread *thread = &profile->threads.items[i];
		const char *program = headline_program(profile, thread);

		if (thread->pid == strtoul(pid + 1, NULL, 10) &&
		    strcmp(program, profile_text(profile, thread->process)) != 0)
			return program;
	}
	return "";
}

static void print_name(const struct part *part, const struct path_label *label)
{
	bool is_long = label->name_len > NAME_BYTES || part->options->style.simple;
	const char *program = program_in(part->profile, label);
	BUF(name);

	add_fitting(&name, is_long ? without_package(label) : label->text, NAME_BYTES);
	if (*program && name.len < PROGRAM_AT) {
		buf_add_char(&name, ' ');
		add_fitting(&name, program, NAME_BYTES - name.len);
	}
	fprintf(part->out, "  %s%s\n", name.data, explained(label));
}

/* Appends "a < b ×2 < c < …" as far as there is room: the innermost first, without packages. */
static void add_stack(const struct part *part, uint32_t node, struct buf *out)
{
	const struct tree_node *nodes = part->tree.nodes.items;
	BUF(one);

	while (node && !is_leading(tree_label(&part->tree, node)->kind)) {
		uint32_t label = nodes[node].label;
		unsigned int times_called = 0;

		for (; node && nodes[node].label == label; node = nodes[node].parent)
			times_called++;
		buf_clear(&one);
		add_fitting(&one, without_package(&part->tree.labels.items[label]), STACK_BYTES / 2);
		if (times_called > 1)
			buf_printf(&one, " ×%u", times_called);
		if (out->len && out->len + strlen(" < ") + one.len > STACK_BYTES) {
			buf_add_str(out, " < " ELLIPSIS);
			break;
		}
		buf_printf(out, "%s%s", out->len ? " < " : "", one.data);
	}
}

static void print_methods(const struct part *part)
{
	const struct ranking *ranking = &part->ranking;

	if (!ranking->method_count)
		return;
	fprintf(part->out, "     self                  total                method\n");
	for (size_t i = 0; i < ranking->method_count && i < part->rooms->methods; i++) {
		print_share(part, ranking->methods[i].self);
		print_share(part, ranking->methods[i].total);
		print_name(part, &part->tree.labels.items[ranking->methods[i].id]);
	}
}

static void print_stacks(const struct part *part)
{
	const struct ranking *ranking = &part->ranking;
	BUF(stack);

	if (!ranking->stack_count || !part->rooms->stacks)
		return;
	fprintf(part->out, "\n    share               stack: a method, then its callers\n");
	for (size_t i = 0; i < ranking->stack_count && i < part->rooms->stacks; i++) {
		buf_clear(&stack);
		add_stack(part, ranking->stacks[i].id, &stack);
		print_share(part, ranking->stacks[i].self);
		fprintf(part->out, "  %s\n", stack.data);
	}
}

static void print_table(const struct part *part, const struct tree *tree, const struct ranking_row *rows, size_t count,
			size_t most, const char *title)
{
	if (!count || !most)
		return;
	fprintf(part->out, "\n    share               %s", title);
	if (count > most)
		fprintf(part->out, ", the first %zu", most);
	fputc('\n', part->out);
	for (size_t i = 0; i < count && i < most; i++) {
		print_share(part, rows[i].self);
		print_name(part, &tree->labels.items[rows[i].id]);
	}
}

/* The classes of objects or locks; files; or what threads waited for in the kernel. */
static const char *title_of_leaves(const struct part *part)
{
	const struct path_label *first = &part->tree.labels.items[part->ranking.leaves[0].id];

	if (first->kind == FRAME_STATE)
		return *first->text == '[' ? "waited for" : "file, socket or pipe";
	return part->unit == PROFILE_NS ? "class of the lock" : "class";
}

static int print_leaves(const struct part *part)
{
	if (part->ranking.leaf_count)
		print_table(part, &part->tree, part->ranking.leaves, part->ranking.leaf_count, part->rooms->leaves,
			    title_of_leaves(part));
	return part->rooms->leaves ? waits_print(part->profile, part->options, part->rooms->leaves, part->out) : 0;
}

static int print_kind(const struct part *part, const struct tree *tree, enum frame_kind kind, size_t most,
		      const char *title)
{
	struct ranking_row *rows = NULL;
	int64_t count = ranking_of_kind(tree, kind, &rows);

	if (count > 1)
		print_table(part, tree, rows, (size_t)count, most, title);
	free(rows);
	return count < 0 ? (int)count : 0;
}

/* Threads are in no other list, so they have a tree of their own. */
static int print_owners(const struct part *part)
{
	bool has_processes = part->options->processes;
	bool has_threads = part->options->threads || (!has_processes && part->profile->threads.len > 1);
	size_t most = has_threads && has_processes ? part->rooms->table / 2 : part->rooms->table;
	struct writer_options ours = *part->options;
	struct tree tree;
	int err;

	if (!most || (!has_threads && !has_processes))
		return 0;
	ours.threads = has_threads;
	err = tree_build(&tree, part->profile, &ours);
	if (err)
		return err;
	if (has_processes)
		err = print_kind(part, &tree, FRAME_PROCESS, most, "process");
	if (!err && has_threads)
		err = print_kind(part, &tree, FRAME_THREAD, most, "thread");
	tree_release(&tree);
	return err;
}

static void print_sum(const struct part *part, uint64_t amount)
{
	fprintf(part->out, "%.*f%s%s", part->scale->decimals, (double)amount / part->scale->divisor,
		*part->scale->name ? " " : "", part->scale->name);
}

static void print_part_head(const struct part *part)
{
	const struct tree_weight *all = &part->tree.nodes.items[0].total;

	fprintf(part->out, "\n%s: ", writer_event(part->profile, part->options));
	print_sum(part, all->amount);
	fprintf(part->out, " in %" PRIu64 " sample%s", all->samples, all->samples == 1 ? "" : "s");
	if (part->ranking.idle) {
		fprintf(part->out, "; ");
		print_sum(part, part->ranking.idle);
		fprintf(part->out, " of it are left out here: threads that only waited for work, [idle]");
	}
	fputc('\n', part->out);
}

static int print_part(struct part *part)
{
	int err = ranking_make(&part->ranking, &part->tree, part->unit == PROFILE_NS);

	if (err)
		return err;
	part->scale = part->unit == PROFILE_NS ? times : numbers;
	if (part->unit == PROFILE_BYTES)
		part->scale = sizes;
	while (part->scale->from > part->ranking.all + part->ranking.idle)
		part->scale++;
	print_part_head(part);
	print_methods(part);
	print_stacks(part);
	err = print_leaves(part);
	if (!err)
		err = print_owners(part);
	ranking_release(&part->ranking);
	return err;
}

/* An event of which there is nothing takes a line. */
static int print_event(const struct part *shared, uint32_t event)
{
	struct writer_options options = *shared->options;
	struct part part = *shared;
	int err;

	options.event = event;
	options.threads = false;
	part.options = &options;
	if (event < part.profile->events.len)
		part.unit = part.profile->events.items[event].unit;
	err = tree_build(&part.tree, part.profile, &options);
	if (err)
		return err;
	options.threads = shared->options->threads;
	if (part.tree.nodes.items[0].total.samples)
		err = print_part(&part);
	else if (part.profile->events.len > 1)
		fprintf(part.out, "\n%s: nothing was sampled\n", writer_event(part.profile, &options));
	tree_release(&part.tree);
	return err;
}

/* ---- the report ---- */

/* That the profile is a part of a recording. Other facts are in the whole report. */
static void print_warnings(const struct profile *profile, FILE *out)
{
	BUF(line);

	for (size_t i = 0; i < profile->facts.len; i++) {
		const char *key = profile_text(profile, profile->facts.items[i].key);

		if (strcmp(key, "incomplete") != 0 && strcmp(key, "part") != 0)
			continue;
		buf_clear(&line);
		text_add_line(&line, profile_text(profile, profile->facts.items[i].value));
		fprintf(out, "%s: %s\n", key, line.data);
	}
}

static void print_headline(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct headline headline;
	BUF(line);

	headline_of_profile(&headline, profile);
	if (options->title) {
		text_add_line(&line, options->title);
		buf_add_char(&line, '\n');
	}
	headline_text(&headline, "-o text=full lists all", &line);
	fprintf(out, "%s\n", line.data);
	print_warnings(profile, out);
}

static int text_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	size_t count = profile->events.len > 0 ? profile->events.len : 1;
	size_t shown = count < EVENTS_MAX ? count : EVENTS_MAX;
	struct writer_options ours = *options;
	struct part shared = {.profile = profile, .options = &ours, .out = out};
	int err = 0;

	ours.style.dotted = true;
	ours.style.simple = false; /* packages say whose code it is; print_name() leaves them out */
	ours.reverse = false;
	shared.rooms = &rooms[shown - 1];
	print_headline(profile, options, out);
	for (uint32_t i = 0; !err && i < shown; i++)
		err = print_event(&shared, i);
	if (!err)
		err = usage_table_print(profile, USAGES_MAX, out);
	if (err < 0)
		return err;
	if (profile->samples.count)
		fprintf(out, "\nAll stacks, methods and facts: -o text=full%s; a flame graph: -f FILE.html\n",
			count > shown ? ", the other events, too" : "");
	return writer_finish(out);
}

const struct writer writer_text = {
	.name = "text",
	.extensions = "txt",
	.has_all_events = true,
	.has_usages = true,
	.help = "what takes most, in 60 lines: methods, stacks, threads, processes, classes",
	.write = text_write,
	.write_diff = text_write_diff,
};
