#include "stream.h"

#define AT(member) offsetof(struct stream_arguments, member)

/* The choices stand in the order of the library's enums. */
const struct option stream_options[] = {
    {"batch-size", 0, OPTION_U32, AT(batch_size), "N", "samples a batch, on each rank"},
    {"global-batch-size", 0, OPTION_U32, AT(global_batch_size), "N",
     "samples a batch over all ranks, instead of --batch-size"},
    {"shuffle", 0, OPTION_FLAG, AT(shuffle), NULL, "in a random order, another one each epoch"},
    {"shuffle-order", 0, OPTION_CHOICE, AT(shuffle_order), "auto|sequential|global|local|time",
     "global: a true shuffle; local: chunks, then samples within reach; time: of a series, by the "
     "time of the window's last row (auto)"},
    {"reach", 0, OPTION_U32, AT(reach), "N", "local order: chunks mixed at a time"},
    {"seed", 0, OPTION_U64, AT(seed), "N", "of the order (0)"},
    {"epoch", 0, OPTION_U64, AT(epoch), "N", "the first epoch (0)"},
    {"epochs", 0, OPTION_U64, AT(epochs), "N", "how many, counted from the run's first (1)"},
    {"rank", 0, OPTION_U32, AT(rank), "N", "this process among --world-size (0)"},
    {"world-size", 0, OPTION_U32, AT(world_size), "N", "processes that share the samples (1)"},
    {"last", 0, OPTION_CHOICE, AT(last), "auto|short|mask|drop",
     "the last batch: smaller, masked or left out (short; mask on several ranks)"},
    {"bad", 0, OPTION_CHOICE, AT(bad), "raise|replace",
     "bad samples: stop, or take another (raise)"},
    {"quarantine", 0, OPTION_TEXT, AT(quarantine), "FILE", "write the replaced samples there"},
    {"ragged", 0, OPTION_CHOICE, AT(ragged), "error|pad|list|flat",
     "samples of unequal shape (error)"},
    {"transform", 0, OPTION_EACH, AT(transforms.each), "'FIELD: CHAIN'", TRANSFORM_HELP},
    {"batch-transform", 0, OPTION_TEXT, AT(transforms.batch), "CHAIN",
     "done with whole batches: MixUp, CutMix"},
    {"plugin", 0, OPTION_EACH, AT(transforms.plugins), "FILE",
     "a library with transforms of your own"},
    {"threads", 0, OPTION_U32, AT(threads), "N", "reading and decoding (one a core)"},
    {"memory", 0, OPTION_SIZE, AT(memory), "SIZE", "most bytes the loader holds (2GiB)"},
    {"depth", 0, OPTION_U32, AT(depth), "N", "batches in flight"},
    {"io", 0, OPTION_CHOICE, AT(io), "auto|pread|uring", "how files are read (auto)"},
    {"save-state", 0, OPTION_TEXT, AT(save_state), "FILE", "where it stopped, for --resume"},
    {"stop-after", 0, OPTION_U64, AT(stop_after), "BATCHES", "end after so many batches"},
    {"resume", 0, OPTION_TEXT, AT(resume), "FILE", "go on from a saved state"},
    {"order", 0, OPTION_FLAG, AT(order), NULL,
     "print sample numbers, a line a batch, and read nothing"},
    {"no-digest", 0, OPTION_FLAG, AT(no_digest), NULL, "do not hash what is delivered"},
    {"trace", 0, OPTION_TEXT, AT(trace), "FILE", "write a Perfetto trace there"},
    {0},
};
