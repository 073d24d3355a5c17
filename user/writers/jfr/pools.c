/* SPDX-License-Identifier: MIT */
#include "writers/jfr/pools.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/jfr.h"
#include "writers/jfr/bytes.h"
#include "writers/jfr/metadata.h"

/* ---- rows ---- */

/* Returns the id of the row with the text p->text. *ret_is_new: the row is not in the table yet. */
static uint32_t row_of_text(struct jfr_pools *p, struct jfr_rows *rows, bool *ret_is_new)
{
	uint32_t id = p->text.failed ? 0 : intern_bytes(&rows->ids, p->text.data, p->text.len);

	*ret_is_new = id > rows->parts.len;
	if (!id || (*ret_is_new && vec_push(&rows->parts, 0) < 0)) {
		p->failed = true;
		return 0;
	}
	return id;
}

/* The number of a row in the file. 0 is none. */
static uint32_t number_of(const struct jfr_pools *p, uint32_t id)
{
	return id ? p->first_row + id : 0;
}

/* Returns true if no part of the chunk had the row yet; now this one has it. */
static bool mark(const struct jfr_pools *p, uint32_t *part)
{
	if (*part >= p->chunk)
		return false;
	*part = p->part;
	return true;
}

/* The text has a character before it, so that the empty text is a row, too. */
static uint32_t row_of(struct jfr_pools *p, struct jfr_rows *rows, const char *text)
{
	bool is_new;

	buf_clear(&p->text);
	buf_printf(&p->text, "=%s", text);
	return row_of_text(p, rows, &is_new);
}

static uint32_t symbol_of(struct jfr_pools *p, const char *text)
{
	return row_of(p, &p->symbols, text);
}

/* Returns true if the row is new in the chunk. */
static bool name_row(struct jfr_pools *p, struct jfr_rows *rows, uint32_t id)
{
	return id && mark(p, &rows->parts.items[id - 1]);
}

/* The loader of classes that are not the JDK's. Views find by it which frames are the application's. */
#define LOADER 1
#define LOADER_NAME "application"
/* Threads without a tid of their own get numbers from here on; all tids are smaller. */
#define OTHER_THREADS (1u << 30)

static void name_class(struct jfr_pools *p, uint32_t id)
{
	if (!name_row(p, &p->classes, id))
		return;
	name_row(p, &p->symbols, p->class_rows.items[id - 1].name);
	if (p->is_plain)
		return;
	name_row(p, &p->symbols, p->class_rows.items[id - 1].source);
	if (!p->class_rows.items[id - 1].is_of_jdk && mark(p, &p->loader_part))
		name_row(p, &p->symbols, symbol_of(p, LOADER_NAME));
}

static void name_method(struct jfr_pools *p, uint32_t id)
{
	const struct jfr_method *method;

	if (!name_row(p, &p->methods, id))
		return;
	method = &p->method_rows.items[id - 1];
	name_class(p, method->class_id);
	name_row(p, &p->symbols, method->name);
	name_row(p, &p->symbols, method->descriptor);
}

/* ---- classes and methods ---- */

static uint32_t class_row(struct jfr_pools *p, const char *name, const char *source, bool is_of_jdk)
{
	struct jfr_class row = {.name = symbol_of(p, name), .source = symbol_of(p, source), .is_of_jdk = is_of_jdk};
	bool is_new;
	uint32_t id;

	buf_clear(&p->text);
	buf_printf(&p->text, "%u %u %d", row.name, row.source, is_of_jdk);
	id = row_of_text(p, &p->classes, &is_new);
	if (id && is_new && vec_push(&p->class_rows, row) < 0)
		p->failed = true;
	return p->failed ? 0 : id;
}

/* Appends the name in the JVM's form: java/lang/String. A dot before a digit does not end a package. */
static void add_slashes(struct buf *out, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_add_char(out, name[i] == '.' && !isdigit((unsigned char)name[i + 1]) ? '/' : name[i]);
}

