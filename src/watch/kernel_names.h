/* kernel_names.h -- names of kernels by the numbers that records use, and which of them talk to
 * other GPUs.
 * Owns: the names.   Threads: one.   Errors: STK_MEMORY.   Not here: demangling for a reader. */
#ifndef WATCH_KERNEL_NAMES_H
#define WATCH_KERNEL_NAMES_H

#include "stoker/error.h"
#include "watch/record.h"

#define KERNEL_NAMES_HOOK (UINT32_C(1) << 30) /* those of the Python hook begin here */

struct kernel_name {
    char *text; /* cut */
    int talks;  /* NCCL, RCCL: it waits for other ranks */
};
struct kernel_names { /* all zero is none; one list for each of the two rings of a process */
    struct {
        struct kernel_name *names;
        size_t count;
    } rings[2];
};

STK_CHECK stk_status kernel_names_add(struct kernel_names *names, const struct record_name *record,
                                      struct stk_error *err);
const struct kernel_name *kernel_names_find(const struct kernel_names *names, uint32_t number);
void kernel_names_reset(struct kernel_names *names);

#endif
