/* limit_cupti.h -- CUPTI with parts of it switched on, for programs that measure what they cost.
 * Owns: one table and one set of callbacks for the program.   Threads: one that switches; CUPTI's
 * callbacks come from any.   Errors: a line on stderr.   Not here: what is measured. */
#ifndef BENCH_LIMIT_CUPTI_H
#define BENCH_LIMIT_CUPTI_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject_clock.h"
#include "inject_cupti.h"
#include "inject_find.h"

/* Parts that can be recorded; a program's own numbers begin at PARTS_END. */
enum { KERNELS = 1, COPIES = 2, SYNCS = 4, OVERHEADS = 8, PARTS_END = 16 };

static struct cupti_table cupti;
static size_t buffer_bytes = 1 << 20;
static _Atomic uint64_t records, buffers;

static void give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = malloc(buffer_bytes);
    *size = *buffer ? buffer_bytes : 0;
    *most = 0;
    atomic_fetch_add(&buffers, 1);
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    struct cupti_record *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && !cupti.next_record(buffer, valid, &record))
        atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    free(buffer);
}

static uint64_t our_clock(void)
{
    return inject_clock_now();
}

static void parts_set(unsigned parts, int (*set)(int kind))
{
    static const int kinds[][2] = {{KERNELS, KIND_KERNEL}, {COPIES, KIND_COPY},
                                   {COPIES, KIND_CLEAR},   {COPIES, KIND_COPY_BETWEEN},
                                   {SYNCS, KIND_SYNC},     {OVERHEADS, KIND_OVERHEAD}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (parts & (unsigned)kinds[i][0] && set(kinds[i][1]))
            fprintf(stderr, "CUPTI refused kind %d\n", kinds[i][1]);
}

/* Records of cuGraphLaunch, with the legacy stream and without, as CUPTI numbers the driver's
 * calls. */
static void calls_set(uint8_t on)
{
    enum { GRAPH_LAUNCH = 514, GRAPH_LAUNCH_PTSZ = 515 };
    int (*enable)(int call, uint8_t enable) = NULL;
    *(void **)&enable = dlsym(inject_find_cupti(), "cuptiActivityEnableDriverApi");
    if (!enable || enable(GRAPH_LAUNCH, on) || enable(GRAPH_LAUNCH_PTSZ, on))
        fprintf(stderr, "CUPTI refused records of calls\n");
}

static void finalize(void)
{
    int (*function)(void) = NULL;
    *(void **)&function = dlsym(inject_find_cupti(), "cuptiFinalize");
    if (!function || function())
        fprintf(stderr, "CUPTI refused to be shut down\n");
}

#endif