/* `name` is the JVM's. Arrays of primitives have one letter. */
static bool is_of_jdk(const char *name)
{
	static const char *const packages[] = {"java/", "javax/", "jdk/", "sun/", "com/sun/"};
	const char *class_name = name + strspn(name, "[");

	if (class_name != name && *class_name != 'L')
		return true;
	class_name += class_name != name;
	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++)
		if (!strncmp(class_name, packages[i], strlen(packages[i])))
			return true;
	return !*name;
}

/* Appends the JVM's name of the class: "java.lang.String[]" is "[Ljava/lang/String;". */
static void add_jvm_name(struct buf *out, const char *name)
{
	static const struct {
		const char *name;
		char letter;
	} primitives[] = {{"boolean", 'Z'}, {"byte", 'B'}, {"char", 'C'},  {"short", 'S'},
			  {"int", 'I'},	    {"long", 'J'}, {"float", 'F'}, {"double", 'D'}};
	size_t len = strlen(name);
	bool is_array = false;

	for (; len > 2 && !memcmp(name + len - 2, "[]", 2); len -= 2, is_array = true)
		buf_add_char(out, '[');
	for (size_t i = 0; is_array && i < sizeof(primitives) / sizeof(*primitives); i++)
		if (strlen(primitives[i].name) == len && !memcmp(primitives[i].name, name, len))
			return buf_add_char(out, primitives[i].letter);
	if (is_array)
		buf_add_char(out, 'L');
	add_slashes(out, name, len);
	if (is_array)
		buf_add_char(out, ';');
}

uint32_t jfr_class_of(struct jfr_pools *p, const char *name)
{
	BUF(jvm_name);
	uint32_t id;

	add_jvm_name(&jvm_name, name);
	id = class_row(p, jvm_name.data, "", is_of_jdk(jvm_name.data));
	name_class(p, id);
	return number_of(p, id);
}

static uint32_t named_row(struct jfr_pools *p, struct jfr_rows *rows, const char *text)
{
	uint32_t id = row_of(p, rows, text);

	name_row(p, rows, id);
	return number_of(p, id);
}

uint32_t jfr_text_row(struct jfr_pools *p, const char *text)
{
	return named_row(p, &p->texts, text);
}

uint32_t jfr_user_type(struct jfr_pools *p, const char *name)
{
	return named_row(p, &p->user_types, name);
}

static int extend_marks(struct jfr_marks *marks, size_t count)
{
	if (vec_reserve(marks, count + 1) < 0)
		return -ENOMEM;
	while (marks->len < count)
		marks->items[marks->len++] = 0;
	return 0;
}

uint32_t jfr_object_of(struct jfr_pools *p, uint32_t class_number)
{
	uint32_t id = class_number - p->first_row;

	if (!class_number)
		return 0;
	if (extend_marks(&p->objects, id + 1) < 0) {
		p->failed = true;
		return 0;
	}
	(void)mark(p, &p->objects.items[id]);
	return class_number;
}

static uint32_t method_row(struct jfr_pools *p, const struct jfr_method *row)
{
	bool is_new;
	uint32_t id;

	buf_clear(&p->text);
	buf_printf(&p->text, "%u %u %u %u", row->class_id, row->name, row->descriptor, row->modifiers);
	id = row_of_text(p, &p->methods, &is_new);
	if (id && is_new && vec_push(&p->method_rows, *row) < 0)
		p->failed = true;
	return p->failed ? 0 : id;
}

static const char *descriptor_of(enum frame_kind kind)
{
	static const char *const descriptors[FRAME_KIND_MAX] = {
		[FRAME_KERNEL] = JFR_KERNEL,   [FRAME_THREAD] = JFR_THREAD,
		[FRAME_PROCESS] = JFR_PROCESS, [FRAME_CONTAINER] = JFR_CONTAINER,
		[FRAME_MARK] = JFR_MARK,       [FRAME_CLASS] = JFR_OBJECT,
		[FRAME_STATE] = JFR_STATE,     [FRAME_SPAN] = JFR_SPAN,
		[FRAME_WAKER] = JFR_WAKER,     [FRAME_CPU] = JFR_CPU,
	};

	return descriptors[kind] ? descriptors[kind] : JFR_NOT_JAVA;
}

