/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <duet_agent.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/children.h"
#include "attach/hotspot.h"
#include "attach/place.h"
#include "attach/vm_options.h"
#include "base/clock.h"
#include "base/root.h"
#include "jvms/agents.h"
#include "proc/process.h"

/* ---- replies ---- */

static const struct attach_target somebody = {.pid = 123, .ns_pid = 123};

static int judge(const char *text, char *why, size_t size)
{
	struct visit visit = {.target = &somebody};
	struct hotspot_reply reply;
	int err = hotspot_parse_reply(text, strlen(text), &reply);

	if (!err)
		err = hotspot_judge(&visit, &reply);
	strncpy(why, visit.why, size);
	return err;
}

static void assert_reply(const char *text, int error, const char *words)
{
	char why[sizeof(((struct visit *)0)->why)];

	assert_int_equal(judge(text, why, sizeof(why)), error);
	if (!strstr(why, words))
		fail_msg("\"%s\" does not say \"%s\"", why, words);
}

static void test_reply_success(void **state)
{
	assert_reply("0\n0\n", 0, ""); /* JDK 8 */
	assert_reply("0\nreturn code: 0\n", 0, ""); /* 9 and later */
	assert_reply("0\nreturn code: 0", 0, "");
}

static void test_reply_agent_code(void **state)
{
	assert_reply("0\n200\n", -EBUSY, "another duet is profiling JVM 123");
	assert_reply("0\nreturn code: 200\n", -EBUSY, "another duet");
	assert_reply("0\nreturn code: 201\n", -EPROTO, "another duet version");
	assert_reply("0\nreturn code: 202\n", -EBUSY, "JVMTI capability");
	assert_reply("0\nreturn code: 203\n", -EMFILE, "control socket");
	assert_reply("0\nreturn code: 204\n", -EAGAIN, "thread limit");
	assert_reply("0\nreturn code: -1\n", -EPROTO, "code -1");
}

static void test_reply_not_loaded(void **state)
{
	assert_reply("-1\n", -ENOEXEC, "status -1"); /* JDK 8 */
	assert_reply("0\n/tmp/x/libduet.so was not loaded.\nELF class\n", -ENOEXEC, "libduet.so was not loaded.");
	assert_reply("101\n", -ENOEXEC, "status 101");
	assert_reply(
		"-1\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.",
		-EPERM, "-XX:-EnableDynamicAgentLoading"); /* 9 to 20 */
	assert_reply(
		"0\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.\n",
		-EPERM, "duet record -- java"); /* 21 and later */
	assert_reply("0\nreturn code: 5000000000\n", -ENOEXEC, "5000000000");
}

static void test_reply_garbage(void **state)
{
	static const char *const garbage[] = {"",     "0",  "\n", "x\n0\n", "0 0\n", "99999999999999999999\n0\n",
					      "0x\n", "-\n"};
	struct hotspot_reply untouched = {.status = 77}, reply = untouched;
	char longest[HOTSPOT_REPLY_MAX];

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		assert_int_equal(hotspot_parse_reply(garbage[i], strlen(garbage[i]), &reply), -EBADMSG);
	assert_int_equal(hotspot_parse_reply("0\n\0000\n", 5, &reply), -EBADMSG);
	memset(longest, '0', sizeof(longest));
	assert_int_equal(hotspot_parse_reply(longest, sizeof(longest), &reply), -EBADMSG);
	assert_memory_equal(&reply, &untouched, sizeof(reply));
	longest[1] = '\n';
	assert_int_equal(hotspot_parse_reply(longest, sizeof(longest) - 1, &reply), 0);
	assert_true(reply.attached);
}

/* ---- options ---- */

#define COMMAND(options, words) vm_options_parse_command(options, words, sizeof(words), NULL)

