/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/process.h"

static struct process_table table;

static int table_setup(void **state)
{
	process_table_init(&table);
	return 0;
}

static int table_teardown(void **state)
{
	process_table_release(&table);
	return 0;
}

/* A child that has called `ready` and then waits to be killed. */
static pid_t start_child(void (*ready)(void))
{
	int pipe_fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ready();
		if (write(pipe_fds[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void take_hostile_name(void)
{
	prctl(PR_SET_NAME, "a) R 1 (b\n)");
}

static void take_no_name(void)
{
}

static void take_other_user(void)
{
	if (setgid(65533) < 0 || setuid(65534) < 0)
		_exit(1);
}

static char state_of(pid_t pid)
{
	struct proc_stat stat;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	for (int i = 0; i < 2; i++) /* also a second time */
		assert_int_equal(proc_stat_read_again(&stat, fd), 0);
	close(fd);
	return stat.state;
}

static void test_self(void **state)
{
	struct process *self = process_get(&table, getpid(), 0);
	char exe[4096] = {0};
	uint64_t ticks;
	uid_t uid = (uid_t)-1;

	assert_non_null(self);
	assert_int_equal(process_read_start_ticks(getpid(), &ticks), 0);
	assert_int_equal(self->start_ticks, ticks);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_string_equal(self->executable, exe);
	assert_int_equal(self->ns_pid, getpid());
	assert_int_equal(self->uid, geteuid());
	assert_int_equal(self->gid, getegid());
	assert_false(self->exited);
	assert_non_null(maps_find(&self->maps, (uintptr_t)test_self));
	assert_ptr_equal(process_get(&table, getpid(), ticks), self);
	assert_ptr_equal(process_get(&table, getpid(), 0), self);
	assert_int_equal(table.all.len, 1);
	assert_int_equal(process_read_uid(getpid(), &uid), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(state_of(getpid()), 'R');
}

static void test_hostile_name(void **state)
{
	pid_t pid = start_child(take_hostile_name);
	struct process *process = process_get(&table, pid, 0);

	assert_string_equal(process->comm, "a) R 1 (b\n)");
	assert_true(process->start_ticks > 1);
	assert_int_equal(process->ns_pid, pid);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	assert_int_equal(state_of(pid), 'T');
	assert_false(process_is_ending(process));
	end_child(pid);
}

static void take_third_user(void)
{
	if (setgid(65533) < 0 || setuid(65533) < 0)
		_exit(1);
}

/* When one user's allowance is used up, other users and we still have ours. That user's processes are read later. */
/* The first tick does not wait for whoever has used half of his allowance. He has the rest afterwards. */
static void test_half_is_for_after_the_start(void **state)
{
	const struct charge begun = {.payer = {99, 99}};
	struct charge charge;
	uid_t uid;

	charge_cpu(&begun.payer, 700 * NS_PER_MS);
	allowance_set_starting(true);
	assert_false(charge_go_on(&charge, &begun));
	allowance_set_starting(false);
	assert_true(charge_go_on(&charge, &begun));
	charge_cpu(&begun.payer, 200 * NS_PER_MS); /* as a dozen JVMs that start at once */
	assert_true(charge_go_on(&charge, &begun));
	assert_false(allowance_next_spent(&uid));
}

static void test_users_have_allowances(void **state)
{
	pid_t spent_pid, other_pid;
	struct process *spent, *other;
	uint64_t ticks;
	uid_t uid;

	if (geteuid())
		skip();
	assert_false(allowance_next_spent(&uid));
	spent_pid = start_child(take_other_user);
	spent = process_get(&table, spent_pid, 0);
	assert_true(spent->payer.key && spent->payer.uid == 65534);
	assert_true(spent->maps.list.len && spent->maps_ns);
	charge_cpu(&spent->payer, 100 * NS_PER_SEC);
	process_exec(process_find(&table, spent_pid));
	assert_false(spent->maps.list.len || spent->maps_ns || spent->exited);
	assert_int_equal(process_refresh_maps(spent, clock_monotonic_ns(), 1), 0);
	assert_int_equal(spent->maps.list.len, 0);
	end_child(spent_pid);
	spent_pid = start_child(take_other_user); /* another one of the user is not even looked at */
	assert_int_equal(process_read_start_ticks(spent_pid, &ticks), 0);
	spent = process_get(&table, spent_pid, ticks);
	assert_true(spent->is_unread && spent->payer.uid == 65534 && !spent->exited && !spent->executable);
	assert_true(allowance_next_spent(&uid) && uid == 65534);
	assert_false(allowance_next_spent(&uid)); /* each once */
	other_pid = start_child(take_third_user);
	other = process_get(&table, other_pid, 0);
	assert_int_not_equal(other->payer.key, spent->payer.key);
	assert_true(charge_is_little(&other->payer) && !charge_is_little(&spent->payer));
	assert_true(other->maps.list.len && process_get(&table, getpid(), 0)->maps.list.len);
	/* this user's allowance is enough, but all users together have spent too much, each as much as one may */
	charge_cpu(&(struct payer){1, 1}, 100 * NS_PER_SEC);
	charge_cpu(&other->payer, NS_PER_SEC / 2);
	process_exec(process_find(&table, other_pid));
	assert_int_equal(other->maps.list.len, 0);
	assert_int_equal(process_refresh_maps(spent, clock_monotonic_ns(), 0), 0);
	assert_int_equal(spent->maps.list.len, 0);
	end_child(spent_pid);
	end_child(other_pid);
}

static void compute(uint64_t for_ns)
{
	for (uint64_t end_ns = clock_cpu_ns() + for_ns; clock_cpu_ns() < end_ns;)
		;
}

/* The inner one is paid for once, also where nobody has a limit. */
static void test_charges_inside_of_charges(void **state)
{
	const struct process *self = process_get(&table, getpid(), 0);
	struct charge outer, inner;
	uint64_t inner_ns, outer_ns;

	assert_true(charge_begin(&outer, self));
	assert_int_equal(outer.pid, getpid());
	compute(2 * NS_PER_MS);
	assert_true(charge_go_on(&inner, &outer));
	assert_false(charge_slice_is_over(&inner));
	compute(30 * NS_PER_MS);
	assert_true(charge_slice_is_over(&inner));
	inner_ns = charge_end(&inner);
	outer_ns = charge_end(&outer);
	assert_true(inner_ns >= 30 * NS_PER_MS);
	assert_in_range(outer_ns, 2 * NS_PER_MS, 20 * NS_PER_MS);
}

/* In a user namespace a user may have many ids, but pays for all of them. */
static void enter_user_namespace(void)
{
	take_other_user();
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		_exit(2);
}

static void test_user_namespaces_cost_their_maker(void **state)
{
	pid_t plain, inside;
	int status;

	if (geteuid())
		skip();
	plain = fork();
	if (!plain) {
		enter_user_namespace();
		syscall(SYS_exit_group, 0); /* no search for leaks, whose helper would be in another namespace */
	}
	assert_int_equal(waitpid(plain, &status, 0), plain);
	if (WEXITSTATUS(status))
		skip(); /* user namespaces are refused */
	plain = start_child(take_other_user);
	inside = start_child(enter_user_namespace);
	assert_int_equal(process_get(&table, inside, 0)->payer.key, process_get(&table, plain, 0)->payer.key);
	end_child(plain);
	end_child(inside);
}

static void test_other_user(void **state)
{
	struct process *process;
	pid_t pid;

	if (geteuid())
		skip();
	pid = start_child(take_other_user);
	process = process_get(&table, pid, 0);
	assert_int_equal(process->uid, 65534);
	assert_int_equal(process->gid, 65533);
	end_child(pid);
}

static void test_exited_child(void **state)
{
	pid_t pid = start_child(take_no_name);
	struct process *process = process_get(&table, pid, 0);
	uint64_t ticks = process->start_ticks, unread = 7;
	size_t mappings = process->maps.list.len;

	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	/* A zombie has a stat file and no memory: what is known stays. */
	assert_int_equal(process_refresh_maps(process, clock_monotonic_ns(), 0), 0);
	assert_int_equal(process->maps.list.len, mappings);
	assert_int_equal(state_of(pid), 'Z');
	assert_true(process_is_ending(process));
	waitpid(pid, NULL, 0);
	assert_int_equal(process_refresh_maps(process, clock_monotonic_ns(), 0), -ESRCH);
	assert_true(process->exited);
	assert_int_equal(process->maps.list.len, mappings);
	assert_ptr_equal(process_get(&table, pid, ticks), process);
	assert_ptr_equal(process_get(&table, pid, 0), process);
	assert_true(process_is_ending(process));
	assert_int_equal(process_read_start_ticks(pid, &unread), -ESRCH);
	assert_int_equal(unread, 7);
}

static void test_never_seen_alive(void **state)
{
	struct process *process = process_get(&table, 0x7ffffff, 1234);

	assert_non_null(process);
	assert_true(process->exited);
	assert_int_equal(process->start_ticks, 1234);
	assert_null(process->executable);
	assert_string_equal(process->comm, "");
	process_exec(process_find(&table, 0x7ffffff));
	assert_null(process_find(&table, 0x7fffffe));
}

/* Records of an earlier process with our pid, then ours, then a late one of the earlier process. */
static void test_reused_pid(void **state)
{
	struct process *before = process_get(&table, getpid(), 1);
	struct process *self = process_get(&table, getpid(), 0);

	assert_ptr_not_equal(before, self);
	assert_true(before->exited);
	assert_int_equal(before->maps.list.len, 0);
	assert_false(self->exited);
	assert_ptr_equal(process_get(&table, getpid(), 1), before);
	assert_true(process_get(&table, getpid(), 2)->exited);
	assert_ptr_equal(process_find(&table, getpid()), self);
	assert_false(self->exited);
	assert_int_equal(table.all.len, 3);
}

static void test_exec(void **state)
{
	int pipe_fds[2];
	struct process *process;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (!pid) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(pipe_fds[0], &byte, 1) == 1)
			execlp("sleep", "sleep", "60", NULL);
		_exit(1);
	}
	process = process_get(&table, pid, 0);
	assert_non_null(strstr(process->executable, "test_process"));
	assert_int_equal(write(pipe_fds[1], "", 1), 1);
	for (int i = 0; i < 500 && strcmp(process->comm, "sleep"); i++) {
		usleep(10000);
		process_exec(process_find(&table, pid));
	}
	assert_string_equal(process->comm, "sleep");
	assert_null(strstr(process->executable, "test_process"));
	assert_null(maps_find_file(&process->maps, "test_process"));
	assert_int_not_equal(process->read_ns, 0);
	process_adopt_maps(process, &(struct maps){0}); /* of an older program: the next exec has to read /proc */
	assert_int_equal(process->read_ns, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	end_child(pid);
}

static void test_refresh(void **state)
{
	struct process *self = process_get(&table, getpid(), 0);
	uint64_t now = clock_monotonic_ns();
	void *code;

	assert_int_equal(process_refresh_maps(self, now, 0), 0);
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(process_refresh_maps(self, now + NS_PER_MS, NS_PER_SEC), 0);
	assert_null(maps_find(&self->maps, (uintptr_t)code));
	assert_int_equal(process_refresh_maps(self, now + NS_PER_SEC, NS_PER_SEC), 1);
	assert_non_null(maps_find(&self->maps, (uintptr_t)code));
	munmap(code, 4096);
}

static void count_freed(void *context, struct process *process)
{
	assert_true(process->exited && !process->references);
	(*(int *)context)++;
}

static void test_sweep(void **state)
{
	struct process_table sweep_table;
	struct process *self, *held;
	int freed = 0;

	process_table_init(&sweep_table);
	self = process_get(&sweep_table, getpid(), 0);
	for (pid_t pid = 1 << 23; pid < (1 << 23) + 10; pid++)
		process_get(&sweep_table, pid, 1); /* above the largest pid there can be */
	held = process_ref(process_find(&sweep_table, 1 << 23));
	assert_int_equal(process_table_sweep(&sweep_table, held->exited_ns, count_freed, &freed), 0);
	assert_int_equal(process_table_sweep(&sweep_table, UINT64_MAX, count_freed, &freed), 9);
	assert_int_equal(freed, 9);
	assert_ptr_equal(process_find(&sweep_table, getpid()), self);
	assert_ptr_equal(process_find(&sweep_table, 1 << 23), held);
	assert_null(process_find(&sweep_table, (1 << 23) + 1));
	process_unref(held);
	assert_int_equal(process_table_sweep(&sweep_table, UINT64_MAX, count_freed, &freed), 1);
	process_table_release(&sweep_table);
}

static void meet(void *ret_found, pid_t pid)
{
	assert_true(pid > 0);
	assert_non_null(process_get(&table, pid, 0));
	*(bool *)ret_found |= pid == getpid();
}

static void test_every_process(void **state)
{
	bool found_self = false;

	assert_int_equal(process_each(meet, &found_self), 0);
	assert_true(found_self);
}

#define table_test(f) cmocka_unit_test_setup_teardown(f, table_setup, table_teardown)

static void *find_leader(void *ret_pid)
{
	pid_t tid = gettid();

	assert_int_not_equal(tid, getpid());
	assert_int_equal(process_read_leader(tid, ret_pid), 0);
	return NULL;
}

static void test_leader_of_a_thread(void **state)
{
	pthread_t thread;
	pid_t pid = 0;

	assert_int_equal(pthread_create(&thread, NULL, find_leader, &pid), 0);
	pthread_join(thread, NULL);
	assert_int_equal(pid, getpid());
	assert_int_equal(process_read_leader(INT32_MAX, &pid), -ESRCH);
	assert_int_equal(pid, getpid());
}

static void test_kernel_threads(void **state)
{
	char name[16];

	assert_false(process_is_kernel_thread(process_get(&table, getpid(), 0)));
	process_read_thread_comm(CHARGE_OWN(2), 2, name, sizeof(name));
	if (strcmp(name, "kthreadd")) /* in a container */
		return;
	assert_true(process_is_kernel_thread(process_get(&table, 2, 0)));
}

static void *lives_on(void *unused)
{
	pause();
	return unused;
}

static void *leave_behind(void *pipe_end)
{
	(void)!write(*(int *)pipe_end, "", 1);
	return lives_on(NULL);
}

/* A process whose first thread has ended, which has no memory and no files any more. */
static pid_t start_leaderless(void)
{
	static int ends[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!pthread_create(&thread, NULL, leave_behind, &ends[1]))
			pthread_exit(NULL);
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 1000 && process_read_state(pid) != 'Z'; i++)
		usleep(10000);
	return pid;
}

static void first_thread_ended(void **state)
{
	pid_t pid = start_leaderless();
	struct process *process = process_get(&table, pid, 0);

	assert_int_equal(process_read_state(pid), 'Z');
	assert_non_null(process);
	assert_int_not_equal(process_living_thread(pid), 0);
	assert_int_not_equal(process_living_thread(pid), pid);
	assert_int_equal(process->living, process_living_thread(pid));
	assert_non_null(process->executable);
	assert_true(process->maps.list.len > 0);
	assert_false(process_is_ending(process));
	assert_int_equal(process_refresh_maps(process, clock_monotonic_ns(), 0), 0);
	assert_false(process->exited);
	kill(pid, SIGKILL);
	assert_int_equal(process_living_thread(pid), 0);
	assert_true(process_is_ending(process));
	waitpid(pid, NULL, 0);
	assert_int_equal(process_living_thread(pid), 0);
	assert_int_equal(process_living_thread(getpid()), getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		table_test(test_self),
		table_test(test_hostile_name),
		table_test(test_other_user),
		table_test(test_exited_child),
		table_test(test_never_seen_alive),
		table_test(test_reused_pid),
		table_test(test_exec),
		table_test(test_refresh),
		table_test(test_every_process),
		table_test(test_sweep),
		table_test(test_kernel_threads),
		cmocka_unit_test(test_leader_of_a_thread),
		table_test(first_thread_ended),
		table_test(test_user_namespaces_cost_their_maker),
		table_test(test_half_is_for_after_the_start),
		table_test(test_users_have_allowances),
		table_test(test_charges_inside_of_charges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
