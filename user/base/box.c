/* SPDX-License-Identifier: MIT */
#include "base/box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

#if defined(__x86_64__)
#define BOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define BOX_ARCH AUDIT_ARCH_AARCH64
#endif

#define BOX_FILES 64 /* open files */
#define BOX_FAILED 255 /* exit code: no box at all */

static unsigned int lacks;
static pid_t peeked; /* as in struct box_limits */

/* ---- system calls ---- */

enum test { ANY, EQUALS, HAS_NONE };

/* A call, and what its argument number `arg` has to be for the verdict. */
struct row {
	uint32_t call;
	unsigned int set; /* bits of enum box_calls, one of which has to be wanted; 0: always */
	enum test test;
	uint32_t arg, value; /* the lower 32 bits: all that the kernel looks at in these calls */
};

/* Sets of the table `refused`. */
enum { OF_PROGRAM = 1 << 8, OF_OPENER = 1 << 9 };

/* In the place of `value`: this process, and box_limits.peeked. */
#define SELF UINT32_MAX
#define PEEKED (UINT32_MAX - 1)

/* clang-format off */
#define CALL(name) {.call = SYS_##name}
#define OF(name, wanted) {.call = SYS_##name, .set = wanted}
#define IF(name, is, number, what) {.call = SYS_##name, .test = is, .arg = number, .value = what}

/* What is allowed where nothing else is. What is called most is first. */
static const struct row allowed[] = {
	CALL(read),
	CALL(write),
	CALL(lseek),
	CALL(pread64),
	CALL(pwrite64),
	IF(mmap, HAS_NONE, 2, PROT_EXEC),
	CALL(munmap),
	CALL(mremap),
	CALL(madvise),
	CALL(brk),
	IF(mprotect, HAS_NONE, 2, PROT_EXEC),
	CALL(readv),
	CALL(writev),
	CALL(clock_gettime),
	CALL(getrandom),
	CALL(futex),
	CALL(close),
	CALL(fstat),
	IF(newfstatat, EQUALS, 3, AT_EMPTY_PATH), /* glibc's fstat() */
	IF(fcntl, EQUALS, 1, F_GETFL),
	IF(fcntl, EQUALS, 1, F_GETFD),
	IF(fcntl, EQUALS, 1, F_SETFD),
	IF(fcntl, EQUALS, 1, F_DUPFD_CLOEXEC),
	CALL(sysinfo), /* glibc's qsort() */
	CALL(getpid),
	CALL(gettid),
	CALL(getuid),
	CALL(geteuid),
	CALL(sched_yield),
	CALL(restart_syscall),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	IF(tgkill, EQUALS, 0, SELF), /* for raise() */
	IF(tkill, EQUALS, 0, SELF),
	CALL(exit),
	CALL(exit_group),
	OF(sendmsg, BOX_TALK),
	OF(recvmsg, BOX_TALK),
	OF(sendto, BOX_TALK),
	OF(recvfrom, BOX_TALK),
	OF(ppoll, BOX_TALK),
#ifdef SYS_poll
	OF(poll, BOX_TALK),
#endif
	OF(ftruncate, BOX_OUTPUT),
	{.call = SYS_process_vm_readv, .set = BOX_PEEK, .test = EQUALS, .arg = 0, .value = PEEKED},
	OF(setitimer, BOX_PEEK), /* for alarm() */
#ifdef SYS_alarm
	OF(alarm, BOX_PEEK),
#endif
};

/* What is refused to another program, and to who opens files, where all else is allowed. */
static const struct row refused[] = {
	CALL(socket), CALL(connect), CALL(bind), CALL(kill), CALL(tkill), CALL(rt_sigqueueinfo),
	CALL(rt_tgsigqueueinfo), OF(pidfd_open, OF_PROGRAM), CALL(pidfd_send_signal), CALL(pidfd_getfd),
	OF(process_vm_readv, OF_PROGRAM), OF(execve, OF_OPENER), OF(execveat, OF_OPENER),
	CALL(process_vm_writev), CALL(perf_event_open), CALL(bpf), CALL(userfaultfd), CALL(io_uring_setup),
	CALL(keyctl), CALL(add_key), CALL(request_key), CALL(unshare), CALL(setns), CALL(mount), CALL(umount2),
	CALL(chroot), CALL(pivot_root), CALL(open_by_handle_at), CALL(init_module), CALL(finit_module),
	CALL(kexec_load),
#ifndef __SANITIZE_ADDRESS__
	CALL(ptrace),
#endif
};

