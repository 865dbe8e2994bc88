/* digest.h -- the hashes that signing needs (OpenSSL's; this folder alone includes it).
 * Owns: nothing.   Threads: any.   Errors: none but a system without memory: then STK_MEMORY.
 * Not here: hashes of our own (base/hash.h, base/crc.h). */
#ifndef NET_DIGEST_H
#define NET_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

#include "base/text.h"

STK_CHECK stk_status digest_sha256(const void *data, size_t length, uint8_t out[32]);
STK_CHECK stk_status digest_md5(const void *data, size_t length, uint8_t out[16]);
STK_CHECK stk_status digest_hmac_sha256(const void *key, size_t key_length, const void *data,
                                        size_t length, uint8_t out[32]);
void digest_hex(const uint8_t *bytes, size_t length, char *out /* 2 * length + 1 */);
void digest_base64(struct text *to, const void *data, size_t length);
/* -1: that is not base64. */
int digest_base64_decode(const char *from, size_t length, uint8_t *to, size_t cap, size_t *got);

#endif
