/* SPDX-License-Identifier: MIT */
#include "cmd/disassembly.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/box.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/elf_reader.h"
#include "base/io.h"
#include "base/log.h"
#include "cmd/work.h"
#include "sym/demangle.h"

#define FUNCTION_MAX (1u << 20) /* bytes of code */
#define NAMELESS_MAX 4096 /* bytes shown of a function whose end is not known */
#define TEXT_MAX (64u << 20) /* bytes of objdump's text */
#define OBJDUMP_NS (20 * NS_PER_SEC)
#define OBJDUMP_MEMORY (1ull << 30) /* bytes of address space */
#define NOBODY 65534
#define EXIT_MISSING 127 /* as a shell's for a program that is not there */

void disassembly_release(struct disassembly *disassembly)
{
	for (size_t i = 0; i < disassembly->functions.len; i++) {
		struct disassembly_function *function = disassembly->functions.items[i];

		free(function->module);
		free(function->name);
		buf_release(&function->code.text);
		vec_release(&function->code);
		free(function);
	}
	vec_release(&disassembly->functions);
}

/* ---- the bytes of a function ---- */

struct machine_code {
	struct elf_file file;
	uint64_t start; /* virtual address */
	uint32_t machine; /* e_machine */
	uint64_t offset, bytes; /* in the file */
};

/* The name in a recording is without parameters, see sym/demangle.h. */
static bool is_name(const char *mangled, const char *name, struct buf *readable)
{
	if (!strcmp(mangled, name))
		return true;
	if (mangled[0] != '_')
		return false;
	buf_clear(readable);
	return demangle(mangled, readable) && !strcmp(readable->data, name);
}

/* Finds the first function of this name. Returns false if there is none. */
static bool find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_start, uint64_t *ret_bytes)
{
	BUF(readable);
	bool is_found = false;

	for (size_t i = 0; !is_found && i < file->symbols.rows.len; i++) {
		const struct symbol_row *row = &file->symbols.rows.items[i];

		is_found = is_name(file->symbols.text.data + row->name, name, &readable);
		*ret_start = row->start;
		*ret_bytes = row->size;
	}
	return is_found;
}

/* A function without a name is called module+0xaddress. */
static bool find_nameless(const struct elf_file *file, const char *module, const char *name, uint64_t *ret_start,
			  uint64_t *ret_bytes)
{
	size_t len = strlen(module);
	uint64_t next;
	char *end;

	if (strncmp(name, module, len) || strncmp(name + len, "+0x", 3))
		return false;
	*ret_start = strtoull(name + len + 1, &end, 16);
	next = function_starts_next(&file->function_starts, *ret_start);
	*ret_bytes = next - *ret_start < FUNCTION_MAX ? next - *ret_start : NAMELESS_MAX;
	return !*end;
}

static bool find_offset(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_offset)
{
	for (size_t i = 0; i < file->segments.len; i++) {
		const struct elf_segment *segment = &file->segments.items[i];

		if (vaddr < segment->vaddr || vaddr - segment->vaddr >= segment->size)
			continue;
		*ret_offset = segment->offset + (vaddr - segment->vaddr);
		return true;
	}
	return false;
}

/* Returns 0 or -errno: -ESRCH if the file has no such function, -ENODATA if it has no code for it. */
static int find_function(const struct elf_reader *reader, const char *module, const char *name,
			 struct machine_code *code)
{
	GElf_Ehdr header;

	if (!find_symbol(&code->file, name, &code->start, &code->bytes) &&
	    !find_nameless(&code->file, module, name, &code->start, &code->bytes))
		return -ESRCH;
	if (!gelf_getehdr(reader->elf, &header) || !find_offset(&code->file, code->start, &code->offset) ||
	    !code->bytes)
		return -ENODATA;
	code->bytes = code->bytes < FUNCTION_MAX ? code->bytes : FUNCTION_MAX;
	code->machine = header.e_machine;
	return 0;
}

static int read_function(int fd, const char *module, const char *name, struct machine_code *code)
{
	struct elf_reader reader;
	int err = elf_reader_open(&reader, fd);

	if (err < 0)
		return err;
	err = elf_file_read(&code->file, fd);
	if (err < 0)
		code->file = (struct elf_file){0};
	else
		err = find_function(&reader, module, name, code);
	elf_reader_close(&reader);
	return err;
}

/* ---- objdump, which the parent starts ---- */

static const char *machine_name(uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return "i386:x86-64";
	case EM_386:
		return "i386";
	case EM_AARCH64:
		return "aarch64";
	default:
		return NULL;
	}
}

static void limit(int resource, rlim_t most)
{
	const struct rlimit both = {most, most};

	(void)setrlimit(resource, &both);
}

