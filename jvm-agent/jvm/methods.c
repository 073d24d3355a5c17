/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "hotspot/metadata.h"
#include "jvm/code.h"
#include "jvm/jvm.h"

#define LOCAL_REFS 8
#define NUMBERED_IDS 26 /* since this JDK, JVMTI looks up a jmethodID in a table and refuses unknown ones */

/* Copies JVMTI's string and frees it, so that all names are released in the same way. */
static char *take_text(char *text)
{
	char *copy = text ? strdup(text) : NULL;

	jvm_deallocate(text);
	return copy;
}

static void take_lines(struct metadata_names *names, const jvmtiLineNumberEntry *lines, jint count)
{
	names->lines = calloc((size_t)count + 1, sizeof(*names->lines));
	if (!names->lines)
		return;
	names->line_count = (uint32_t)count;
	for (jint i = 0; i < count; i++) {
		names->lines[i].bci = (uint32_t)lines[i].start_location;
		names->lines[i].line = (uint32_t)lines[i].line_number;
	}
	metadata_sort_lines(names->lines, names->line_count);
}

/* Source file and lines may be absent; the other names may not. */
static void read_source(struct metadata_names *names, jmethodID method, jclass class)
{
	jvmtiLineNumberEntry *lines = NULL;
	char *source = NULL;
	jint count = 0;

	if ((*jvm.jvmti)->GetSourceFileName(jvm.jvmti, class, &source))
		source = NULL;
	names->source = take_text(source);
	if (!(*jvm.jvmti)->GetLineNumberTable(jvm.jvmti, method, &count, &lines)) {
		take_lines(names, lines, count);
		jvm_deallocate(lines);
	}
}

static bool ask_names(jmethodID method, struct metadata_names *ret)
{
	char *class_signature = NULL, *name = NULL, *signature = NULL;
	jint modifiers = 0;
	jclass class;

	if ((*jvm.jvmti)->GetMethodDeclaringClass(jvm.jvmti, method, &class) ||
	    (*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &class_signature, NULL))
		return false;
	if ((*jvm.jvmti)->GetMethodName(jvm.jvmti, method, &name, &signature, NULL) ||
	    (*jvm.jvmti)->GetMethodModifiers(jvm.jvmti, method, &modifiers)) {
		jvm_deallocate(class_signature);
		jvm_deallocate(name);
		jvm_deallocate(signature);
		return false;
	}
	*ret = (struct metadata_names){
		.class_signature = take_text(class_signature),
		.name = take_text(name),
		.signature = take_text(signature),
		.modifiers = (uint32_t)modifiers,
	};
	read_source(ret, method, class);
	return true;
}

bool methods_ask_jvmti(void *context, uint64_t key, struct metadata_names *ret)
{
	JNIEnv *env = context;
	bool found;

	/*
	 * In a JVM whose layout is not known, no walk finds a method: all ids are AsyncGetCallTrace's. HotSpot frees
	 * none of these ids before JDK 26, and reports those of unloaded classes as not valid.
	 */
	if ((jvm.version < NUMBERED_IDS && jvm.reads_methods) || key & DUET_METHOD_BARE ||
	    (*env)->PushLocalFrame(env, LOCAL_REFS))
		return false;
	found = ask_names((jmethodID)(uintptr_t)key, ret);
	(*env)->PopLocalFrame(env, NULL);
	return found;
}
