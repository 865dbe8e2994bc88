#include "inject_allowance.h"

#define SHARE 100                      /* a hundredth of the time */
#define AT_FIRST_NS INT64_C(800000000) /* and the most that a quiet time saves up */
#define RECORD_NS INT64_C(8000)        /* of the thread that launches */
#define RECORD_HIDDEN_NS INT64_C(1000) /* of the device, while the thread is ahead of it */

/* Whether the device hardly waited: nine tenths of the time. */
static int is_hidden(uint64_t busy_ns, uint64_t elapsed)
{
    return busy_ns >= elapsed - elapsed / 10;
}

int inject_allowance_spend(struct inject_allowance *allowance, uint64_t now, uint64_t records,
                           uint64_t busy_ns)
{
    struct inject_allowance last = *allowance;
    if (!last.time)
        last = (struct inject_allowance){AT_FIRST_NS, now, records, busy_ns};
    uint64_t elapsed = now - last.time;
    int64_t each = is_hidden(busy_ns - last.busy_ns, elapsed) ? RECORD_HIDDEN_NS : RECORD_NS;
    int64_t left =
        last.left_ns + (int64_t)elapsed / SHARE - (int64_t)(records - last.records) * each;
    left = left < AT_FIRST_NS ? left : AT_FIRST_NS;
    *allowance = (struct inject_allowance){left, now, records, busy_ns};
    return left < 0;
}
