/* Digests of a build without OpenSSL. Nothing is signed there, since nothing is sent. */
#include "net/digest.h"

stk_status digest_sha256(const void *data, size_t length, uint8_t out[32])
{
    (void)data, (void)length, (void)out;
    return STK_UNSUPPORTED;
}

stk_status digest_md5(const void *data, size_t length, uint8_t out[16])
{
    (void)data, (void)length, (void)out;
    return STK_UNSUPPORTED;
}

stk_status digest_hmac_sha256(const void *key, size_t key_length, const void *data, size_t length,
                              uint8_t out[32])
{
    (void)key, (void)key_length, (void)data, (void)length, (void)out;
    return STK_UNSUPPORTED;
}
