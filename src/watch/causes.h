/* causes.h -- what a GPU can wait for. The order is that of the report; the ids are those of the
 * run file and never change.   Not here: how a moment comes to its cause (attribution.h). */
#ifndef WATCH_CAUSES_H
#define WATCH_CAUSES_H

/*  name          id                   words */
#define CAUSES(X)                                                                                  \
    X(FETCH, "input/fetch", "reading the data")                                                    \
    X(TRANSFORM, "input/transform", "decoding and transforming")                                   \
    X(COLLATE, "input/collate", "collating batches and handing them between processes")            \
    X(WORKERS, "input/workers", "too few workers")                                                 \
    X(SLOW_SAMPLE, "input/slow-sample", "one slow sample that holds up the order")                 \
    X(START, "input/start", "starting the loader and its epochs")                                  \
    X(COPY, "copy", "copying to the device")                                                       \
    X(LAUNCH, "launch", "Python launching kernels")                                                \
    X(GIL, "gil", "the GIL or the pin thread")                                                     \
    X(CONTENTION, "contention", "other programs on the CPU")                                       \
    X(SYNC, "sync", "synchronising and logging")                                                   \
    X(CHECKPOINT, "checkpoint", "writing checkpoints")                                             \
    X(VALIDATION, "validation", "validation")                                                      \
    X(RANK, "rank", "waiting for another rank")                                                    \
    X(OVERHEAD, "overhead", "being watched")                                                       \
    X(OTHER, "other", "something else")

#define CAUSE_ENUM(name, id, words) CAUSE_##name,
enum cause { CAUSES(CAUSE_ENUM) CAUSE_COUNT };
#undef CAUSE_ENUM

const char *cause_id(enum cause cause);    /* "input/fetch" */
const char *cause_words(enum cause cause); /* "reading the data" */

#endif