static void test_options_command(void **state)
{
	struct vm_options options = {0};

	COMMAND(&options, "java\0-cp\0-XX:+DisableAttachMechanism\0Main\0-Xrs");
	assert_false(options.attach_disabled);
	assert_false(options.reduced_signals);
	COMMAND(&options, "java\0-jar\0x.jar\0-XX:+DisableAttachMechanism");
	assert_false(options.attach_disabled);
	COMMAND(&options, "java\0-Xmx1g\0-XX:+DisableAttachMechanism\0-Xrs\0Main");
	assert_true(options.attach_disabled);
	assert_true(options.reduced_signals);
	COMMAND(&options, "java\0-XX:-DisableAttachMechanism\0-XX:-ReduceSignalUsage\0Main");
	assert_false(options.attach_disabled);
	assert_false(options.reduced_signals);
}

/* A JVM counts as one that prints a warning unless it is known not to. */
static void test_options_warning(void **state)
{
	struct vm_options options = {0};

	assert_true(vm_options_warn_of_agents(&options));
	options.jdk = 20;
	assert_false(vm_options_warn_of_agents(&options));
	options.jdk = 21;
	assert_true(vm_options_warn_of_agents(&options));
	COMMAND(&options, "java\0-XX:+EnableDynamicAgentLoading\0Main");
	assert_false(vm_options_warn_of_agents(&options));
}

static void test_options_hostile_command(void **state)
{
	struct vm_options options = {0};

	vm_options_parse_command(&options, "", 0, NULL);
	vm_options_parse_command(&options, "\0\0\0\0", 4, NULL);
	vm_options_parse_command(&options, "java\0-Xrs", 9, NULL); /* cut off: the last word has no end */
	assert_false(options.reduced_signals);
}

static void test_options_text(void **state)
{
	struct vm_options options = {0};
	struct buf files;

	buf_init(&files);
	vm_options_parse_text(&options, " -Da='x -Xrs y' \"-XX:+DisableAttachMechanism\" @more -XX:Flags=f", &files);
	assert_true(options.attach_disabled);
	assert_false(options.reduced_signals);
	assert_string_equal(files.data, "more\nf\n");
	vm_options_parse_text(&options, "-DisableAttachMechanism\n+ReduceSignalUsage\n", NULL); /* a -XX:Flags= file */
	assert_false(options.attach_disabled);
	assert_true(options.reduced_signals);
	buf_release(&files);
}

/* ---- traps in the target's file system ---- */

static char folder[] = "/tmp/duet-attach-XXXXXX";
static int root = -1;

static int enter_folder(void **state)
{
	if (!mkdtemp(folder) || chdir(folder) < 0)
		return -1;
	root = open(folder, O_PATH | O_DIRECTORY);
	return mkdir("real", 0755) | symlink("/real", "absolute") | symlink("../../../../etc", "outside") |
	       symlink("real", "relative") | mkfifo("fifo", 0600);
}

