#include "net/digest.h"

#include <limits.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

static stk_status digest_with(const EVP_MD *kind, const void *data, size_t length, uint8_t *out)
{
    unsigned int got = 0;
    return EVP_Digest(data, length, out, &got, kind, NULL) == 1 ? STK_OK : STK_MEMORY;
}

stk_status digest_sha256(const void *data, size_t length, uint8_t out[32])
{
    return digest_with(EVP_sha256(), data, length, out);
}

stk_status digest_md5(const void *data, size_t length, uint8_t out[16])
{
    return digest_with(EVP_md5(), data, length, out);
}

stk_status digest_hmac_sha256(const void *key, size_t key_length, const void *data, size_t length,
                              uint8_t out[32])
{
    unsigned int got = 0;
    if (key_length > INT_MAX)
        return STK_MEMORY;
    return HMAC(EVP_sha256(), key, (int)key_length, data, length, out, &got) ? STK_OK : STK_MEMORY;
}
