/* SPDX-License-Identifier: MIT */
/* A JVM's command line, environment and option files, which decide whether it may be attached to. */
#include "attach/vm_options.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *text = input_text(&input, size);
	struct vm_options options = {0};
	struct buf files;

	buf_init(&files);
	/* As io_read_file() leaves it: any bytes, then a NUL. */
	vm_options_parse_command(&options, text, size, &files);
	vm_options_parse_text(&options, text, &files);
	vm_options_parse_text(&options, text, NULL);
	buf_release(&files);
	free(text);
	return 0;
}
