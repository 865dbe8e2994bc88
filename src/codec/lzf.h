/* lzf.h -- undoes LZF compression, as binary_compressed .pcd files hold it.
 * Owns: nothing.   Threads: any.   Errors: 0 when the bytes are no LZF or do not give exactly
 * to_len bytes; what was written of `to` until then is garbage.   Not here: compression. */
#ifndef CODEC_LZF_H
#define CODEC_LZF_H

#include <stddef.h>
#include <stdint.h>

/* Three bytes give at most 264: more than LZF_RATIO times the packed length cannot come out. */
#define LZF_RATIO 88

int lzf_unpack(const uint8_t *from, size_t from_len, uint8_t *to, size_t to_len);

#endif
