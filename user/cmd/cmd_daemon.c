/* SPDX-License-Identifier: MIT */
/* `duet daemon`: profiles the host window by window, as configured, until it is stopped. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/config.h"
#include "session/session.h"
#include "status/notify.h"
#include "windows/window_files.h"

#define CONFIG "/etc/duet/duet.conf"
#define FOLDER "/var/lib/duet"
#define RUNTIME_FOLDER "/run/duet"
#define LOCK RUNTIME_FOLDER "/daemon.lock"

struct daemon_options {
	enum command_help help; /* first: see struct command */
	const char *config, *lock;
	bool check, verbose;
};

#define FIELD(name) .offset = offsetof(struct daemon_options, name)

static const struct opt rows[] = {
	{0, "config", "FILE", "the configuration (default " CONFIG "), see duet.conf(5)", opt_string, FIELD(config)},
	{0, "check", NULL, "only check the configuration", opt_flag, FIELD(check)},
	{0, "lock", "FILE", "lock file of the host's daemon (default " LOCK ")", opt_string, FIELD(lock)},
	{'v', "verbose", NULL, "report more", opt_flag, FIELD(verbose)},
	COMMAND_HELP,
	OPT_END,
};

struct daemon {
	const struct daemon_options *options;
	struct notify notify;
	struct config current, next, before; /* `before`: the configuration before `current` */
	bool has_next, has_before;
	bool is_stopping;
};

static bool on_signal(void *context, int signo);

/* The default file need not exist; a file that --config names must. */
static int read_config(const struct daemon_options *options, struct config *ret)
{
	const char *path = options->config ? options->config : CONFIG;

	return config_read(ret, path, FOLDER, !options->config);
}

/* Whoever can open the file can lock it, so nobody else may open it. */
static int open_lock(const char *path)
{
	int fd = io_open_own(path, O_RDWR, 0600);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (!(st.st_mode & 077) || fchmod(fd, 0600) == 0))
		return fd;
	close(fd);
	return -EPERM;
}

/*
 * Locks the file with fcntl(2). Unlike a lock of flock(2), this lock is not inherited by the children that write
 * windows. So it ends with the daemon itself, and it shows its owner. An abstract socket would not serve: each network
 * namespace has its own.
 */
static int take_lock(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock(path);

	if (fd < 0)
		return log_fail(fd, "%s cannot be locked: %s; run duet daemon as root or choose another --lock", path,
				strerror(-fd));
	if (!fcntl(fd, F_SETLK, &lock))
		return fd;
	lock.l_pid = 0;
	fcntl(fd, F_GETLK, &lock);
	log_error("another duet daemon profiles this host (process %d holds %s): stop it first", (int)lock.l_pid, path);
	close(fd);
	return -EBUSY;
}

/* Reads the new configuration, checks it, and checks that files can be created in its folder. */
static int read_next(struct daemon *daemon)
{
	struct config config;
	int err = read_config(daemon->options, &config);

	if (err < 0)
		return err;
	err = window_files_open(&config.options.folder);
	if (err < 0) {
		log_error("cannot create files in %s: %s; choose another folder with `file`",
			  config.options.folder.folder, window_files_error(err));
		config_release(&config);
		return err;
	}
	if (daemon->has_next) /* a second SIGHUP while the session was ending */
		config_release(&daemon->next);
	daemon->next = config;
	daemon->has_next = true;
	return 0;
}

static void take_over(struct daemon *daemon, struct options *options)
{
	options->command_line = "duet daemon";
	options->signalled = on_signal;
	options->signalled_context = daemon;
}

/* If only the output changes, the session continues with the new options, because it reads them from the same place. */
static bool change_files(struct daemon *daemon)
{
	struct config old = daemon->current;

	if (daemon->next.sampling != old.sampling)
		return false;
	daemon->current = daemon->next;
	daemon->has_next = false;
	take_over(daemon, &daemon->current.options);
	config_release(&old);
	return true;
}

/*
 * Returns true if the session must end. SIGHUP ends it only if the new configuration is valid and does not only change
 * the output.
 */
static bool on_signal(void *context, int signo)
{
	struct daemon *daemon = context;

	if (signo != SIGHUP) {
		daemon->is_stopping = true;
		notify_send(&daemon->notify, "STOPPING=1");
		return true;
	}
	notify_reloading(&daemon->notify);
	if (read_next(daemon) < 0) {
		log_error("the new configuration has an error: the old one stays in force");
		notify_send(&daemon->notify, "READY=1");
		return daemon->has_next;
	}
	log_info("the configuration was read again");
	if (!change_files(daemon))
		return true;
	notify_send(&daemon->notify, "READY=1");
	return false;
}

static int run_session(struct daemon *daemon)
{
	take_over(daemon, &daemon->current.options);
	return session_run(&daemon->current.options);
}

static void forget_before(struct daemon *daemon)
{
	if (daemon->has_before)
		config_release(&daemon->before);
	daemon->has_before = false;
}

/*
 * Switches to the next configuration, or back to the old one if the new one cannot run. Returns false if the daemon
 * must end.
 */
static bool go_on(struct daemon *daemon, int code)
{
	if (daemon->is_stopping)
		return false;
	if (daemon->has_next) {
		forget_before(daemon);
		daemon->before = daemon->current;
		daemon->current = daemon->next;
		daemon->has_before = true;
		daemon->has_next = false;
		return true;
	}
	if (!code || !daemon->has_before)
		return false;
	log_error("the new configuration cannot run: returning to the old one");
	config_release(&daemon->current);
	daemon->current = daemon->before;
	daemon->has_before = false;
	return true;
}

static int run_daemon(const struct daemon_options *options)
{
	struct daemon daemon = {.options = options};
	IO_FD(lock) = -1;
	int code;

	if (!options->lock)
		mkdir(RUNTIME_FOLDER, 0755); /* under systemd, RuntimeDirectory= has made it */
	lock = take_lock(options->lock ? options->lock : LOCK);
	if (lock < 0)
		return 1;
	if (read_config(options, &daemon.current) < 0)
		return 2;
	notify_open(&daemon.notify);
	do
		code = run_session(&daemon);
	while (go_on(&daemon, code));
	notify_close(&daemon.notify);
	config_release(&daemon.current);
	forget_before(&daemon);
	if (daemon.has_next)
		config_release(&daemon.next);
	return code;
}

static int check(const struct daemon_options *options)
{
	struct config config;

	if (read_config(options, &config) < 0)
		return 2;
	config_release(&config);
	log_info("%s: no errors", options->config ? options->config : CONFIG);
	return 0;
}

static int run(void *context, const struct command_words *words)
{
	const struct daemon_options *options = context;

	if (options->verbose)
		log_set_level(LOG_DEBUG);
	return options->check ? check(options) : run_daemon(options);
}

const struct command cmd_daemon = {
	.name = "daemon",
	.summary = "profile the host window by window: duet daemon --config /etc/duet/duet.conf",
	.usage = "duet daemon [OPTIONS]\n",
	.rows = rows,
	.options_bytes = sizeof(struct daemon_options),
	.takes = "options only: the configuration says what to profile",
	.run = run,
};
