/* SPDX-License-Identifier: MIT */
#include "readers/jfr/constants.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX
#define DEPTH_MAX 65536 /* frames of a stack */
#define NEAR_FREE 1024 /* keys below this are in a list, even if there are few */

/* Indices in `fields`. */
enum { THREAD_OS_NAME, THREAD_OS_ID, THREAD_JAVA_NAME, THREAD_JAVA_ID, THREAD_VIRTUAL, THREAD_PROCESS };
enum { PROCESS_PID, PROCESS_NAME, PROCESS_CONTAINER };
enum { CLASS_NAME, CLASS_SOURCE };
enum { METHOD_CLASS, METHOD_NAME, METHOD_DESCRIPTOR, METHOD_MODIFIERS };
enum { STACK_FRAMES };
enum { OBJECT_TYPE };
enum { FRAME_METHOD, FRAME_LINE, FRAME_BCI, FRAME_TYPE };

static const struct jfr_wanted wanted[JFR_POOL_TYPES] = {
	[JFR_POOL_THREAD] = {"java.lang.Thread",
			     {"osName", "osThreadId", "javaName", "javaThreadId", "virtual", "process"}},
	[JFR_POOL_PROCESS] = {JFR_TYPE_PROCESS, {"pid", "name", "container"}},
	[JFR_POOL_CLASS] = {"java.lang.Class", {"name", "sourceFile"}},
	[JFR_POOL_METHOD] = {"jdk.types.Method", {"type", "name", "descriptor", "modifiers"}},
	[JFR_POOL_SYMBOL] = {"jdk.types.Symbol", {"string"}},
	[JFR_POOL_STRING] = {"java.lang.String", {NULL}},
	[JFR_POOL_FRAME_TYPE] = {"jdk.types.FrameType", {"description"}},
	[JFR_POOL_STACK_TRACE] = {"jdk.types.StackTrace", {"frames"}},
	[JFR_POOL_OLD_OBJECT] = {"jdk.types.OldObject", {"type"}},
	[JFR_POOL_USER_EVENT_TYPE] = {"profiler.types.UserEventType", {"name"}},
	[JFR_POOL_GC_WHEN] = {"jdk.types.GCWhen", {"when"}},
	[JFR_POOL_FLAG_ORIGIN] = {"jdk.types.FlagValueOrigin", {"origin"}},
	[JFR_POOL_THREAD_STATE] = {"jdk.types.ThreadState", {"name"}},
	[JFR_POOL_STACK_FRAME] = {"jdk.types.StackFrame", {"method", "lineNumber", "bytecodeIndex", "type"}},
};

void jfr_constants_init(struct jfr_constants *c, struct profile *profile, struct jfr_types *types, struct buf *why)
{
	*c = (struct jfr_constants){.profile = profile, .types = types, .why = why};
	buf_init(&c->text);
}

void jfr_constants_release(struct jfr_constants *c)
{
	for (size_t i = 0; i < JFR_POOL_TYPES; i++) {
		map_release(&c->keys[i]);
		vec_release(&c->near[i]);
	}
	vec_release(&c->all);
	vec_release(&c->meanings);
	vec_release(&c->stack);
	vec_release(&c->jvms);
	map_release(&c->jvm_ids);
	buf_release(&c->text);
}

void jfr_constants_begin(struct jfr_constants *c, const unsigned char *bytes, size_t len)
{
	c->bytes = bytes;
	c->len = len;
	c->nobody = NONE;
	vec_clear(&c->all);
	vec_clear(&c->meanings);
	for (size_t i = 0; i < JFR_POOL_TYPES; i++) {
		map_release(&c->keys[i]);
		vec_clear(&c->near[i]);
		c->pool_types[i] = jfr_type_wanted(c->types, &wanted[i]);
	}
}

/* ---- pools ---- */

/* Most keys of a pool are small numbers, which need no map. The list is never much longer than the chunk's pools. */
static int add_key(struct jfr_constants *c, enum jfr_pool pool, uint64_t key, uint32_t index)
{
	if (key >= NEAR_FREE + 4 * (uint64_t)c->all.len)
		return map_put(&c->keys[pool], key, index);
	while (c->near[pool].len <= key)
		if (vec_push(&c->near[pool], NONE) < 0)
			return -ENOMEM;
	c->near[pool].items[key] = index;
	return 0;
}

static int add_constant(struct jfr_constants *c, enum jfr_pool pool, uint64_t key, size_t at)
{
	if (c->all.len >= NONE || add_key(c, pool, key, (uint32_t)c->all.len) < 0 ||
	    vec_push(&c->all, (struct jfr_constant){.at = at, .known = NONE}) < 0)
		return -ENOMEM;
	return 0;
}

