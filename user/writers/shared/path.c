/* SPDX-License-Identifier: MIT */
#include "writers/shared/path.h"

#include <errno.h>
#include <string.h>

#include "duet_jvm.h"

#include "base/text.h"

/* Returns the label of the text in `maker->text`, whose name ends at `name_len`; 0 when out of memory. */
static uint32_t label_of_text(struct path_maker *maker, size_t name_len, enum frame_kind kind, const char *module)
{
	uint32_t id = maker->text.failed ? 0 : intern_bytes(&maker->labels->texts, maker->text.data, maker->text.len);
	struct path_label label = {.name_len = (uint32_t)name_len, .kind = kind, .module = module};

	if (id < maker->labels->len)
		return id;
	label.text = intern_text(&maker->labels->texts, id);
	maker->text.len = name_len;
	maker->text.data[name_len] = '\0';
	label.included = filter_has(&maker->include, maker->text.data);
	label.excluded = filter_has(&maker->exclude, maker->text.data);
	return vec_push(maker->labels, label) < 0 ? 0 : id;
}

static uint32_t label_of_frame(struct path_maker *maker, const struct frame *frame)
{
	const struct frame_style *style = &maker->options->style;
	size_t name_len;

	buf_clear(&maker->text);
	frame_name(&maker->profile->strings, frame, style, &maker->text);
	name_len = maker->text.len;
	buf_add_str(&maker->text, frame_suffix(frame, style));
	return label_of_text(maker, name_len, frame->kind, profile_text(maker->profile, frame->module));
}

uint32_t path_mark(struct path_maker *maker, const char *text)
{
	buf_clear(&maker->text);
	buf_add_str(&maker->text, text);
	return label_of_text(maker, maker->text.len, FRAME_MARK, "");
}

/* "[name tid=1]" */
static uint32_t label_of_id(struct path_maker *maker, uint32_t name, const char *what, uint64_t id,
			    enum frame_kind kind)
{
	buf_clear(&maker->text);
	buf_add_char(&maker->text, '[');
	text_add_token(&maker->text, profile_text(maker->profile, name));
	buf_printf(&maker->text, " %s=%llu]", what, (unsigned long long)id);
	if (maker->options->style.steady)
		frame_cut_id(&maker->text, 0);
	return label_of_text(maker, maker->text.len, kind, "");
}

/* A virtual thread has Java's id instead of a tid, if it has its row alone. */
static uint32_t label_of_thread(struct path_maker *maker, uint32_t index)
{
	const struct profile_thread *thread = &maker->profile->threads.items[index];
	const char *name = profile_text(maker->profile, thread->name);
	bool has_name = strcmp(name, PROFILE_NO_NAME) != 0;
	uint64_t id = profile_virtual_id(maker->profile, index);

	if (thread->tid != PROFILE_VIRTUAL)
		return label_of_id(maker, thread->name, "tid", thread->tid, FRAME_THREAD);
	if (id && has_name)
		return label_of_id(maker, thread->name, "virtual", id, FRAME_THREAD);
	buf_clear(&maker->text);
	buf_add_str(&maker->text, has_name ? "[" : "");
	text_add_token(&maker->text, name);
	buf_add_str(&maker->text, has_name ? " virtual]" : "");
	return label_of_text(maker, maker->text.len, FRAME_THREAD, "");
}

int path_maker_extend(struct path_maker *maker)
{
	const struct profile *profile = maker->profile;

	if (vec_reserve(&maker->frame_labels, profile->frames.len + 1) < 0)
		return -ENOMEM;
	while (maker->frame_labels.len < profile->frames.len) {
		uint32_t label = label_of_frame(maker, &profile->frames.items[maker->frame_labels.len]);

		if (!label)
			return -ENOMEM;
		maker->frame_labels.items[maker->frame_labels.len++] = label;
	}
	return 0;
}

/* Returns 0 or -ENOMEM. A label of 0 means that there was no memory for it. */
static int path_push(struct path_maker *maker, uint32_t label, const struct frame *frame)
{
	return label ? vec_push(&maker->steps, (struct path_step){.label = label, .frame = frame}) : -ENOMEM;
}

/* Ends a stack that has PATH_DEEP frames, and no room for more. */
static int path_cut(struct path_maker *maker)
{
	if (maker->cut_frames >= PATH_CUT_FRAMES)
		maker->steps.len = PATH_SHORT;
	maker->cut_frames += maker->steps.len;
	writer_left_out(maker->options);
	return path_push(maker, path_mark(maker, PATH_TRUNCATED), NULL);
}

/*
 * Takes the frames at the root that grouping.c has put there, and sets *ret_root to the node of the innermost. Returns
 * 0 or -ENOMEM.
 */