static uint32_t java_method(struct jfr_pools *p, const struct frame *frame)
{
	const struct intern *strings = &p->profile->strings;
	const char *signature = intern_text(strings, frame->signature);
	const char *dotted = intern_text(strings, frame->class_name);
	struct jfr_method row = {.modifiers = frame->kind == FRAME_JAVA_NATIVE ? JFR_ACC_NATIVE : 0};
	BUF(class_name);

	add_slashes(&class_name, dotted, strlen(dotted));
	row.class_id = class_row(p, class_name.data, intern_text(strings, frame->module), is_of_jdk(class_name.data));
	row.name = symbol_of(p, intern_text(strings, frame->name));
	row.descriptor = symbol_of(p, strchr(signature, ')') ? signature : JFR_NOT_JAVA);
	return method_row(p, &row);
}

static uint32_t other_method(struct jfr_pools *p, enum frame_kind kind, const char *name, const char *module)
{
	struct jfr_method row = {.modifiers = JFR_ACC_NATIVE};
	char bare[32];

	if (kind == FRAME_CPU && *name == '[') { /* async-profiler's files have it without brackets */
		snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name + 1, "]"), name + 1);
		name = bare;
	}
	row.class_id = class_row(p, module, "", true);
	row.name = symbol_of(p, name);
	row.descriptor = symbol_of(p, descriptor_of(kind));
	return method_row(p, &row);
}

static uint32_t method_of(struct jfr_pools *p, const struct path_step *step)
{
	const struct intern *strings = &p->profile->strings;
	const struct frame *frame = step->frame;
	uint32_t *known;

	if (!frame)
		return other_method(p, FRAME_MARK, p->path.labels->items[step->label].text, "");
	known = &p->frame_methods.items[frame - p->profile->frames.items];
	if (!*known && frame_kind_is_java(frame->kind))
		*known = java_method(p, frame);
	else if (!*known)
		*known = other_method(p, frame->kind, intern_text(strings, frame->name),
				      intern_text(strings, frame->module));
	return *known;
}

/* ---- stacks ---- */

static enum jfr_frame_type frame_type(const struct frame *frame)
{
	switch (frame ? frame->kind : FRAME_MARK) {
	case FRAME_KERNEL:
		return JFR_FRAME_KERNEL;
	case FRAME_JVM:
		return JFR_FRAME_CPP;
	case FRAME_COMPILED:
	case FRAME_JAVA_NATIVE:
		return JFR_FRAME_COMPILED;
	case FRAME_INLINED:
		return JFR_FRAME_INLINED;
	case FRAME_INTERPRETED:
		return JFR_FRAME_INTERPRETED;
	default:
		return JFR_FRAME_NATIVE;
	}
}

static void put_frame(struct jfr_pools *p, const struct path_step *step)
{
	const struct frame *frame = step->frame;
	uint32_t method = method_of(p, step);

	name_method(p, method);
	jfr_put_numbers(&p->stacks, number_of(p, method), frame && frame->line > 0 ? (uint32_t)frame->line : 0,
			frame && frame->bci > 0 ? (uint32_t)frame->bci : 0, frame_type(frame));
}

uint32_t jfr_stack(struct jfr_pools *p, uint32_t thread, uint32_t node)
{
	if (!mark(p, &p->stack_parts.items[node]))
		return number_of(p, node + 1);
	if (path_make(&p->path, thread, node) < 0) {
		p->failed = true;
		return 0;
	}
	p->stack_count++;
	jfr_put_numbers(&p->stacks, number_of(p, node + 1), 0 /* truncated: no, because a mark says it */,
			p->path.depth);
	for (size_t i = 0; i < p->path.depth; i++)
		put_frame(p, &p->path.steps.items[i]);
	return number_of(p, node + 1);
}

uint32_t jfr_leaf_method(struct jfr_pools *p, uint32_t node)
{
	return node ? number_of(p, p->frame_methods.items[p->profile->nodes.items[node].frame]) : 0;
}

/* ---- threads ---- */

uint32_t jfr_thread(struct jfr_pools *p, uint32_t thread)
{
	uint32_t row = p->threads.rows.items[thread];

	(void)mark(p, &p->thread_parts.items[row]);
	return p->thread_ids.items[row];
}