static struct jfr_constant *by_key(struct jfr_constants *c, enum jfr_pool pool, uint64_t key)
{
	uint64_t index;

	if (key < c->near[pool].len && c->near[pool].items[key] != NONE)
		return &c->all.items[c->near[pool].items[key]];
	return map_get(&c->keys[pool], key, &index) ? &c->all.items[index] : NULL;
}

static enum jfr_pool pool_of(const struct jfr_constants *c, const struct jfr_type *type)
{
	enum jfr_pool pool = 0;

	while (pool < JFR_POOL_TYPES && c->pool_types[pool] != type)
		pool++;
	return pool;
}

static int add_pool(struct jfr_constants *c, struct jfr_cursor *cursor)
{
	uint64_t id = jfr_number(cursor), left = jfr_number(cursor);
	const struct jfr_type *type = jfr_type_by_id(c->types, id);
	enum jfr_pool pool;
	int err = 0;

	if (!type)
		return buf_explain(c->why, -EINVAL, "there are constants of type %llu, which is not described",
				  (unsigned long long)id);
	for (pool = pool_of(c, type); left && !cursor->failed && !err; left--) {
		uint64_t key = jfr_number(cursor);

		if (pool < JFR_POOL_STACK_FRAME)
			err = add_constant(c, pool, key, cursor->at);
		(void)jfr_skip_value(c->types, type, cursor);
	}
	return err;
}

int jfr_constants_add(struct jfr_constants *c, struct jfr_cursor cursor)
{
	size_t start = cursor.at;
	int err = 0;

	for (int i = 0; i < 3; i++)
		(void)jfr_number(&cursor); /* start, duration, place of the event before */
	(void)jfr_byte(&cursor);
	for (uint64_t left = jfr_number(&cursor); left && !cursor.failed && !err; left--)
		err = add_pool(c, &cursor);
	if (err || !cursor.failed)
		return err;
	return buf_explain(c->why, -EINVAL, "the constant pools at byte %zu of a chunk are damaged", start);
}

/*
 * Finds a constant, and sets its values unless it is known. Returns NULL if the chunk does not have it, which is no
 * error: the JVM loses some.
 */
static struct jfr_constant *find(struct jfr_constants *c, enum jfr_pool pool, uint64_t key,
				 struct jfr_value values[JFR_SLOTS])
{
	struct jfr_cursor cursor = {.bytes = c->bytes, .end = c->len};
	struct jfr_constant *constant = c->pool_types[pool] ? by_key(c, pool, key) : NULL;

	if (!constant) {
		memset(values, 0, JFR_SLOTS * sizeof(*values));
		return NULL;
	}
	cursor.at = constant->at;
	if (constant->known == NONE)
		/* it was skipped before without an error */
		(void)jfr_read(c->types, c->pool_types[pool], &cursor, values, JFR_SLOTS);
	return constant;
}

static uint32_t intern_own(struct jfr_constants *c, const struct jfr_text *text)
{
	buf_clear(&c->text);
	jfr_add_text(&c->text, text);
	return intern_bytes(&c->profile->strings, c->text.data, c->text.len);
}

uint32_t jfr_constants_string(struct jfr_constants *c, const struct jfr_text *text)
{
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *string;

	if (text->encoding != JFR_OF_POOL)
		return intern_own(c, text);
	string = find(c, JFR_POOL_STRING, text->key, values);
	if (string && string->known == NONE)
		string->known = intern_own(c, &values[0].text);
	return string ? string->known : 0;
}

uint32_t jfr_constants_name(struct jfr_constants *c, enum jfr_pool pool, uint64_t key)
{
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *name = find(c, pool, key, values);

	if (name && name->known == NONE)
		name->known = jfr_constants_string(c, &values[0].text);
	return name ? name->known : 0;
}

/* Keeps what a constant means. Returns it. */
static struct jfr_meaning keep(struct jfr_constants *c, struct jfr_constant *constant, struct jfr_meaning meaning)
{
	if (c->meanings.len < NONE && !vec_push(&c->meanings, meaning))
		constant->known = (uint32_t)c->meanings.len - 1;
	return meaning;
}

/* ---- classes ---- */

/* java/lang/String becomes java.lang.String. The JVM has a '+' before the number of a hidden class. */
static void add_dotted(struct buf *out, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool is_before_number = i + 1 < len && isdigit((unsigned char)name[i + 1]);

		if (name[i] == '/' && !is_before_number)
			buf_add_char(out, '.');
		else
			buf_add_char(out, name[i] == '+' && is_before_number ? '/' : name[i]);
	}
}

