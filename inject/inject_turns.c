#include "inject_turns.h"

#define SECOND INT64_C(1000000000)
#define ALLOWED_S INT64_C(2500)       /* records */
#define ALLOWED_FIRST INT64_C(200000) /* so many are recorded before the first rest */
#define ALLOWED_MOST INT64_C(100000)  /* what a quiet time saves up */
#define WINDOW_NS (SECOND / 4)
#define REST_LEAST SECOND
#define REST_MOST (10 * SECOND)

static int64_t between(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* How long until the allowance is enough for a window of as many records. */
static int64_t rest_length(const struct inject_turns *turns, int64_t fresh, int64_t elapsed)
{
    int64_t window = fresh * WINDOW_NS / elapsed;
    return between((window - turns->left) * SECOND / ALLOWED_S, REST_LEAST, REST_MOST);
}

enum inject_turn inject_turns_look(struct inject_turns *turns, uint64_t now, uint64_t records)
{
    int64_t elapsed = (int64_t)(now - turns->time), fresh = (int64_t)(records - turns->records);
    int is_first = !turns->time;
    turns->time = now;
    turns->records = records;
    if (is_first || elapsed <= 0) {
        turns->left = is_first ? ALLOWED_FIRST : turns->left;
        return TURN_STAYS;
    }
    turns->left -= fresh;
    if (turns->left < ALLOWED_MOST)
        turns->left =
            between(turns->left + elapsed * ALLOWED_S / SECOND, -ALLOWED_MOST, ALLOWED_MOST);
    if (turns->rests_until) {
        if (now < turns->rests_until)
            return TURN_STAYS;
        turns->rests_until = 0;
        return TURN_RECORDS;
    }
    if (turns->left >= 0 || !fresh)
        return TURN_STAYS;
    turns->rests_until = now + (uint64_t)rest_length(turns, fresh, elapsed);
    return TURN_RESTS;
}

void inject_turns_wake(struct inject_turns *turns)
{
    turns->rests_until = 0;
}
