/* hash.h -- a fast hash for block checksums, fingerprints and digests; not for secrets.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: CRCs that a format prescribes. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The same on every machine (little-endian reads); several bytes a cycle on long input. */
uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);

/* 128 bits over many parts: each part is hashed, then chained, so order and lengths matter. */
struct hash128 {
    uint64_t lo, hi;
};
void hash128_init(struct hash128 *hash, uint64_t seed);
void hash128_add(struct hash128 *hash, const void *data, size_t len);
void hash128_add_number(struct hash128 *hash, uint64_t number);
void hash128_out(const struct hash128 *hash, uint8_t out[16]);

#endif
