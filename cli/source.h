/* source.h -- opens what the command line names, and counts what it holds.
 * Owns: nothing; the dataset is the caller's.   Threads: any.   Errors: status, words in *err.
 * Not here: the options' table (options.h). */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include <limits.h>
#include "stoker/dataset.h"

#include "options.h"

STK_CHECK stk_status source_open(struct stk_context *context, const struct arguments *arguments,
                                 char **sources, int count, struct stk_dataset **out,
                                 struct stk_error *err);

/* Sets what the options say of data on the network; source_open does so itself. */
STK_CHECK stk_status source_configure(const struct arguments *arguments, struct stk_error *err);

/* What to leave out of objects' paths so that they read as the user would write them: the current
 * folder when all sources were named from it, else nothing. */
void source_folder(const struct arguments *arguments, char folder[PATH_MAX]);
/* The path without that folder. Points into object. */
const char *source_path(const char *folder, const char *object);

/* What a walk over all samples finds for one field. */
struct source_count {
    uint64_t samples; /* that have the field */
    uint64_t bytes;   /* of those that lie plainly in an object; of windows, all as delivered */
};
/* counts: one a field. Ends early, with STK_CANCELLED, on a signal. */
STK_CHECK stk_status source_count(const struct stk_dataset *dataset, struct source_count *counts,
                                  struct stk_error *err);

/* "int8 (3, 4)", "image uint8 (375, 500, 3)", "text", ...; out is also what it returns. */
#define SOURCE_KIND_CAP 224
const char *source_kind(const struct stk_field *field, char out[SOURCE_KIND_CAP]);
const char *source_kind_name(enum stk_kind kind);
/* 32 hexadecimal digits. */
const char *source_fingerprint(const struct stk_dataset *dataset, char out[33]);

#endif
