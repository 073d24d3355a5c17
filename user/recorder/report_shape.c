/* SPDX-License-Identifier: MIT */
#include "recorder/report_shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define TRACE "trace"
#define FREE "free"
#define TRUNCATED "[truncated]"
#define IDLE "[idle]"
#define NO_JAVA "[no_Java_frame]"
#define CALL_STUB "call_stub" /* HotSpot's code between JavaCalls::call_helper() and Java */
#define CALL_HELPER "JavaCalls::call_helper"
#define HOOK "_hook" /* async-profiler's functions in place of the C library's */
#define NONE UINT32_MAX /* an event that is not shown */

/* A node of the recording's stacks, as nodes of the report's. Children come after their parents. */
struct shaped {
	uint32_t all; /* with all frames; while there is no Java frame */
	uint32_t java; /* without native frames */
	uint32_t leaf; /* `java`, and the native frames after its last frame */
	bool has_java;
};

/*
 * Wall-clock time. async-profiler samples each thread once a period, whether it runs or sleeps, and callers compare the
 * numbers of samples. A recording has one sample for a whole sleep.
 */
struct wall {
	bool is_wall;
	uint64_t *rest_ns; /* by thread: time for which there is no sample yet */
};

struct shaping {
	struct profile *profile;
	const struct report_shape *shape;
	struct timeline samples; /* of the report */
	struct shaped *nodes; /* by node of the recording */
	struct map cut_nodes; /* node of a deep stack -> node of what is kept of it */
	uint32_t *events; /* by event of the recording; NONE */
	struct wall *walls; /* by event of the recording */
	bool *is_hooked; /* the leaf of the event's stacks is a function that async-profiler replaces */
	bool failed;
};

enum stack_shape stack_shape_of(const char *cstack)
{
	if (cstack && !strcmp(cstack, "vmx"))
		return STACK_VMX;
	if (cstack && !strcmp(cstack, "fp"))
		return STACK_FP;
	return cstack && !strcmp(cstack, "no") ? STACK_NO : STACK_VM;
}

static bool is_native(const struct frame *frame)
{
	return frame->kind == FRAME_KERNEL || frame->kind == FRAME_NATIVE || frame->kind == FRAME_JVM;
}

/* Returns the child of a node, or 0 when out of memory. */
static uint32_t child(struct shaping *s, uint32_t parent, const struct frame *frame)
{
	uint32_t index = profile_frame(s->profile, frame);
	uint32_t node = index == UINT32_MAX ? UINT32_MAX : profile_child(s->profile, parent, index);

	s->failed |= node == UINT32_MAX;
	return node == UINT32_MAX ? 0 : node;
}

static uint32_t text_child(struct shaping *s, uint32_t parent, enum frame_kind kind, const char *text)
{
	const struct frame frame = {.kind = kind, .bci = -1, .name = intern_str(&s->profile->strings, text)};

	return child(s, parent, &frame);
}

static struct frame frame_of(const struct shaping *s, uint32_t node)
{
	return s->profile->frames.items[s->profile->nodes.items[node].frame];
}

/* The types of async-profiler's frames say how the method was called, also of native methods. */
static struct frame typed(const struct shaping *s, struct frame frame)
{
	bool is_typed = s->shape->stacks == STACK_VM || s->shape->stacks == STACK_VMX;

	if (frame_kind_is_java(frame.kind) && !is_typed)
		frame.kind = FRAME_COMPILED;
	else if (frame.kind == FRAME_JAVA_NATIVE && frame.bci == FRAME_BCI_INTERPRETED)
		frame.kind = FRAME_INTERPRETED;
	return frame;
}

static void shape_java(struct shaping *s, const struct shaped *parent, const struct frame *frame, struct shaped *ret)
{
	ret->has_java = true;
	ret->java = ret->leaf = child(s, parent->java, frame);
}

static void shape_native(struct shaping *s, const struct shaped *parent, const struct frame *frame, struct shaped *ret)
{
	ret->has_java = parent->has_java;
	ret->java = parent->java;
	if (parent->has_java)
		ret->leaf = child(s, parent->leaf, frame);
	else
		ret->all = child(s, parent->all, frame);
}

/* Frames that are not code, such as marks, are in all shapes. */
static void shape_other(struct shaping *s, const struct shaped *parent, const struct frame *frame, struct shaped *ret)
{
	ret->has_java = parent->has_java;
	ret->java = child(s, parent->java, frame);
	ret->leaf = parent->has_java ? child(s, parent->leaf, frame) : 0;
	ret->all = parent->has_java ? 0 : child(s, parent->all, frame);
}

static bool is_call_helper(const struct shaping *s, uint32_t node)
{
	const struct frame frame = frame_of(s, node);

	return frame.kind == FRAME_JVM &&
	       !strncmp(intern_text(&s->profile->strings, frame.name), CALL_HELPER, strlen(CALL_HELPER));
}