/* Appends "java.lang.String[]" for "[Ljava/lang/String;", and "int[]" for "[I". */
static void add_class_name(struct buf *out, const char *name)
{
	static const char letters[] = "ZBCSIJFD";
	static const char *const primitives[] = {"boolean", "byte", "char", "short", "int", "long", "float", "double"};
	size_t arrays = strspn(name, "["), len = strlen(name + arrays);
	const char *letter;

	name += arrays;
	letter = arrays && len == 1 ? strchr(letters, *name) : NULL;
	if (letter)
		buf_add_str(out, primitives[letter - letters]);
	else if (arrays && len > 2 && *name == 'L' && name[len - 1] == ';')
		add_dotted(out, name + 1, len - 2);
	else
		add_dotted(out, name, len);
	for (; arrays; arrays--)
		buf_add_str(out, "[]");
}

/* The profile's string of a class's name as Java writes it. */
static uint32_t java_name(struct jfr_constants *c, uint32_t name)
{
	buf_clear(&c->text);
	add_class_name(&c->text, intern_text(&c->profile->strings, name));
	return intern_bytes(&c->profile->strings, c->text.data, c->text.len);
}

static struct jfr_meaning class_of(struct jfr_constants *c, uint64_t key)
{
	struct jfr_meaning meaning = {0};
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *constant = find(c, JFR_POOL_CLASS, key, values);

	if (!constant)
		return meaning;
	if (constant->known != NONE)
		return c->meanings.items[constant->known];
	meaning.name = jfr_constants_name(c, JFR_POOL_SYMBOL, values[CLASS_NAME].number);
	meaning.source = jfr_constants_name(c, JFR_POOL_SYMBOL, values[CLASS_SOURCE].number);
	meaning.java_name = java_name(c, meaning.name);
	return keep(c, constant, meaning);
}

int jfr_constants_class(struct jfr_constants *c, uint64_t key, bool is_outside, uint32_t *ret_frame)
{
	struct jfr_meaning meaning = class_of(c, key);
	struct frame frame = {
		.kind = FRAME_CLASS,
		.name = meaning.java_name,
		.bci = is_outside ? FRAME_BCI_OUTSIDE : -1,
	};
	struct jfr_constant *constant;

	*ret_frame = meaning.frames[is_outside] - 1; /* none is UINT32_MAX */
	if (!frame.name || *ret_frame != NONE)
		return 0;
	*ret_frame = profile_frame(c->profile, &frame);
	constant = by_key(c, JFR_POOL_CLASS, key);
	if (constant && constant->known != NONE)
		c->meanings.items[constant->known].frames[is_outside] = *ret_frame + 1;
	return *ret_frame == NONE ? -ENOMEM : 0;
}

int jfr_constants_object(struct jfr_constants *c, uint64_t key, uint32_t *ret_frame)
{
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *object = find(c, JFR_POOL_OLD_OBJECT, key, values);
	int err = 0;

	*ret_frame = object && object->known < JFR_NO_ROW ? object->known : NONE;
	if (object && object->known == NONE) {
		err = jfr_constants_class(c, values[OBJECT_TYPE].number, false, ret_frame);
		object->known = *ret_frame == NONE ? JFR_NO_ROW : *ret_frame;
	}
	return err;
}

/* ---- texts of the program ---- */

/* Stores the child of `parent` for the text. */
static int text_node(struct jfr_constants *c, uint32_t parent, uint32_t text, uint32_t *ret_node)
{
	struct frame frame = {.kind = FRAME_SPAN, .name = text, .bci = -1};
	uint32_t index = profile_frame(c->profile, &frame);

	*ret_node = index == NONE ? NONE : profile_child(c->profile, parent, index);
	return *ret_node == NONE ? -ENOMEM : 0;
}

int jfr_constants_span(struct jfr_constants *c, uint64_t key, uint32_t *ret_node)
{
	const struct jfr_text tag = {.encoding = JFR_OF_POOL, .key = key};

	return text_node(c, 0, key ? jfr_constants_string(c, &tag) : 0, ret_node);
}

int jfr_constants_user_event(struct jfr_constants *c, uint64_t type, const struct jfr_text *data, uint32_t *ret_node)
{
	int err = text_node(c, 0, jfr_constants_name(c, JFR_POOL_USER_EVENT_TYPE, type), ret_node);

	return err ? err : text_node(c, *ret_node, jfr_constants_string(c, data), ret_node);
}

/* ---- stacks ---- */

