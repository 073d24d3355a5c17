/* SPDX-License-Identifier: MIT */
/*
 * peak_memory FILE CMD ARGS...: runs the command and writes its peak RAM in kB and its CPU time in ms to FILE. Ends
 * with the command's exit code.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	FILE *file = argc > 2 ? fopen(argv[1], "we") : NULL;
	struct rusage usage;
	pid_t pid;
	int status;

	if (!file)
		return 2;
	pid = fork();
	if (!pid) {
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 2;
	fprintf(file, "%ld %ld\n", usage.ru_maxrss,
		(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
			(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
	fclose(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
