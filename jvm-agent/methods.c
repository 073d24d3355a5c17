/* SPDX-License-Identifier: MIT */
#include "methods.h"

#include <stdlib.h>
#include <string.h>

#include "jvm.h"
#include "metadata.h"
#include "stay.h"

#define LOCAL_REFS 8
#define NUMBERED_IDS 26 /* since this JDK JVMTI looks a jmethodID up in a table, and refuses an unknown one */

/* ---- by JVMTI ---- */

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

static bool read_numbered(jmethodID method, struct metadata_names *ret)
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

static bool ask_jvmti(JNIEnv *env, uint64_t key, struct metadata_names *ret)
{
	bool found;

	if (jvm.version < NUMBERED_IDS || key & DUET_METHOD_BARE || (*env)->PushLocalFrame(env, LOCAL_REFS))
		return false;
	found = read_numbered((jmethodID)(uintptr_t)key, ret);
	(*env)->PopLocalFrame(env, NULL);
	return found;
}

/* ---- what the loader has been sent ---- */

#define MAX_TOLD 2048 /* when there are more, all are forgotten */

/* Used only on the agent's thread. */
static struct {
	uint64_t keys[2 * MAX_TOLD]; /* each at its hash or after; 0: free */
	uint32_t count;
} told;

void methods_forget_told(void)
{
	memset(&told, 0, sizeof(told));
}

/* Returns false when the key is already there. */
static bool told_add(uint64_t key)
{
	size_t place = (key * 0x9e3779b97f4a7c15ull) >> 52;

	if (told.count == MAX_TOLD)
		methods_forget_told();
	while (told.keys[place] && told.keys[place] != key)
		place = (place + 1) % (2 * MAX_TOLD);
	if (told.keys[place] == key)
		return false;
	told.keys[place] = key;
	told.count++;
	return true;
}

/* ---- both ---- */

/* Reads the names, then proves the method again: if it is still the same, what was read in between was alive. */
static bool read_proven(uint64_t key, struct metadata_names *ret)
{
	struct metadata_method method, again;

	if (!metadata_find(key, &method) || !metadata_names_read(&method, ret))
		return false;
	if (metadata_find(key, &again) && again.itself.address == method.itself.address &&
	    again.holder.address == method.holder.address)
		return true;
	metadata_names_release(ret);
	return false;
}

static struct ring_part string_part(const char *text, uint16_t *ret_length)
{
	*ret_length = (uint16_t)(text ? strlen(text) : 0);
	return (struct ring_part){text ? text : "", *ret_length};
}

static void cut(char *text, size_t most)
{
	if (text && strlen(text) > most)
		text[most] = '\0';
}

/*
 * Shortens what would never have room in the ring: the loader would ask for it without end. The names get up to half of
 * most_bytes, the lines the rest.
 */
static void shorten(struct metadata_names *names, size_t most_bytes)
{
	size_t text_most = most_bytes / 8 < UINT16_MAX ? most_bytes / 8 : UINT16_MAX;
	size_t heads = sizeof(struct duet_ring_record) + sizeof(struct duet_method);
	size_t lines_most = (most_bytes / 2 - heads) / sizeof(*names->lines);

	if (strlen(names->class_signature) > text_most) /* "L…;" */
		names->class_signature[text_most - 1] = ';';
	cut(names->class_signature, text_most);
	cut(names->name, text_most);
	cut(names->signature, text_most);
	cut(names->source, text_most);
	if (names->line_count > lines_most)
		names->line_count = (uint32_t)lines_most;
}

static void write_method(struct stay *stay, uint64_t key, const struct metadata_names *names, bool is_extra)
{
	struct duet_method record = {
		.method = key,
		.modifiers = (uint16_t)names->modifiers,
		.line_count = names->line_count,
		.is_extra = is_extra,
	};
	struct ring_part parts[6];

	parts[1] = string_part(names->class_signature, &record.class_len);
	parts[2] = string_part(names->name, &record.name_len);
	parts[3] = string_part(names->signature, &record.signature_len);
	parts[4] = string_part(names->source, &record.source_len);
	parts[5] = (struct ring_part){names->lines, record.line_count * sizeof(*names->lines)};
	parts[0] = (struct ring_part){&record, sizeof(record)};
	ring_write(&stay->ring, DUET_AGENT_METHOD, parts, names->line_count ? 6 : 5, RING_WAIT);
}

static bool tell(struct stay *stay, JNIEnv *env, uint64_t key, bool is_extra)
{
	struct metadata_names names;

	if (!read_proven(key, &names) && !ask_jvmti(env, key, &names))
		return false;
	shorten(&names, ring_metadata_most(&stay->ring));
	write_method(stay, key, &names, is_extra);
	metadata_names_release(&names);
	return true;
}

void methods_answer(struct stay *stay, JNIEnv *env, uint64_t key)
{
	const struct duet_want want = {.key = key, .kind = DUET_WANT_METHOD};

	told_add(key);
	if (tell(stay, env, key, false))
		return;
	duet_ring_count(stay->ring.page, DUET_AGENT_METHOD_GONE);
	ring_write_gone(&stay->ring, &want);
}

bool methods_tell(struct stay *stay, JNIEnv *env, uint64_t key)
{
	return told_add(key) && tell(stay, env, key, true);
}
