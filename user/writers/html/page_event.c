/* SPDX-License-Identifier: MIT */
#include "writers/html/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "writers/json.h"
#include "writers/writer.h"

struct place {
	uint32_t node;
	uint32_t depth; /* 1 below the root */
};

/* One event. */
struct page {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	const struct page_parts *parts;
	const struct tree *tree;
	const struct writer_diff *two; /* NULL: one profile */
	const struct tree_side *a; /* the weights of A, by node */
	bool writes_a; /* write A's weights in the columns, not those of the tree */
	struct vec(struct place) places; /* the nodes that are wide enough, in preorder */
	struct vec(const struct path_label *) labels; /* by rank */
	uint64_t period; /* the weight of most samples: only differences from it are written */
};

static const struct tree_node *page_node(const struct page *page, size_t place)
{
	return &page->tree->nodes.items[page->places.items[place].node];
}

static const struct tree_weight *page_total(const struct page *page, size_t place)
{
	return page->writes_a ? &page->a[page->places.items[place].node].total : &page_node(page, place)->total;
}

static const struct tree_weight *page_self(const struct page *page, size_t place)
{
	return page->writes_a ? &page->a[page->places.items[place].node].self : &page_node(page, place)->self;
}

/* For two profiles: the counts of how the code ran are of both. */
static uint64_t page_samples(const struct page *page, size_t place)
{
	uint64_t of_a = page->a ? page->a[page->places.items[place].node].total.samples : 0;

	return page_node(page, place)->total.samples + of_a;
}

/* ---- which nodes are shown ------------------------------------------------------- */

static bool is_part(const struct page *page, const struct tree_weight *weight, const struct tree_weight *all)
{
	double least = (double)tree_value(all, page->options) * page->options->min_width / 100;

	return (double)tree_value(weight, page->options) >= least;
}

/* Returns true if the node is too narrow to be shown, in A too. */
static bool is_narrow(const struct page *page, uint32_t node)
{
	const struct tree_node *nodes = page->tree->nodes.items;

	return !is_part(page, &nodes[node].total, &nodes[0].total) &&
	       !(page->a && is_part(page, &page->a[node].total, &page->a[0].total));
}

static int place_nodes(struct page *page)
{
	const struct tree *tree = page->tree;
	uint32_t *depths = calloc(tree->nodes.len, sizeof(*depths));
	uint32_t node = tree_next(tree, 0, false);
	int err = depths ? 0 : -ENOMEM;

	while (node && !err) {
		bool narrow = is_narrow(page, node);

		depths[node] = depths[tree->nodes.items[node].parent] + 1;
		if (!narrow)
			err = vec_push(&page->places, (struct place){.node = node, .depth = depths[node]});
		node = tree_next(tree, node, narrow);
	}
	free(depths);
	return err;
}

