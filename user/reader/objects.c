/* SPDX-License-Identifier: MIT */
#include "reader/objects.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/vmstructs.h"
#include "reader/memory.h"

#define SMALL_HEADERS_SINCE 23 /* since this JDK an array's bytes may follow its length at any multiple of 4 */
#define GENERATIONS_ONLY_SINCE 24 /* since this JDK, ZGC always has generations */
#define Z_REMAPPED 0xf000u
#define COMPACT_KLASS_SHIFT 42 /* compact headers: the class is in the upper bits of the mark */

static struct {
	/* addresses of static fields */
	uintptr_t thread_klass, string_klass, oop_base, oop_shift, klass_base, klass_shift, z_instance, x_instance;
	/* offsets in the instances of the addresses of the numbers */
	struct offset klass, narrow_klass, z_bad, z_shift, z_mask, x_bad;
	int version;
} layout;

static struct {
	bool known, has_narrow_oops, has_narrow_klasses, is_compact, has_coders;
	uintptr_t z_bad, z_shift, x_bad; /* addresses of ZGC's numbers; 0: another collector */
	uintptr_t string_klass;
	uint32_t klass;
	uint16_t value, coder, array_length, array_data;
	struct objects_thread_fields thread;
} learnt;

#define WELL_KNOWN(name) "_well_known_klasses[SystemDictionary::" name "_klass_knum]"
#define VM_CLASS(name) "_klasses[static_cast<int>(vmClassID::" name "_klass_knum)]"

static const struct vmstructs_row rows[] = {
	{"SystemDictionary", WELL_KNOWN("Thread"), NULL, &layout.thread_klass}, /* JDK 8-15 */
	{"SystemDictionary", WELL_KNOWN("String"), NULL, &layout.string_klass},
	{"vmClasses", VM_CLASS("Thread"), NULL, &layout.thread_klass}, /* JDK 17+ */
	{"vmClasses", VM_CLASS("String"), NULL, &layout.string_klass},
	{"Universe", "_narrow_oop._base", NULL, &layout.oop_base}, /* JDK 8-12 */
	{"Universe", "_narrow_oop._shift", NULL, &layout.oop_shift},
	{"CompressedOops", "_narrow_oop._base", NULL, &layout.oop_base}, /* JDK 13-22 */
	{"CompressedOops", "_narrow_oop._shift", NULL, &layout.oop_shift},
	{"CompressedOops", "_base", NULL, &layout.oop_base},
	{"CompressedOops", "_shift", NULL, &layout.oop_shift},
	{"Universe", "_narrow_klass._base", NULL, &layout.klass_base},
	{"Universe", "_narrow_klass._shift", NULL, &layout.klass_shift},
	{"CompressedKlassPointers", "_narrow_klass._base", NULL, &layout.klass_base},
	{"CompressedKlassPointers", "_narrow_klass._shift", NULL, &layout.klass_shift},
	{"CompressedKlassPointers", "_base", NULL, &layout.klass_base},
	{"CompressedKlassPointers", "_shift", NULL, &layout.klass_shift},
	{"oopDesc", "_metadata._klass", &layout.klass, NULL}, /* JDK 8-26 */
	{"oopDesc", "_compressed_klass", &layout.narrow_klass, NULL}, /* JDK 27+: classes are always compressed */
	{"ZGlobalsForVMStructs", "_instance_p", NULL, &layout.z_instance},
	{"ZGlobalsForVMStructs", "_ZPointerLoadBadMask", &layout.z_bad, NULL}, /* JDK 21+, with generations */
	{"ZGlobalsForVMStructs", "_ZPointerLoadShift", &layout.z_shift, NULL},
	{"ZGlobalsForVMStructs", "_ZAddressOffsetMask", &layout.z_mask, NULL},
	{"ZGlobalsForVMStructs", "_ZAddressBadMask", &layout.x_bad, NULL}, /* JDK 11-20 */
	{"XGlobalsForVMStructs", "_instance_p", NULL, &layout.x_instance}, /* JDK 21-23, without generations */
	{"XGlobalsForVMStructs", "_XAddressBadMask", &layout.x_bad, NULL},
};

bool objects_open(int version)
{
	memset(&layout, 0, sizeof(layout));
	memset(&learnt, 0, sizeof(learnt));
	layout.version = version;
	return !vmstructs_read(rows, sizeof(rows) / sizeof(rows[0])) && layout.thread_klass && layout.string_klass &&
	       layout.oop_base && layout.oop_shift && layout.klass_base && layout.klass_shift &&
	       (layout.klass.known || layout.narrow_klass.known) && fields_open(version);
}

/* Returns false when this version of ZGC is not known. */
static bool learn_colours(void)
{
	bool has_generations = layout.version >= GENERATIONS_ONLY_SINCE || jvmflags_is_set("ZGenerational");
	uintptr_t z = layout.z_instance ? memory_word(layout.z_instance) : 0;
	uintptr_t x = layout.x_instance ? memory_word(layout.x_instance) : z, mask_at;

	if (!jvmflags_is_set("UseZGC"))
		return true;
	if (has_generations && z && layout.z_bad.known && layout.z_shift.known) {
		learnt.z_bad = memory_word(z + layout.z_bad.value);
		learnt.z_shift = memory_word(z + layout.z_shift.value);
	} else if (!has_generations && x && layout.x_bad.known) {
		learnt.x_bad = memory_word(x + layout.x_bad.value);
	}
	mask_at = z && layout.z_mask.known ? memory_word(z + layout.z_mask.value) : 0;
	if (has_generations || !layout.x_instance)
		(void)moved_learn(mask_at ? memory_word(mask_at) : 0);
	return (learnt.z_bad && learnt.z_shift) || learnt.x_bad;
}