/* Root's child becomes nobody. Returns 0 or -errno. */
static int change_user(void)
{
	return !geteuid() && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			      setresuid(NOBODY, NOBODY, NOBODY) < 0)
		       ? -errno
		       : 0;
}

/* The child: the bytes are its stdin, which objdump opens again by name. Does not return. */
static void run_objdump(const char *machine, uint64_t start, int in, int out, pid_t parent)
{
	char vma[48];
	char *words[] = {
		"objdump",	   "-D", "-z", "-w", "--no-show-raw-insn", "-b", "binary", "-m", (char *)machine, vma,
		"/proc/self/fd/0", NULL};
	char *environment[] = {"LC_ALL=C", NULL};

	snprintf(vma, sizeof(vma), "--adjust-vma=0x%" PRIx64, start);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 ||
	    change_user() < 0 || box_enter_program() < 0)
		_exit(1);
	child_end_with(parent, SIGKILL);
	limit(RLIMIT_CPU, OBJDUMP_NS / NS_PER_SEC);
	limit(RLIMIT_AS, OBJDUMP_MEMORY);
	limit(RLIMIT_FSIZE, 0);
	execvpe(words[0], words, environment);
	_exit(errno == ENOENT ? EXIT_MISSING : 1);
}

static pid_t objdump; /* of the parent; 0: none runs */

/* Returns a descriptor of its text, or -errno. */
static int start_objdump(const char *machine, uint64_t start, int in)
{
	int ends[2], err = 0;
	pid_t parent = getpid();

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	objdump = fork();
	if (!objdump)
		run_objdump(machine, start, in, ends[1], parent);
	if (objdump < 0) {
		err = -errno;
		objdump = 0;
		io_close(&ends[0]);
	}
	close(ends[1]);
	return err ? err : ends[0];
}

