/* SPDX-License-Identifier: MIT */
#include "jvms/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/signals.h"

#ifdef __x86_64__
#define JVM_ARCH "amd64"
#else
#define JVM_ARCH "aarch64"
#endif
#define AGENT_WAIT_MS 5000 /* longest time that the JVM delays main() for the loader */

static bool is_elf(const char *path)
{
	char magic[4];
	IO_FD(fd) = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) && !memcmp(magic, "\177ELF", 4);
}

/* Finds the program as execvp() does. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return !access(path, X_OK);
	}
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs; dirs += strcspn(dirs, ":"), dirs += *dirs == ':') {
		int len = (int)strcspn(dirs, ":");

		if (snprintf(path, size, "%.*s/%s", len ? len : 1, len ? dirs : ".", name) < (int)size &&
		    !access(path, X_OK))
			return true;
	}
	return false;
}

bool launch_is_program(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return find_program(name, path, sizeof(path)) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Returns true for the java launcher itself, not for a script of that name, which might not take the option. */
static bool is_java_launcher(const char *name, const char *path)
{
	return !strcmp(basename(name), "java") && path[0] && is_elf(path);
}

/* Finds libjvm.so in the launcher's JDK, with links resolved: JDK 9+, a JRE of JDK 8, or a JDK 8. */
static void find_libjvm(const char *launcher, char *path, size_t size)
{
	static const char *const places[] = {"lib/server", "lib/" JVM_ARCH "/server", "jre/lib/" JVM_ARCH "/server"};
	char real[PATH_MAX];
	char *name;

	path[0] = 0;
	if (!realpath(launcher, real))
		return;
	for (int i = 0; i < 2; i++) { /* cut off the launcher and bin */
		name = strrchr(real, '/');
		if (name)
			*name = 0;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(path, size, "%s/%s/libjvm.so", real, places[i]) < (int)size && !access(path, R_OK))
			return;
	path[0] = 0;
}

static char **with_agent(char **argv, char *option)
{
	size_t count = 0;
	char **result;

	while (argv[count])
		count++;
	result = calloc(count + 2, sizeof(*result));
	if (!result)
		return NULL;
	result[0] = argv[0];
	result[1] = option;
	memcpy(result + 2, argv + 1, (count - 1) * sizeof(*argv));
	return result;
}

/* Reads the agent's option, which launch_run() sends. Returns false when the loader gave up or died. */
static bool await_word(int gate, char *option, size_t size)
{
	for (size_t i = 0; i < size;) {
		ssize_t len = read(gate, option + i, 1);

		if (len < 0 && errno == EINTR)
			continue;
		if (len != 1)
			return false;
		if (!option[i++])
			return true;
	}
	return false;
}

static void child_run(struct launch *launch, int gate, int failed)
{
	char **argv = launch->argv;

	signals_reset();
	nice_reset();
	if (!await_word(gate, launch->option, sizeof(launch->option))) /* do not run the command unprofiled */
		_exit(127);
	if (launch->option[0])
		argv = with_agent(launch->argv, launch->option);
	/* the agent finds its secret in the environment: unlike the command line, other users cannot read it */
	if (argv && (!launch->option[0] || !setenv("DUET_SECRET", launch->control.secret, 1)))
		execvp(argv[0], argv);
	(void)!write(failed, &errno, sizeof(errno));
	_exit(127);
}

static int fork_waiting(struct launch *launch)
{
	int gate[2] = {-1, -1}, failed[2] = {-1, -1};
	int err;

	if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		goto fail;
	launch->pid = fork();
	if (launch->pid < 0)
		goto fail;
	if (!launch->pid) {
		close(gate[1]);
		close(failed[0]);
		child_run(launch, gate[0], failed[1]);
	}
	close(gate[0]);
	close(failed[1]);
	launch->gate = gate[1];
	launch->exec_error = failed[0];
	return 0;
fail:
	err = -errno;
	for (int i = 0; i < 2; i++) {
		io_close(&gate[i]);
		io_close(&failed[i]);
	}
	return err;
}

int launch_start(struct launch *launch, char **argv)
{
	int err = attach_control_new(&launch->control, getpid());

	if (err < 0)
		return err;
	launch->argv = argv;
	if (!find_program(argv[0], launch->program, sizeof(launch->program)))
		launch->program[0] = '\0';
	launch->is_java = is_java_launcher(argv[0], launch->program);
	if (launch->is_java)
		find_libjvm(launch->program, launch->libjvm, sizeof(launch->libjvm));
	return fork_waiting(launch);
}

int launch_add_agent(struct launch *launch)
{
	int err = attach_place_library(launch->library, sizeof(launch->library));

	if (err < 0)
		return err;
	snprintf(launch->option, sizeof(launch->option), "-agentpath:%s=control=%s,wait=%d", launch->library,
		 launch->control.name, AGENT_WAIT_MS);
	return 0;
}

int launch_run(struct launch *launch)
{
	int error = 0, err = 0;

	if (write(launch->gate, launch->option, strlen(launch->option) + 1) < 0)
		err = -errno;
	else if (read(launch->exec_error, &error, sizeof(error)) == sizeof(error))
		err = -error;
	io_close(&launch->exec_error);
	return err;
}

bool launch_has_ended(struct launch *launch, struct rusage *ret_usage)
{
	if (launch->has_ended || wait4(launch->pid, &launch->status, WNOHANG, ret_usage) != launch->pid)
		return launch->has_ended;
	launch->ended_ns = clock_monotonic_ns();
	return launch->has_ended = true;
}

int launch_exit_code(const struct launch *launch)
{
	if (!launch->has_ended)
		return 0;
	return WIFSIGNALED(launch->status) ? 128 + WTERMSIG(launch->status) : WEXITSTATUS(launch->status);
}

void launch_release(struct launch *launch)
{
	io_close(&launch->gate);
	if (launch->library[0])
		attach_remove_library(launch->library);
}
