/* SPDX-License-Identifier: MIT */
/* The daemon's configuration, which a package or an operator writes. */
#include <stdio.h>

#include "cmd/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = input_file(data, size);
	struct config config;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!config_read(&config, path, "/var/lib/duet", false)) {
		FUZZ_CHECK(config.options.outputs.len && config.options.window_ns && config.options.folder.folder);
		config_release(&config);
	}
	close(fd);
	return 0;
}
