/* SPDX-License-Identifier: MIT */
#include "hotspot/stub_callers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hotspot/bytecodes.h"
#include "hotspot/metadata.h"

#define LANG "Ljava/lang/"
#define ZIP "Ljava/util/zip/"
#define BIG "Ljava/math/BigInteger;"
#define SECURITY "Lsun/security/provider/"
#define CRYPTO "Lcom/sun/crypto/provider/"
#define INTERNAL "Ljdk/internal/"
#define COPY LANG "System;arraycopy " LANG "Object;clone "
#define COPY_OBJECTS COPY "Ljava/util/Arrays;copyOf Ljava/util/Arrays;copyOfRange "
#define RUNTIME                                                                                                        \
	BIG "implMontgomeryMultiply " BIG "implMontgomerySquare "                                                      \
	    "Ljava/util/DualPivotQuicksort;sort Ljava/util/DualPivotQuicksort;partition "
#define MATHS                                                                                                          \
	LANG "Math;sin " LANG "Math;cos " LANG "Math;tan " LANG "Math;exp " LANG "Math;log " LANG "Math;log10 " LANG   \
	     "Math;pow "
#define LARGEST_INLINED 325 /* bytes of byte code (FreqInlineSize) */
#define BARREN_DEPTHS 15ull /* most depth to which a method's calls have been followed, below its hash */
#define PLAIN "\x72\x73\xc3"
#define STORES "\x53\xb3\xb5"

/*
 * A part of a stub's name; the methods that the compilers replace by it, unless they call another one of the row, and
 * after '[' the types of elements that it copies, if not all; the instructions that call it. The first row that fits
 * counts.
 */