static uint32_t process_of(struct jfr_pools *p, uint32_t index)
{
	const struct profile_thread *thread = &p->profile->threads.items[index];
	bool is_new;
	uint32_t id;

	buf_clear(&p->text);
	buf_printf(&p->text, "%u %u %u", thread->pid, thread->process,
		   p->profile->owners.items[thread->owner].container);
	id = row_of_text(p, &p->processes, &is_new);
	if (id && is_new && vec_push(&p->process_threads, index) < 0)
		p->failed = true;
	name_row(p, &p->processes, id);
	return p->failed ? 0 : id;
}

/* Under its last name. */
static void put_thread(struct jfr_pools *p, struct buf *out, uint32_t row)
{
	uint32_t index = p->threads.lasts.items[row];
	const struct profile_thread *thread = &p->profile->threads.items[index];
	const char *name = profile_text(p->profile, thread->name);
	bool is_virtual = thread->tid == PROFILE_VIRTUAL;
	uint64_t java_id;
	bool is_java = is_virtual || p->profile->owners.items[thread->owner].runtime;

	jfr_put_number(out, p->thread_ids.items[row]);
	jfr_put_text(out, name);
	jfr_put_number(out, is_virtual ? 0 : thread->tid);
	jfr_put_text(out, is_java ? name : NULL);
	(void)profile_java_id(p->profile, index, &java_id);
	jfr_put_number(out, java_id);
	if (!p->is_plain)
		jfr_put_numbers(out, is_virtual, number_of(p, process_of(p, index)));
}

/* ---- the event ---- */

/* Begins a pool. A pool without rows is left out: the JDK's readers fail on it. */
static bool put_pool(struct jfr_pools *p, struct buf *out, enum jfr_type type, size_t count)
{
	if (!count)
		return false;
	jfr_put_numbers(out, p->type_base + type, count);
	p->pool_count++;
	return true;
}

/* Begins the pool of the rows that this part has to have. */
static bool begin_rows(struct jfr_pools *p, struct buf *out, enum jfr_type type, const uint32_t *parts, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += parts[i] == p->part;
	return put_pool(p, out, type, count);
}

static void put_rows(struct jfr_pools *p, struct buf *out, enum jfr_type type, const uint32_t *parts, size_t len,
		     void (*put)(struct jfr_pools *p, struct buf *out, uint32_t row))
{
	bool is_there = begin_rows(p, out, type, parts, len);

	for (uint32_t i = 0; is_there && i < len; i++)
		if (parts[i] == p->part)
			put(p, out, i);
}

/* The texts have a character before them: row_of(). */
static void put_texts(struct jfr_pools *p, struct buf *out, enum jfr_type type, const struct jfr_rows *rows)
{
	bool is_there = begin_rows(p, out, type, rows->parts.items, rows->parts.len);

	for (uint32_t i = 0; is_there && i < rows->parts.len; i++) {
		if (rows->parts.items[i] != p->part)
			continue;
		jfr_put_number(out, number_of(p, i + 1));
		jfr_put_text(out, intern_text(&rows->ids, i + 1) + 1);
	}
}

static void put_names(struct jfr_pools *p, struct buf *out, enum jfr_type type, const char *const *names,
		      uint32_t first, uint32_t count)
{
	put_pool(p, out, type, count - first);
	for (uint32_t i = first; i < count; i++) {
		jfr_put_number(out, i);
		jfr_put_text(out, names[i]);
	}
}