static int path_take_groups(struct path_maker *maker, uint32_t leaf, uint32_t *ret_root)
{
	const struct profile *profile = maker->profile;
	uint32_t root = 0;

	vec_clear(&maker->groups);
	for (uint32_t i = 0; i < maker->group_count; i++) {
		uint32_t node = leaf;

		while (node && profile->nodes.items[node].parent != root)
			node = profile->nodes.items[node].parent;
		if (vec_push(&maker->groups, profile->nodes.items[node].frame) < 0)
			return -ENOMEM;
		root = node;
	}
	*ret_root = root;
	return 0;
}

/* Pushes the frames of the stack, leaf first. A mark replaces the frames that are not shown. */
static int path_push_frames(struct path_maker *maker, uint32_t leaf)
{
	const struct profile *profile = maker->profile;
	uint32_t node = leaf, depth = 0, root;
	int err = path_take_groups(maker, leaf, &root);

	if (!err && leaf == root)
		return path_push(maker, path_mark(maker, "[unknown]"), NULL);
	for (; node != root && !err; node = profile->nodes.items[node].parent, depth++) {
		uint32_t frame = profile->nodes.items[node].frame;

		if (maker->options->max_depth && depth == maker->options->max_depth)
			return path_push(maker, path_mark(maker, PATH_TRUNCATED), NULL);
		if ((depth >= PATH_DEEP && maker->deep_frames++ >= PATH_DEEP_FRAMES) ||
		    (depth == PATH_SHORT && profile->most_frames && maker->all_frames >= profile->most_frames))
			return path_cut(maker);
		maker->all_frames++;
		err = path_push(maker, maker->frame_labels.items[frame], &profile->frames.items[frame]);
	}
	return err;
}

/* Returns the label of a leading frame of --by: a name without an id. */
static uint32_t label_of_group(struct path_maker *maker, const struct profile_thread *thread, enum writer_group group,
			       size_t *groups)
{
	static const enum frame_kind kinds[] = {
		[WRITER_BY_CONTAINER] = FRAME_CONTAINER,
		[WRITER_BY_PROCESS] = FRAME_PROCESS,
		[WRITER_BY_THREAD] = FRAME_THREAD,
		[WRITER_BY_SERVICE] = FRAME_PROCESS,
	};
	const struct profile_owner *owner = &maker->profile->owners.items[thread->owner];
	uint32_t names[] = {
		[WRITER_BY_CONTAINER] = owner->container,
		[WRITER_BY_PROCESS] = thread->process,
		[WRITER_BY_THREAD] = thread->name,
		[WRITER_BY_SERVICE] = owner->service ? owner->service
				      : owner->application ? owner->application : thread->process,
	};
	const char *name;

	if (group >= WRITER_BY_TRACE)
		return maker->frame_labels.items[maker->groups.items[--*groups]];
	name = profile_text(maker->profile, names[group]);
	buf_clear(&maker->text);
	text_add_token(&maker->text, *name ? name : "[unknown]");
	return label_of_text(maker, maker->text.len, kinds[group], "");
}

/* Pushes the leading frames, innermost first. */
static int path_push_roots(struct path_maker *maker, uint32_t index, const char *category)
{
	const struct profile_thread *thread = &maker->profile->threads.items[index];
	const enum writer_group *by = maker->options->by;
	size_t groups = maker->groups.len; /* of those not pushed yet */
	int err = 0;

	if (category)
		err = path_push(maker, path_mark(maker, category), NULL);
	if (!err && maker->options->threads)
		err = path_push(maker, label_of_thread(maker, index), NULL);
	if (!err && maker->options->processes)
		err = path_push(maker, label_of_id(maker, thread->process, "pid", thread->pid, FRAME_PROCESS), NULL);
	for (size_t i = WRITER_GROUPS; !err && i-- > 0;)
		if (by[i] != WRITER_BY_NONE && (by[i] < WRITER_BY_TRACE || groups))
			err = path_push(maker, label_of_group(maker, thread, by[i], &groups), NULL);
	if (err || !maker->options->lead)
		return err;
	buf_clear(&maker->text);
	maker->options->lead(maker->options->lead_context, thread, &maker->text);
	return path_push(maker, label_of_text(maker, maker->text.len, FRAME_PROCESS, ""), NULL);
}

static void path_reverse(struct path_step *steps, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		struct path_step swap = steps[i];

		steps[i] = steps[len - 1 - i];
		steps[len - 1 - i] = swap;
	}
}

static bool path_is_wanted(const struct path_maker *maker)
{
	bool included = maker->options->include.len == 0;

	for (size_t i = 0; i < maker->steps.len; i++) {
		const struct path_label *label = &maker->labels->items[maker->steps.items[i].label];

		if (label->excluded)
			return false;
		included |= label->included;
	}
	return included;
}

