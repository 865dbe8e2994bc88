/* watch_loop.h -- a story of a loop that draws from a loader, and what a cause should have of it.
 * Owns: nothing.   Threads: one.   Errors: a failed assertion.   Not here: events (watch_story.h).
 */
#ifndef TESTS_WATCH_LOOP_H
#define TESTS_WATCH_LOOP_H

#include "watch/watch_story.h"

/* The loop of most stories: next() of 30 ms, a kernel of 10 ms, a step, ten times. A batch's number
 * is its index; everything before next() ends belongs to the wait. */
enum { STEPS = 10 };
#define PERIOD (40 * MS)
#define WAIT (30 * MS)

TESTING struct story *loop_begin(const char *loader)
{
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_MAIN, -1);
    story_process(story, WORKER, PROCESS_WORKER, 0);
    story_text(story, MAIN, RECORD_LOADER, LOADER, loader);
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 1 * MS);
    return story;
}

TESTING uint64_t next_start(int step)
{
    return 1 * MS + (uint64_t)step * PERIOD;
}

TESTING void loop_steps(struct story *story)
{
    for (int i = 0; i < STEPS; i++) {
        uint64_t start = next_start(i);
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = start, .end = start + WAIT,
             .batch = (uint64_t)i);
        story_mark(story, MARK_BATCH, start + WAIT, LOADER, 32);
        story_kernel(story, start + WAIT, start + PERIOD, 0);
        story_mark(story, MARK_STEP, start + PERIOD, 0, 0);
    }
}

TESTING void expect(const struct summary_rank *rank, enum cause cause, uint64_t ns)
{
    if (rank->causes[cause].ns == ns)
        return;
    for (int i = 0; i < CAUSE_COUNT; i++)
        if (rank->causes[i].ns)
            print_error("%s: %llu ns\n", cause_id((enum cause)i),
                        (unsigned long long)rank->causes[i].ns);
    print_error("%s should have %llu\n", cause_id(cause), (unsigned long long)ns);
    assert_int_equal(rank->causes[cause].ns, ns);
}

#endif