/* The walk knows the stub between the JVM and Java, and leaves it out. */
static void shape_everything(struct shaping *s, uint32_t node, struct shaped *ret)
{
	uint32_t parent = s->profile->nodes.items[node].parent, above = s->nodes[parent].all;
	const struct frame frame = typed(s, frame_of(s, node));

	if (parent && frame_kind_is_java(frame.kind) && is_call_helper(s, parent))
		above = text_child(s, above, FRAME_JVM, CALL_STUB);
	ret->all = child(s, above, &frame);
}

/* Returns true for the method that the JVM compiles: the thread runs no Java code. */
static bool is_compiled(const struct shaping *s, uint32_t node)
{
	uint32_t parent = s->profile->nodes.items[node].parent;
	const struct frame frame = parent ? frame_of(s, parent) : (struct frame){.kind = FRAME_MARK};

	return frame.kind == FRAME_JVM && frame_name_compiles(intern_text(&s->profile->strings, frame.name));
}

static void shape_node(struct shaping *s, uint32_t node)
{
	const struct shaped parent = s->nodes[s->profile->nodes.items[node].parent];
	const struct frame frame = typed(s, frame_of(s, node));
	struct shaped *shaped = &s->nodes[node];

	if (frame.kind == FRAME_STATE && !strcmp(intern_text(&s->profile->strings, frame.name), IDLE))
		*shaped = parent; /* the root of a thread that was idle for the whole time */
	else if (s->shape->stacks == STACK_VMX)
		shape_everything(s, node, shaped);
	else if (frame_kind_is_java(frame.kind) && !is_compiled(s, node))
		shape_java(s, &parent, &frame, shaped);
	else if (is_native(&frame) || frame_kind_is_java(frame.kind))
		shape_native(s, &parent, &frame, shaped);
	else
		shape_other(s, &parent, &frame, shaped);
}

static uint32_t shaped_leaf(struct shaping *s, uint32_t node)
{
	const struct shaped *shaped = &s->nodes[node];

	if (s->shape->stacks == STACK_NO)
		return shaped->java || !node ? shaped->java : text_child(s, 0, FRAME_MARK, NO_JAVA);
	return shaped->has_java ? shaped->leaf : shaped->all;
}

/* ---- names of functions that wait, or give memory ---- */

/* Returns the function's public name, or NULL if it is none of those that async-profiler replaces. */
static const char *replaced_name(const char *name)
{
	static const char *const names[] = {
		"pthread_mutex_lock",
		"pthread_rwlock_rdlock",
		"pthread_rwlock_wrlock",
		"malloc",
		"calloc",
		"realloc",
		"posix_memalign",
		"aligned_alloc",
		"memalign",
	};

	name += strspn(name, "_");
	if (!strncmp(name, "libc_", strlen("libc_")))
		name += strlen("libc_");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i]);

		if (!strncmp(name, names[i], len) && (!name[len] || name[len] == '@'))
			return names[i];
	}
	return NULL;
}

static uint32_t name_hook(struct shaping *s, uint32_t node)
{
	struct frame frame = node ? frame_of(s, node) : (struct frame){.kind = FRAME_MARK};
	const char *name =
		frame.kind == FRAME_NATIVE ? replaced_name(intern_text(&s->profile->strings, frame.name)) : NULL;
	BUF(hook);

	if (!name)
		return node;
	buf_printf(&hook, "%s" HOOK, name);
	frame.name = intern_str(&s->profile->strings, hook.data);
	return child(s, s->profile->nodes.items[node].parent, &frame);
}

/* Returns the node of the `count` frames of a stack that are next to its leaf. */
static uint32_t copy_leaf(struct shaping *s, uint32_t node, uint32_t count, uint32_t root)
{
	uint32_t *frames = calloc(count, sizeof(*frames));

	if (!frames) {
		s->failed = true;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++, node = s->profile->nodes.items[node].parent)
		frames[i] = s->profile->nodes.items[node].frame;
	for (uint32_t i = count; i-- > 0 && !s->failed;) {
		const struct frame frame = s->profile->frames.items[frames[i]];

		root = child(s, root, &frame);
	}
	free(frames);
	return root;
}

static uint32_t cut_deep(struct shaping *s, uint32_t node)
{
	const struct report_shape *shape = s->shape;
	uint32_t depth = 0, kept = shape->kept_frames ? shape->kept_frames : shape->most_frames, root = 0;
	uint64_t known;

	for (uint32_t at = node; at && depth <= shape->most_frames; at = s->profile->nodes.items[at].parent)
		depth++;
	if (!shape->most_frames || depth <= shape->most_frames)
		return node;
	if (map_get(&s->cut_nodes, node, &known))
		return (uint32_t)known;
	if (shape->kept_frames)
		root = text_child(s, 0, FRAME_MARK, TRUNCATED);
	root = copy_leaf(s, node, kept, root);
	s->failed |= map_put(&s->cut_nodes, node, root) < 0;
	return root;
}