/* What the loader never does, where all else is allowed. Its children, which attach to JVMs, mount and use setns(). */
static const struct row never[] = {
	CALL(execve), CALL(execveat), CALL(process_vm_writev), CALL(init_module), CALL(finit_module),
	CALL(delete_module), CALL(kexec_load), CALL(reboot), CALL(swapon), CALL(swapoff), CALL(pivot_root),
	CALL(chroot), CALL(unshare), CALL(settimeofday), CALL(clock_settime), CALL(adjtimex), CALL(clock_adjtime),
	CALL(acct), CALL(quotactl), CALL(keyctl), CALL(add_key), CALL(request_key), CALL(userfaultfd),
	CALL(io_uring_setup), CALL(open_by_handle_at), CALL(sethostname), CALL(setdomainname), CALL(personality),
	CALL(mknodat),
#ifdef SYS_kexec_file_load
	CALL(kexec_file_load),
#endif
#ifdef SYS_iopl
	CALL(iopl), CALL(ioperm), CALL(modify_ldt), CALL(mknod),
#endif
#ifndef __SANITIZE_ADDRESS__
	CALL(ptrace),
#endif
};
/* clang-format on */

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))
#define ROW_STEPS 5
_Static_assert(COUNT(refused) <= COUNT(allowed) && COUNT(never) <= COUNT(allowed),
	       "the room of a program is that of the largest table");

struct program {
	struct sock_filter steps[4 + COUNT(allowed) * ROW_STEPS + 1];
	unsigned short len;
};

static void add(struct program *program, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false)
{
	program->steps[program->len++] = (struct sock_filter)BPF_JUMP(code, value, if_true, if_false);
}

