/* bytes.h -- a run of bytes that somebody else owns.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: tensors (tensor.h). */
#ifndef STOKER_BYTES_H
#define STOKER_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct stk_bytes {
    const uint8_t *data;
    size_t len;
};

#endif
