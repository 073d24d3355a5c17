/* SPDX-License-Identifier: MIT */
#include "proc/allowance.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "proc/helper.h"
#include "proc/process.h"

#define USER_NS NS_PER_SEC /* most CPU time that a user's processes may cost at once */
#define USER_SHARE 10 /* in the long run a 10th of the time */
#define ALL_NS (2 * NS_PER_SEC) /* the same for all users together */
#define ALL_SHARE 5
#define STARTING_PART 2 /* of both, half can be used up before the first tick */
#define LEAST_NS (300 * NS_PER_MS) /* a payer that has used less than this is always served */
#define PAYERS_MAX 1024
#define SPENT_MAX 8 /* most payers that are reported */
#define DEPTH_MAX 32 /* of user and pid namespaces, as in the kernel */

struct debt {
	uint64_t cost_ns; /* CPU time spent minus allowance accrued up to paid_ns */
	uint64_t paid_ns;
};

struct account {
	uint64_t key;
	struct debt debt;
	bool is_spent; /* is in `spent`, or would be if it had room */
};

static struct {
	struct account accounts[PAYERS_MAX];
	size_t count;
	struct debt all;
	uint64_t paid_ns; /* CPU time of all charges that have ended */
	uint64_t users_ns; /* what users have been charged */
	uid_t spent[SPENT_MAX];
	size_t spent_count, returned;
	bool is_starting;
	void (*pause)(void *context);
	void *pause_context;
	uint64_t paused_ns;
} allowance;

static ino_t inode_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? st.st_ino : 0;
}

static ino_t own_namespace(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

static uint64_t key_of(uid_t uid, ino_t pids)
{
	return (uint64_t)uid << 32 | (uint32_t)pids;
}

static void replace(int *fd, int by)
{
	io_close(fd);
	*fd = by;
}

/* Makes *fd the outermost user namespace below ours that contains it, or -1. */
static void take_outermost(int *fd, ino_t ours)
{
	for (int depth = 0; *fd >= 0 && depth <= DEPTH_MAX; depth++) {
		IO_FD(parent) = ioctl(*fd, NS_GET_PARENT);

		if (inode_of(parent) == ours)
			return;
		replace(fd, parent);
		parent = -1;
	}
	io_close(fd);
}

/*
 * Returns the innermost pid namespace of the process that belongs to our user namespace. Users can make further ones in
 * their own user namespaces; these are left out. 0: unknown.
 */
static ino_t container_of(int proc_fd, ino_t our_users)
{
	IO_FD(fd) = openat(proc_fd, "ns/pid", O_RDONLY | O_CLOEXEC);

	for (int depth = 0; fd >= 0 && depth <= DEPTH_MAX; depth++) {
		IO_FD(owner) = ioctl(fd, NS_GET_USERNS);

		if (owner >= 0 && inode_of(owner) == our_users)
			return inode_of(fd);
		replace(&fd, ioctl(fd, NS_GET_PARENT));
	}
	return 0;
}

/* For a process in a user namespace: the user who made the namespace pays. If that is root, the namespace pays. */
static struct payer payer_of_namespace(int proc_fd, uid_t uid, ino_t our_users)
{
	IO_FD(fd) = openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	struct payer payer = {.uid = uid};
	ino_t inode;

	take_outermost(&fd, our_users);
	inode = inode_of(fd);
	if (fd >= 0 && !ioctl(fd, NS_GET_OWNER_UID, &payer.uid) && payer.uid)
		inode = container_of(proc_fd, our_users);
	payer.key = key_of(payer.uid, inode);
	return payer;
}

struct payer allowance_payer(int proc_fd, uid_t uid)
{
	ino_t our_users = own_namespace("/proc/self/ns/user"), our_pids = own_namespace("/proc/self/ns/pid");
	struct stat users, pids;
	bool is_readable = !fstatat(proc_fd, "ns/user", &users, 0) && !fstatat(proc_fd, "ns/pid", &pids, 0);

	if (is_readable && users.st_ino != our_users)
		return payer_of_namespace(proc_fd, uid, our_users);
	if (is_readable && pids.st_ino == our_pids && (!uid || uid == getuid()))
		return (struct payer){.uid = uid};
	return (struct payer){key_of(uid, is_readable ? pids.st_ino : our_pids), uid};
}

static void forgive(struct debt *debt, uint64_t now_ns, unsigned int share)
{
	uint64_t forgiven_ns = (now_ns - debt->paid_ns) / share;

	debt->paid_ns = now_ns;
	debt->cost_ns -= forgiven_ns < debt->cost_ns ? forgiven_ns : debt->cost_ns;
}

static struct account *find(uint64_t key)
{
	for (size_t i = 0; i < allowance.count; i++)
		if (allowance.accounts[i].key == key)
			return &allowance.accounts[i];
	return NULL;
}

/* If there is no room, the account that owes least is closed. */
static struct account *open_account(uint64_t key, uint64_t now_ns)
{
	struct account *least = &allowance.accounts[0];

	if (allowance.count < PAYERS_MAX) {
		least = &allowance.accounts[allowance.count++];
	} else {
		for (size_t i = 0; i < PAYERS_MAX; i++) {
			forgive(&allowance.accounts[i].debt, now_ns, USER_SHARE);
			if (allowance.accounts[i].debt.cost_ns < least->debt.cost_ns)
				least = &allowance.accounts[i];
		}
	}
	*least = (struct account){.key = key, .debt.paid_ns = now_ns};
	return least;
}

void charge_cpu(const struct payer *payer, uint64_t cpu_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), left_ns;
	struct account *account;

	if (!payer->key)
		return;
	allowance.users_ns += cpu_ns;
	account = find(payer->key);
	if (!account)
		account = open_account(payer->key, now_ns);
	forgive(&account->debt, now_ns, USER_SHARE);
	left_ns = account->debt.cost_ns < USER_NS ? USER_NS - account->debt.cost_ns : 0;
	allowance.all.cost_ns += cpu_ns < left_ns ? cpu_ns : left_ns; /* what a user overdraws is his alone */
	account->debt.cost_ns += cpu_ns;
}

