/* advice_snippet.h -- code to paste: Stoker for the data set that a run was seen to read.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: whether it would help
 * (advice_rules.h). */
#ifndef WATCH_ADVICE_SNIPPET_H
#define WATCH_ADVICE_SNIPPET_H

#include "watch/findings.h"

#define ADVICE_SMALL_FILE                                                                          \
    262144 /* bytes: below that, opening a file costs more than reading it                         \
            */

/* Stoker reads files of this extension ("jpg"). */
int advice_snippet_known(const char *extension);
/* Stoker does what a function of this name does: decode, resize, blur ... */
int advice_snippet_does(const char *function);
/* Many files, each so small that shards pay. */
int advice_snippet_small(const struct summary_loader *loader);
/* "" where the files are not Stoker's to read. */
void advice_snippet(char *out, size_t room, const struct findings *findings);
/* 'stoker pack FOLDER -o FOLDER-shards --to tar', quoted for a shell. */
void advice_snippet_pack(char *out, size_t room, const struct summary_loader *loader);

#endif