static int collect_labels(struct page *page)
{
	const struct tree *tree = page->tree;
	size_t used = 0;

	if (vec_reserve(&page->labels, tree->labels.len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < tree->labels.len; i++) {
		if (!tree->labels.items[i].used)
			continue;
		page->labels.items[tree->labels.items[i].rank] = &tree->labels.items[i];
		used++;
	}
	page->labels.len = used;
	return 0;
}

static uint64_t usual_period(const struct profile *profile, const struct writer_options *options,
			     const struct tree_weight *all)
{
	uint64_t interval = options->event < profile->events.len ? profile->events.items[options->event].interval : 0;

	if (interval || !all->samples)
		return interval;
	return all->amount / all->samples;
}

/* ---- columns --------------------------------------------------------------- */

static void write_depths(const struct page *page)
{
	int64_t before = 0;

	fprintf(page->out, ",\n\"depth\":[");
	for (size_t i = 0; i < page->places.len; i++) {
		fprintf(page->out, "%s%" PRId64, i ? "," : "", page->places.items[i].depth - before);
		before = page->places.items[i].depth;
	}
	fprintf(page->out, "]");
}

static void write_column(const struct page *page, const char *name,
			 uint64_t (*get)(const struct page *page, size_t place))
{
	fprintf(page->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < page->places.len; i++)
		fprintf(page->out, "%s%" PRIu64, i ? "," : "", get(page, i));
	fprintf(page->out, "]");
}

static uint64_t get_label(const struct page *page, size_t place)
{
	return tree_label(page->tree, page->places.items[place].node)->rank;
}

static uint64_t get_samples(const struct page *page, size_t place)
{
	return page_total(page, place)->samples;
}

/* Writes two values a row. Rows of two zeros are left out. */
static void write_sparse(const struct page *page, const char *name,
			 void (*get)(const struct page *page, size_t place, int64_t ret_row[2]))
{
	size_t before = 0;
	bool first = true;

	fprintf(page->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < page->places.len; i++) {
		int64_t row[2] = {0, 0};

		get(page, i, row);
		if (!row[0] && !row[1])
			continue;
		fprintf(page->out, "%s%zu,%" PRId64 ",%" PRId64, first ? "" : ",", i - before, row[0], row[1]);
		before = i;
		first = false;
	}
	fprintf(page->out, "]");
}

/* Self samples. They cannot be computed from `samples`, because children that are too narrow are not written. */
static void get_self(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_weight *self = page_self(page, place);

	ret_row[0] = (int64_t)self->samples;
	ret_row[1] = (int64_t)(self->amount - self->samples * page->period);
}

/* The difference between the weight and samples x period. */
static void get_time(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_weight *total = page_total(page, place);

	ret_row[0] = (int64_t)(total->amount - total->samples * page->period);
}

static void get_mix(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_node *node = page_node(page, place);
	uint64_t samples = page_samples(page, place);

	if (node->inlined == samples || node->interpreted == samples)
		return;
	ret_row[0] = (int64_t)node->inlined;
	ret_row[1] = (int64_t)node->interpreted;
}

static void get_lines(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_node *node = page_node(page, place);

	ret_row[0] = node->line_low;
	ret_row[1] = node->line_high - node->line_low;
}

/* Returns how most samples of a Java frame ran, as a kind. */
static enum frame_kind node_kind(const struct page *page, size_t place)
{
	const struct tree_node *node = page_node(page, place);
	enum frame_kind kind = tree_label(page->tree, page->places.items[place].node)->kind;
	uint64_t compiled = page_samples(page, place) - node->inlined - node->interpreted;

	if (!frame_kind_is_java(kind) || kind == FRAME_JAVA_NATIVE)
		return kind;
	if (node->interpreted > compiled && node->interpreted >= node->inlined)
		return FRAME_INTERPRETED;
	return node->inlined > compiled ? FRAME_INLINED : FRAME_COMPILED;
}

/* Writes one letter a node, 'a' for the first kind. */
static void write_kinds(const struct page *page)
{
	fprintf(page->out, ",\n\"kind\":\"");
	for (size_t i = 0; i < page->places.len; i++)
		fputc('a' + (int)node_kind(page, i), page->out);
	fprintf(page->out, "\"");
}

/* ---- texts ----------------------------------------------------------------- */

/* Stops at the first non-ASCII byte, because the script counts UTF-16 units, not bytes. */
static uint32_t shared_prefix(const struct path_label *a, const struct path_label *b)
{
	uint32_t len = 0;

	while (len < a->name_len && len < b->name_len && a->text[len] == b->text[len] && !(a->text[len] & 0x80))
		len++;
	return len;
}

/* Writes the names in order, each as the length that it shares with the previous name, and the rest. */
static void write_labels(const struct page *page)
{
	static const struct path_label none = {.text = ""};
	const struct path_label *before = &none;

	fprintf(page->out, ",\n\"labels\":[");
	for (size_t i = 0; i < page->labels.len; i++) {
		const struct path_label *label = page->labels.items[i];
		uint32_t shared = shared_prefix(before, label);

		fprintf(page->out, "%s%u,", i ? "," : "", shared);
		json_text(page->out, label->text + shared, label->name_len - shared);
		before = label;
	}
	fprintf(page->out, "]");
}

/* Writes the list of libraries and source files, and for each label its index in that list. */
static int write_modules(const struct page *page)
{
	struct vec(uint64_t) places = {0};
	struct intern texts;
	struct map known = {0};
	uint64_t count = 0;
	int err = intern_init(&texts);

	if (err < 0)
		return err;
	fprintf(page->out, ",\n\"modules\":[");
	for (size_t i = 0; i < page->labels.len && !err; i++) {
		const char *module = page->labels.items[i]->module;
		uint32_t id = intern_str(&texts, module);
		uint64_t place = count;

		if (!map_get(&known, id, &place)) {
			err = map_put(&known, id, count);
			fprintf(page->out, "%s", count++ ? "," : "");
			json_foreign(page->out, module);
		}
		if (!err)
			err = vec_push(&places, place);
	}
	fprintf(page->out, "],\n\"module\":[");
	for (size_t i = 0; i < places.len; i++)
		fprintf(page->out, "%s%" PRIu64, i ? "," : "", places.items[i]);
	fprintf(page->out, "]");
	vec_release(&places);
	map_release(&known);
	intern_release(&texts);
	return err;
}

static void write_kind_names(const struct page *page)
{
	fprintf(page->out, ",\n\"kinds\":[");
	for (int kind = 0; kind < FRAME_KIND_MAX; kind++)
		fprintf(page->out, "%s\"%s\"", kind ? "," : "", frame_kind_name(kind));
	fprintf(page->out, "]");
}

static void write_fact(const struct page *page, const char *side, const char *key, const char *value)
{
	char whole[128];

	snprintf(whole, sizeof(whole), "%s%s", side, key);
	fputs("[", page->out);
	json_foreign(page->out, whole);
	fputc(',', page->out);
	json_foreign(page->out, value);
	fputs("]", page->out);
}

static bool has_fact(const struct profile *profile, const char *key, const char *value)
{
	for (size_t i = 0; i < profile->facts.len; i++)
		if (!strcmp(intern_text(&profile->strings, profile->facts.items[i].key), key) &&
		    !strcmp(intern_text(&profile->strings, profile->facts.items[i].value), value))
			return true;
	return false;
}

/*
 * Writes facts of one profile. Without `both`, leaves out those that `other` has too; with `both`, writes only these.
 */
static void write_facts_of(const struct page *page, const struct profile *profile, const struct profile *other,
			   bool both, const char *side, bool *first)
{
	for (size_t i = 0; i < profile->facts.len; i++) {
		const char *key = intern_text(&profile->strings, profile->facts.items[i].key);
		const char *value = intern_text(&profile->strings, profile->facts.items[i].value);

		if (other && has_fact(other, key, value) != both)
			continue;
		fputs(*first ? "" : ",", page->out);
		write_fact(page, side, key, value);
		*first = false;
	}
}

static void write_facts(const struct page *page)
{
	const struct writer_diff *two = page->two;
	bool first = !two;

	fprintf(page->out, ",\n\"facts\":[");
	if (two) {
		write_fact(page, "", "A", two->a.name);
		fputs(",", page->out);
		write_fact(page, "", "B", two->b.name);
		write_facts_of(page, two->a.profile, two->b.profile, true, "", &first);
		write_facts_of(page, two->a.profile, two->b.profile, false, "A: ", &first);
		write_facts_of(page, two->b.profile, two->a.profile, false, "B: ", &first);
	} else {
		write_facts_of(page, page->profile, NULL, false, "", &first);
	}
	fprintf(page->out, "]");
}

static void write_losses_of(const struct page *page, const struct profile *profile, const char *side, bool *first)
{
	BUF(text);

	for (size_t i = 0; i < profile->losses.len; i++) {
		buf_clear(&text);
		buf_printf(&text, "%s%s", intern_text(&profile->strings, profile->losses.items[i].text), side);
		fprintf(page->out, "%s[%" PRIu64 ",", *first ? "" : ",", profile->losses.items[i].count);
		json_foreign(page->out, text.data);
		fputc(']', page->out);
		*first = false;
	}
}

static void write_losses(const struct page *page)
{
	bool first = true;

	fprintf(page->out, ",\n\"losses\":[");
	if (page->two)
		write_losses_of(page, page->two->a.profile, " (A)", &first);
	write_losses_of(page, page->profile, page->two ? " (B)" : "", &first);
	fprintf(page->out, "]");
}

/* "app.jar" of "java: app.jar"; else the name of the process */
static const char *program_of(const struct profile *profile, const struct profile_thread *thread)
{
	const char *application = intern_text(&profile->strings, profile->owners.items[thread->owner].application);
	const char *colon = strstr(application, ": "), *name = colon ? colon + 2 : application;

	if (!*name)
		return intern_text(&profile->strings, thread->process);
	return *basename(name) ? basename(name) : name;
}

/* The program with its pid, or how many there are; nothing for a profile that does not know them. */
static void add_programs(const struct profile *profile, struct buf *title)
{
	const struct profile_thread *first = NULL;
	struct map pids = {0};
	uint64_t count = 0, known;

	for (size_t i = 0; i < profile->threads.len; i++) {
		const struct profile_thread *thread = &profile->threads.items[i];

		if (!thread->pid || map_get(&pids, thread->pid, &known) || map_put(&pids, thread->pid, 1) < 0)
			continue;
		first = count++ ? first : thread;
	}
	if (count == 1)
		buf_printf(title, "%s %u, ", program_of(profile, first), first->pid);
	else if (count)
		buf_printf(title, "%" PRIu64 " processes, ", count);
	map_release(&pids);
}

static void add_time(const struct profile *profile, struct buf *title)
{
	time_t seconds = (time_t)(profile->start_realtime_ns / NS_PER_SEC);
	struct tm parts;
	char text[64];

	if (seconds && gmtime_r(&seconds, &parts) && strftime(text, sizeof(text), ", %F %T UTC", &parts))
		buf_add_str(title, text);
}

/* "app.jar 4711, cpu, 2026-11-26 14:06:27 UTC" */
static void make_title(const struct page *page, struct buf *title)
{
	const char *event = writer_event(page->profile, page->options);

	if (page->two) {
		buf_printf(title, "%s: %s compared with %s", event, page->two->b.name, page->two->a.name);
		return;
	}
	add_programs(page->profile, title);
	buf_add_str(title, *event ? event : "no samples");
	add_time(page->profile, title);
}

static void write_title(const struct page *page)
{
	BUF(title);

	make_title(page, &title);
	json_foreign(page->out, page->options->title ? page->options->title : title.data);
}

/* ---- one event ---------------------------------------------------------------- */

static void write_sums(const struct page *page, const struct tree_weight *all)
{
	fprintf(page->out, "\"samples\":%" PRIu64 ",\"amount\":%" PRIu64 ",\"period\":%" PRIu64, all->samples,
		all->amount, page->period);
}

/* Writes the weights of A. */
static void write_diff(const struct page *page)
{
	const struct writer_side *a = &page->two->a;
	struct writer_options ours = *page->options;
	struct page other = *page;

	ours.event = a->event;
	other.profile = a->profile;
	other.options = &ours;
	other.writes_a = true;
	other.period = usual_period(a->profile, &ours, &page->a[0].total);
	fprintf(page->out, ",\n\"diff\":{\"normalize\":%s,\"unit\":", page->two->normalize ? "true" : "false");
	json_foreign(page->out, writer_unit(a->profile, &ours));
	fputc(',', page->out);
	write_sums(&other, &page->a[0].total);
	fputs(",\"names\":[", page->out);
	json_foreign(page->out, a->name);
	fputc(',', page->out);
	json_foreign(page->out, page->two->b.name);
	fputc(']', page->out);
	write_column(&other, "width", get_samples);
	write_sparse(&other, "self", get_self);
	write_sparse(&other, "time", get_time);
	fputc('}', page->out);
}

/* Writes each sample, or where there are too many, tables of them. Returns 0 or -ENOMEM. */
static int write_samples(const struct page *page)
{
	uint32_t *rows = calloc(page->tree->nodes.len, sizeof(*rows));
	struct page_samples samples = {.profile = page->profile,
				       .ordered = page->parts->ordered,
				       .tree = page->tree,
				       .event = page->options->event,
				       .rows = rows,
				       .period = page->period};

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < page->places.len; i++)
		rows[page->places.items[i].node] = (uint32_t)i + 1;
	int err = page->parts->ordered ? page_samples_write(&samples, page->out) : page_heat_write(&samples, page->out);

	free(rows);
	return err;
}

