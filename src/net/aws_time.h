/* aws_time.h -- the dates that clouds write.
 * Owns: nothing.   Threads: any.   Errors: 0.   Not here: clocks (base/clock.h). */
#ifndef NET_AWS_TIME_H
#define NET_AWS_TIME_H

#include <stdint.h>

/* Seconds since 1970 of "2026-11-15T21:03:04Z", also with a fraction or an offset (+01:00), or of
 * "Sun, 15 Nov 2026 21:03:04 GMT"; 0: it is neither. */
int64_t aws_time_read(const char *text);

#endif
