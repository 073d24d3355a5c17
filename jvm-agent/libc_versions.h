/* SPDX-License-Identifier: MIT */
/*
 * One build works with glibc 2.17 and later. glibc 2.32 to 2.34 moved these functions from libpthread and libdl into
 * libc under new versions, and a library that was linked on a newer host would require those. Every glibc still
 * provides the old versions, and where libpthread and libdl are separate, a JVM has loaded them. musl has no symbol
 * versions. Include this in each file that calls one of these functions.
 */
#pragma once

#include <features.h>

#ifdef __GLIBC__
#if defined(__x86_64__)
#define OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST_GLIBC "GLIBC_2.17"
#endif
#define USE_OLDEST(name) __asm__(".symver " #name "," #name "@" OLDEST_GLIBC)

USE_OLDEST(pthread_create);
USE_OLDEST(pthread_join);
USE_OLDEST(pthread_detach);
USE_OLDEST(pthread_mutex_trylock);
USE_OLDEST(pthread_mutex_timedlock);
USE_OLDEST(pthread_rwlock_rdlock);
USE_OLDEST(pthread_rwlock_tryrdlock);
USE_OLDEST(pthread_rwlock_timedrdlock);
USE_OLDEST(pthread_rwlock_wrlock);
USE_OLDEST(pthread_rwlock_trywrlock);
USE_OLDEST(pthread_rwlock_timedwrlock);
USE_OLDEST(pthread_once);
USE_OLDEST(pthread_key_create);
USE_OLDEST(pthread_getspecific);
USE_OLDEST(pthread_setspecific);
USE_OLDEST(pthread_sigmask);
USE_OLDEST(pthread_attr_setguardsize);
USE_OLDEST(pthread_attr_setstacksize);
USE_OLDEST(dladdr);
USE_OLDEST(dlopen);
USE_OLDEST(dlsym);
USE_OLDEST(dlclose);
#if defined(__x86_64__)
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@GLIBC_2.3.3");
#elif defined(__aarch64__)
USE_OLDEST(dlinfo);
USE_OLDEST(pthread_condattr_setclock);
#endif
#endif