static bool path_passes(const struct path_maker *maker)
{
	bool is_wanted = path_is_wanted(maker);

	if (maker->options->passed) {
		maker->options->passed->stacks++;
		maker->options->passed->kept += is_wanted;
	}
	return is_wanted;
}

/* The stack's frames at the root that are no code: the CPU and the scheduling policy. */
static size_t count_outer(const struct path_maker *maker)
{
	size_t count = 0;

	while (count < maker->steps.len) {
		const struct frame *frame = maker->steps.items[maker->steps.len - 1 - count].frame;

		if (!frame || frame->kind != FRAME_CPU)
			break;
		count++;
	}
	return count;
}

/*
 * Moves them outside of the leading frames: [CPU-1];[main tid=7];… A format's own columns (options->lead) stay first.
 */
static void path_move_outer(struct path_maker *maker, size_t outer)
{
	struct path_step *steps = maker->steps.items + maker->depth - outer;
	size_t len = maker->steps.len - (maker->depth - outer);

	if (len == outer || maker->options->lead)
		return;
	path_reverse(steps, outer);
	path_reverse(steps + outer, len - outer);
	path_reverse(steps, len);
	maker->depth -= outer;
}

/* Sets the options that shape the frames of the stack itself. `outer`: see count_outer(). */
static void path_shape(struct path_maker *maker, size_t outer)
{
	uint32_t skip = maker->options->skip;
	size_t frames = maker->steps.len - outer;

	skip = skip < frames ? skip : (uint32_t)frames;
	memmove(maker->steps.items + frames - skip, maker->steps.items + frames, outer * sizeof(*maker->steps.items));
	maker->steps.len -= skip;
	if (maker->options->reverse && maker->labels != &maker->own)
		path_reverse(maker->steps.items, maker->steps.len - outer);
	maker->depth = maker->steps.len;
}

int path_make(struct path_maker *maker, uint32_t thread, uint32_t leaf)
{
	const char *category = NULL;
	size_t outer;
	int err;

	vec_clear(&maker->steps);
	err = path_push_frames(maker, leaf);
	if (err < 0)
		return err;
	if (maker->options->classify)
		category = category_of(&maker->profile->strings, maker->steps.items, maker->steps.len);
	outer = count_outer(maker);
	path_shape(maker, outer);
	err = path_push_roots(maker, thread, category);
	path_move_outer(maker, outer);
	return err < 0 ? err : path_passes(maker);
}

/* The expressions were tested by the command: only memory can be missing. */
static int path_filters_init(struct path_maker *maker)
{
	const struct writer_options *options = maker->options;
	BUF(why);
	int err = filter_init(&maker->include, &options->include, options->regex, &why);

	if (!err)
		err = filter_init(&maker->exclude, &options->exclude, options->regex, &why);
	return err;
}

int path_maker_init(struct path_maker *maker, struct path_labels *labels, const struct profile *profile,
		    const struct writer_options *options)
{
	int err;

	*maker = (struct path_maker){.profile = profile, .options = options, .labels = labels ? labels : &maker->own};
	for (size_t i = 0; options->is_grouped && i < WRITER_GROUPS; i++)
		maker->group_count += options->by[i] >= WRITER_BY_TRACE;
	buf_init(&maker->text);
	err = labels ? 0 : path_labels_init(&maker->own);
	if (!err)
		err = path_filters_init(maker);
	if (!err)
		err = path_maker_extend(maker);
	if (err < 0)
		path_maker_release(maker);
	return err;
}

void path_maker_release(struct path_maker *maker)
{
	filter_release(&maker->include);
	filter_release(&maker->exclude);
	vec_release(&maker->frame_labels);
	vec_release(&maker->steps);
	vec_release(&maker->groups);
	buf_release(&maker->text);
	path_labels_release(&maker->own);
}

int path_labels_init(struct path_labels *labels)
{
	int err;

	*labels = (struct path_labels){0};
	err = intern_init(&labels->texts);
	if (!err && vec_push(labels, (struct path_label){.text = "", .module = ""}) < 0) {
		path_labels_release(labels);
		err = -ENOMEM;
	}
	return err;
}

void path_labels_release(struct path_labels *labels)
{
	intern_release(&labels->texts);
	vec_release(labels);
}

/* ---- --classify ---- */

/* How a row's text is compared with the name of a frame. */
enum comparison { WHOLE, BEGIN, END };

