/* SPDX-License-Identifier: MIT */
/* A small kernel's types, made by libbpf: what is selected from them for programs, and files that are no types. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "collect/kernel/kernel_types.h"

struct file {
	int fd;
	char path[32];
};

static struct file new_file(const void *bytes, size_t len)
{
	struct file file = {.fd = memfd_create("types", 0)};

	assert_true(file.fd >= 0);
	snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
	assert_int_equal(write(file.fd, bytes, len), len);
	return file;
}

/* struct task { int pid; struct other *next; struct name names[2]; enum state state; }, and what that needs. */
static struct btf *kernel_with(const char *socket)
{
	struct btf *kernel = btf__new_empty();
	int number = btf__add_int(kernel, "int", 4, BTF_INT_SIGNED), other, pointer, name, names, state, task,
	    proto;

	other = btf__add_struct(kernel, "other", 4);
	assert_int_equal(btf__add_field(kernel, "hidden", number, 0, 0), 0);
	pointer = btf__add_ptr(kernel, other);
	name = btf__add_struct(kernel, "name", 4);
	assert_int_equal(btf__add_field(kernel, "letters", number, 0, 0), 0);
	names = btf__add_array(kernel, number, name, 2);
	state = btf__add_enum(kernel, "state", 4);
	assert_int_equal(btf__add_enum_value(kernel, "RUNNING", 7), 0);
	task = btf__add_struct(kernel, "task", 32);
	assert_int_equal(btf__add_field(kernel, "pid", number, 0, 0), 0);
	assert_int_equal(btf__add_field(kernel, "next", pointer, 64, 0), 0);
	assert_int_equal(btf__add_field(kernel, "names", names, 128, 0), 0);
	assert_int_equal(btf__add_field(kernel, "state", state, 192, 0), 0);
	assert_true(btf__add_struct(kernel, socket, 4) > 0);
	pointer = btf__add_ptr(kernel, task);
	btf__add_typedef(kernel, "btf_trace_switch", btf__add_ptr(kernel, btf__add_func_proto(kernel, 0)));
	btf__add_func(kernel, "not_called", BTF_FUNC_STATIC, btf__add_func_proto(kernel, 0));
	proto = btf__add_func_proto(kernel, number);
	assert_int_equal(btf__add_func_param(kernel, "to", pointer), 0);
	assert_true(btf__add_func(kernel, "called", BTF_FUNC_STATIC, proto) > 0);
	return kernel;
}

static struct btf *programs(void)
{
	struct btf *types = btf__new_empty();

	assert_true(btf__add_struct(types, "task___before_5_14", 4) > 0);
	assert_true(btf__add_struct(types, "unix_sock", 4) > 0);
	assert_true(btf__add_struct(types, "our_own", 4) > 0);
	assert_true(btf__add_func(types, "called", BTF_FUNC_EXTERN, btf__add_func_proto(types, 0)) > 0);
	return types;
}

static void what_programs_name_is_selected(void **state)
{
	struct btf *kernel = kernel_with("unix_sock"), *named = programs(), *result;
	uint32_t len;
	const void *bytes = btf__raw_data(kernel, &len);
	struct file from = new_file(bytes, len), to = new_file("", 0);
	const struct btf_type *task, *names, *next;

	assert_int_equal(kernel_types_select(from.path, named, to.fd), 0);
	result = btf__parse_raw(to.path);
	assert_non_null(result);
	task = btf__type_by_id(result, (uint32_t)btf__find_by_name_kind(result, "task", BTF_KIND_STRUCT));
	assert_int_equal(task->size, 32);
	assert_int_equal(btf_vlen(task), 4);
	assert_string_equal(btf__name_by_offset(result, btf_members(task)[3].name_off), "state");
	assert_int_equal(btf_member_bit_offset(task, 3), 192);
	next = btf__type_by_id(result, btf_members(task)[1].type);
	assert_true(btf_is_ptr(next) && !next->type);
	names = btf__type_by_id(result, btf_members(task)[2].type);
	assert_int_equal(btf_array(names)->nelems, 2);
	assert_int_equal(btf_array(names)->type, btf__find_by_name_kind(result, "name", BTF_KIND_STRUCT));
	assert_true(btf__find_by_name_kind(result, "state", BTF_KIND_ENUM) > 0);
	assert_true(btf__find_by_name_kind(result, "unix_sock", BTF_KIND_STRUCT) > 0);
	assert_int_equal(btf__find_by_name_kind(result, "other", BTF_KIND_STRUCT), -ENOENT);
	btf__free(result);
	btf__free(named);
	btf__free(kernel);
	close(from.fd);
	close(to.fd);
}