static enum frame_kind kind_of_type(struct jfr_constants *c, uint64_t type)
{
	static const struct {
		const char *name;
		enum frame_kind kind;
	} kinds[] = {{"Interpreted", FRAME_INTERPRETED},
		     {"JIT compiled", FRAME_COMPILED},
		     {"C1 compiled", FRAME_COMPILED},
		     {"Inlined", FRAME_INLINED},
		     {"C++", FRAME_JVM},
		     {"Kernel", FRAME_KERNEL}};
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *constant = find(c, JFR_POOL_FRAME_TYPE, type, values);
	const char *text;

	if (!constant)
		return FRAME_NATIVE;
	if (constant->known != NONE)
		return (enum frame_kind)constant->known;
	text = intern_text(&c->profile->strings, jfr_constants_string(c, &values[0].text));
	constant->known = FRAME_NATIVE;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(text, kinds[i].name))
			constant->known = kinds[i].kind;
	return (enum frame_kind)constant->known;
}

/* The kind of a frame of type Native, which the JDK also writes for methods that Java declares native. */
static enum frame_kind kind_of_descriptor(const char *descriptor)
{
	static const struct {
		const char *descriptor;
		enum frame_kind kind;
	} kinds[] = {{JFR_NOT_JAVA, FRAME_NATIVE}, {JFR_KERNEL, FRAME_KERNEL},
		     {JFR_MARK, FRAME_MARK},	   {JFR_STATE, FRAME_STATE},
		     {JFR_THREAD, FRAME_THREAD},   {JFR_PROCESS, FRAME_PROCESS},
		     {JFR_OBJECT, FRAME_CLASS},	   {JFR_CONTAINER, FRAME_CONTAINER},
		     {JFR_CPU, FRAME_CPU},	   {JFR_WAKER, FRAME_WAKER},
		     {JFR_SPAN, FRAME_SPAN}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(descriptor, kinds[i].descriptor))
			return kinds[i].kind;
	return *descriptor == '(' ? FRAME_JAVA_NATIVE : FRAME_NATIVE;
}

static struct jfr_meaning method_of(struct jfr_constants *c, uint64_t key)
{
	struct jfr_meaning meaning = {0}, of_class;
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *constant = find(c, JFR_POOL_METHOD, key, values);

	if (!constant)
		return meaning;
	if (constant->known != NONE)
		return c->meanings.items[constant->known];
	of_class = class_of(c, values[METHOD_CLASS].number);
	meaning.name = jfr_constants_name(c, JFR_POOL_SYMBOL, values[METHOD_NAME].number);
	meaning.descriptor = jfr_constants_name(c, JFR_POOL_SYMBOL, values[METHOD_DESCRIPTOR].number);
	meaning.modifiers = (uint32_t)values[METHOD_MODIFIERS].number;
	meaning.class_name = of_class.name;
	meaning.java_name = of_class.java_name;
	meaning.source = of_class.source;
	return keep(c, constant, meaning);
}

/* The name of a CPU's frame has brackets, but not in the file. It is short: each frame makes it again. */
static uint32_t in_brackets(struct jfr_constants *c, uint32_t name)
{
	char text[64];

	snprintf(text, sizeof(text), "[%.60s]", intern_text(&c->profile->strings, name));
	return intern_str(&c->profile->strings, text);
}

static void set_method(struct jfr_constants *c, uint64_t key, struct frame *frame)
{
	struct jfr_meaning method = method_of(c, key);
	const char *descriptor = intern_text(&c->profile->strings, method.descriptor);

	frame->name = method.name;
	if (frame->kind == FRAME_NATIVE)
		frame->kind = kind_of_descriptor(descriptor);
	else if (frame->kind == FRAME_COMPILED && method.modifiers & JFR_ACC_NATIVE)
		frame->kind = FRAME_JAVA_NATIVE;
	if (frame_kind_is_java(frame->kind)) {
		frame->class_name = method.java_name;
		frame->signature = strcmp(descriptor, JFR_NOT_JAVA) ? method.descriptor : 0;
		frame->module = method.source;
	} else {
		frame->name = frame->kind == FRAME_CPU ? in_brackets(c, frame->name) : frame->name;
		frame->module = method.class_name;
		frame->line = 0;
		frame->bci = frame->kind <= FRAME_JVM && frame->bci > 0 ? frame->bci : -1; /* 0: not known */
	}
}

