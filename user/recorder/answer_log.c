/* SPDX-License-Identifier: MIT */
#include "recorder/answer_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"

#define COPY_BYTES 16384

static void append_report(int log, int report)
{
	char bytes[COPY_BYTES];
	ssize_t more;

	for (off_t at = 0; (more = pread(report, bytes, sizeof(bytes), at)) > 0; at += more)
		if (io_write_all(log, bytes, (size_t)more) < 0)
			return;
}

void answer_log_write(const char *path, struct recorder_answer *answer, bool with_report)
{
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);

	if (log < 0)
		return;
	(void)io_write_all(log, answer->log.data, answer->log.len);
	if (with_report && answer->report >= 0) {
		append_report(log, answer->report);
		close(answer->report);
		answer->report = -1;
	}
	close(log);
	buf_clear(&answer->log);
}
