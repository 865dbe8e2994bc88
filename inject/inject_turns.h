/* inject_turns.h -- when recording rests, so that it costs the program about a hundredth of its
 * time. Owns: nothing.   Threads: one at a time.   Errors: none.   Not here: what is recorded
 * (inject_recorder.h), what is made of the time between (watch/judge.c).
 *
 * A record of a kernel costs the thread that launches it 1 to 2 us on an H200, whatever is recorded
 * besides and wherever CUPTI puts its buffers (results/gpu/cupti.json). A training loop of tiny
 * kernels lost up to 7 a kernel; why so much more is not known. 4 are reckoned with: 2,500 a second
 * are a hundredth then; that loop of tiny kernels makes 67,000. So records are an allowance that
 * comes with time: when it is used up, recording rests until there is enough for a quarter of a
 * second. A device that waits has no records and uses nothing up: no gap is cut short for a rest.
 */
#ifndef INJECT_TURNS_H
#define INJECT_TURNS_H

#include <stdint.h>

struct inject_turns { /* all zero at first */
    int64_t left;     /* of the allowance */
    uint64_t time, records;
    uint64_t rests_until; /* 0: it records */
};

enum inject_turn { TURN_STAYS, TURN_RESTS, TURN_RECORDS };

/* What to do from now on; records: that there were until now. */
enum inject_turn inject_turns_look(struct inject_turns *turns, uint64_t now, uint64_t records);
/* Somebody else ended the rest, if there is one. */
void inject_turns_wake(struct inject_turns *turns);

#endif