/* clang-format off */
static const struct row {
	enum comparison comparison;
	const char *text, *category;
} threads[] = {
	{WHOLE, "CompileBroker::compiler_thread_loop", "[jit]"},
	{WHOLE, "GCTaskThread::run", "[gc]"},
	{WHOLE, "GangWorker::run", "[gc]"}, /* JDK 9 to 17 */
	{WHOLE, "WorkerThread::run", "[gc]"},
	{WHOLE, "ConcurrentGCThread::run", "[gc]"},
}, loading[] = {
	{WHOLE, "Verifier::verify", "[class_verify]"},
	{BEGIN, "InstanceKlass::initialize", "[class_init]"},
	{BEGIN, "LinkResolver::", "[class_resolve]"},
	{BEGIN, "InterpreterRuntime::resolve", "[class_resolve]"},
	{BEGIN, "SystemDictionary::resolve", "[class_resolve]"},
	{END, "ClassLoader.loadClass", "[class_load]"},
	{END, "LambdaMetafactory.metafactory", "[lambda_init]"},
	{END, "LambdaMetafactory.altMetafactory", "[lambda_init]"},
	{END, "table stub", "[vtable_stubs]"},
	{WHOLE, "Interpreter", "[Interpreter]"},
	{BEGIN, "I2C/C2I", "[c2i_adapter]"},
};
/* clang-format on */

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))

static bool ends(const char *name, size_t len, const char *text)
{
	size_t bytes = strlen(text);

	return len >= bytes && !memcmp(name + len - bytes, text, bytes);
}

/* Compares with "Class.method", without allocating: both parts are compared from the end. */
static bool ends_java(const struct intern *strings, const struct frame *frame, const char *text)
{
	const char *method = intern_text(strings, frame->name), *class_name = intern_text(strings, frame->class_name);
	const char *dot = strrchr(text, '.');
	size_t len = strlen(class_name), bytes = dot ? (size_t)(dot - text) : 0;

	return dot && !strcmp(method, dot + 1) && len >= bytes && !memcmp(class_name + len - bytes, text, bytes);
}

static bool row_fits(const struct intern *strings, const struct frame *frame, const struct row *row)
{
	const char *name = intern_text(strings, frame->name);

	if (frame_kind_is_java(frame->kind))
		return row->comparison == END && ends_java(strings, frame, row->text);
	switch (row->comparison) {
	case WHOLE:
		return !strcmp(name, row->text);
	case BEGIN:
		return !strncmp(name, row->text, strlen(row->text));
	default:
		return ends(name, strlen(name), row->text);
	}
}

static const char *find_row(const struct intern *strings, const struct frame *frame, const struct row *rows,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (row_fits(strings, frame, &rows[i]))
			return rows[i].category;
	return NULL;
}

/* Returns the category of a thread of the JVM itself. NULL if the stack has Java frames, or is of no such thread. */
static const char *of_thread(const struct intern *strings, const struct path_step *steps, size_t depth)
{
	const char *found = NULL, *category;

	for (size_t i = depth; i-- > 0;) {
		const struct frame *frame = steps[i].frame;
		const char *name = frame ? intern_text(strings, frame->name) : "";

		if (!frame)
			continue;
		if (frame_kind_is_java(frame->kind))
			return NULL;
		category = find_row(strings, frame, threads, COUNT(threads));
		if (category)
			return category;
		if (!strcmp(name, "thread_native_entry") || !strcmp(name, "java_start"))
			found = "[vm]";
	}
	return found;
}

static const char *of_loading(const struct intern *strings, const struct path_step *steps, size_t depth)
{
	for (size_t i = 0; i < depth; i++) {
		const struct frame *frame = steps[i].frame;
		const char *category = frame ? find_row(strings, frame, loading, COUNT(loading)) : NULL;

		if (category)
			return category;
	}
	return NULL;
}

/* Returns the category by the first frame from the leaf that decides it: kernel frames, marks and stubs do not. */
static const char *of_leaf(const struct intern *strings, const struct path_step *steps, size_t depth)
{
	static const char *const categories[FRAME_KIND_MAX] = {
		[FRAME_NATIVE] = "[native]",	[FRAME_JAVA_NATIVE] = "[native]",
		[FRAME_JVM] = "[vm]",		[FRAME_COMPILED] = "[compiled]",
		[FRAME_INLINED] = "[compiled]", [FRAME_INTERPRETED] = "[Interpreter]",
	};

	for (size_t i = 0; i < depth; i++) {
		const struct frame *frame = steps[i].frame;

		/* stubs, as those that copy arrays, run for the code that has called them */
		if (frame && frame->kind == FRAME_JVM && !duet_is_libjvm(intern_text(strings, frame->module)))
			continue;
		if (frame && categories[frame->kind])
			return categories[frame->kind];
	}
	return "[native]";
}

const char *category_of(const struct intern *strings, const struct path_step *steps, size_t depth)
{
	const char *category = of_thread(strings, steps, depth);

	if (!category)
		category = of_loading(strings, steps, depth);
	return category ? category : of_leaf(strings, steps, depth);
}
