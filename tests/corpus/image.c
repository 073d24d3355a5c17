/* SPDX-License-Identifier: MIT */
/*
 * Captures what a reader from outside reads of some compilations of a running JVM and of their methods:
 *
 *	image PID FILE COMPILATIONS
 *
 * tests/unit/test_outside_images.c and tests/fuzz/fuzz_outside_image.c read the file: tests/fixtures/outside/README.md.
 * The functions of reader/memory.h are those below, which note each byte that is used.
 */
#include "fixtures/outside_image.h"
#include "hotspot/vmstructs.h"
#include "reader/exports.h"
#include "reader/image.h"

#define METHODS_EACH 8 /* methods kept of a compilation */
#define PCS_MOST 120 /* of a compilation that is chosen */
#define MAX_CHOSEN 64
#define TAKEN_MOST 1024

static struct {
	pid_t pid;
	struct exports exports;
	bool is_on; /* what is read is noted */
	bool is_full;
	struct corpus_memory memory;
	FILE *file;
} capture;

static void note(uintptr_t address, const void *bytes, size_t count)
{
	if (capture.is_on && corpus_put(&capture.memory, address, bytes, count) < 0)
		capture.is_full = true;
}

static size_t copy(void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
	ssize_t copied = syscall(SYS_process_vm_readv, capture.pid, &local, 1, &remote, 1, 0);

	return copied > 0 ? (size_t)copied : 0;
}

/* ---- reader/memory.h ---- */

size_t memory_copy(void *to, uintptr_t from, size_t bytes)
{
	size_t copied = copy(to, from, bytes);

	note(from, to, copied);
	return copied;
}

size_t memory_copy_pieces(void *to, const struct memory_piece *pieces, size_t count)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++)
		done += memory_copy((char *)to + done, pieces[i].from, pieces[i].bytes);
	return done;
}

/* The caller notes which bytes it uses of objects and tables, but not of names and byte code. */
size_t memory_take(void *to, uintptr_t from, size_t bytes)
{
	size_t copied = copy(to, from, bytes);

	if (bytes <= TAKEN_MOST)
		note(from, to, copied);
	return copied;
}

void memory_note(uintptr_t address, const void *bytes, size_t count)
{
	note(address, bytes, count);
}

void memory_note_all(void)
{
}

bool memory_is_as_noted(void)
{
	return true;
}

void memory_forget(void)
{
}

void memory_renew(void)
{
}

static uint64_t number_at(uintptr_t address, size_t bytes)
{
	uint64_t number = 0;

	return memory_copy(&number, address, bytes) == bytes ? number : 0;
}

uintptr_t memory_word(uintptr_t address)
{
	return number_at(address, sizeof(uintptr_t));
}

uint32_t memory_int(uintptr_t address)
{
	return (uint32_t)number_at(address, sizeof(uint32_t));
}

uint16_t memory_half(uintptr_t address)
{
	return (uint16_t)number_at(address, sizeof(uint16_t));
}

uint8_t memory_byte(uintptr_t address)
{
	return (uint8_t)number_at(address, sizeof(uint8_t));
}

void memory_text(char *text, uintptr_t address, size_t size)
{
	text[address ? copy(text, address, size - 1) : 0] = '\0';
	text[size - 1] = '\0';
	if (address)
		note(address, text, strlen(text) + 1);
}

int memory_open(pid_t pid, uintptr_t libjvm)
{
	capture.pid = pid;
	return memory_word(libjvm) ? exports_open(&capture.exports, libjvm) : -EPERM;
}

/* A file has the tables of the library, and no functions of it. */
uintptr_t memory_symbol(const char *name)
{
	return strncmp(name, "gHotSpot", strlen("gHotSpot")) ? 0 : exports_find(&capture.exports, name);
}

/* ---- choosing ---- */

struct chosen {
	uint64_t pc;
	uint32_t id;
};

static bool is_chosen(const struct code_blob *blob, struct chosen *ret)
{
	struct nmethod_record record;
	bool is_right;

	ret->pc = blob->code_begin;
	ret->id = jvmstructs_blob_id(blob);
	if (nmethods_find(ret->pc, ret->id, 0, IMAGE_RECORD_BYTES, &record) != NMETHOD_FOUND)
		return false;
	is_right = record.load.pc_count > 8 && record.load.pc_count <= PCS_MOST &&
		   record.load.frame_count > record.load.pc_count;
	nmethods_release(&record);
	return is_right;
}

