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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/elf_reader.h"
#include "base/io.h"
#include "base/log.h"
#include "sym/demangle.h"
#include "sym/elf_file.h"

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
	struct buf bytes;
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
static int copy_function(const struct elf_reader *reader, const char *module, const char *name,
			 struct machine_code *code)
{
	uint64_t bytes, offset;
	GElf_Ehdr header;

	if (!find_symbol(&code->file, name, &code->start, &bytes) &&
	    !find_nameless(&code->file, module, name, &code->start, &bytes))
		return -ESRCH;
	bytes = bytes < FUNCTION_MAX ? bytes : FUNCTION_MAX;
	if (!gelf_getehdr(reader->elf, &header) || !find_offset(&code->file, code->start, &offset))
		return -ENODATA;
	code->machine = header.e_machine;
	if (!buf_reserve(&code->bytes, bytes))
		return -ENOMEM;
	code->bytes.len = elf_reader_copy(reader, offset, code->bytes.data, bytes);
	return code->bytes.len ? 0 : -ENODATA;
}

static int read_function(const char *path, const char *module, const char *name, struct machine_code *code)
{
	IO_FD(fd) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct elf_reader reader;
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -ENOEXEC;
	if (!err)
		err = elf_reader_open(&reader, fd);
	if (!err) {
		err = elf_file_read(&code->file, fd);
		if (err < 0)
			code->file = (struct elf_file){0};
		else
			err = copy_function(&reader, module, name, code);
		elf_reader_close(&reader);
	}
	return err;
}

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
static int drop_rights(void)
{
	int err = 0;

	if (!geteuid() && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			   setresuid(NOBODY, NOBODY, NOBODY) < 0))
		err = -errno;
	if (!err)
		err = rights_keep(RIGHTS_NONE);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	return err;
}

/* The child: the bytes are its stdin, which objdump opens again by name. Does not return. */
static void run_objdump(const struct machine_code *code, int in, int out)
{
	char vma[48];
	char *words[] = {"objdump", "-D", "-z", "-w", "--no-show-raw-insn", "-b", "binary", "-m",
			 (char *)machine_name(code->machine), vma, "/proc/self/fd/0", NULL};
	char *environment[] = {"LC_ALL=C", NULL};

	snprintf(vma, sizeof(vma), "--adjust-vma=0x%" PRIx64, code->start);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 ||
	    drop_rights() < 0)
		_exit(1);
	limit(RLIMIT_CPU, OBJDUMP_NS / NS_PER_SEC);
	limit(RLIMIT_AS, OBJDUMP_MEMORY);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_CORE, 0);
	execvpe(words[0], words, environment);
	_exit(errno == ENOENT ? EXIT_MISSING : 1);
}

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
static int objdump_code(const struct machine_code *code, int in, struct buf *text)
{
	int pipe_fds[2], status, err;
	pid_t child;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (!child)
		run_objdump(code, in, pipe_fds[1]);
	err = child < 0 ? -errno : 0;
	close(pipe_fds[1]);
	if (!err)
		err = read_text(pipe_fds[0], text);
	close(pipe_fds[0]);
	if (child < 0)
		return err;
	if (err < 0)
		kill(child, SIGKILL);
	(void)child_await(child, &status);
	if (err || (WIFEXITED(status) && !WEXITSTATUS(status)))
		return err;
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MISSING ? -ENOSYS : -EIO;
}

static int disassemble(const struct machine_code *code, struct buf *text)
{
	IO_FD(in) = memfd_create("duet-code", MFD_CLOEXEC);
	int err = in < 0 ? -errno : io_write_all(in, code->bytes.data, code->bytes.len);

	return err ? err : objdump_code(code, in, text);
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

static void read_code(const char *path, struct disassembly_function *function)
{
	struct machine_code code = {.bytes = BUF_NONE};
	BUF(text);
	int err = read_function(path, function->module, function->name, &code);

	if (!err && !machine_name(code.machine))
		err = -ENOTSUP;
	if (!err)
		err = disassemble(&code, &text);
	if (!err)
		err = disassembly_parse(text.data, code.start, &code.file, &function->code);
	if (err < 0)
		report(path, function->name, &code, err);
	elf_file_release(&code.file);
	buf_release(&code.bytes);
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
	const char *path = NULL;

	for (size_t i = 0; i < disassembly->functions.len; i++) {
		function = disassembly->functions.items[i];
		if (!strcmp(function->module, module) && !strcmp(function->name, name))
			return function->code.len ? &function->code : NULL;
	}
	for (size_t i = 0; !path && i < disassembly->files->len; i++)
		if (!strcmp(basename(disassembly->files->items[i]), module))
			path = disassembly->files->items[i];
	if (!path)
		return NULL;
	function = add_function(disassembly, module, name);
	if (!function)
		return NULL;
	read_code(path, function);
	return function->code.len ? &function->code : NULL;
}
