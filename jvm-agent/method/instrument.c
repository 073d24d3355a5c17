/* SPDX-License-Identifier: MIT */
#include "method/instrument.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "locked.h"
#include "method/names.h"
#include "method/natives.h"
#include "method/probes.h"

/* Classes of one RetransformClasses(), which stops all threads and looks at every class that is loaded. */
#define AT_ONCE 512
#define NATIVE_NAME_BYTES 1024 /* of a native method; those with longer names are looked at each time */
#define STEP_NS 2000000
#define STEPS 10 /* for classes that are just being defined */

static struct {
	pthread_mutex_t lock; /* guards all members; never held while the JVM is called */
	const char *helper;
	struct instrument {
		struct method_target target;
		struct probe probe;
	} items[DUET_MAX_EVENTS];
	uint32_t count; /* 0: nothing is instrumented any more */
	struct class_names changed; /* classes that have probes, by name */
	struct class_names left; /* classes whose new form the JVM has refused */
	struct class_names counted; /* classes whose methods were counted, see count_once() */
	/*
	 * Native methods whose class file was seen, for the life of the JVM. It is not seen again: each look at a class
	 * that is loaded makes new methods, and the code that calls the native ones among the old is never freed.
	 */
	struct class_names plain, intrinsic;
	/* Throwable has kept the probe of PROBE_CREATE, unless another agent has changed it since */
	bool has_create;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- which classes and methods ---- */

/* Left as they are: the agent's own class, and what runs while no thread's stack must be asked for. */
static bool is_apart(struct class_text name)
{
	static const char *const apart[] = {
		DUET_HELPER_CLASS, "java/lang/VirtualThread", "java/lang/BaseVirtualThread", "jdk/internal/vm/",
	};

	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
		if (name.len >= strlen(apart[i]) && !memcmp(name.at, apart[i], strlen(apart[i])))
			return true;
	return false;
}

static bool is_wanted(struct class_text name)
{
	for (uint32_t i = 0; i < all.count; i++)
		if (target_has_class(&all.items[i].target, name))
			return !is_apart(name) && !names_has(&all.left, name.at, name.len);
	return false;
}

static bool is_named(const struct method_target *target, const struct rewrite_method *method)
{
	return target_has_class(target, method->class) && target_has_method(target, method->name, method->descriptor);
}

/* Calls of natives are counted in another way. Another probe chooses one that is named: the user learns of it. */
static bool is_chosen(const struct instrument *item, const struct rewrite_method *method)
{
	return is_named(&item->target, method) &&
	       !(method->is_native && (item->target.is_any_method || item->probe.kind == PROBE_CALL));
}

static bool is_asked(const struct rewrite_method *method)
{
	for (uint32_t i = 0; i < all.count; i++)
		if (is_named(&all.items[i].target, method) && !(method->is_native && all.items[i].target.is_any_method))
			return true;
	return false;
}

/* `context` counts the intrinsic methods. */
static uint32_t choose(void *context, const struct rewrite_method *method, struct probe probes[PROBES_MAX])
{
	uint32_t *intrinsics = context, count = 0;

	/* probes miss calls: its own code is not run by them */
	*intrinsics += method->is_intrinsic && is_asked(method);
	for (uint32_t i = 0; i < all.count && count < PROBES_MAX; i++)
		if (is_chosen(&all.items[i], method))
			probes[count++] = all.items[i].probe;
	return count;
}

static struct class_text text_of(const char *text)
{
	size_t len = strlen(text);