static const struct {
	const char *stub, *methods, *instructions;
} kinds[] = {
	{"unsafe_arraycopy", "Lsun/misc/Unsafe;copyMemory " INTERNAL "misc/Unsafe;copyMemory0 ", ""},
	{"unsafe_setmemory", "Lsun/misc/Unsafe;setMemory " INTERNAL "misc/Unsafe;setMemory0 ", ""},
	{"jbyte_fill", "", "\x54"},
	{"jshort_fill", "", "\x55\x56"},
	{"jint_fill", "", "\x4f\x51"},
	{"jbyte_", COPY "[BZ", ""}, /* …arraycopy, and so on */
	{"jshort_", COPY LANG "StringUTF16;toBytes " LANG "StringUTF16;getChars [SC", ""},
	{"jint_", COPY_OBJECTS "[IFL", ""}, /* where addresses of objects have 4 bytes, the stubs may have this name */
	{"oop_", COPY_OBJECTS "[L", ""},
	{"checkcast_", COPY_OBJECTS "[L", ""},
	{"arraycopy", COPY, ""}, /* also of new memory, by words: jlong_disjoint_arraycopy */
	{"CRC32C", ZIP "CRC32C;updateBytes " ZIP "CRC32C;updateDirectByteBuffer ", ""},
	{"CRC32",
	 ZIP "CRC32;updateBytes0 " ZIP "CRC32;updateByteBuffer0 " ZIP "CRC32;updateBytes " ZIP
	     "CRC32;updateByteBuffer ",
	 ""},
	{"Adler32", ZIP "Adler32;updateBytes " ZIP "Adler32;updateByteBuffer ", ""},
	{"multiplyToLen", BIG "implMultiplyToLen ", ""},
	{"squareToLen", BIG "implSquareToLen ", ""},
	{"mulAdd", BIG "implMulAdd ", ""},
	{"LeftShift", BIG "shiftLeftImplWorker ", ""},
	{"RightShift", BIG "shiftRightImplWorker ", ""},
	{"vectorizedMismatch", INTERNAL "util/ArraysSupport;vectorizedMismatch ", ""},
	{"encodeBlock", "Ljava/util/Base64$Encoder;encodeBlock ", ""},
	{"decodeBlock", "Ljava/util/Base64$Decoder;decodeBlock ", ""},
	{"implEncode", "Ljava/util/Base64$Encoder;encodeBlock ", ""}, /* JDK 17 */
	{"implDecode", "Ljava/util/Base64$Decoder;decodeBlock ", ""},
	{"implCompressMB", SECURITY "DigestBase;implCompressMultiBlock0 ", ""},
	{"md5_impl", SECURITY "MD5;implCompress0 ", ""},
	{"sha1_impl", SECURITY "SHA;implCompress0 ", ""},
	{"sha256_impl", SECURITY "SHA2;implCompress0 ", ""},
	{"sha512_impl", SECURITY "SHA5;implCompress0 ", ""},
	{"sha3_impl", SECURITY "SHA3;implCompress0 ", ""},
	{"cipherBlockChaining_", CRYPTO "CipherBlockChaining;implEncrypt " CRYPTO "CipherBlockChaining;implDecrypt ",
	 ""},
	{"counterMode_", CRYPTO "CounterMode;implCrypt ", ""},
	{"galoisCounterMode_", CRYPTO "GaloisCounterMode;implGCMCrypt0 ", ""},
	{"electronicCodeBook_", CRYPTO "ElectronicCodeBook;implECBEncrypt " CRYPTO "ElectronicCodeBook;implECBDecrypt ",
	 ""},
	{"aescrypt_encrypt", CRYPTO "AESCrypt;implEncryptBlock " CRYPTO "AES_Crypt;implEncryptBlock ", ""},
	{"aescrypt_decrypt", CRYPTO "AESCrypt;implDecryptBlock " CRYPTO "AES_Crypt;implDecryptBlock ", ""},
	{"ghash_processBlocks", CRYPTO "GHASH;processBlocks ", ""},
	{"chacha20Block", CRYPTO "ChaCha20Cipher;implChaCha20Block ", ""},
	{"poly1305_processBlocks", CRYPTO "Poly1305;processMultipleBlocks ", ""},
	{"dsinh", LANG "Math;sinh ", ""},
	{"dsin", LANG "Math;sin ", ""},
	{"dcos", LANG "Math;cos ", ""},
	{"dtanh", LANG "Math;tanh ", ""},
	{"dtan", LANG "Math;tan ", ""},
	{"dcbrt", LANG "Math;cbrt ", ""},
	{"dexp", LANG "Math;exp ", ""},
	{"dlog10", LANG "Math;log10 ", ""},
	{"dlog", LANG "Math;log ", ""},
	{"dpow", LANG "Math;pow ", ""},
	{"dfmod", "", "\x72\x73"},
	{"barrier_slow", "", STORES}, /* of C1, as those that follow */
	{"slow_subtype_check", "", "\x53\xc0\xc1"},
	{"monitorexit", "", "\xc3"},
	{STUB_CALLERS_NANOS, LANG "System;nanoTime ", ""},
	{STUB_CALLERS_MILLIS, LANG "System;currentTimeMillis ", ""},
	/* functions of the JVM: remainders, monitorexit, sorting; barriers of stores */
	{STUB_CALLERS_OLD_CARDS, RUNTIME MATHS, PLAIN},
	{STUB_CALLERS_OLD, RUNTIME MATHS, PLAIN STORES},
	{STUB_CALLERS_CARDS, RUNTIME, PLAIN},
	{STUB_CALLERS_RUNTIME, RUNTIME, PLAIN STORES},
};

/* JDK 17 has "libmSin" for "dsin". */
static bool has_name(const char *stub, const char *name)
{
	return strstr(stub, name) || (!strncmp(stub, "libm", 4) && !strcasecmp(stub + 4, name + 1));
}

int stub_callers_kind(const char *stub)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (has_name(stub, kinds[i].stub))
			return (int)i + 1;
	return 0;
}

bool stub_callers_is_runtime(int kind)
{
	return kind && !strncmp(kinds[kind - 1].methods, RUNTIME, sizeof(RUNTIME) - 1);
}