/* By what frames are as wide: weights, samples, or what the page chooses. */
static const char *width_of(const struct writer_options *options)
{
	return options->total ? "true" : options->samples ? "false" : "null";
}

/* One event as an object. */
static int write_event(const struct page *page)
{
	int err;

	fprintf(page->out, "{\"title\":");
	write_title(page);
	fprintf(page->out, ",\"event\":");
	json_foreign(page->out, writer_event(page->profile, page->options));
	fprintf(page->out, ",\"unit\":");
	json_foreign(page->out, writer_unit(page->profile, page->options));
	fputc(',', page->out);
	write_sums(page, &page->tree->nodes.items[0].total);
	fprintf(page->out, ",\"total\":%s,\"inverted\":%s,\"reverse\":%s", width_of(page->options),
		page->options->inverted ? "true" : "false", page->options->reverse ? "true" : "false");
	if (page->parts->view)
		fprintf(page->out, ",\"view\":\"%s\"", page->parts->view);
	if (page->options->highlight) {
		fputs(",\"highlight\":", page->out);
		json_foreign(page->out, page->options->highlight);
	}
	write_kind_names(page);
	write_facts(page);
	write_losses(page);
	write_labels(page);
	err = write_modules(page);
	write_depths(page);
	write_column(page, "label", get_label);
	write_column(page, "width", get_samples);
	write_kinds(page);
	write_sparse(page, "self", get_self);
	write_sparse(page, "time", get_time);
	write_sparse(page, "mix", get_mix);
	write_sparse(page, "lines", get_lines);
	if (page->two)
		write_diff(page);
	if (!err && (page->parts->ordered || page->options->leaves))
		err = write_samples(page);
	fprintf(page->out, "}");
	return err;
}

int page_event_write(const struct page_parts *parts, struct tree *tree, const struct writer_options *options, FILE *out)
{
	struct page page = {.profile = parts->profile,
			    .options = options,
			    .out = out,
			    .parts = parts,
			    .tree = tree,
			    .two = parts->two,
			    .a = parts->a};
	int err = tree_sort(tree);

	page.period = usual_period(page.profile, options, &tree->nodes.items[0].total);
	if (!err)
		err = collect_labels(&page);
	if (!err)
		err = place_nodes(&page);
	if (!err)
		err = write_event(&page);
	vec_release(&page.places);
	vec_release(&page.labels);
	return err;
}
