/* condition.h -- conditions that are waited for until a time of clock_now.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: what is waited for. */
#ifndef BASE_CONDITION_H
#define BASE_CONDITION_H

#include <pthread.h>
#include <stdint.h>

void condition_init(pthread_cond_t *condition); /* pthread_cond_destroy ends it */
/* As pthread_cond_timedwait: the lock is held, and may have been let go of meanwhile. 0: the time
 * is over. */
int condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns);

#endif