/* Returns how many methods, from the first on, the search has in common with all ways. */
static uint32_t common_part(const struct stub_callers *search)
{
	uint32_t same = 0;

	while (same < search->level && same < search->depth && search->way[same].method == search->at[same].method)
		same++;
	return same;
}

/* Keeps of several ways what they have in common. */
static void add_way(struct stub_callers *search)
{
	uint32_t same;

	search->met++;
	if (!search->ways) {
		memcpy(search->way, search->at, search->level * sizeof(*search->at));
		search->depth = search->level;
	}
	same = common_part(search);
	if (!search->ways || same < search->depth || search->depth < search->level)
		search->ways++;
	search->depth = same;
}

static bool is_replaced(const struct stub_callers *search, const struct metadata_method *method)
{
	const char *methods = kinds[search->kind - 1].methods;
	char *name = *methods ? metadata_name(method) : NULL;
	bool is_one = name && strstr(methods, name);

	free(name);
	return is_one;
}

/* Returns false if that is the end of the search. */
static bool spend(struct stub_callers *search, uint32_t steps)
{
	*search->budget = *search->budget > steps ? *search->budget - steps : 0;
	return *search->budget;
}

/* True if there is an array of such elements among types, or what may be one. */
static bool has_array(const char *types, const char *elements)
{
	for (const char *at = types; *at; at++) {
		size_t depth = strspn(at, "[");

		at += depth;
		if (depth ? strchr(elements, *at) || (depth > 1 && strchr(elements, 'L'))
			  : !strncmp(at, LANG "Object;", sizeof(LANG "Object;") - 1))
			return true;
		if (*at == 'L' && !*(at += strcspn(at, ";")))
			break;
	}
	return false;
}

/* True if an instruction may have got or made an array of such elements; opcode 0: if the method may have one. */
static bool gets_array(const struct metadata_method *method, const uint8_t *at, const char *elements)
{
	char *types, *result;
	uint16_t operand;
	bool is_one;

	if (*at == OP_NEWARRAY)
		return at[1] > 11 || at[1] < 4 || strchr(elements, "ZCFDBSIJ"[at[1] - 4]);
	if (*at == OP_ANEWARRAY || *at == OP_MULTIANEWARRAY)
		return *at == OP_MULTIANEWARRAY || strchr(elements, 'L');
	if (*at && *at != OP_GETSTATIC && *at != OP_GETFIELD && (*at < OP_INVOKEVIRTUAL || *at > OP_INVOKEINTERFACE))
		return false;
	memcpy(&operand, at + 1, sizeof(operand));
	types = metadata_types(method, *at, operand);
	result = types && *at >= OP_INVOKEVIRTUAL ? strchr(types, ')') : NULL;
	is_one = !types || has_array(result ? result : types, elements);
	free(types);
	return is_one;
}

/* An array that a method copies is one of its arguments, a field, a result of a call, or new. */
static bool may_copy(struct stub_callers *search, const struct metadata_method *method)
{
	const char *elements = strchr(kinds[search->kind - 1].methods, '[');
	bool is_one = !elements || gets_array(method, (const uint8_t[3]){0}, elements);
	uint32_t bytes = 0;
	uint8_t *code = is_one ? NULL : metadata_code(method, &bytes);

	for (uint32_t bci = 0; bci < bytes && !is_one && spend(search, 1); bci += bytecode_length(code, bytes, bci))
		is_one = gets_array(method, code + bci, elements);
	free(code);
	return is_one;
}

static bool search_method(struct stub_callers *search, const struct metadata_method *method, int32_t begin,
			  int32_t end);

/* An abstract method stands for those of the classes whose objects the compiled code expects. */
static void search_implementations(struct stub_callers *search, const struct metadata_method *callee)
{
	struct metadata_method method;

	for (uint32_t i = 0; i < search->class_count; i++)
		if (metadata_implementation(search->classes[i], callee, search->budget, &method))
			(void)search_method(search, &method, 0, INT32_MAX);
}