static void learn_headers(void)
{
	learnt.has_narrow_oops = jvmflags_is_set("UseCompressedOops");
	learnt.is_compact = jvmflags_is_set("UseCompactObjectHeaders");
	learnt.has_narrow_klasses =
		learnt.is_compact || layout.narrow_klass.known || jvmflags_is_set("UseCompressedClassPointers");
	learnt.klass = layout.narrow_klass.known ? layout.narrow_klass.value : layout.klass.value;
	learnt.array_length = learnt.is_compact ? 8 : learnt.has_narrow_klasses ? 12 : 16;
	learnt.array_data = learnt.array_length + 4;
	if (!learnt.has_narrow_klasses && layout.version < SMALL_HEADERS_SINCE)
		learnt.array_data = 24;
}

int objects_learn(void)
{
	uintptr_t thread, string;

	if (learnt.known)
		return 0;
	thread = memory_word(layout.thread_klass);
	string = memory_word(layout.string_klass);
	if (!thread || !string)
		return -EAGAIN;
	learn_headers();
	learnt.string_klass = string;
	learnt.has_coders = fields_find(string, "coder", "B", &learnt.coder); /* not in JDK 8: all is UTF-16 */
	learnt.known = learn_colours() &&
		       fields_find(string, "value", learnt.has_coders ? "[B" : "[C", &learnt.value) &&
		       fields_find(thread, "name", "Ljava/lang/String;", &learnt.thread.name) &&
		       fields_find(thread, "tid", "J", &learnt.thread.tid) &&
		       fields_find(thread, "eetop", "J", &learnt.thread.eetop);
	return learnt.known ? 0 : -ENOTSUP;
}

const struct objects_thread_fields *objects_thread_fields(void)
{
	return &learnt.thread;
}

void objects_describe(struct duet_jvm_virtual *how)
{
	if (!learnt.known || !learnt.has_coders || learnt.z_bad || learnt.x_bad)
		return;
	how->object_id = learnt.thread.tid;
	how->object_name = learnt.thread.name;
	how->string_value = learnt.value;
	how->string_coder = learnt.coder;
	how->array_length = learnt.array_length;
	how->array_bytes = learnt.array_data;
	how->oop_bytes = learnt.has_narrow_oops ? 4 : 8;
}

/*
 * Returns the address in a reference of ZGC with generations. On x86 the address begins above the one bit that is set
 * among bits 12 to 15, the remapped bits (HotSpot's zAddress.hpp). Elsewhere the JVM exports where it begins.
 */
static uintptr_t address_in(uintptr_t reference)
{
#ifdef __x86_64__
	uintptr_t remapped = reference & Z_REMAPPED;

	return remapped ? reference >> __builtin_ctzl(remapped) >> 1 : 0;
#else
	return reference >> (memory_word(learnt.z_shift) & 63);
#endif
}

/*
 * A reference of another colour leads to where the object was before ZGC moved it. ZGC may use that memory for another
 * object by then. Without generations the memory is mapped at the addresses of all colours.
 */
static uintptr_t without_colour(uintptr_t reference, bool *doubt)
{
	uintptr_t bad_at = learnt.z_bad ? learnt.z_bad : learnt.x_bad;
	uintptr_t address = learnt.z_bad ? address_in(reference) : reference;

	if (!bad_at || !(reference & memory_word(bad_at)))
		return address;
	*doubt = true;
	return moved_to(address);
}

uintptr_t objects_follow_root(uintptr_t at, bool *doubt)
{
	return without_colour(memory_word(at), doubt);
}

uintptr_t objects_follow(uintptr_t field, bool *doubt)
{
	uint32_t narrow;

	if (!learnt.has_narrow_oops)
		return objects_follow_root(field, doubt);
	narrow = memory_int(field);
	return narrow ? memory_word(layout.oop_base) + ((uintptr_t)narrow << (memory_int(layout.oop_shift) & 63)) : 0;
}

static uintptr_t klass_of(uintptr_t object)
{
	uintptr_t narrow;

	if (!learnt.has_narrow_klasses)
		return memory_word(object + learnt.klass);
	narrow = learnt.is_compact ? memory_word(object) >> COMPACT_KLASS_SHIFT
				   : memory_int(object + learnt.klass);
	return memory_word(layout.klass_base) + (narrow << (memory_int(layout.klass_shift) & 63));
}

bool objects_text(uintptr_t string, char text[OBJECTS_TEXT_BYTES], bool *doubt)
{
	uintptr_t array = string ? objects_follow(string + learnt.value, doubt) : 0;
	bool is_utf16 = !learnt.has_coders || memory_byte(string + learnt.coder);
	uint32_t width = is_utf16 ? 2 : 1, elements = learnt.has_coders ? width : 1; /* of the array, for a character */
	uint32_t length = array ? memory_int(array + learnt.array_length) / elements : 0;
	size_t bytes = width * (size_t)(length < OBJECTS_TEXT_MAX ? length : OBJECTS_TEXT_MAX);
	uint8_t value[2 * OBJECTS_TEXT_MAX];

	if (!array || klass_of(string) != learnt.string_klass ||
	    memory_copy(value, array + learnt.array_data, bytes) < bytes)
		return false;
	text_from_java(text, value, bytes, is_utf16);
	return true;
}
