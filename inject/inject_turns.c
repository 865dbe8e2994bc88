#include "inject_turns.h"

#define SECOND INT64_C(1000000000)
#define ALLOWED_S INT64_C(2500)      /* records */
#define ALLOWED_MOST INT64_C(100000) /* at first, and what a quiet time saves up */
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
    if (!turns->time)
        *turns = (struct inject_turns){.left = ALLOWED_MOST, .time = now, .records = records};
    if (now <= turns->time)
        return TURN_STAYS;
    int64_t elapsed = (int64_t)(now - turns->time), fresh = (int64_t)(records - turns->records);
    int64_t left = turns->left - fresh + elapsed * ALLOWED_S / SECOND;
    turns->left = between(left, -ALLOWED_MOST, ALLOWED_MOST);
    turns->time = now;
    turns->records = records;
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