/* Most methods that are met lead to no stub, and are met again and again. */
static void search_callee(struct stub_callers *search, const struct metadata_method *callee)
{
	uint64_t hash = (metadata_key(callee).method ^ (uint64_t)search->kind << 48) * 0x9e3779b97f4a7c15ull;
	uint64_t *barren = &search->barren[(hash >> 32) % STUB_CALLERS_BARREN], depth = search->limit - search->level;
	uint32_t met = search->met;

	if (!depth || ((*barren | BARREN_DEPTHS) == (hash | BARREN_DEPTHS) && (*barren & BARREN_DEPTHS) >= depth))
		return;
	if (!search_method(search, callee, 0, INT32_MAX))
		search_implementations(search, callee);
	if (search->met == met && *search->budget)
		*barren = (hash & ~BARREN_DEPTHS) | depth;
}

/* Garbage collectors have barriers for stores of references alone. */
static bool may_call(const struct stub_callers *search, const struct metadata_method *method, const uint8_t *at)
{
	char *type;
	uint16_t operand;
	bool is_one = *at && strchr(kinds[search->kind - 1].instructions, *at);

	if (!is_one || (*at != OP_PUTSTATIC && *at != OP_PUTFIELD))
		return is_one;
	memcpy(&operand, at + 1, sizeof(operand));
	type = metadata_types(method, *at, operand);
	is_one = !type || *type == 'L' || *type == '[';
	free(type);
	return is_one;
}

static void search_instruction(struct stub_callers *search, const struct metadata_method *method, const uint8_t *at)
{
	uint32_t met = search->met;
	struct metadata_method callee;
	uint16_t operand;

	if (may_call(search, method, at))
		add_way(search);
	if (*at < OP_INVOKEVIRTUAL || *at > OP_INVOKEINTERFACE)
		return;
	if (!spend(search, STUB_CALLERS_CALL))
		return;
	memcpy(&operand, at + 1, sizeof(operand));
	if (!metadata_callee(method, operand, &callee))
		return;
	if (!search->is_call(search->context, &search->at[search->level - 1]))
		search_callee(search, &callee);
	if (search->met == met && is_replaced(search, &callee) && may_copy(search, method))
		add_way(search);
}

/* Returns where a conditional jump or goto leads; without one, `bci`. */
static int32_t jump_target(const uint8_t *code, uint32_t bytes, int32_t bci)
{
	uint8_t op = bci >= 0 && (uint32_t)bci + 2 < bytes ? code[bci] : 0;
	bool is_jump = (op >= OP_IFEQ && op < OP_JSR) || op == OP_IFNULL || op == OP_IFNONNULL;

	return is_jump ? bci + (int16_t)(code[bci + 1] << 8 | code[bci + 2]) : bci;
}

/* Returns false if the method has no byte code. */
static bool search_method(struct stub_callers *search, const struct metadata_method *method, int32_t begin,
			  int32_t end)
{
	struct metadata_key key = metadata_key(method);
	uint32_t bytes = 0;
	uint8_t *code = *search->budget ? metadata_code(method, &bytes) : NULL;
	bool has_code = bytes;

	(void)spend(search, bytes / 256 + 1);
	if (begin == end && jump_target(code, bytes, begin) < begin) /* a loop */
		begin = jump_target(code, bytes, begin);
	if (search->level && bytes > LARGEST_INLINED)
		bytes = 0;
	search->level++;
	for (uint32_t bci = 0; bci < bytes && (int32_t)bci <= end; bci += bytecode_length(code, bytes, bci)) {
		search->at[search->level - 1] =
			(struct duet_java_frame){.method = key.method, .check = key.check, .bci = (int32_t)bci};
		if ((int32_t)bci >= begin && (search->ways < 2 || common_part(search) < search->depth))
			search_instruction(search, method, code + bci);
	}
	search->level--;
	free(code);
	return has_code;
}

void stub_callers_find(struct stub_callers *search, uint64_t method, int32_t begin, int32_t end)
{
	struct metadata_method first;

	if (metadata_find(method, &first))
		(void)search_method(search, &first, begin, end);
}
