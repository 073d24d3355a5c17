/* SPDX-License-Identifier: MIT */
#include "writers/shared/category.h"

#include <stdbool.h>
#include <string.h>

#include "duet_jvm.h"
#include "writers/shared/path.h"

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

/* Stubs, as those that copy arrays, run for the code that has called them. */
static bool is_stub(const struct intern *strings, const struct frame *frame)
{
	return frame->kind == FRAME_JVM && !duet_is_libjvm(intern_text(strings, frame->module));
}

/* Returns the category by the first frame from the leaf that decides it: kernel frames, marks and stubs do not. */
static const char *of_leaf(const struct intern *strings, const struct path_step *steps, size_t depth)
{
	for (size_t i = 0; i < depth; i++) {
		const struct frame *frame = steps[i].frame;

		if (!frame || is_stub(strings, frame))
			continue;
		switch (frame->kind) {
		case FRAME_NATIVE:
		case FRAME_JAVA_NATIVE:
			return "[native]";
		case FRAME_JVM:
			return "[vm]";
		case FRAME_COMPILED:
		case FRAME_INLINED:
			return "[compiled]";
		case FRAME_INTERPRETED:
			return "[Interpreter]";
		default:
			break;
		}
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
