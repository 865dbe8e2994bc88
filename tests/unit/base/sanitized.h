/* sanitized.h -- which sanitizer a test runs under, and what cannot be tried there.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: anything else. */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#ifdef __has_feature
#define UNDER_THREAD_SANITIZER __has_feature(thread_sanitizer)
#define UNDER_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#endif
#ifndef UNDER_THREAD_SANITIZER
#ifdef __SANITIZE_THREAD__
#define UNDER_THREAD_SANITIZER 1
#else
#define UNDER_THREAD_SANITIZER 0
#endif
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ADDRESS_SANITIZER 1
#else
#define UNDER_ADDRESS_SANITIZER 0
#endif
#endif

/* Not 0: a child of a process with threads may run code of ours. Sanitizers do not let it: the
 * thread sanitizer refuses threads there, and the lock of an allocator may be held for ever. */
#define CAN_FORK (!UNDER_THREAD_SANITIZER && !UNDER_ADDRESS_SANITIZER)

#endif
