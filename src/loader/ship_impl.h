/* ship_impl.h -- what the two files of the ship stage share.
 * Owns: see ship_stage.h.   Threads: see ship_stage.h.   Errors: none.   Not here: any behaviour.
 */
#ifndef LOADER_SHIP_IMPL_H
#define LOADER_SHIP_IMPL_H

#include "loader/device_pool.h"
#include "loader/parcel.h"
#include "loader/ship_stage.h"

struct device_half;

#define LANDINGS 2 /* one is copied into while the other is computed from */

/* Device memory that batches pass through. */
struct landing {
    gpu_address data;
    uint64_t size;
    struct gpu_event *read; /* what was in it has been used */
};

/* A box whose copy may still run. */
struct copying {
    struct box *box;
    struct gpu_event *done;
};

struct ship {
    struct stk_loader *loader;
    struct gpu *gpu;
    int computes; /* there are kernels */
    struct device_pool *pool;
    pthread_t thread;
    int running;
    struct trace_ring *ring;
    struct gpu_stream *copy, *work;
    struct copying *copying; /* [depth] a ring */
    uint32_t copying_first, copying_count;
    struct landing landings[LANDINGS];
    uint32_t landing;            /* the next one */
    gpu_address scratch;         /* of device halves: used in the order of the work stream */
    struct gpu_event *copied;    /* the last batch's copies, for the work stream */
    struct device_half **halves; /* by field; NULL: none */
    struct resident *resident;
    int feeding; /* some of a series is still to be sent */
    struct parcel parcel;
    int *lent;            /* by field: some place of the batch at hand has parameters */
    uint32_t *landed;     /* by field: places of the batch at hand whose values are in the box */
    gpu_address *decoded; /* by field: where pixels were decoded to */
    int told_pageable;
    _Atomic uint64_t shipped, pageable, resident_batches; /* statistics: added by the thread */
};

#endif
