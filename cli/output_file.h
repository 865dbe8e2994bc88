/* output_file.h -- a small file that appears whole or not at all.
 * Owns: the open file, until commit or abandon.   Threads: one at a time.   Errors: words on
 * standard error and EXIT_FAILED.   Not here: what is written. */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <limits.h>
#include <stdio.h>

struct output_file {
    FILE *stream;
    const char *path;
    char temporary[PATH_MAX];
    int in_place; /* a pipe or a device, which has no whole */
};

/* Opens a temporary file beside path. Returns 0 or EXIT_FAILED. */
int output_file_begin(struct output_file *file, const char *path);
/* Syncs it and renames it to path; on failure it is gone. Returns 0 or EXIT_FAILED. */
int output_file_commit(struct output_file *file);
void output_file_abandon(struct output_file *file); /* nothing of it is left */

#endif
