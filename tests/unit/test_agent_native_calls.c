/* SPDX-License-Identifier: MIT */
/*
 * The functions in the place of native methods: each leads to the method's own one with all arguments, in registers and
 * on the stack, whether the method has a probe or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../jvm-agent/method/native_calls.c"

#define PROBE 7

typedef double many(void *env, void *class, int a, long b, double c, float d, signed char e, short f, long g, double h,
		    double i, double j, double k, double l, double m, double n, int o);

static uint32_t called, called_at;

/* Overwrites the registers of arguments, as any function may. */
uintptr_t natives_called(uint32_t place)
{
	called++;
	called_at = place;
#if defined(__x86_64__)
	__asm__ volatile("xor %%edi, %%edi; xor %%esi, %%esi; xor %%edx, %%edx; xor %%ecx, %%ecx; xor %%r8d, %%r8d;"
			 "xor %%r9d, %%r9d; pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2;"
			 "pxor %%xmm3, %%xmm3; pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6;"
			 "pxor %%xmm7, %%xmm7" ::
				 : "rdi", "rsi", "rdx", "rcx", "r8", "r9", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
				   "xmm5", "xmm6", "xmm7");
#else
	__asm__ volatile("mov x0, #0; mov x1, #0; mov x2, #0; mov x3, #0; mov x4, #0; mov x5, #0; mov x6, #0;"
			 "mov x7, #0; movi v0.2d, #0; movi v1.2d, #0; movi v2.2d, #0; movi v3.2d, #0;"
			 "movi v4.2d, #0; movi v5.2d, #0; movi v6.2d, #0; movi v7.2d, #0" ::
				 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "v0", "v1", "v2", "v3", "v4", "v5",
				   "v6", "v7");
#endif
	return native_calls[place].function;
}

static double sum(void *env, void *class, int a, long b, double c, float d, signed char e, short f, long g, double h,
		  double i, double j, double k, double l, double m, double n, int o)
{
	assert_ptr_equal(env, &called);
	assert_ptr_equal(class, &called_at);
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m +
	       14 * n + 15 * o;
}

static void call(uint32_t place, int32_t id)
{
	many *method = (many *)native_calls_at(place);

	native_calls[place] = (struct native_call){.function = (uintptr_t)sum, .id = id};
	called = 0;
	assert_true(method(&called, &called_at, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) == 1240);
	assert_int_equal(called, id != PROBE_NONE);
	if (called)
		assert_int_equal(called_at, place);
	native_calls[place].function = 0;
}

static void arguments_stay(void **state)
{
	const uint32_t places[] = {0, 1, 100, NATIVE_CALLS - 1};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		call(places[i], PROBE_NONE);
		call(places[i], 0);
		call(places[i], PROBE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(arguments_stay)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