static void add_load(struct program *program, uint32_t at)
{
	add(program, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
}

/* The number of the call is loaded before the row, and behind it. */
static void add_row(struct program *program, const struct row *row, uint32_t verdict)
{
	uint32_t value = row->value == SELF ? (uint32_t)getpid() : row->value == PEEKED ? (uint32_t)peeked : row->value;

	add(program, BPF_JMP | BPF_JEQ | BPF_K, row->call, 0, row->test == ANY ? 1 : ROW_STEPS - 1);
	if (row->test != ANY) {
		/* both architectures are little endian */
		add_load(program, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * row->arg));
		if (row->test == EQUALS)
			add(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
		else
			add(program, BPF_JMP | BPF_JSET | BPF_K, value, 1, 0);
	}
	add(program, BPF_RET | BPF_K, verdict, 0, 0);
	if (row->test != ANY)
		add_load(program, offsetof(struct seccomp_data, nr));
}

/* `calls`: the sets of rows that are wanted; `verdict`: of the rows. */
static bool filter(const struct row *rows, size_t count, unsigned int calls, uint32_t verdict, uint32_t otherwise)
{
	struct program program = {.len = 0};
	struct sock_fprog all = {.filter = program.steps};

	add_load(&program, offsetof(struct seccomp_data, arch));
	add(&program, BPF_JMP | BPF_JEQ | BPF_K, BOX_ARCH, 1, 0);
	add(&program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	add_load(&program, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		if (!rows[i].set || rows[i].set & calls)
			add_row(&program, &rows[i], verdict);
	add(&program, BPF_RET | BPF_K, otherwise, 0, 0);
	all.len = program.len;
	/* before Linux 5.16 a filter makes the whole process slower, unless it has this flag */
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &all) ||
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

static bool filter_program(unsigned int set)
{
	return filter(refused, COUNT(refused), set, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
}

/* AddressSanitizer opens files of /proc, and at the end starts and traces a thread: it is no less than a program. */
static bool filter_all(unsigned int calls)
{
#ifdef __SANITIZE_ADDRESS__
	return calls & BOX_PEEK || filter_program(OF_PROGRAM); /* which refuses to read memory */
#endif
	return filter(allowed, COUNT(allowed), calls, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
}

/* ---- names of files ---- */

#define READING (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/* A ruleset without rules: what it handles is refused. Each version of Landlock handles more. */
static bool forbid_names(uint64_t allowed_rights)
{
	static const uint8_t rights[] = {0, 13, 14, 15, 15, 16}; /* of files, by version */
	struct {
		uint64_t files, network, outside;
	} handled = {0};
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	long ruleset;
	bool is_done;

	if (version <= 0)
		return false;
	handled.files = ((1ull << rights[version < 5 ? version : 5]) - 1) & ~allowed_rights;
	handled.network = version >= 4 ? 3 : 0; /* bind and connect of TCP */
	handled.outside = version >= 6 ? 3 : 0; /* abstract sockets and signals */
	ruleset = syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (ruleset < 0)
		return false;
	is_done = !syscall(SYS_landlock_restrict_self, ruleset, 0);
	close((int)ruleset);
	return is_done;
}

/* ---- limits ---- */

static int set_limit(pid_t process, int resource, uint64_t most)
{
	struct rlimit limit;

	if (prlimit(process, resource, NULL, &limit) < 0)
		return -errno;
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	return prlimit(process, resource, &limit, NULL) < 0 ? -errno : 0;
}

int box_limit(pid_t process, const struct box_limits *limits)
{
	int err = 0;

#ifdef __SANITIZE_ADDRESS__
	return 0; /* it takes many times the memory and the time */
#endif
	if (limits->memory_bytes)
		err = set_limit(process, RLIMIT_DATA, limits->memory_bytes);
	if (!err && limits->cpu_ns)
		err = set_limit(process, RLIMIT_CPU, (limits->cpu_ns + NS_PER_SEC - 1) / NS_PER_SEC);
	return err;
}

/* ---- all of it ---- */

/* Only who has CAP_SETPCAP can do this; the others get nothing from it after no_new_privs. */
static void empty_bounding_set(void)
{
	for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		;
}

static int give_up(uint64_t rights)
{
	int err;

	empty_bounding_set();
	err = rights_keep(rights);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	return err ? err : set_limit(0, RLIMIT_CORE, 0);
}

int box_enter(unsigned int calls, const struct box_limits *limits)
{
	int err = give_up(calls & BOX_PEEK ? RIGHT(CAP_SYS_PTRACE) : RIGHTS_NONE);

	peeked = limits->peeked;
	if (!err)
		err = set_limit(0, RLIMIT_NOFILE, BOX_FILES);
	if (!err)
		err = box_limit(0, limits);
	if (err)
		return err;
#ifdef __SANITIZE_ADDRESS__
	lacks = calls & BOX_PEEK || forbid_names(READING) ? 0 : BOX_LACKS_LANDLOCK;
#else
	lacks = calls & BOX_PEEK || forbid_names(0) ? 0 : BOX_LACKS_LANDLOCK;
#endif
	lacks |= filter_all(calls) ? 0 : BOX_LACKS_SECCOMP;
	return 0;
}

int box_enter_program(void)
{
	int err = give_up(RIGHTS_NONE);

	if (!err)
		lacks = (forbid_names(READING) ? 0 : BOX_LACKS_LANDLOCK) |
			(filter_program(OF_PROGRAM) ? 0 : BOX_LACKS_SECCOMP);
	return err;
}

int box_enter_opener(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	lacks = filter_program(OF_OPENER) ? 0 : BOX_LACKS_SECCOMP;
	return 0;
}

int box_narrow(uint64_t rights)
{
	static bool has_filter; /* they add up */
	int err = rights_narrow(rights);

	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	if (!err && !has_filter)
		has_filter = filter(never, COUNT(never), 0, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
	return err;
}

unsigned int box_lacks(void)
{
	return lacks;
}

int box_try(void)
{
	const struct box_limits none = {0};
	int status, err;
	pid_t child = fork();

	if (!child) /* LeakSanitizer's _exit() looks for leaks, which fails in the box */
		syscall(SYS_exit_group, box_enter(0, &none) ? BOX_FAILED : (int)box_lacks());
	err = child < 0 ? -errno : child_await(child, &status);
	if (err)
		return err;
	return WIFEXITED(status) && WEXITSTATUS(status) != BOX_FAILED ? WEXITSTATUS(status) : -EIO;
}

void box_describe(unsigned int missing, struct buf *out)
{
	buf_add_str(out, "no capabilities, no new privileges");
	if (!(missing & BOX_LACKS_SECCOMP))
		buf_add_str(out, ", seccomp");
	if (!(missing & BOX_LACKS_LANDLOCK))
		buf_add_str(out, ", Landlock");
	if (missing & BOX_LACKS_SECCOMP)
		buf_add_str(out, "; without seccomp, which this kernel or container does not have");
	if (missing & BOX_LACKS_LANDLOCK)
		buf_add_str(out, "; without Landlock, which Linux 5.13 has if the parameter lsm= names it");
}
