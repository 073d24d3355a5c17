/* SPDX-License-Identifier: MIT */
/*
 * Include this last in every file of the signal path (sample.c, walk.c, tables.c, java_walk.c, repair.c,
 * safe_copy.c, perf_ring.c, byte_clock.c). A call of a function that must not be called there then does not compile.
 */
#pragma once

#pragma GCC poison malloc calloc realloc free strdup
#pragma GCC poison printf fprintf dprintf snprintf sprintf vsnprintf puts fputs fopen fclose fwrite syslog
#pragma GCC poison pthread_mutex_lock pthread_mutex_trylock pthread_cond_signal
#pragma GCC poison dlopen dlsym dladdr getenv exit abort longjmp