static void put_enums(struct jfr_pools *p, struct buf *out)
{
	static const char *const frame_types[JFR_FRAME_TYPES] = {
		[JFR_FRAME_INTERPRETED] = "Interpreted",
		[JFR_FRAME_COMPILED] = "JIT compiled",
		[JFR_FRAME_INLINED] = "Inlined",
		[JFR_FRAME_NATIVE] = "Native",
		[JFR_FRAME_CPP] = "C++",
		[JFR_FRAME_KERNEL] = "Kernel",
		[JFR_FRAME_C1] = "C1 compiled",
	};
	static const char *const states[JFR_STATES] = {
		[JFR_STATE_DEFAULT] = "STATE_DEFAULT",
		[JFR_STATE_RUNNABLE] = "STATE_RUNNABLE",
		[JFR_STATE_SLEEPING] = "STATE_SLEEPING",
	};

	static const char *const whens[JFR_GC_WHENS] = {
		[JFR_BEFORE_GC] = "Before GC",
		[JFR_AFTER_GC] = "After GC",
	};
	static const char *const origins[JFR_FLAG_ORIGINS] = {[JFR_FLAG_OF_OPTION] = "Command line"};
	static const char *const levels[JFR_LOG_LEVELS] = {
		[JFR_LOG_TRACE] = "TRACE", [JFR_LOG_DEBUG] = "DEBUG", [JFR_LOG_INFO] = "INFO",
		[JFR_LOG_WARN] = "WARN",   [JFR_LOG_ERROR] = "ERROR",
	};

	put_names(p, out, JFR_T_FRAME_TYPE, frame_types, 0, JFR_FRAME_TYPES);
	put_names(p, out, JFR_T_THREAD_STATE, states, 1, JFR_STATES);
	put_names(p, out, JFR_T_GC_WHEN, whens, 1, JFR_GC_WHENS);
	if (!p->is_plain)
		put_names(p, out, JFR_T_FLAG_ORIGIN, origins, 1, JFR_FLAG_ORIGINS);
	put_names(p, out, JFR_T_LOG_LEVEL, levels, 1, JFR_LOG_LEVELS);
}

static void put_process(struct jfr_pools *p, struct buf *out, uint32_t row)
{
	const struct profile_thread *thread = &p->profile->threads.items[p->process_threads.items[row]];

	jfr_put_numbers(out, number_of(p, row + 1), thread->pid);
	jfr_put_text(out, profile_text(p->profile, thread->process));
	jfr_put_text(out, profile_text(p->profile, p->profile->owners.items[thread->owner].container));
}

static void put_method(struct jfr_pools *p, struct buf *out, uint32_t row)
{
	const struct jfr_method *method = &p->method_rows.items[row];

	jfr_put_numbers(out, number_of(p, row + 1), number_of(p, method->class_id), number_of(p, method->name),
			number_of(p, method->descriptor), method->modifiers, 0 /* hidden: no */);
}

static void put_class(struct jfr_pools *p, struct buf *out, uint32_t row)
{
	const struct jfr_class *class = &p->class_rows.items[row];

	jfr_put_numbers(out, number_of(p, row + 1), class->is_of_jdk || p->is_plain ? 0 : LOADER,
			number_of(p, class->name), 0 /* package */, 0 /* modifiers */);
	if (!p->is_plain)
		jfr_put_number(out, number_of(p, class->source));
}

static void put_object(struct jfr_pools *p, struct buf *out, uint32_t row)
{
	jfr_put_numbers(out, number_of(p, row), 0 /* address */, number_of(p, row));
	jfr_put_text(out, NULL);
}

static void put_loader(struct jfr_pools *p, struct buf *out)
{
	if (!put_pool(p, out, JFR_T_CLASS_LOADER, p->loader_part == p->part))
		return;
	jfr_put_numbers(out, LOADER, 0 /* type */, number_of(p, symbol_of(p, LOADER_NAME)));
}

/*
 * The types of frames and the states are in each part. So the event is longer than the header of a chunk, which
 * async-profiler's reader wants to see behind the last sample.
 */