	return (struct class_text){text, (uint16_t)(len < UINT16_MAX ? len : UINT16_MAX)};
}

/* Returns the bytes of a native method's name; 0: it does not fit. */
static size_t native_name(const struct rewrite_method *method, char text[NATIVE_NAME_BYTES])
{
	int bytes = snprintf(text, NATIVE_NAME_BYTES, "%.*s.%.*s%.*s", method->class.len, method->class.at,
			     method->name.len, method->name.at, method->descriptor.len, method->descriptor.at);

	return bytes > 0 && bytes < NATIVE_NAME_BYTES ? (size_t)bytes : 0;
}

/* The same as choose(), for a class file. */
static uint32_t choose_of_file(void *context, const struct rewrite_method *method, struct probe probes[PROBES_MAX])
{
	char name[NATIVE_NAME_BYTES];

	if (method->is_native && is_asked(method))
		(void)names_add(method->is_intrinsic ? &all.intrinsic : &all.plain, name, native_name(method, name));
	return choose(context, method, probes);
}

/* ---- the hook ---- */

/* Counts methods of a class (or the class) as not instrumented, and intrinsic ones; once, however often it changes. */
static void count_once(struct class_text name, uint32_t left, uint32_t intrinsics)
{
	STAY(stay);
	LOCKED(&all.lock);

	if ((!left && !intrinsics) || names_has(&all.counted, name.at, name.len) ||
	    names_add(&all.counted, name.at, name.len) || !stay)
		return;
	duet_ring_count_all(stay->ring.page, DUET_AGENT_NOT_INSTRUMENTED, left);
	duet_ring_count_all(stay->ring.page, DUET_AGENT_INTRINSIC, intrinsics);
}

static bool is_throwable(struct class_text name)
{
	return class_text_is(name, "java/lang/Throwable");
}

/*
 * Throwable keeps the probe of PROBE_CREATE when it has no other: its native method fillInStackTrace() is called often,
 * and each change leaves the code that calls the method before. Without an event, the probe does nothing.
 */
static bool keeps_probe(struct class_text name)
{
	for (uint32_t i = 0; i < all.count; i++)
		if (all.items[i].probe.kind != PROBE_CREATE && target_has_class(&all.items[i].target, name))
			return false;
	return is_throwable(name);
}

/* Returns as rewrite_class(). A class that has no name yet, or is none of ours, does not change. */
static int rewrite_wanted(struct rewrite *rewrite, const char *name, const uint8_t *bytes, uint32_t size,
			  uint8_t **ret, uint32_t *ret_size)
{
	bool is_kept;
	int changed = 0;
	LOCKED(&all.lock);

	rewrite->helper = all.helper;
	if (is_wanted(text_of(name)))
		changed = rewrite_class(rewrite, bytes, size, ret, ret_size);
	is_kept = changed > 0 && keeps_probe(text_of(name));
	all.has_create = is_throwable(text_of(name)) ? is_kept : all.has_create;
	if (changed > 0 && !is_kept && names_add(&all.changed, name, strlen(name))) {
		free(*ret); /* it could not be restored */
		changed = -ENOMEM;
	}
	return changed;
}

void JNICALL instrument_on_class_file(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader, const char *name,
				      jobject domain, jint size, const unsigned char *bytes, jint *new_size,
				      unsigned char **new_bytes)
{
	uint32_t intrinsics = 0;
	struct rewrite rewrite = {.choose = choose_of_file, .context = &intrinsics};
	unsigned char *copy = NULL;
	uint8_t *changed;
	uint32_t changed_size;
	int err;

	if (!name || size <= 0)
		return;
	err = rewrite_wanted(&rewrite, name, bytes, (uint32_t)size, &changed, &changed_size);
	count_once(text_of(name), err < 0 ? 1 : rewrite.left, intrinsics);
	if (err <= 0)
		return;
	if (!(*jvmti)->Allocate(jvmti, (jlong)changed_size, &copy)) {
		memcpy(copy, changed, changed_size);
		*new_bytes = copy;
		*new_size = (jint)changed_size;
	}
	free(changed);
}

/* ---- classes that are loaded ---- */

/* Calls `use` with the class's name, without the L and the semicolon of its signature. Arrays have none. */
static bool with_name(jclass class, bool (*use)(jclass class, struct class_text name))
{
	char *signature = jvm_class_signature(class);
	size_t len = signature ? strlen(signature) : 0;
	bool result = false;

	if (len > 2 && *signature == 'L' && len < UINT16_MAX)
		result = use(class, (struct class_text){signature + 1, (uint16_t)(len - 2)});
	jvm_deallocate(signature);
	return result;
}

/* Hidden classes are called "Name/number" (JDK 8) or "Name.address": no file gives them back. */
static bool has_own_file(jclass class, struct class_text name)
{
	const char *slash = memrchr(name.at, '/', name.len);
	jboolean is_modifiable = JNI_FALSE;

	if (memchr(name.at, '.', name.len) || (slash && slash + 1 < name.at + name.len && slash[1] <= '9'))
		return false;
	return !(*jvm.jvmti)->IsModifiableClass(jvm.jvmti, class, &is_modifiable) && is_modifiable;
}

/* What the methods of a class come to. */
struct wanted_methods {
	bool has; /* the class file is needed */
	uint32_t left, intrinsics; /* of native methods whose class file was seen */
};

static void add_wanted_native(struct wanted_methods *wanted, struct rewrite_method *method)
{
	struct probe probes[PROBES_MAX];
	char name[NATIVE_NAME_BYTES];
	size_t bytes = native_name(method, name);
	LOCKED(&all.lock);

	method->is_intrinsic = bytes && names_has(&all.intrinsic, name, bytes);
	wanted->has |= is_asked(method) && !method->is_intrinsic && !(bytes && names_has(&all.plain, name, bytes));
	wanted->left += choose(&wanted->intrinsics, method, probes) != 0;
}

static void add_wanted(struct wanted_methods *wanted, struct class_text class_name, jmethodID id)
{
	struct rewrite_method method = {.class = class_name};
	struct probe probes[PROBES_MAX];
	char *name = NULL, *descriptor = NULL;
	jint modifiers = 0;

	if ((*jvm.jvmti)->GetMethodName(jvm.jvmti, id, &name, &descriptor, NULL))
		return;
	(void)(*jvm.jvmti)->GetMethodModifiers(jvm.jvmti, id, &modifiers);
	method.is_native = modifiers & ACC_NATIVE;
	method.name = text_of(name);
	method.descriptor = text_of(descriptor);
	if (method.is_native)
		add_wanted_native(wanted, &method);
	else
		wanted->has |= choose(&wanted->intrinsics, &method, probes) != 0;
	jvm_deallocate(name);
	jvm_deallocate(descriptor);
}

static bool has_wanted_method(jclass class, struct class_text class_name)
{
	struct wanted_methods wanted = {0};
	jmethodID *methods;
	jint count;

	if ((*jvm.jvmti)->GetClassMethods(jvm.jvmti, class, &count, &methods))
		return true; /* it is not prepared yet */
	for (jint i = 0; i < count && !wanted.has; i++)
		add_wanted(&wanted, class_name, methods[i]);
	jvm_deallocate(methods);
	if (!wanted.has)
		count_once(class_name, wanted.left, wanted.intrinsics);
	return wanted.has;
}

static bool is_to_change(jclass class, struct class_text name)
{
	bool wanted;

	pthread_mutex_lock(&all.lock);
	wanted = is_wanted(name);
	pthread_mutex_unlock(&all.lock);
	return wanted && has_own_file(class, name) && has_wanted_method(class, name);
}

static bool is_changed(jclass class, struct class_text name)
{
	bool changed;

	pthread_mutex_lock(&all.lock);
	changed = names_has(&all.changed, name.at, name.len);
	pthread_mutex_unlock(&all.lock);
	return changed && has_own_file(class, name);
}

static bool leave(jclass class, struct class_text name)
{
	pthread_mutex_lock(&all.lock);
	(void)names_add(&all.left, name.at, name.len); /* out of memory: refused again */
	pthread_mutex_unlock(&all.lock);
	count_once(name, 1, 0);
	return true;
}

/* Transforms the classes again. When the JVM refuses one of them, it changes none, so the others are tried alone. */
static void transform(jclass *classes, jint count)
{
	jvmtiError error = (*jvm.jvmti)->RetransformClasses(jvm.jvmti, count, classes);

	if (!error || error == JVMTI_ERROR_WRONG_PHASE)
		return;
	if (count == 1) {
		with_name(*classes, leave);
		return;
	}
	transform(classes, count / 2);
	transform(classes + count / 2, count - count / 2);
}

/* Transforms the loaded classes that are wanted. Returns how many there are. */
static uint32_t transform_loaded(JNIEnv *env, bool (*is_wanted_class)(jclass class, struct class_text name))
{
	struct jvm_preparing list;
	jint count = 0;

	if (!jvm_prepare_begin(env, &list))
		return 0;
	for (jint i = 0; i < list.count; i++)
		if (with_name(list.classes[i], is_wanted_class))
			list.classes[count++] = list.classes[i];
	for (jint i = 0; i < count; i += AT_ONCE)
		transform(list.classes + i, count - i < AT_ONCE ? count - i : AT_ONCE);
	jvm_prepare_end(env, &list);
	return (uint32_t)count;
}

/* ---- native methods ---- */

static bool counts_natives(const struct instrument *item)
{
	return item->probe.kind == PROBE_CALL && !item->target.is_any_method;
}

/* Returns the id of the probe that counts calls of this native method, or PROBE_NONE. */
static int32_t native_probe(const struct rewrite_method *method)
{
	LOCKED(&all.lock);

	for (uint32_t i = 0; i < all.count; i++)
		if (counts_natives(&all.items[i]) && is_named(&all.items[i].target, method))
			return all.items[i].probe.id;
	return PROBE_NONE;
}

static void add_native(JNIEnv *env, jclass class, struct class_text class_name, jmethodID method, bool is_new)
{
	struct rewrite_method about = {.class = class_name, .is_native = true};
	struct natives_method of = {.class = class, .method = method};
	int32_t id;

	if ((*jvm.jvmti)->GetMethodName(jvm.jvmti, method, &of.name, &of.type, NULL))
		return;
	about.name = text_of(of.name);
	about.descriptor = text_of(of.type);
	id = native_probe(&about);
	if (id != PROBE_NONE && !natives_add(env, &of, id, is_new))
		count_once(class_name, 1, 0);
	jvm_deallocate(of.name);
	jvm_deallocate(of.type);
}

static void add_natives(JNIEnv *env, jclass class, struct class_text name, bool is_new)
{
	jmethodID *methods;
	jint count, modifiers;

	if ((*jvm.jvmti)->GetClassMethods(jvm.jvmti, class, &count, &methods))
		return;
	for (jint i = 0; i < count; i++)
		if (!(*jvm.jvmti)->GetMethodModifiers(jvm.jvmti, methods[i], &modifiers) && modifiers & ACC_NATIVE)
			add_native(env, class, name, methods[i], is_new);
	jvm_deallocate(methods);
}

static bool may_have_natives(struct class_text name)
{
	LOCKED(&all.lock);

	for (uint32_t i = 0; i < all.count; i++)
		if (counts_natives(&all.items[i]) && target_has_class(&all.items[i].target, name))
			return !is_apart(name);
	return false;
}

static bool add_new(jclass class, struct class_text name)
{
	if (may_have_natives(name))
		add_natives(jvm_own_env(), class, name, true);
	return true;
}

void instrument_on_prepare(JNIEnv *env, jclass class)
{
	if (__atomic_load_n(&all.count, __ATOMIC_RELAXED))
		with_name(class, add_new);
}

static bool add_loaded(jclass class, struct class_text name)
{
	if (may_have_natives(name))
		add_natives(jvm_own_env(), class, name, false);
	return true;
}

/* Calls of native methods that this JVM has no way to count are counted as not instrumented by natives_add(). */
static void add_all_natives(JNIEnv *env)
{
	jclass helper = (*env)->FindClass(env, all.helper);
	struct jvm_preparing list;

	(*env)->ExceptionClear(env);
	if (helper)
		(void)natives_open(env, helper);
	if (jvm_prepare_begin(env, &list)) {
		for (jint i = 0; i < list.count; i++)
			with_name(list.classes[i], add_loaded);
		jvm_prepare_end(env, &list);
	}
	(*env)->DeleteLocalRef(env, helper);
}

/* ---- beginning and end ---- */

static int add_target(JNIEnv *env, const struct duet_agent_event *event, enum probe_kind kind)
{
	struct instrument *item = &all.items[all.count]; /* nobody else looks at it yet */
	int err = all.count < DUET_MAX_EVENTS ? target_parse(&item->target, event->target) : -ENOSPC;

	if (err)
		return err;
	item->probe = (struct probe){kind, probes_add(env, event, kind)};
	pthread_mutex_lock(&all.lock);
	all.count++;
	pthread_mutex_unlock(&all.lock);
	return 0;
}

int instrument_add(const struct duet_agent_event *event, enum probe_kind kind, const char **ret_why)
{
	JNIEnv *env = jvm_own_env();

	*ret_why = "the JVM refuses the class that instrumented methods call";
	all.helper = env ? probes_open(env) : NULL;
	if (!all.helper)
		return -ENOTSUP;
	*ret_why = "it names no method";
	if (add_target(env, event, kind))
		return -EINVAL;
	*ret_why = "the JVM refuses to show classes that are loaded";
	if (!jvm_set_event(JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK))
		return -ENOTSUP;
	if (kind != PROBE_CREATE || !all.has_create || !probes_has_create(env))
		transform_loaded(env, is_to_change);
	if (kind == PROBE_CALL)
		add_all_natives(env);
	return 0;
}

static uint32_t count_changed(void)
{
	LOCKED(&all.lock);

	return all.changed.count;
}

void instrument_remove(void)
{
	struct timespec step = {.tv_nsec = STEP_NS};
	JNIEnv *env = jvm_own_env();

	probes_close(env);
	pthread_mutex_lock(&all.lock);
	all.count = 0;
	pthread_mutex_unlock(&all.lock);
	jvm_set_event(JVMTI_DISABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
	natives_remove();
	for (int i = 0; env && i < STEPS && count_changed(); i++) {
		if (transform_loaded(env, is_changed) >= count_changed())
			break;
		nanosleep(&step, NULL);
	}
	pthread_mutex_lock(&all.lock);
	names_free(&all.changed);
	names_free(&all.left);
	names_free(&all.counted);
	pthread_mutex_unlock(&all.lock);
}
