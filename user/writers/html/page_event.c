/* SPDX-License-Identifier: MIT */
#include "writers/html/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "writers/text/headline.h"
#include "writers/writer.h"

struct place {
	uint32_t node;
	uint32_t depth; /* 1 below the root */
};

/* One event. */
struct page {
	const struct profile *profile;
	const struct writer_options *options;
	struct json *json;
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

static const struct path_label *page_label(const struct page *page, size_t place)
{
	return tree_label(page->tree, page->places.items[place].node);
}

/* For two profiles: the counts of how the code ran are of both. */
static uint64_t page_samples(const struct page *page, size_t place)
{
	uint64_t of_a = page->a ? page->a[page->places.items[place].node].total.samples : 0;

	return page_node(page, place)->total.samples + of_a;
}

static bool is_part(const struct page *page, const struct tree_weight *weight, const struct tree_weight *all)
{
	double least = (double)tree_value(all, page->options) * page->options->min_width / 100;

	return (double)tree_value(weight, page->options) >= least;
}

static int place_nodes(struct page *page)
{
	const struct tree *tree = page->tree;
	const struct tree_node *nodes = tree->nodes.items;
	uint32_t *depths = calloc(tree->nodes.len, sizeof(*depths));
	uint32_t node = tree_next(tree, 0, false);
	int err = depths ? 0 : -ENOMEM;

	while (node && !err) {
		/* too narrow to be shown, in A too */
		bool narrow = !is_part(page, &nodes[node].total, &nodes[0].total) &&
			      !(page->a && is_part(page, &page->a[node].total, &page->a[0].total));

		depths[node] = depths[nodes[node].parent] + 1;
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

static void write_widths(const struct page *page)
{
	JSON_ARRAY(page->json, "\n\"width\":[", page->places.len, "%" PRIu64, page_total(page, i)->samples);
}

static void write_depths(const struct page *page)
{
	int64_t before = 0;

	json_begin(page->json, "\n\"depth\":[");
	for (size_t i = 0; i < page->places.len; i++) {
		json_put(page->json, "%" PRId64, page->places.items[i].depth - before);
		before = page->places.items[i].depth;
	}
	json_end(page->json, "]");
}

/* Writes two values a row. Rows of two zeros are left out. */
static void write_sparse(const struct page *page, const char *name,
			 void (*get)(const struct page *page, size_t place, int64_t ret_row[2]))
{
	size_t before = 0;

	json_put(page->json, "\n\"%s\":[", name);
	page->json->has_value = false;
	for (size_t i = 0; i < page->places.len; i++) {
		int64_t row[2] = {0, 0};

		get(page, i, row);
		if (!row[0] && !row[1])
			continue;
		json_put(page->json, "%zu,%" PRId64 ",%" PRId64, i - before, row[0], row[1]);
		before = i;
	}
	json_end(page->json, "]");
}

/* Self samples. They cannot be computed from `samples`, because children that are too narrow are not written. */
static void get_self(const struct page *page, size_t place, int64_t ret_row[2])
{
	uint32_t node = page->places.items[place].node;
	const struct tree_weight *self = page->writes_a ? &page->a[node].self : &page->tree->nodes.items[node].self;

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
	enum frame_kind kind = page_label(page, place)->kind;
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
	json_begin(page->json, "\n\"kind\":\"");
	for (size_t i = 0; i < page->places.len; i++)
		fputc('a' + (int)node_kind(page, i), page->json->out);
	json_end(page->json, "\"");
}

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

	json_begin(page->json, "\n\"labels\":[");
	for (size_t i = 0; i < page->labels.len; i++) {
		const struct path_label *label = page->labels.items[i];
		uint32_t shared = shared_prefix(before, label);

		json_put(page->json, "%u", shared);
		json_text(page->json, label->text + shared, label->name_len - shared);
		before = label;
	}
	json_end(page->json, "]");
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
	json_begin(page->json, "\n\"modules\":[");
	for (size_t i = 0; i < page->labels.len && !err; i++) {
		const char *module = page->labels.items[i]->module;
		uint32_t id = intern_str(&texts, module);
		uint64_t place = count;

		if (!map_get(&known, id, &place)) {
			err = map_put(&known, id, count++);
			json_foreign(page->json, module);
		}
		if (!err)
			err = vec_push(&places, place);
	}
	json_end(page->json, "]");
	JSON_ARRAY(page->json, "\n\"module\":[", places.len, "%" PRIu64, places.items[i]);
	vec_release(&places);
	map_release(&known);
	intern_release(&texts);
	return err;
}

static void write_fact(const struct page *page, const char *side, const char *key, const char *value)
{
	char whole[128];

	snprintf(whole, sizeof(whole), "%s%s", side, key);
	json_begin(page->json, "[");
	json_foreign(page->json, whole);
	json_foreign(page->json, value);
	json_end(page->json, "]");
}

/* The strings of two profiles have different numbers. */
static bool has_fact(const struct profile *profile, const struct map *facts, const char *key, const char *value)
{
	uint32_t key_id = intern_known(&profile->strings, key), value_id = intern_known(&profile->strings, value);
	uint64_t known;

	return (key_id || !*key) && (value_id || !*value) && map_get(facts, (uint64_t)key_id << 32 | value_id, &known);
}

/*
 * Writes facts of one profile. Without `both`, leaves out those that `other` has too; with `both`, writes only these.
 */
static void write_facts_of(const struct page *page, const struct profile *profile, const struct profile *other,
			   bool both, const char *side)
{
	struct map facts = {0}; /* of `other`: key << 32 | value; out of memory, a fact is written twice */

	for (size_t i = 0; other && i < other->facts.len; i++)
		(void)map_put(&facts, (uint64_t)other->facts.items[i].key << 32 | other->facts.items[i].value, 1);
	for (size_t i = 0; i < profile->facts.len; i++) {
		const char *key = profile_text(profile, profile->facts.items[i].key);
		const char *value = profile_text(profile, profile->facts.items[i].value);

		if (!other || has_fact(other, &facts, key, value) == both)
			write_fact(page, side, key, value);
	}
	map_release(&facts);
}

static void write_facts(const struct page *page)
{
	const struct writer_diff *two = page->two;

	json_begin(page->json, "\n\"facts\":[");
	if (two) {
		write_fact(page, "", "A", two->a.name);
		write_fact(page, "", "B", two->b.name);
		write_facts_of(page, two->a.profile, two->b.profile, true, "");
		write_facts_of(page, two->a.profile, two->b.profile, false, "A: ");
		write_facts_of(page, two->b.profile, two->a.profile, false, "B: ");
	} else {
		write_facts_of(page, page->profile, NULL, false, "");
	}
	json_end(page->json, "]");
}

static void write_losses_of(const struct page *page, const struct profile *profile, const char *side)
{
	BUF(text);

	for (size_t i = 0; i < profile->losses.len; i++) {
		buf_clear(&text);
		buf_printf(&text, "%s%s", profile_text(profile, profile->losses.items[i].text), side);
		json_begin(page->json, "[");
		json_put(page->json, "%" PRIu64, profile->losses.items[i].count);
		json_foreign(page->json, text.data);
		json_end(page->json, "]");
	}
}

static void write_losses(const struct page *page)
{
	json_begin(page->json, "\n\"losses\":[");
	if (page->two)
		write_losses_of(page, page->two->a.profile, " (A)");
	write_losses_of(page, page->profile, page->two ? " (B)" : "");
	json_end(page->json, "]");
}

/* The program with its pid, or how many there are; nothing for a profile that does not know them. */
static void add_programs(const struct profile *profile, struct buf *title)
{
	const struct profile_thread *first = NULL;
	const char *name;
	struct map pids = {0};
	uint64_t count = 0, known;

	for (size_t i = 0; i < profile->threads.len; i++) {
		const struct profile_thread *thread = &profile->threads.items[i];

		if (!thread->pid || map_get(&pids, thread->pid, &known) || map_put(&pids, thread->pid, 1) < 0)
			continue;
		first = count++ ? first : thread;
	}
	if (count == 1) {
		name = headline_program(profile, first);
		if (name != profile_text(profile, first->process) && *basename(name))
			name = basename(name);
		buf_printf(title, "%s %u, ", name, first->pid);
	} else if (count) {
		buf_printf(title, "%" PRIu64 " processes, ", count);
	}
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

	if (page->two)
		return buf_printf(title, "%s: %s compared with %s", event, page->two->b.name, page->two->a.name);
	add_programs(page->profile, title);
	buf_add_str(title, *event ? event : "no samples");
	add_time(page->profile, title);
}

static void write_sums(const struct page *page, const struct tree_weight *all)
{
	json_put(page->json, "\"samples\":%" PRIu64 ",\"amount\":%" PRIu64 ",\"period\":%" PRIu64, all->samples,
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
	json_begin(page->json, "\n\"diff\":{");
	json_put(page->json, "\"normalize\":%s", page->two->normalize ? "true" : "false");
	json_member(page->json, "unit", writer_unit(a->profile, &ours));
	write_sums(&other, &page->a[0].total);
	json_begin(page->json, "\"names\":[");
	json_foreign(page->json, a->name);
	json_foreign(page->json, page->two->b.name);
	json_end(page->json, "]");
	write_widths(&other);
	write_sparse(&other, "self", get_self);
	write_sparse(&other, "time", get_time);
	json_end(page->json, "}");
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
	int err;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < page->places.len; i++)
		rows[page->places.items[i].node] = (uint32_t)i + 1;
	err = samples.ordered ? page_samples_write(&samples, page->json) : page_heat_write(&samples, page->json);
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
	BUF(title);
	int err;

	make_title(page, &title);
	json_begin(page->json, page->json->has_value ? "\n{" : "{");
	json_member(page->json, "title", page->options->title ? page->options->title : title.data);
	json_member(page->json, "event", writer_event(page->profile, page->options));
	json_member(page->json, "unit", writer_unit(page->profile, page->options));
	write_sums(page, &page->tree->nodes.items[0].total);
	json_put(page->json, "\"total\":%s,\"inverted\":%s,\"reverse\":%s", width_of(page->options),
		 page->options->inverted ? "true" : "false", page->options->reverse ? "true" : "false");
	if (page->parts->view)
		json_put(page->json, "\"view\":\"%s\"", page->parts->view);
	if (page->options->highlight)
		json_member(page->json, "highlight", page->options->highlight);
	JSON_ARRAY(page->json, "\n\"kinds\":[", FRAME_KIND_MAX, "\"%s\"", frame_kind_name((enum frame_kind)i));
	write_facts(page);
	write_losses(page);
	write_labels(page);
	err = write_modules(page);
	write_depths(page);
	JSON_ARRAY(page->json, "\n\"label\":[", page->places.len, "%u", page_label(page, i)->rank);
	write_widths(page);
	write_kinds(page);
	write_sparse(page, "self", get_self);
	write_sparse(page, "time", get_time);
	write_sparse(page, "mix", get_mix);
	write_sparse(page, "lines", get_lines);
	if (page->two)
		write_diff(page);
	if (!err && (page->parts->ordered || page->options->leaves))
		err = write_samples(page);
	json_end(page->json, "}");
	return err;
}

int page_event_write(const struct page_parts *parts, struct tree *tree, const struct writer_options *options,
		     struct json *json)
{
	struct page page = {.profile = parts->profile,
			    .options = options,
			    .json = json,
			    .parts = parts,
			    .tree = tree,
			    .two = parts->two,
			    .a = parts->a};
	int err = tree_sort(tree, NULL);

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
