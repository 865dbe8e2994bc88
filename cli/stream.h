/* stream.h -- what the files of `stoker stream` share.
 * Owns: nothing.   Threads: one.   Errors: exit statuses; words on standard error.
 * Not here: the loader (stoker/loader.h). */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "stoker/digest.h"
#include "stoker/loader.h"
#include "device_options.h"
#include "options.h"
#include "transform_options.h"

struct stream_arguments {
    struct arguments base;
    uint32_t batch_size, global_batch_size, reach, rank, world_size, threads, depth;
    uint64_t seed, epoch, epochs, memory;
    uint64_t stop_after; /* UINT64_MAX: at the end */
    int shuffle, shuffle_order, last, bad, ragged, io, order, no_digest;
    const char *save_state, *resume, *trace, *quarantine;
    struct device_arguments device;
    struct transform_arguments transforms;
};

extern const struct option stream_options[];

/* One run of the loader. */
struct stream {
    const struct stream_arguments *arguments;
    struct stk_field_chain chains[TRANSFORM_CHAINS_MOST];
    struct stk_dataset *dataset;
    struct stk_loader *loader;
    uint64_t first_epoch; /* of the run: a resumed one keeps it */
    uint64_t samples, batches, bytes;
    double seconds, open_seconds;
    uint64_t epoch, position;     /* where it stopped */
    struct stk_digest digest;     /* of this call */
    struct stk_digest run_digest; /* of the whole run, over all resumes */
    int has_run_digest;
};

/* Draws batches until the end, and hashes them. Returns an exit status; counters are set in any
 * case. */
int stream_batches(struct stream *stream);
/* Prints the sample numbers of each batch and reads nothing. */
int stream_order(struct stream *stream);
/* The result on standard output, as JSON or as words. */
void stream_report(const struct stream *stream);
/* Writes the quarantined samples to a file, one JSON object a line. Returns an exit status. */
int stream_quarantine(const struct stream *stream, const char *path);

/* Not 0 while the run has an epoch and a batch left. */
static inline int stream_goes_on(const struct stream *stream, uint64_t epoch)
{
    return epoch - stream->first_epoch < stream->arguments->epochs &&
           stream->batches < stream->arguments->stop_after;
}

#endif
