#include "codec/wav_pcm.h"

#include <string.h>

/* Little-endian, as RIFF is: RIFX and RF64 are left to libsndfile. */
static uint32_t little(const uint8_t *at, int bytes)
{
    uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

/* --- the header ------------------------------------------------------------------------------- */

enum { TAG_PCM = 1, TAG_FLOAT = 3, TAG_EXTENSIBLE = 0xfffe };

static int find_type(uint32_t tag, uint32_t bits, enum wav_type *type)
{
    static const struct {
        uint32_t tag, bits;
        enum wav_type type;
    } known[] = {{TAG_PCM, 8, WAV_U8},   {TAG_PCM, 16, WAV_I16},   {TAG_PCM, 24, WAV_I24},
                 {TAG_PCM, 32, WAV_I32}, {TAG_FLOAT, 32, WAV_F32}, {TAG_FLOAT, 64, WAV_F64}};
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].tag == tag && known[i].bits == bits) {
            *type = known[i].type;
            return 1;
        }
    return 0;
}

/* WAVEFORMATEX, or WAVEFORMATEXTENSIBLE whose subformat begins with the plain tag. */
static int read_format(const uint8_t *at, uint64_t size, struct wav_pcm *wav)
{
    static const uint8_t guid_tail[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                          0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    if (size < 16)
        return 0;
    uint32_t tag = little(at, 2), channels = little(at + 2, 2), rate = little(at + 4, 4);
    uint32_t block = little(at + 12, 2), bits = little(at + 14, 2);
    if (tag == TAG_EXTENSIBLE) {
        if (size < 40 || little(at + 18, 2) != bits || memcmp(at + 26, guid_tail, 14))
            return 0;
        tag = little(at + 24, 2);
    }
    wav->header = (struct audio_header){.channels = (int32_t)channels, .rate = rate};
    return channels >= 1 && channels <= AUDIO_MAX_CHANNELS && rate >= 1 && rate <= AUDIO_MAX_RATE &&
           find_type(tag, bits, &wav->type) && block == channels * (bits / 8);
}

static uint64_t frame_size(const struct wav_pcm *wav)
{
    static const uint8_t sizes[] = {1, 2, 3, 4, 4, 8};
    return (uint64_t)sizes[wav->type] * (uint64_t)wav->header.channels;
}

int wav_pcm_find(const struct stk_bytes *bytes, struct wav_pcm *wav)
{
    const uint8_t *data = bytes->data;
    int formatted = 0;
    if (bytes->len < 12 || memcmp(data, "RIFF", 4) || memcmp(data + 8, "WAVE", 4))
        return 0;
    for (uint64_t at = 12; at + 8 <= bytes->len;) {
        uint64_t size = little(data + at + 4, 4), left = bytes->len - at - 8;
        if (!memcmp(data + at, "fmt ", 4)) {
            formatted = !formatted && size <= left && read_format(data + at + 8, size, wav);
            if (!formatted)
                return 0;
        } else if (!memcmp(data + at, "data", 4)) {
            if (!formatted)
                return 0;
            wav->data = data + at + 8;
            wav->header.frames = (int64_t)((size < left ? size : left) / frame_size(wav));
            return 1;
        }
        at += 8 + size + (size & 1);
    }
    return 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

static inline float sample_at(enum wav_type type, const uint8_t *at)
{
    float f32;
    double f64;
    switch (type) {
    case WAV_U8:
        return (float)(at[0] - 128) * 0x1p-7f;
    case WAV_I16:
        return (float)(int16_t)(at[0] | at[1] << 8) * 0x1p-15f;
    case WAV_I24:
        return (float)(int32_t)(little(at, 3) << 8) * 0x1p-31f;
    case WAV_I32:
        return (float)(int32_t)little(at, 4) * 0x1p-31f;
    case WAV_F32:
        memcpy(&f32, at, sizeof f32);
        return f32;
    default:
        memcpy(&f64, at, sizeof f64);
        return (float)f64;
    }
}

/* type is a constant where it is called, so that each becomes a loop of its own. */
static inline __attribute__((always_inline)) void read_rows(const struct wav_pcm *wav,
                                                            enum wav_type type, uint64_t bytes,
                                                            const uint8_t *from, int64_t count,
                                                            float *to)
{
    int32_t channels = wav->header.channels;
    for (int32_t c = 0; c < channels; c++) {
        const uint8_t *at = from + (uint64_t)c * bytes;
        for (int64_t i = 0; i < count; i++, at += (uint64_t)channels * bytes)
            *to++ = sample_at(type, at);
    }
}

typedef int16_t eight_shorts __attribute__((vector_size(16)));
typedef float eight_floats __attribute__((vector_size(32)));

static void read_mono_i16(const uint8_t *from, int64_t count, float *to)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        eight_shorts in;
        memcpy(&in, from + 2 * i, sizeof in);
        eight_floats out = __builtin_convertvector(in, eight_floats) * 0x1p-15f;
        memcpy(to + i, &out, sizeof out);
    }
    for (; i < count; i++)
        to[i] = sample_at(WAV_I16, from + 2 * i);
}

void wav_pcm_read(const struct wav_pcm *wav, int64_t first, int64_t count, float *to)
{
    const uint8_t *from = wav->data + (uint64_t)first * frame_size(wav);
    if (wav->type == WAV_U8)
        read_rows(wav, WAV_U8, 1, from, count, to);
    else if (wav->type == WAV_I16 && wav->header.channels == 1)
        read_mono_i16(from, count, to);
    else if (wav->type == WAV_I16)
        read_rows(wav, WAV_I16, 2, from, count, to);
    else if (wav->type == WAV_I24)
        read_rows(wav, WAV_I24, 3, from, count, to);
    else if (wav->type == WAV_I32)
        read_rows(wav, WAV_I32, 4, from, count, to);
    else if (wav->type == WAV_F32)
        read_rows(wav, WAV_F32, 4, from, count, to);
    else
        read_rows(wav, WAV_F64, 8, from, count, to);
}
