/* SPDX-License-Identifier: MIT */
/*
 * Starts a program that is not a child of this process. The JVM gets no SIGCHLD when the program ends, and need not
 * wait for it.
 */
#ifndef API_SPAWN_H
#define API_SPAWN_H

struct spawn {
	int executable; /* O_CLOEXEC */
	const char *path; /* its path below /proc/self/fd */
	char *const *argv, *const *envp;
	int kept; /* descriptor of this process that the program gets under the same number */
};

/*
 * Returns the program's pid, or -errno. The caller's thread sleeps until the program has begun. Nothing of this process
 * is copied, however large it is.
 */
int spawn_detached(const struct spawn *spawn);

#endif