uint64_t charge_all_ns(void)
{
	return clock_cpu_ns() + helper_cpu_ns();
}

static uint64_t unpaid_ns(void)
{
	return charge_all_ns() - allowance.paid_ns;
}

uint64_t allowance_used_ns(void)
{
	return allowance.users_ns;
}

bool allowance_next_spent(uid_t *ret_uid)
{
	if (allowance.returned == allowance.spent_count)
		return false;
	*ret_uid = allowance.spent[allowance.returned++];
	return true;
}

static bool is_within(const struct account *account, uint64_t part)
{
	return account->debt.cost_ns <= USER_NS / part && allowance.all.cost_ns <= ALL_NS / part;
}

static bool has_allowance(const struct payer *payer)
{
	struct account *account = payer->key ? find(payer->key) : NULL;
	uint64_t now_ns;

	if (!account)
		return true;
	now_ns = clock_monotonic_ns();
	forgive(&account->debt, now_ns, USER_SHARE);
	forgive(&allowance.all, now_ns, ALL_SHARE);
	if (account->debt.cost_ns <= LEAST_NS)
		return true;
	if (is_within(account, 1))
		return !allowance.is_starting || is_within(account, STARTING_PART);
	loader_counters[DUET_LOADER_USER_SPENT]++;
	if (!account->is_spent && allowance.spent_count < SPENT_MAX)
		allowance.spent[allowance.spent_count++] = payer->uid;
	account->is_spent = true;
	return false;
}

bool allowance_is_spent(int proc_fd, struct payer *ret_payer)
{
	struct stat user, pids;

	if (fstat(proc_fd, &user) || !user.st_uid || user.st_uid == getuid() || fstatat(proc_fd, "ns/pid", &pids, 0))
		return false;
	*ret_payer = (struct payer){key_of(user.st_uid, pids.st_ino), user.st_uid};
	return !has_allowance(ret_payer);
}

void allowance_set_starting(bool is_starting)
{
	allowance.is_starting = is_starting;
}

void charge_begin_unknown(struct charge *charge, pid_t pid)
{
	*charge = (struct charge){
		.pid = pid,
		.living = pid,
		.begin_ns = unpaid_ns(),
		.until_ns = clock_monotonic_ns() + CHARGE_SLICE_NS,
	};
}

bool charge_go_on(struct charge *charge, const struct charge *begun)
{
	if (!has_allowance(&begun->payer))
		return false;
	charge_begin_unknown(charge, begun->pid);
	charge->living = begun->living;
	charge->payer = begun->payer;
	return true;
}

bool charge_begin(struct charge *charge, const struct process *process)
{
	const struct charge begun = {.payer = process->payer, .pid = process->pid, .living = process->living};

	return charge_go_on(charge, &begun);
}

uint64_t charge_end(const struct charge *charge)
{
	uint64_t cost_ns = unpaid_ns() - charge->begin_ns;

	allowance.paid_ns += cost_ns;
	charge_cpu(&charge->payer, cost_ns);
	return cost_ns;
}

bool charge_is_little(const struct payer *payer)
{
	struct account *account = payer->key ? find(payer->key) : NULL;

	if (account)
		forgive(&account->debt, clock_monotonic_ns(), USER_SHARE);
	return !account || account->debt.cost_ns <= LEAST_NS;
}

bool charge_slice_is_over(const struct charge *charge)
{
	return clock_monotonic_ns() >= charge->until_ns;
}

void charge_set_pause(void (*pause)(void *context), void *context)
{
	allowance.pause = pause;
	allowance.pause_context = context;
}

void charge_pause(void)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!allowance.pause || now_ns < allowance.paused_ns + CHARGE_SLICE_NS)
		return;
	allowance.pause(allowance.pause_context);
	allowance.paused_ns = clock_monotonic_ns();
}