static size_t choose(struct chosen *chosen, size_t most)
{
	struct code_blob blob;
	size_t count = 0;

	for (unsigned int heap = 0; heap < 8; heap++)
		for (uintptr_t cursor = 0; count < most && jvmstructs_next_blob(heap, &cursor, &blob);)
			count += is_chosen(&blob, &chosen[count]);
	return count;
}

/* ---- the file ---- */

static void write_fields(void)
{
	static struct offset offsets[WANTED];
	static uintptr_t addresses[WANTED];
	struct vmstructs_row rows[WANTED];

	for (size_t i = 0; i < WANTED; i++)
		rows[i] = (struct vmstructs_row){wanted[i].type, wanted[i].field, &offsets[i], &addresses[i]};
	(void)vmstructs_read(rows, WANTED);
	for (size_t i = 0; i < WANTED; i++)
		if (offsets[i].known || addresses[i])
			fprintf(capture.file, "field %s %s %u %llx\n", wanted[i].type, wanted[i].field,
				offsets[i].known ? offsets[i].width : 4,
				(unsigned long long)(offsets[i].known ? offsets[i].value : addresses[i]));
	for (size_t i = 0; i < SIZED; i++)
		if (vmstructs_type_bytes(sized[i]))
			fprintf(capture.file, "size %s %zu\n", sized[i], vmstructs_type_bytes(sized[i]));
}

static void write_page(const struct corpus_page *page)
{
	for (size_t at = 0, count; at < CORPUS_PAGE; at += count ? count : 1) {
		for (count = 0; at + count < CORPUS_PAGE && count < IMAGE_LINE_BYTES && page->is_known[at + count];)
			count++;
		if (!count)
			continue;
		fprintf(capture.file, "memory %llx ", (unsigned long long)(page->address + at));
		for (size_t i = 0; i < count; i++)
			fprintf(capture.file, "%02x", page->bytes[at + i]);
		fputc('\n', capture.file);
	}
}

/* Reads the methods of a compilation, and appends the lines about them. */
static void read_methods(const struct nmethod_record *record, FILE *said)
{
	uint64_t seen[METHODS_EACH];
	size_t count = 0, i;
	char text[IMAGE_TEXT];

	for (uint32_t frame = 0; frame < record->load.frame_count && count < METHODS_EACH; frame++) {
		uint64_t key = record->frames[frame].method;

		for (i = 0; i < count && seen[i] != key;)
			i++;
		if (i < count)
			continue;
		seen[count++] = key;
		if (image_say_method(key, text))
			fprintf(said, "%s\n", text);
	}
}

static void read_chosen(const struct chosen *chosen, FILE *said)
{
	struct nmethod_record record;
	char text[IMAGE_TEXT];

	if (!image_say_code(chosen->pc, chosen->id, text) ||
	    nmethods_find(chosen->pc, chosen->id, 0, IMAGE_RECORD_BYTES, &record) != NMETHOD_FOUND)
		return;
	fprintf(said, "%s\n", text);
	read_methods(&record, said);
	nmethods_release(&record);
}

static bool write_image(int version, size_t most)
{
	struct chosen chosen[MAX_CHOSEN];
	size_t count = choose(chosen, most < MAX_CHOSEN ? most : MAX_CHOSEN), bytes;
	char *lines = NULL;
	FILE *said = open_memstream(&lines, &bytes);

	if (!said)
		return false;
	write_fields();
	/* Once more, to note what choosing has read and remembered. */
	capture.is_on = jvmstructs_renew_heaps() && nmethods_open(version);
	(void)jvmstructs_renew_heaps();
	for (size_t i = 0; i < count; i++)
		read_chosen(&chosen[i], said);
	fclose(said);
	for (size_t i = 0; i < capture.memory.pages.len; i++)
		write_page(&capture.memory.pages.items[i]);
	fputs(lines, capture.file);
	free(lines);
	return count && !capture.is_full;
}

int main(int argc, char **argv)
{
	struct image jvm;
	const char *why = "";

	if (argc != 4) {
		fprintf(stderr, "usage: image PID FILE COMPILATIONS\n");
		return 2;
	}
	if (image_open(&jvm, atoi(argv[1]), &why)) {
		fprintf(stderr, "image: %s\n", why);
		return 1;
	}
	capture.file = fopen(argv[2], "w");
	if (!capture.file)
		return 1;
	fprintf(capture.file, "%s\njvm %s %s\nversion %d\n", IMAGE_FIRST_LINE, jvm.name, jvm.release, jvm.java_version);
	if (write_image(jvm.java_version, (size_t)atoi(argv[3])) && !fclose(capture.file))
		return 0;
	fprintf(stderr, "image: no compilation, or the file could not be written\n");
	return 1;
}
