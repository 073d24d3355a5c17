/* SPDX-License-Identifier: MIT */
#include "sym/elf_file.h"

#include <errno.h>
#include <lzma.h>

/* A few compressed kilobytes may expand to any number of bytes, and require a dictionary of any size. */
#define MAX_BYTES (32u << 20) /* half a million functions */
#define MAX_DECODER_BYTES (80u << 20) /* enough for xz -9, whose dictionary has 64 MB */

/* Returns 0, -EFBIG, -EBADMSG or -ENOMEM. */
static int decompress(const Elf_Data *data, struct buf *out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret ret = lzma_stream_decoder(&stream, MAX_DECODER_BYTES, 0);
	uint8_t chunk[16384];

	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	while (ret == LZMA_OK && out->len <= MAX_BYTES && !out->failed) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		ret = lzma_code(&stream, LZMA_FINISH);
		buf_add(out, chunk, sizeof(chunk) - stream.avail_out);
	}
	lzma_end(&stream);
	if (ret == LZMA_MEM_ERROR || out->failed)
		return -ENOMEM;
	if (ret == LZMA_MEMLIMIT_ERROR || out->len > MAX_BYTES)
		return -EFBIG;
	return ret == LZMA_STREAM_END ? 0 : -EBADMSG;
}

static int add_symbols(struct elf_file *file, struct buf *image)
{
	struct elf_file mini;
	int err = elf_file_read_memory(&mini, image->data, image->len);

	if (err)
		return err;
	err = mini.has_symtab ? symbol_table_add_all(&file->symbols, &mini.symbols) : -ENODATA;
	symbol_table_sort(&file->symbols, SYMBOL_USUAL);
	file->has_symtab = file->is_mini = !err;
	elf_file_release(&mini);
	return err;
}

void mini_debug_apply(struct elf_file *file, int fd)
{
	BUF(image);
	GElf_Shdr shdr;
	struct elf_reader reader;
	Elf_Scn *section;
	Elf_Data *data;
	int err = -ENODATA;

	if (elf_reader_open(&reader, fd) < 0)
		return;
	section = elf_reader_find(&reader, ".gnu_debugdata", &shdr);
	data = section ? elf_reader_section(&reader, section, &shdr) : NULL;
	if (data && !elf_reader_take(&reader, MAX_DECODER_BYTES + 2 * MAX_BYTES)) /* `image` grows by doubling */
		err = -EFBIG;
	else if (data)
		err = decompress(data, &image);
	if (!err)
		(void)add_symbols(file, &image); /* without them, the file has its other symbols */
	elf_reader_close(&reader);
}