static int leave_folder(void **state)
{
	static const char *const names[] = {"absolute", "outside", "relative", "fifo", "file"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	close(root);
	return rmdir("real") | chdir("/") | rmdir(folder);
}

static void assert_opens(const char *path, bool follow, bool opens)
{
	int fd = root_open(root, path, O_RDONLY | O_DIRECTORY, follow);

	if (opens != (fd >= 0))
		fail_msg("%s: %d", path, fd);
	if (fd >= 0)
		close(fd);
}

static void test_root_open(void **state)
{
	assert_opens("/real", false, true);
	assert_opens("//real/", false, true);
	assert_opens("relative", false, false);
	assert_opens("absolute", false, false);
	assert_opens("absolute", true, true); /* inside root, not the host's /real */
	assert_opens("outside", true, false);
	assert_opens("/etc", true, false);
}

/* From here on openat2 answers like a kernel before 5.6. */
static void forget_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void test_root_open_walk(void **state)
{
	int status;

	if (fork() == 0) {
		forget_openat2();
		assert_opens("//real/", false, true);
		assert_opens("relative", true, false);
		assert_opens("absolute", true, false);
		assert_opens("outside", true, false);
		assert_opens("real/../..", true, false);
		assert_opens("/etc", true, false);
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void test_root_read_fifo(void **state)
{
	struct buf text;

	buf_init(&text);
	assert_int_equal(root_read(root, "fifo", getuid(), 100, &text), -EINVAL);
	assert_int_equal(root_read(root, "real", getuid(), 100, &text), -EINVAL);
	assert_int_equal(root_read(root, "nothing", getuid(), 100, &text), -ENOENT);
	buf_release(&text);
}

#define FOLDER ".duet-"

static struct attach_target self_target(void)
{
	return (struct attach_target){.pid = getpid(), .ns_pid = 7, .uid = geteuid(), .gid = getegid()};
}

/* Makes a folder for the agent, and stores its name. */
static int make_folder(char name[PLACE_NAME_MAX])
{
	const struct attach_target target = self_target();
	const struct visit visit = {.target = &target};

	return place_folder(&visit, root, geteuid(), name);
}

static void remove_folder(int fd, const char *name)
{
	close(fd);
	unlinkat(root, name, AT_REMOVEDIR);
}

static void usual_folder(char name[PLACE_NAME_MAX])
{
	int fd = make_folder(name);

	assert_true(fd >= 0);
	remove_folder(fd, name);
}

static void test_folder_own(void **state)
{
	char name[PLACE_NAME_MAX], again[PLACE_NAME_MAX];
	int fd = make_folder(name);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	remove_folder(fd, name);
	usual_folder(again); /* otherwise each attach would map one more copy of the agent */
	assert_string_equal(again, name);
}

/* A folder of the usual name that is not ours is left unchanged, and the agent gets another folder. */
static void assert_not_entered(const char *squatted)
{
	char name[PLACE_NAME_MAX];
	struct stat before, after;
	int fd;

	assert_int_equal(fstatat(root, squatted, &before, 0), 0);
	fd = make_folder(name);
	assert_true(fd >= 0);
	assert_string_not_equal(name, squatted);
	assert_memory_equal(name, FOLDER, strlen(FOLDER));
	remove_folder(fd, name);
	assert_int_equal(fstatat(root, squatted, &after, 0), 0);
	assert_int_equal(after.st_mode, before.st_mode);
}

static void test_folder_squatted(void **state)
{
	char name[PLACE_NAME_MAX];

	usual_folder(name);
	assert_int_equal(symlink("real", name), 0);
	assert_not_entered(name);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(mkdir(name, 0700), 0); /* our own folder: another attach may be using it */
	assert_not_entered(name);
	assert_int_equal(chmod(name, 0777), 0);
	assert_not_entered(name);
	assert_int_equal(rmdir(name), 0);
}

static void test_folder_foreign(void **state)
{
	char name[PLACE_NAME_MAX];

	if (geteuid() != 0)
		skip();
	usual_folder(name);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(chown(name, 65534, 65534), 0);
	assert_not_entered(name);
	assert_int_equal(rmdir(name), 0);
}

static void test_entry_of_mount(void **state)
{
	int fd;

	fd = root_open_entry(root, "real", O_PATH | O_DIRECTORY);
	assert_true(fd >= 0);
	close(fd);
	assert_true(root_open_entry(root, "relative", O_PATH | O_DIRECTORY) < 0);
	fd = open("/", O_PATH | O_DIRECTORY);
	assert_int_equal(root_open_entry(fd, "proc", O_PATH | O_DIRECTORY), -EXDEV);
	close(fd);
}

/* ---- the rest ---- */

static void test_control(void **state)
{
	struct attach_control one, two;

	assert_int_equal(attach_control_new(&one, 123), 0);
	assert_int_equal(attach_control_new(&two, 123), 0);
	assert_string_not_equal(one.name, two.name);
	assert_string_not_equal(one.secret, two.secret);
	assert_true(strlen(one.name) > 32);
	assert_null(strpbrk(one.name, ",= "));
	assert_null(strstr(one.name, one.secret));
	assert_int_equal(strspn(one.secret, "0123456789abcdef"), DUET_SECRET_DIGITS);
}

static void test_place_for_command(void **state)
{
	char path[256];
	struct stat st;

	assert_int_equal(attach_place_library(path, 10), -ENAMETOOLONG);
	assert_int_equal(attach_place_library(path, sizeof(path)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_size, attach_library_bytes);
	attach_remove_library(path);
	assert_int_equal(stat(path, &st), -1);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &st), -1);
	attach_remove_library(NULL);
}

static const struct attach_control nobody = {"duet-test", "00000000000000000000000000000000"};

static void assert_attach_fails(const struct attach_target *target, int error, const char *words)
{
	struct attach_result result;
	struct attach attach;

	assert_int_equal(attach_start(&attach, target, &nobody), 0);
	attach_finish(&attach, &result);
	assert_int_equal(result.error, error);
	assert_int_equal(result.socket, -1);
	if (!strstr(result.why, words))
		fail_msg("\"%s\" does not say \"%s\"", result.why, words);
	assert_int_equal(waitpid(attach.child, NULL, 0), -1); /* no zombie */
}

static void test_attach_refused(void **state)
{
	struct attach_target target = {.pid = getpid(), .ns_pid = getpid(), .uid = geteuid(), .gid = getegid()};

	assert_int_equal(process_read_start_ticks(getpid(), &target.start_ticks), 0);
	assert_attach_fails(&target, -ENOTSUP, "is not a HotSpot JVM: it maps no libjvm.so");
	target.kind = ATTACH_LOADED; /* but no agent will listen */
	target.timeout_ns = 1000000000;
	assert_attach_fails(&target, -ETIMEDOUT, "is it hung"); /* by the child, or by the loader on a busy machine */
	target.start_ticks++;
	assert_attach_fails(&target, -ESRCH, "its pid was reused");
	target.pid = 0x7ffffff;
	assert_attach_fails(&target, -ESRCH, "there is no process 134217727");
}

/* Who has nothing else to do waits for the child until the deadline, whatever its user does with it. */
static void test_stopped_child_is_awaited(void **state)
{
	struct attach_target target = {.pid = getpid(),
				       .ns_pid = getpid(),
				       .uid = geteuid(),
				       .gid = getegid(),
				       .kind = ATTACH_LOADED,
				       .timeout_ns = NS_PER_SEC / 2};
	uint64_t begin_ns = clock_monotonic_ns();
	struct attach_result result;
	struct attach attach;

	assert_int_equal(process_read_start_ticks(getpid(), &target.start_ticks), 0);
	assert_int_equal(attach_start(&attach, &target, &nobody), 0);
	kill(attach.child, SIGSTOP);
	attach_finish(&attach, &result);
	assert_int_equal(result.error, -ETIMEDOUT);
	assert_int_equal(result.socket, -1);
	assert_non_null(strstr(result.why, "is it stopped"));
	assert_true(clock_monotonic_ns() - begin_ns < 10 * NS_PER_SEC);
	children_wait();
}

/* A child has ended, but one of its own children has not: the loader counts it for this user until that one ends. */
static void test_left_below_a_child(void **state)
{
	const uid_t user = 4711;
	int life[2], stop[2], status;
	pid_t child;
	char none;

	assert_int_equal(pipe2(life, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		close(stop[1]);
		if (!fork())
			(void)!read(stop[0], &none, sizeof(none));
		_exit(0);
	}
	close(life[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	children_leave(0, life[0], user, 0);
	assert_int_equal(children_left(user), 1);
	close(stop[0]);
	close(stop[1]);
	for (int i = 0; i < 10000 && children_left(user); i++)
		usleep(1000);
	assert_int_equal(children_left(user), 0);
}

/* The target's user can stop the child, which has that user's rights. The loader's deadline still passes. */
static void test_child_stopped(void **state)
{
	struct process_table table;
	struct process *self;
	struct intern strings;
	const struct agent_start start = {.engine = DUET_ENGINE_BPF};
	struct agent *agent;
	uint64_t begin_ns;

	process_table_init(&table);
	intern_init(&strings);
	self = process_get(&table, getpid(), 0);
	agent = agent_new(self, &strings, &start, ATTACH_LOADED, "a test", &nobody);
	assert_non_null(agent);
	assert_int_equal(kill(agent->attach.child, SIGSTOP), 0);
	agent_expire(agent, clock_monotonic_ns());
	assert_int_equal(agent->state, AGENT_ATTACHING);
	begin_ns = clock_monotonic_ns();
	agent_expire(agent, begin_ns + 60 * NS_PER_SEC);
	assert_int_equal(agent->state, AGENT_FAILED);
	assert_int_equal(agent->error, -ETIMEDOUT);
	assert_non_null(strstr(agent->why, "took longer than"));
	assert_true(clock_monotonic_ns() - begin_ns < NS_PER_SEC / 2);
	children_wait();
	assert_int_equal(waitpid(agent->attach.child, NULL, 0), -1);
	agent_free(agent);
	intern_release(&strings);
	process_table_release(&table);
}

/* ---- a trap instead of HotSpot's socket ---- */

#define SOCKET_NAME ".java_pid7" /* of self_target() */

static bool swaps; /* what socket() does beside */

/* Replaces libc's function. It is called between the check of the socket's name and the connection. */
int socket(int domain, int type, int protocol)
{
	if (swaps && rename("tmp/trap", "tmp/" SOCKET_NAME) < 0)
		return -1;
	swaps = false;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static bool was_asked(int listener)
{
	int fd = accept(listener, NULL, NULL);

	close(listener);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_socket_swapped(void **state)
{
	struct attach_target target = self_target();
	const struct vm_options options = {0};
	struct visit visit;
	int own, trap;

	assert_int_equal(process_read_start_ticks(getpid(), &target.start_ticks), 0);
	assert_int_equal(visit_open(&visit, &target, clock_monotonic_ns() + NS_PER_SEC / 2), 0);
	close(visit.root);
	visit.root = dup(root);
	assert_int_equal(mkdir("tmp", 0755), 0);
	own = listen_at("tmp/" SOCKET_NAME);
	trap = listen_at("tmp/trap");
	swaps = true;
	assert_true(hotspot_load(&visit, &options, "/agent.so", &nobody) < 0); /* nobody answers */
	assert_false(swaps);
	assert_true(was_asked(own));
	assert_false(was_asked(trap));
	visit_release(&visit);
	unlink("tmp/" SOCKET_NAME);
	assert_int_equal(rmdir("tmp"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply_success),
		cmocka_unit_test(test_reply_agent_code),
		cmocka_unit_test(test_reply_not_loaded),
		cmocka_unit_test(test_reply_garbage),
		cmocka_unit_test(test_options_command),
		cmocka_unit_test(test_options_warning),
		cmocka_unit_test(test_options_hostile_command),
		cmocka_unit_test(test_options_text),
		cmocka_unit_test(test_control),
		cmocka_unit_test(test_place_for_command),
		cmocka_unit_test(test_attach_refused),
		cmocka_unit_test(test_stopped_child_is_awaited),
		cmocka_unit_test(test_left_below_a_child),
		cmocka_unit_test(test_child_stopped),
	};
	const struct CMUnitTest traps[] = {
		cmocka_unit_test(test_root_open),
		cmocka_unit_test(test_root_open_walk),
		cmocka_unit_test(test_root_read_fifo),
		cmocka_unit_test(test_folder_own),
		cmocka_unit_test(test_folder_squatted),
		cmocka_unit_test(test_folder_foreign),
		cmocka_unit_test(test_entry_of_mount),
		cmocka_unit_test(test_socket_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) + cmocka_run_group_tests(traps, enter_folder, leave_folder);
}
