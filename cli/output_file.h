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
    char target[PATH_MAX]; /* where links lead to */
    char temporary[PATH_MAX + 32];
    int in_place; /* a stream, which has no whole */
};

/* Opens a temporary file beside the one that path names or links to. What is a stream (a pipe, a
 * device, /dev/stdout, /dev/fd/3) is written to as it is. Returns 0 or EXIT_FAILED. */
int output_file_begin(struct output_file *file, const char *path);
/* Syncs it and renames it to its target; on failure it is gone. Returns 0 or EXIT_FAILED. */
int output_file_commit(struct output_file *file);
void output_file_abandon(struct output_file *file); /* nothing of it is left */

/* Whether it could be written: for those who would not start a long run in vain. Nothing is left of
 * the trial. Returns 0 or EXIT_FAILED. */
int output_file_check(const char *path);
/* Whether what is written there cannot be replaced later on. */
int output_file_is_stream(const char *path);

#endif
