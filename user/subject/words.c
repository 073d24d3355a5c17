/* SPDX-License-Identifier: MIT */
#include "subject/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/hsperfdata.h"
#include "base/io.h"
#include "base/map.h"
#include "base/parts.h"
#include "runtime/application.h"
#include "runtime/vm_flags.h"

#define ARGUMENTS_MAX (2u << 20) /* bytes of /proc/PID/cmdline: class paths are long */
#define COMMAND_MAX 4096 /* bytes of a text counter */
#define COUNTER_CUT 1024 /* HotSpot's default of PerfMaxStringConstLength, where it cuts text counters */
#define FLAGS_BYTES (VM_FLAGS_MAX * sizeof(struct vm_flag))

/* ---- the helper ---- */

static int ask_work(const struct helper_task *task, struct helper_answer *answer)
{
	IO_FD(root) = openat(task->fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	BUF(arguments);
	BUF(counters);
	BUF(both);

	(void)io_read_file(task->fd, "cmdline", ARGUMENTS_MAX, &arguments);
	if (root >= 0)
		(void)hsperfdata_read(root, (pid_t)(uint32_t)task->number, (uid_t)(task->number >> 32), &counters);
	parts_add(&both, arguments.data, arguments.len);
	parts_add(&both, counters.data, counters.len);
	answer->fd = both.failed ? -ENOMEM : memfd_create("duet-words", MFD_CLOEXEC);
	if (answer->fd < 0)
		return both.failed ? -ENOMEM : -errno;
	return io_write_all(answer->fd, both.data, both.len);
}

/* ---- the parser ---- */

int words_read(struct words *words, const struct helper_task *task)
{
	BUF(both);
	int err = io_read_again(task->fd, ARGUMENTS_MAX + HSPERFDATA_MAX + COMMAND_MAX, &both);
	struct parts parts = {.at = both.data, .left = both.len, .err = err};

	parts_read_text(&parts, &words->arguments, ARGUMENTS_MAX);
	parts_read_text(&parts, &words->counters, HSPERFDATA_MAX);
	if (parts.err)
		words_release(words);
	return parts.err;
}

void words_release(struct words *words)
{
	buf_release(&words->arguments);
	buf_release(&words->counters);
}

static int counter(const struct words *words, const char *name, char value[COMMAND_MAX])
{
	*value = '\0';
	return hsperfdata_string(words->counters.data, words->counters.len, name, value, COMMAND_MAX);
}

/* The counter is for programs that start the JVM with a launcher of their own, or with options in files. */
static void add_name(const struct words *words, struct buf *out)
{
	char command[COMMAND_MAX];
	BUF(name);

	if (application_from_arguments(words->arguments.data, words->arguments.len, &name) &&
	    !counter(words, "sun.rt.javaCommand", command))
		(void)application_from_command(command, &name);
	parts_add(out, name.data, name.len);
}

/* Adds the options in one counter. Sets *ret_is_cut when HotSpot cut the text. */
static int add_counted(const struct words *words, const char *name, struct vm_flags *flags, bool *ret_is_cut)
{
	char options[COMMAND_MAX];
	int err = counter(words, name, options);
	size_t len;

	if (err < 0)
		return err;
	len = strlen(options);
	if (len >= COUNTER_CUT) {
		const char *last = memrchr(options, ' ', len);

		len = last ? (size_t)(last - options) : 0;
		*ret_is_cut = true;
	}
	return vm_flags_add(flags, options, len, ' ');
}

/* The VM's options: from its counters, or from its arguments if it has no counters. */
static void add_flags(const struct words *words, bool is_young, struct buf *out)
{
	const char *program = application_find(words->arguments.data, words->arguments.len);
	struct vm_flags flags = {0};
	bool is_cut = false;
	BUF(text);
	int err = add_counted(words, "java.rt.vmFlags", &flags, &is_cut); /* options from files */

	if (!err)
		err = add_counted(words, "java.rt.vmArgs", &flags, &is_cut);
	if (program && (is_cut || (err < 0 && !is_young)))
		(void)vm_flags_add(&flags, words->arguments.data, (size_t)(program - words->arguments.data), '\0');
	if (!err || is_cut || !is_young)
		vm_flags_print(&flags, &text);
	parts_add(out, text.data, text.len);
	vm_flags_release(&flags);
}

static void add_text(struct buf *out, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	parts_add(out, text, len < PATH_MAX ? len : PATH_MAX);
}

static void add_spark(const struct words *words, struct buf *out)
{
	struct spark spark;
	uint64_t is_spark;

	spark_from_arguments(words->arguments.data, words->arguments.len, &spark);
	is_spark = spark.is_own;
	add_text(out, spark.name);
	add_text(out, spark.properties);
	add_text(out, spark.id);
	parts_add(out, &is_spark, sizeof(is_spark));
}

static int about_work(const struct helper_task *task, struct helper_answer *answer)
{
	char version[COMMAND_MAX];
	struct words words;
	int err = words_read(&words, task);

	if (err)
		return err;
	add_name(&words, &answer->text);
	add_text(&answer->text, words.arguments.data[0] == '/' ? words.arguments.data : "");
	(void)counter(&words, "java.property.java.version", version);
	add_text(&answer->text, version);
	add_flags(&words, task->number, &answer->text);
	add_spark(&words, &answer->text);
	words_release(&words);
	return 0;
}

/* ---- the loader ---- */

int words_parse(const struct charge *charge, const struct process *process,
		int (*work)(const struct helper_task *task, struct helper_answer *answer), uint64_t number,
		struct helper_answer *answer)
{
	const uint64_t writer[2] = {charge->payer.key, process->uid};
	IO_FD(proc_fd) = proc_open(charge, "");
	const struct helper_task task = {
		ask_work, charge, proc_fd, "", (uint64_t)process->uid << 32 | (uint32_t)process->ns_pid, 0};
	int err;

	if (proc_fd < 0) {
		helper_answer_init(answer);
		return proc_fd;
	}
	err = helper_run(&task, answer);
	if (!err) {
		IO_FD(bytes) = answer->fd;

		answer->fd = -1;
		helper_answer_release(answer);
		err = parser_run(
			&(struct helper_task){work, charge, bytes, "", number, hash_bytes(writer, sizeof(writer), 0)},
			answer);
	}
	return err;
}

int about_read(struct about *ret, const struct charge *charge, const struct process *process, bool is_young)
{
	struct helper_answer answer;
	int err = words_parse(charge, process, about_work, is_young, &answer);
	struct parts parts = {.at = answer.text.data, .left = answer.text.len, .err = err};

	parts_read_text(&parts, &ret->name, APPLICATION_MAX + sizeof(APPLICATION_PREFIX));
	parts_read_text(&parts, &ret->executed_as, PATH_MAX);
	parts_read_text(&parts, &ret->version, COMMAND_MAX);
	parts_read_text(&parts, &ret->flags, FLAGS_BYTES);
	parts_read_text(&parts, &ret->spark_name, PATH_MAX);
	parts_read_text(&parts, &ret->spark_properties, PATH_MAX);
	parts_read_text(&parts, &ret->spark_id, PATH_MAX);
	parts_read(&parts, &ret->is_spark, sizeof(ret->is_spark));
	helper_answer_release(&answer);
	if (ret->name.len && strncmp(ret->name.data, APPLICATION_PREFIX, strlen(APPLICATION_PREFIX)) != 0)
		buf_clear(&ret->name);
	return parts.err;
}

void about_release(struct about *about)
{
	struct buf *const texts[] = {&about->name,	 &about->executed_as,	   &about->version, &about->flags,
				     &about->spark_name, &about->spark_properties, &about->spark_id};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		buf_release(texts[i]);
}