/* Returns the index of an event among those that are shown, which are moved to the front of the list. */
static uint32_t show_event(struct shaping *s, struct profile_event event, size_t *shown, size_t *trace)
{
	bool joins = text_begins_with(intern_text(&s->profile->strings, event.name), TRACE ":");

	if (joins && *trace != SIZE_MAX)
		return (uint32_t)*trace;
	if (joins)
		*trace = *shown;
	s->profile->events.items[*shown] = event;
	return (uint32_t)(*shown)++;
}

/*
 * In JFR, each traced method keeps its own interval. Of several events, a format that has one shows the first: that of
 * a recording that was begun for JFR, or was resumed with another event.
 */
static void choose_events(struct shaping *s, const struct writer *writer)
{
	struct profile *profile = s->profile;
	bool is_jfr = !strcmp(writer->name, "jfr");
	size_t shown = 0, trace = SIZE_MAX;

	for (size_t i = 0; i < profile->events.len; i++) {
		s->is_hooked[i] = !strcmp(profile_event_name(profile, i), "nativelock") ||
				  !strcmp(profile_event_name(profile, i), "nativemem");
		if (is_jfr)
			s->events[i] = (uint32_t)i;
		else if (!strcmp(profile_event_name(profile, i), FREE) && profile->events.len > 1)
			s->events[i] = NONE;
		else
			s->events[i] = show_event(s, profile->events.items[i], &shown, &trace);
	}
	if (!is_jfr)
		profile->events.len = shown;
}

static int open_walls(struct shaping *s)
{
	for (size_t i = 0; i < s->profile->events.len; i++) {
		struct profile_event *event = &s->profile->events.items[i];

		if (event->unit != PROFILE_NS || !s->shape->wall_ns ||
		    strcmp(profile_event_name(s->profile, i), "wall") != 0)
			continue;
		s->walls[i].is_wall = true;
		event->interval = s->shape->wall_ns;
		s->walls[i].rest_ns = calloc(s->profile->threads.len + 1, sizeof(*s->walls[i].rest_ns));
		if (!s->walls[i].rest_ns)
			return -ENOMEM;
	}
	return 0;
}

/* The sample stands for the periods that end with it. Returns false if it is part of one that has not ended. */
static bool count_periods(const struct wall *wall, struct profile_sample *sample, uint64_t interval)
{
	uint64_t *rest_ns, periods;

	if (!wall->is_wall)
		return true;
	rest_ns = &wall->rest_ns[sample->thread];
	*rest_ns += sample->weight;
	periods = *rest_ns / interval;
	*rest_ns %= interval;
	sample->count = periods < UINT32_MAX ? (uint32_t)periods : UINT32_MAX;
	sample->weight = sample->count * interval;
	return sample->count;
}

static int move_sample(void *context, const struct profile_sample *sample)
{
	struct shaping *s = context;
	struct profile_sample moved = *sample;

	moved.event = s->events[sample->event];
	if (moved.event == NONE ||
	    !count_periods(&s->walls[sample->event], &moved, s->profile->events.items[moved.event].interval))
		return 0;
	moved.node = shaped_leaf(s, sample->node);
	if (s->is_hooked[sample->event])
		moved.node = name_hook(s, moved.node);
	moved.node = cut_deep(s, moved.node);
	return s->failed ? -ENOMEM : timeline_add(&s->samples, &moved);
}

static int move_samples(struct shaping *s)
{
	size_t count = s->profile->nodes.len;

	for (uint32_t node = 1; node < count && !s->failed; node++)
		shape_node(s, node);
	return s->failed ? -ENOMEM : timeline_remake(&s->profile->samples, &s->samples, move_sample, s);
}

static int shaping_open(struct shaping *s)
{
	size_t events = s->profile->events.len + 1;

	s->nodes = calloc(s->profile->nodes.len + 1, sizeof(*s->nodes));
	s->events = calloc(events, sizeof(*s->events));
	s->walls = calloc(events, sizeof(*s->walls));
	s->is_hooked = calloc(events, sizeof(*s->is_hooked));
	return s->nodes && s->events && s->walls && s->is_hooked ? open_walls(s) : -ENOMEM;
}

static void shaping_close(struct shaping *s, size_t events)
{
	for (size_t i = 0; s->walls && i < events; i++)
		free(s->walls[i].rest_ns);
	map_release(&s->cut_nodes);
	free(s->nodes);
	free(s->events);
	free(s->walls);
	free(s->is_hooked);
}

int report_shape(struct profile *profile, const struct report_shape *shape, const struct writer *writer,
		 struct buf *why)
{
	struct shaping s = {.profile = profile, .shape = shape};
	size_t events = profile->events.len;
	int err = shaping_open(&s);

	if (!err) {
		choose_events(&s, writer);
		err = move_samples(&s);
	}
	if (err && !why->len)
		buf_printf(why, "the samples cannot be read: %s", strerror(-err));
	shaping_close(&s, events);
	return err;
}
