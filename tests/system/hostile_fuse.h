/* SPDX-License-Identifier: MIT */
/* A part of hostile_files.c, which includes it after die(): the FUSE server and where it is mounted. */
#pragma once

static void fill_attr(uint64_t node, struct fuse_attr *attr)
{
	bool is_file = node != FUSE_ROOT_ID;

	*attr = (struct fuse_attr){
		.ino = node,
		.size = is_file ? FILE_BYTES : 0,
		.mode = is_file ? S_IFREG | 0755 : S_IFDIR | 0777,
		.nlink = 1,
		.uid = self.owner,
		.gid = self.owner,
		.blksize = PAGE,
	};
}

static void reply(int fuse, uint64_t unique, int error, const void *body, size_t len)
{
	static char bytes[sizeof(struct fuse_out_header) + FILE_BYTES];
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + len), .error = error, .unique = unique};

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), body, len);
	if (write(fuse, bytes, head.len) < 0 && errno == ENODEV)
		_exit(0);
}

/* Every name is that of the same file. Its bytes are `ret` instructions. */
static void answer(int fuse, const struct fuse_in_header *in, const void *body)
{
	static char code[FILE_BYTES];
	const struct fuse_read_in *read_in = body;
	const struct fuse_init_in *init = body;
	struct fuse_init_out init_out = {.major = 7, .minor = 31, .max_write = 4096, .max_readahead = 0};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE};
	struct fuse_attr_out attr = {0};
	struct fuse_open_out opened = {0};
	struct fuse_statfs_out statfs = {.st = {.bsize = PAGE, .namelen = 255}};

	switch (in->opcode) {
	case FUSE_INIT:
		init_out.minor = init->minor < 31 ? init->minor : 31;
		return reply(fuse, in->unique, 0, &init_out, sizeof(init_out));
	case FUSE_LOOKUP:
		fill_attr(FILE_NODE, &entry.attr);
		return reply(fuse, in->unique, 0, &entry, sizeof(entry));
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		fill_attr(in->nodeid, &attr.attr);
		return reply(fuse, in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return reply(fuse, in->unique, 0, &opened, sizeof(opened));
	case FUSE_READ:
		memset(code, 0xc3, sizeof(code));
		return reply(fuse, in->unique, 0, code,
			     read_in->offset < FILE_BYTES && read_in->size < FILE_BYTES - read_in->offset ?
				     read_in->size :
				     FILE_BYTES - read_in->offset);
	case FUSE_STATFS:
		return reply(fuse, in->unique, 0, &statfs, sizeof(statfs));
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		return reply(fuse, in->unique, 0, "", 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	}
	reply(fuse, in->unique, -ENOSYS, "", 0);
}

/* SILENT_OF_US: returns whether a folder of duet's exists already. */
static bool is_withheld(uint32_t opcode, const char *name)
{
	int silence = self.shared->silence;
	bool withheld = silence == SILENT || (silence == SILENT_READS && opcode == FUSE_READ) ||
			(silence == SILENT_WRITES && opcode == FUSE_WRITE) ||
			(silence == SILENT_OF_US && opcode == FUSE_LOOKUP && !strncmp(name, ".duet-", 6));

	self.shared->withheld += withheld;
	return withheld;
}

static void serve(int fuse)
{
	static char request[FUSE_MIN_READ_BUFFER + FILE_BYTES];
	const struct fuse_in_header *in = (const void *)request;

	alarm(LIMIT_S);
	for (;;) {
		ssize_t len = read(fuse, request, sizeof(request));

		if (len < 0 && errno != EINTR && errno != ENOENT)
			_exit(0);
		if (len >= (ssize_t)sizeof(*in) && !is_withheld(in->opcode, request + sizeof(*in)))
			answer(fuse, in, request + sizeof(*in));
	}
}

static int open_device(const char *path)
{
	int fuse = open(path, O_RDWR | O_CLOEXEC);

	if (fuse < 0)
		die(path);
	return fuse;
}

static void become_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1) < 0)
		die("setresuid");
}

static pid_t start_server(int fuse)
{
	pid_t pid = fork();

	if (!pid)
		serve(fuse);
	close(fuse);
	return pid;
}

static void mount_fuse(int fuse, const char *target, unsigned int user, const char *more)
{
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40777,user_id=%u,group_id=%u%s", fuse, user, user, more);
	if (mount("hostile", target, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		die("mounting a FUSE file system");
}

static const char *below(const char *name)
{
	static char path[4][512];
	static int turn;
	char *text = path[turn++ % 4];

	snprintf(text, sizeof(path[0]), "%s/%s", self.folder, name);
	return text;
}

/* A file system that everybody may enter, as /etc/fuse.conf can allow: mounted by root, served by user nobody. */
static pid_t serve_everybody(void)
{
	int fuse = open_device("/dev/fuse");

	self.owner = NOBODY;
	mount_fuse(fuse, below("mount"), NOBODY, ",allow_other");
	become_nobody();
	return start_server(fuse);
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

/* A file system of user nobody, in a user namespace. */
static pid_t serve_alone(void)
{
	int fuse;

	/* Distributions let everybody open the device. Here we make a node of our own. */
	if (mknod(below("fuse"), S_IFCHR | 0666, makedev(10, 229)) < 0 || chmod(below("fuse"), 0666) < 0 ||
	    chown(below("mount"), NOBODY, NOBODY) < 0)
		die("mknod");
	become_nobody();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		die("unshare");
	write_to("/proc/self/setgroups", "deny");
	write_to("/proc/self/uid_map", "0 65534 1");
	write_to("/proc/self/gid_map", "0 65534 1");
	fuse = open_device(below("fuse"));
	mount_fuse(fuse, below("mount"), 0, "");
	return start_server(fuse);
}

/*
 * The same with an overlay above it on /tmp. A process that enters the overlay has the rights of the user who mounted
 * it.
 */
static pid_t serve_overlay(void)
{
	pid_t server = serve_alone();
	char options[600];

	snprintf(options, sizeof(options), "lowerdir=%s:%s", below("mount"), below("empty"));
	if (mount("hostile", "/tmp", "overlay", 0, options) < 0)
		die("mounting an overlay");
	return server;
}

static void map_libjvm(void)
{
	int fd = open(self.libjvm, O_RDONLY);

	if (fd < 0 || mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		die(self.libjvm);
}

/* Its /tmp hides the library. */
static pid_t serve_overlay_to_jvm(void)
{
	map_libjvm();
	return serve_overlay();
}