void jfr_put_pools(struct jfr_pools *p, struct buf *out, uint64_t ticks, uint64_t link)
{
	BUF(all);
	BUF(body);

	p->pool_count = 0;
	put_enums(p, &all);
	put_rows(p, &all, JFR_T_THREAD, p->thread_parts.items, p->thread_parts.len, put_thread);
	put_rows(p, &all, JFR_T_PROCESS, p->processes.parts.items, p->processes.parts.len, put_process);
	if (put_pool(p, &all, JFR_T_STACK_TRACE, p->stack_count))
		buf_add(&all, p->stacks.data, p->stacks.len);
	p->failed |= p->stacks.failed;
	buf_release(&p->stacks); /* each copy is as large as a part */
	put_rows(p, &all, JFR_T_METHOD, p->methods.parts.items, p->methods.parts.len, put_method);
	put_rows(p, &all, JFR_T_CLASS, p->classes.parts.items, p->classes.parts.len, put_class);
	put_loader(p, &all);
	put_rows(p, &all, JFR_T_OLD_OBJECT, p->objects.items, p->objects.len, put_object);
	put_texts(p, &all, JFR_T_SYMBOL, &p->symbols);
	put_texts(p, &all, JFR_T_STRING, &p->texts);
	put_texts(p, &all, JFR_T_USER_EVENT_TYPE, &p->user_types);
	jfr_put_numbers(&body, JFR_POOLS, ticks, 0 /* duration */, -link, 1 /* it is complete */, p->pool_count);
	buf_add(&body, all.data, all.len);
	p->failed |= all.failed;
	buf_release(&all);
	jfr_put_event(out, &body);
	p->failed |= out->failed;
	p->stack_count = 0;
	p->part++;
}

void jfr_pools_end_chunk(struct jfr_pools *p)
{
	p->chunk = p->part;
}

/* ---- all pools ---- */

static void rows_release(struct jfr_rows *rows)
{
	intern_release(&rows->ids);
	vec_release(&rows->parts);
}

/* The number is the tid, as async-profiler's converter shows it, if no other thread has the same. */
static int number_thread(struct jfr_pools *p, uint32_t thread)
{
	uint32_t tid = p->profile->threads.items[thread].tid;
	uint64_t owner = p->threads.rows.items[thread];
	bool has_id = tid && tid < OTHER_THREADS;

	if (has_id && !map_get(&p->thread_numbers, tid, &owner) && map_put(&p->thread_numbers, tid, owner) < 0)
		return -ENOMEM;
	return vec_push(&p->thread_ids,
			has_id && owner == p->threads.rows.items[thread] ? tid
									 : OTHER_THREADS + p->first_row + thread);
}

int jfr_pools_extend(struct jfr_pools *p)
{
	if (extend_marks(&p->frame_methods, p->profile->frames.len) < 0 ||
	    extend_marks(&p->thread_parts, p->profile->threads.len) < 0 ||
	    extend_marks(&p->stack_parts, p->profile->nodes.len) < 0 || threads_extend(&p->threads, p->profile) < 0)
		return -ENOMEM;
	while (p->thread_ids.len < p->profile->threads.len)
		if (number_thread(p, (uint32_t)p->thread_ids.len) < 0)
			return -ENOMEM;
	return path_maker_extend(&p->path);
}

int jfr_pools_init(struct jfr_pools *p, const struct profile *profile, const struct writer_options *options)
{
	int err;

	*p = (struct jfr_pools){.profile = profile, .part = 1, .chunk = 1};
	p->type_base = options->jfr.jdk_file ? JFR_BESIDE_JDK : 0;
	p->is_plain = options->jfr.is_plain;
	p->first_row = options->jfr.first_row;
	buf_init(&p->stacks);
	buf_init(&p->text);
	if (intern_init(&p->symbols.ids) < 0 || intern_init(&p->classes.ids) < 0 || intern_init(&p->methods.ids) < 0 ||
	    intern_init(&p->processes.ids) < 0 || intern_init(&p->texts.ids) < 0 || intern_init(&p->user_types.ids) < 0)
		return -ENOMEM;
	err = path_maker_init(&p->path, NULL, profile, options);
	return err ? err : jfr_pools_extend(p);
}

void jfr_pools_release(struct jfr_pools *p)
{
	path_maker_release(&p->path);
	rows_release(&p->symbols);
	rows_release(&p->classes);
	rows_release(&p->methods);
	rows_release(&p->processes);
	rows_release(&p->texts);
	rows_release(&p->user_types);
	vec_release(&p->class_rows);
	vec_release(&p->method_rows);
	vec_release(&p->objects);
	vec_release(&p->process_threads);
	vec_release(&p->frame_methods);
	vec_release(&p->thread_ids);
	threads_release(&p->threads);
	vec_release(&p->thread_parts);
	map_release(&p->thread_numbers);
	vec_release(&p->stack_parts);
	buf_release(&p->stacks);
	buf_release(&p->text);
}
