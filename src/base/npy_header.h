/* npy_header.h -- the header of an .npy file (format versions 1, 2 and 3).
 * Owns: nothing.   Threads: any.   Errors: STK_CORRUPT, STK_TRUNCATED, STK_LIMIT (a header over 64
 * KiB), STK_UNSUPPORTED (object and structured dtypes; nothing is ever unpickled), with words. Not
 * here: the payload. */
#ifndef BASE_NPY_HEADER_H
#define BASE_NPY_HEADER_H

#include "stoker/bytes.h"
#include "stoker/error.h"
#include "stoker/tensor.h"

struct npy_header {
    struct stk_tensor shape; /* data NULL */
    uint32_t length;         /* bytes before the payload */
    int fortran, byteswap;   /* byteswap: stored in the other byte order than this machine's */
};

/* Needs the first bytes only (64 KiB + 12 are always enough); `total` is the length of the whole,
 * checked against the shape; bytes after the payload are let be, as numpy does. When head is too
 * short but total is not, the status is STK_TRUNCATED and out->length says how many bytes are
 * needed. "V2" is taken as bfloat16 (what ml_dtypes writes). */
STK_CHECK stk_status npy_header_parse(struct npy_header *out, const struct stk_bytes *head,
                                      uint64_t total, struct stk_error *err);
/* Writes version 1.0 padded to 64 bytes, as numpy does: *len is 128 for most. cap >= 512. */
void npy_header_write(const struct stk_tensor *shape, char *out, size_t cap, size_t *len);

#endif