static int open_code(const struct work *work, uint32_t number)
{
	struct stat st;
	int fd;

	if (!work->codes || number >= work->codes->len)
		return -EPERM;
	fd = open(work->codes->items[number], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOEXEC;
}

int disassembly_answer_code(const struct work *work, const struct work_question *question)
{
	return open_code(work, question->number);
}

/* Of the file of this number: the start, the offset and number of bytes, and the machine. */
int disassembly_answer(const struct work *work, const struct work_question *question)
{
	const char *machine = machine_name((uint32_t)question->values[3]);
	uint64_t left = question->values[2] < FUNCTION_MAX ? question->values[2] : FUNCTION_MAX;
	off_t offset = (off_t)question->values[1];
	IO_FD(file) = open_code(work, question->number);
	IO_FD(in) = memfd_create("duet-code", MFD_CLOEXEC);
	ssize_t len = 1;

	if (file < 0 || in < 0 || !machine || objdump)
		return file < 0 ? file : -EINVAL;
	while (left && len > 0) {
		len = sendfile(in, file, &offset, left);
		left -= len > 0 ? (uint64_t)len : 0;
	}
	return len < 0 ? -errno : start_objdump(machine, question->values[0], in);
}

/* `number`: the text was not read to its end. */
int disassembly_answer_end(const struct work *work, const struct work_question *question)
{
	int status = 0;

	if (objdump && question->number)
		kill(objdump, SIGKILL);
	if (objdump)
		(void)child_await(objdump, &status);
	objdump = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MISSING ? -ENOSYS : -EIO;
}

/* ---- its text ---- */

/* Returns 0 at the end of the text, or -errno: -ETIME when it takes too long. */
static int read_text(int fd, struct buf *text)
{
	uint64_t until_ns = clock_monotonic_ns() + OBJDUMP_NS, now_ns;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	ssize_t got = 1;

	while (got > 0 && text->len < TEXT_MAX) {
		now_ns = clock_monotonic_ns();
		if (now_ns >= until_ns)
			return -ETIME;
		if (poll(&ready, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1) <= 0)
			continue;
		if (!buf_reserve(text, 65536))
			return -ENOMEM;
		got = read(fd, text->data + text->len, 65536);
		if (got > 0)
			text->len += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
	}
	text->data[text->len] = '\0';
	return got < 0 ? -errno : got ? -EFBIG : 0;
}

/* Returns 0, -ENOSYS if there is no objdump, or another -errno. */
static int disassemble(const struct machine_code *code, uint32_t number, struct buf *text)
{
	struct work_question question = work_question(WORK_DISASSEMBLY, number),
			     end = work_question(WORK_DISASSEMBLY_END, 0);
	const uint64_t values[] = {code->start, code->offset, code->bytes, code->machine};
	int fd, err, code_err;

	memcpy(question.values, values, sizeof(values));
	fd = work_ask(&question);
	if (fd < 0)
		return fd;
	err = read_text(fd, text);
	close(fd);
	end.number = err < 0;
	code_err = work_ask(&end);
	return err ? err : code_err;
}

/* Appends " <name+0x1>" for a line that ends with an address in a function, as jumps and calls do. */
static void add_target(const struct elf_file *file, const char *line, struct buf *text)
{
	const char *token = strrchr(line, ' '), *tab = strrchr(line, '\t'), *comma = strrchr(line, ','), *name;
	uint64_t address, start;
	char *end;

	token = tab > token ? tab : token;
	token = comma > token ? comma : token;
	if (!token || strncmp(token + 1, "0x", 2))
		return;
	address = strtoull(token + 1, &end, 16);
	name = *end ? NULL : elf_file_name(file, address, &start);
	if (!name)
		return;
	buf_add_str(text, " <");
	if (name[0] != '_' || !demangle(name, text))
		buf_add_str(text, name);
	if (address > start)
		buf_printf(text, "+0x%" PRIx64, address - start);
	buf_add_char(text, '>');
}

static int add_line(const struct elf_file *file, char *line, uint64_t start, struct code_text *ret)
{
	struct code_line row = {.text_at = ret->text.len};
	char *end;
	uint64_t address = strtoull(line, &end, 16);

	if (end == line || *end != ':' || address < start || address - start >= FUNCTION_MAX)
		return 0;
	row.offset = (uint32_t)(address - start);
	if (ret->len && ret->items[ret->len - 1].offset >= row.offset)
		return 0;
	end += 1 + strspn(end + 1, "\t ");
	buf_add_str(&ret->text, end);
	if (file)
		add_target(file, end, &ret->text);
	buf_add(&ret->text, "", 1);
	return ret->text.failed ? -ENOMEM : vec_push(ret, row);
}

int disassembly_parse(char *text, uint64_t start, const struct elf_file *file, struct code_text *ret)
{
	int err = 0;

	for (char *line = text, *next; !err && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		err = add_line(file, line, start, ret);
	}
	return err;
}

static void report(const char *path, const char *name, const struct machine_code *code, int err)
{
	if (err == -ESRCH)
		log_warn("%s has no function %s: no instructions are shown", path, name);
	else if (err == -ENODATA)
		log_warn("%s has no code of %s, as a file of debug symbols: no instructions are shown", path, name);
	else if (err == -ENOTSUP)
		log_warn("%s is for machine %u of ELF, which duet does not disassemble", path, code->machine);
	else if (err == -ENOSYS)
		log_warn("objdump is not there: no instructions are shown; Debian's package binutils has it");
	else
		log_warn("%s: the instructions of %s could not be read: %s", path, name, strerror(-err));
}

static void read_code(const char *path, uint32_t number, struct disassembly_function *function)
{
	const struct work_question question = work_question(WORK_CODE, number);
	struct machine_code code = {0};
	BUF(text);
	IO_FD(fd) = work_ask(&question);
	int err = fd < 0 ? fd : 0;

	if (!err)
		err = read_function(fd, function->module, function->name, &code);
	if (!err && !machine_name(code.machine))
		err = -ENOTSUP;
	if (!err)
		err = disassemble(&code, number, &text);
	if (!err)
		err = disassembly_parse(text.data, code.start, &code.file, &function->code);
	if (err < 0)
		report(path, function->name, &code, err);
	elf_file_release(&code.file);
}

static struct disassembly_function *add_function(struct disassembly *disassembly, const char *module, const char *name)
{
	struct disassembly_function *function = calloc(1, sizeof(*function));

	if (!function || vec_push(&disassembly->functions, function) < 0) {
		free(function);
		return NULL;
	}
	buf_init(&function->code.text);
	function->module = strdup(module);
	function->name = strdup(name);
	return function->module && function->name ? function : NULL;
}

const struct code_text *disassembly_find(void *context, const char *module, const char *name)
{
	struct disassembly *disassembly = context;
	struct disassembly_function *function;
	uint32_t file = 0;

	for (size_t i = 0; i < disassembly->functions.len; i++) {
		function = disassembly->functions.items[i];
		if (!strcmp(function->module, module) && !strcmp(function->name, name))
			return function->code.len ? &function->code : NULL;
	}
	while (file < disassembly->files->len && strcmp(basename(disassembly->files->items[file]), module) != 0)
		file++;
	if (file == disassembly->files->len)
		return NULL;
	function = add_function(disassembly, module, name);
	if (!function)
		return NULL;
	read_code(disassembly->files->items[file], file, function);
	return function->code.len ? &function->code : NULL;
}
