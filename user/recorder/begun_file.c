/* SPDX-License-Identifier: MIT */
#include "recorder/begun_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "recorder/arguments.h"
#include "recorder/recording.h"

#define CHUNK_SLACK_NS (NS_PER_SEC / 2) /* a sample is in the recording by then */
#define CHUNK_LEAST_NS (5 * NS_PER_SEC)
/* Numbers of a chunk's rows. Readers take a row for that of the chunk before which has the same number. */
#define CHUNK_ROWS (1u << 24)
#define CHUNKS_ROWS (64 * CHUNK_ROWS)
#define JFR_GROWTH 4 /* a JFR file is about so many times as long as the recording */

void begun_path(const struct profiling *profiling, const char *path, struct buf *ret)
{
	char link[32], folder[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/cwd", profiling->pid);
	length = *path == '/' ? -1 : readlink(link, folder, sizeof(folder));
	if (length > 0)
		buf_printf(ret, "%.*s/", (int)length, folder);
	if (report_file_is_ours(profiling->pid))
		report_file_path(profiling->pid, path, ret);
	else
		buf_add_str(ret, path);
}

static void whole_name(const struct profiling *profiling, const char *name, time_t when, struct buf *ret)
{
	BUF(path);

	begun_path(profiling, name, &path);
	report_file_name(path.data, profiling->pid, profiling->number, when, ret);
}

int begun_open(const struct profiling *profiling, const char *name, struct report_file *ret, struct buf *why)
{
	BUF(path);

	whole_name(profiling, name, time(NULL), &path);
	return report_file_open(ret, profiling->pid, profiling->start_ticks, path.data,
				profiling->is_private ? REPORT_FILE_PRIVATE : 0, why);
}

/* Its place may be full, or gone: writes the report to the first other folder that works, which it names in `why`. */
static void rescue(const struct profiling *profiling, const char *name, int report, struct buf *why)
{
	const char *folder;
	int err = -ENOENT;

	for (size_t i = 0; err && (folder = io_other_folder(i)) != NULL; i++) {
		struct report_file file;
		BUF(other);
		BUF(path);

		buf_printf(&other, "%s/duet-%d-%s", folder, profiling->pid, basename(name));
		err = begun_open(profiling, other.data, &file, &path);
		err = err ? err : report_file_write(&file, report, &path);
		report_file_discard(&file);
		if (!err)
			buf_printf(why, "; the report was written to %s instead", other.data);
	}
}

int begun_report(struct profiling *profiling, const struct asprof_arguments *how, struct report_file *file,
		 struct buf *why)
{
	IO_FD(report) = recording_report(&profiling->recording, how, why);
	int err = report < 0 ? report : report_file_write(file, report, why);

	if (err && report >= 0)
		rescue(profiling, how->file, report, why);
	return err;
}

bool begun_has_file(const struct profiling *profiling)
{
	return profiling->begun_file.len && profiling->begun.writer;
}

bool begun_is_jfr(const struct profiling *profiling)
{
	return begun_has_file(profiling) && !strcmp(profiling->begun.writer->name, "jfr");
}

bool begun_takes(const struct profiling *profiling, const struct asprof_arguments *arguments)
{
	BUF(path);

	if (!begun_is_jfr(profiling) || !profiling->jfr_path.len || arguments->writer != profiling->begun.writer)
		return false;
	if (arguments->file)
		whole_name(profiling, arguments->file, time(NULL), &path);
	return !arguments->file || !strcmp(path.data, profiling->jfr_path.data) ||
	       !strcmp(arguments->file, profiling->begun.file);
}

/* Its name has the time of the begin. */
int begun_create(struct profiling *profiling, bool keeps, struct buf *why)
{
	const struct recording *recording = &profiling->recording;

	io_close(&profiling->jfr);
	buf_clear(&profiling->jfr_path);
	if (!begun_is_jfr(profiling))
		return 0;
	profiling->chunk_ns = recording->window_ns ? recording->window_ns : recording->part_ns;
	profiling->chunk_at = recording_bytes(recording);
	profiling->begun.style.jfr.first_row = keeps ? profiling->chunk_row : 0;
	whole_name(profiling, profiling->begun.file, (time_t)(profiling->chunk_ns / NS_PER_SEC), &profiling->jfr_path);
	return report_file_create(&profiling->jfr, profiling->pid, profiling->start_ticks, profiling->jfr_path.data,
				  profiling->is_private, keeps, why);
}

/* Appends the report. What cannot be written whole is cut off again, so that the chunks before stay readable. */
static int append(int jfr, int report, struct buf *why)
{
	off_t end = lseek(jfr, 0, SEEK_END);
	int err = io_copy(report, 0, io_bytes(report), jfr);

	if (err && end >= 0 && ftruncate(jfr, end) < 0)
		log_debug("the file cannot be cut: %s", strerror(errno));
	if (err)
		buf_printf(why, "Could not write output file: %s%s", strerror(-err), io_advice(err));
	return err;
}

/* A file with the JVM's own chunks, or one that is not ours to keep open, is written anew as a whole. */
static int write_jfr(struct profiling *profiling, uint64_t until_ns, bool is_end, struct buf *why)
{
	bool is_whole = profiling->jfr < 0 || profiling->begun.jfrsync;
	uint32_t *row = &profiling->begun.style.jfr.first_row;
	IO_FD(report) = recording_report_between(&profiling->recording, &profiling->begun,
						 is_whole ? 0 : profiling->chunk_ns, until_ns, why);
	struct report_file file;
	int err = report < 0 ? report : 0;

	if (err)
		return err;
	if (profiling->jfr < 0) {
		(void)report_file_open(&file, profiling->pid, profiling->start_ticks, profiling->jfr_path.data,
				       profiling->is_private ? REPORT_FILE_PRIVATE : 0, why);
		err = report_file_write(&file, report, why);
	} else if (is_whole && ftruncate(profiling->jfr, 0) < 0) {
		err = buf_explain(why, -errno, "Could not write output file: %s", strerror(errno));
	} else {
		err = append(profiling->jfr, report, why);
	}
	if (err && is_end)
		rescue(profiling, profiling->jfr_path.data, report, why);
	if (err)
		return err;
	*row = (*row + CHUNK_ROWS) % CHUNKS_ROWS;
	profiling->chunk_row = *row;
	profiling->chunk_ns = until_ns ? until_ns : clock_realtime_ns();
	profiling->chunk_at = recording_bytes(&profiling->recording);
	return 0;
}

int begun_write(struct profiling *profiling, uint64_t until_ns, struct buf *why)
{
	struct report_file file;
	int report, err;

	if (begun_is_jfr(profiling))
		return write_jfr(profiling, until_ns, true, why);
	(void)begun_open(profiling, profiling->begun.file, &file, why);
	report = recording_report_between(&profiling->recording, &profiling->begun, 0, until_ns, why);
	err = report < 0 ? report : report_file_write(&file, report, why);
	if (err && report >= 0)
		rescue(profiling, profiling->begun.file, report, why);
	io_close(&report);
	report_file_discard(&file);
	return err;
}

void begun_write_unasked(struct profiling *profiling, uint64_t until_ns, struct buf *log)
{
	BUF(why);

	if (!begun_has_file(profiling))
		return;
	if (begun_write(profiling, until_ns, &why))
		buf_printf(log, "[ERROR] %s\n", why.data);
	profiling->number++;
}

void begun_step(struct profiling *profiling)
{
	uint64_t now_ns = clock_realtime_ns(), age_ns = now_ns - profiling->chunk_ns;
	struct writer_options *style = &profiling->begun.style;
	BUF(why);

	if (!profiling_is_running(profiling) || profiling->jfr < 0 || profiling->begun.jfrsync ||
	    age_ns < CHUNK_LEAST_NS + CHUNK_SLACK_NS)
		return;
	if (age_ns - CHUNK_SLACK_NS < style->chunk_ns &&
	    (recording_bytes(&profiling->recording) - profiling->chunk_at) * JFR_GROWTH < style->chunk_bytes)
		return;
	if (!write_jfr(profiling, now_ns - CHUNK_SLACK_NS, false, &why))
		return;
	log_error("process %d: %s", profiling->pid, why.data);
	style->chunk_ns = style->chunk_bytes = UINT64_MAX; /* all the rest is written at the end */
}
