/* cupti_api.h -- the part of CUPTI that Stoker calls, opened with dlopen: the activity records of
 * kernels, copies and clears.
 * Owns: the library, until the process ends.   Threads: any.   Errors: STK_UNSUPPORTED with a
 * remedy; STK_BUSY where another tool holds CUPTI.   Not here: what is made of the records
 * (activity.c). */
#ifndef GPU_CUPTI_API_H
#define GPU_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

/* Kinds of records, as CUPTI numbers them. */
enum cupti_kind {
    CUPTI_COPY = 1,
    CUPTI_CLEAR = 2,
    CUPTI_KERNEL_ALONE = 3, /* recording it would make kernels run one after the other */
    CUPTI_KERNEL = 10,
    CUPTI_COPY_BETWEEN = 22 /* from device to device */
};

enum { CUPTI_NO_MORE_RECORDS = 12, CUPTI_OTHER_TOOL = 39 }; /* results */

/* Records begin so in every version since CUDA 9; newer ones add at the end. */
struct cupti_record {
    uint32_t kind;
    uint32_t of_its_kind;
    uint64_t bytes; /* of a copy or a clear */
    uint64_t start, end;
};
struct cupti_kernel_record {
    uint32_t kind;
    uint8_t of_its_kind[12];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
};
struct cupti_copy_record {
    struct cupti_record first;
    uint32_t device, context, stream;
};

typedef void cupti_request_function(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void cupti_complete_function(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                     size_t valid);
typedef uint64_t cupti_clock_function(void);

/* All return 0 when it worked. */
struct cupti_api {
    int (*get_version)(uint32_t *version);
    int (*get_timestamp)(uint64_t *nanoseconds);
    int (*get_words)(int result, const char **words);
    int (*register_callbacks)(cupti_request_function *request, cupti_complete_function *complete);
    int (*enable)(int kind);
    int (*disable)(int kind);
    int (*flush_all)(uint32_t flag);
    int (*next_record)(uint8_t *buffer, size_t valid, struct cupti_record **record);
    int (*get_dropped)(void *context, uint32_t stream, size_t *count);
    int (*register_clock)(cupti_clock_function *clock); /* NULL: before CUDA 11.6 */
};

/* The same table every time; it is opened once. */
STK_CHECK stk_status cupti_open(const struct cupti_api **out, struct stk_error *err);
/* STK_OK for 0; else the words of a result of CUPTI's. */
STK_CHECK stk_status cupti_result(const struct cupti_api *api, int result, const char *doing,
                                  struct stk_error *err);

#endif