/* What libbpf finds by name in place of the kernel's types, and what their functions take. */
static void libbpf_gets_what_was_selected(void **state)
{
	struct btf *kernel = kernel_with("unix_sock"), *named = programs(), *lent;
	uint32_t len;
	const void *bytes = btf__raw_data(kernel, &len);
	struct file from = new_file(bytes, len), to = new_file("", 0);
	const struct btf_type *type;

	assert_int_equal(kernel_types_select(from.path, named, to.fd), 0);
	kernel_types_lend(to.fd);
	lent = btf__load_vmlinux_btf();
	kernel_types_lend(0);
	assert_non_null(lent);
	assert_true(btf__type_cnt(lent) < btf__type_cnt(kernel));
	assert_true(btf__find_by_name_kind(lent, "btf_trace_switch", BTF_KIND_TYPEDEF) > 0);
	assert_int_equal(btf__find_by_name_kind(lent, "not_called", BTF_KIND_FUNC), -ENOENT);
	type = btf__type_by_id(lent, (uint32_t)btf__find_by_name_kind(lent, "called", BTF_KIND_FUNC));
	type = btf__type_by_id(lent, type->type);
	assert_int_equal(btf_vlen(type), 1);
	type = btf__type_by_id(lent, btf_params(type)->type);
	assert_true(btf_is_ptr(type));
	assert_string_equal(btf__name_by_offset(lent, btf__type_by_id(lent, type->type)->name_off), "task");
	btf__free(lent);
	btf__free(named);
	btf__free(kernel);
	close(from.fd);
	close(to.fd);
}

static void types_of_modules_are_not_missed(void **state)
{
	struct btf *kernel = kernel_with("another_sock"), *named = programs();
	uint32_t len;
	const void *bytes = btf__raw_data(kernel, &len);
	struct file from = new_file(bytes, len), to = new_file("", 0);

	assert_int_equal(kernel_types_select(from.path, named, to.fd), -ENOENT);
	btf__free(named);
	btf__free(kernel);
	close(from.fd);
	close(to.fd);
}

static void files_that_are_cut_or_wrong_are_refused(void **state)
{
	struct btf *kernel = kernel_with("unix_sock"), *named = programs();
	uint32_t len;
	const uint8_t *bytes = btf__raw_data(kernel, &len);

	for (uint32_t i = 0; i < len; i++) {
		struct file from = new_file(bytes, i), to = new_file("", 0);
		uint8_t wrong = (uint8_t)(bytes[i] ^ 0xff);

		assert_true(kernel_types_select(from.path, named, to.fd) < 0);
		assert_int_equal(pwrite(from.fd, bytes, len, 0), len);
		assert_int_equal(pwrite(from.fd, &wrong, 1, i), 1);
		(void)kernel_types_select(from.path, named, to.fd); /* may be valid: sanitizers watch */
		close(from.fd);
		close(to.fd);
	}
	assert_int_equal(kernel_types_select("/proc/self/no-such-file", named, 1), -ENOENT);
	btf__free(named);
	btf__free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_programs_name_is_selected),
		cmocka_unit_test(libbpf_gets_what_was_selected),
		cmocka_unit_test(types_of_modules_are_not_missed),
		cmocka_unit_test(files_that_are_cut_or_wrong_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
