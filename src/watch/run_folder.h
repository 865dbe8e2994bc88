/* run_folder.h -- the folder of one watched run: rings, what goes into watched programs, and what
 * they are told. It lies in memory where that has room, and is gone when the run is over; one whose
 * run was killed is removed by the next.
 * Owns: the folder and all in it.   Threads: one.   Errors: STK_IO, STK_RESOURCE (nowhere to put
 * it), STK_MEMORY.   Not here: who reads the rings (collect.h). */
#ifndef WATCH_RUN_FOLDER_H
#define WATCH_RUN_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

/* What is embedded in the library, by cmake/inject.cmake: the library that goes into programs that
 * use CUDA, and the Python hook. A row with a NULL name ends them. */
struct run_file {
    const char *name; /* "site/sitecustomize.py" */
    const unsigned char *data;
    size_t size;
};
extern const struct run_file run_files[];

struct run_folder;

/* Makes the folder and unpacks the files. */
STK_CHECK stk_status run_folder_open(struct run_folder **out, const struct run_file *files,
                                     struct stk_error *err);
void run_folder_close(struct run_folder *folder); /* removes it; NULL is fine */

const char *run_folder_path(const struct run_folder *folder);
int run_folder_fd(const struct run_folder *folder);
/* Where Python finds the hook. */
const char *run_folder_site(const struct run_folder *folder);
/* The library for CUDA_INJECTION64_PATH; NULL where there is none, or nowhere to run it from. */
const char *run_folder_library(const struct run_folder *folder);

/* A file in it, whole at once. */
STK_CHECK stk_status run_folder_write(const struct run_folder *folder, const char *name,
                                      const void *data, size_t len, struct stk_error *err);

#endif