static int push_frame(struct jfr_constants *c, struct jfr_cursor *cursor)
{
	struct jfr_value values[JFR_SLOTS];
	struct frame frame = {0};
	uint32_t index;

	if (!jfr_read(c->types, c->pool_types[JFR_POOL_STACK_FRAME], cursor, values, JFR_SLOTS))
		return -EINVAL;
	frame.kind = kind_of_type(c, values[FRAME_TYPE].number);
	frame.line = values[FRAME_LINE].number <= INT32_MAX ? (int32_t)values[FRAME_LINE].number : 0;
	frame.bci = values[FRAME_BCI].number <= INT32_MAX ? (int32_t)values[FRAME_BCI].number : -1;
	set_method(c, values[FRAME_METHOD].number, &frame);
	index = profile_frame(c->profile, &frame);
	return index == NONE ? -ENOMEM : vec_push(&c->stack, index);
}

/* Not past the end of the stack's own bytes: others begin there, and each would have all that follow. */
static int push_frames(struct jfr_constants *c, const struct jfr_value *frames)
{
	struct jfr_cursor cursor = {.bytes = c->bytes, .at = frames->at, .end = frames->end};
	uint64_t count = jfr_number(&cursor);
	int err = 0;

	vec_clear(&c->stack);
	if (count > DEPTH_MAX || (count && !c->pool_types[JFR_POOL_STACK_FRAME]))
		return buf_explain(c->why, -EINVAL, "a stack has more than %d frames, or frames of no type", DEPTH_MAX);
	for (; count && !err; count--)
		err = push_frame(c, &cursor);
	return err;
}

int jfr_constants_stack(struct jfr_constants *c, uint64_t key, uint32_t *ret_node)
{
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *stack = find(c, JFR_POOL_STACK_TRACE, key, values);
	uint32_t node = 0;
	int err = 0;

	*ret_node = 0;
	if (!stack)
		return 0;
	if (stack->known == NONE) {
		err = values[STACK_FRAMES].at ? push_frames(c, &values[STACK_FRAMES]) : 0;
		for (size_t i = c->stack.len; !err && values[STACK_FRAMES].at && i-- > 0;) {
			node = profile_child(c->profile, node, c->stack.items[i]);
			err = node == NONE ? -ENOMEM : 0;
		}
		stack->known = err ? NONE : node;
	}
	*ret_node = stack->known;
	return err;
}

/* ---- threads ---- */

static struct jfr_meaning process_of(struct jfr_constants *c, uint64_t key)
{
	struct jfr_meaning meaning = {.pid = c->pid, .name = c->pid ? intern_str(&c->profile->strings, "java") : 0};
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *constant = find(c, JFR_POOL_PROCESS, key, values);

	if (!constant)
		return meaning;
	if (constant->known != NONE)
		return c->meanings.items[constant->known];
	meaning.pid = (uint32_t)values[PROCESS_PID].number;
	meaning.name = jfr_constants_string(c, &values[PROCESS_NAME].text);
	meaning.container = jfr_constants_string(c, &values[PROCESS_CONTAINER].text);
	return keep(c, constant, meaning);
}

static void set_process(struct jfr_constants *c, uint64_t key, struct profile_thread *thread)
{
	struct jfr_meaning process = process_of(c, key);
	struct profile_owner owner = {.pid = process.pid, .container = process.container};
	uint64_t jvm;

	if (map_get(&c->jvm_ids, process.pid, &jvm)) {
		owner.runtime = c->jvms.items[jvm].runtime;
		owner.vm_flags = c->jvms.items[jvm].vm_flags;
	}
	thread->pid = process.pid;
	thread->process = process.name;
	thread->owner = owner.pid || owner.container ? profile_owner(c->profile, &owner) : 0;
}

static uint32_t add_thread(struct jfr_constants *c, const struct jfr_value values[JFR_SLOTS])
{
	struct profile_thread thread = {.name = jfr_constants_string(c, &values[THREAD_JAVA_NAME].text)};

	if (!thread.name)
		thread.name = jfr_constants_string(c, &values[THREAD_OS_NAME].text);
	set_process(c, values[THREAD_PROCESS].number, &thread);
	thread.tid = values[THREAD_VIRTUAL].number ? PROFILE_VIRTUAL : (uint32_t)values[THREAD_OS_ID].number;
	return profile_thread_row(c->profile, thread, &values[THREAD_JAVA_ID].number);
}

int jfr_constants_thread(struct jfr_constants *c, uint64_t key, uint32_t *ret)
{
	struct jfr_value values[JFR_SLOTS];
	struct jfr_constant *thread = find(c, JFR_POOL_THREAD, key, values);
	uint32_t *known = thread ? &thread->known : &c->nobody;

	if (*known == NONE)
		*known = add_thread(c, values);
	*ret = *known;
	return *ret == NONE ? -ENOMEM : 0;
}
