/* SPDX-License-Identifier: MIT */
/*
 * One build for glibc 2.17 and later: glibc 2.32-2.34 moved these functions
 * from libpthread and libdl into libc under new versions, and a link on a new
 * host would ask for those. The old version names are still served by every glibc,
 * and a JVM has libpthread and libdl loaded where they are separate. musl knows no
 * versions. Include this in each file that calls one of them.
 */
#ifndef LIBC_VERSIONS_H
#define LIBC_VERSIONS_H

#include <features.h>

#ifdef __GLIBC__
#if defined(__x86_64__)
#define OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST_GLIBC "GLIBC_2.17"
#endif
#define USE_OLDEST(name) __asm__(".symver " #name "," #name "@" OLDEST_GLIBC)

USE_OLDEST(pthread_create);
USE_OLDEST(pthread_getspecific);
USE_OLDEST(pthread_sigmask);
USE_OLDEST(pthread_attr_setguardsize);
USE_OLDEST(pthread_attr_setstacksize);
USE_OLDEST(dladdr);
USE_OLDEST(dlopen);
USE_OLDEST(dlsym);
#endif

#endif
