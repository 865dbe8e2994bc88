#include "codec/audio_codec.h"

#include <assert.h>
#include <sndfile.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "codec/audio_container.h"
#include "codec/wav_pcm.h"

/* The densest coding there is: a flac frame of 65535 equal samples takes a dozen bytes, an opus
 * packet of 5760 two. A header that claims more than this for each of its bytes lies. */
#define FRAMES_A_BYTE 8192
#define BLOCK_SAMPLES 16384 /* interleaved samples that are split at a time: in the first cache */

struct audio_decoder {
    SNDFILE *file;      /* NULL: none is open, or a plain wav that needs none */
    struct wav_pcm wav; /* its data NULL: not a plain wav */
    enum audio_kind kind;
    struct stk_bytes bytes;
    sf_count_t at; /* where libsndfile reads next, in bytes */
    struct audio_header header;
    int64_t next; /* the frame it would read next */
    float block[BLOCK_SAMPLES];
};

/* --- libsndfile's way to the bytes ------------------------------------------------------------ */

static sf_count_t virtual_length(void *user)
{
    const struct audio_decoder *decoder = user;
    return (sf_count_t)decoder->bytes.len;
}

static sf_count_t virtual_seek(sf_count_t offset, int whence, void *user)
{
    struct audio_decoder *decoder = user;
    sf_count_t len = (sf_count_t)decoder->bytes.len, from = 0, to;
    if (whence == SEEK_CUR)
        from = decoder->at;
    else if (whence == SEEK_END)
        from = len;
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return -1;
    return decoder->at = to < len ? to : len;
}

static sf_count_t virtual_read(void *to, sf_count_t count, void *user)
{
    struct audio_decoder *decoder = user;
    sf_count_t left = (sf_count_t)decoder->bytes.len - decoder->at;
    if (count > left)
        count = left;
    if (count <= 0)
        return 0;
    memcpy(to, decoder->bytes.data + decoder->at, (size_t)count);
    decoder->at += count;
    return count;
}

static sf_count_t virtual_write(const void *from, sf_count_t count, void *user)
{
    (void)from, (void)count, (void)user;
    return 0;
}

static sf_count_t virtual_tell(void *user)
{
    const struct audio_decoder *decoder = user;
    return decoder->at;
}

/* --- open and close --------------------------------------------------------------------------- */

stk_status audio_decoder_new(struct audio_decoder **out, struct stk_error *err)
{
    struct audio_decoder *decoder = memory_zero(1, sizeof *decoder);
    *out = decoder;
    return decoder ? STK_OK : fail_memory(err, sizeof *decoder);
}

void audio_end(struct audio_decoder *decoder)
{
    if (decoder->file)
        sf_close(decoder->file);
    decoder->file = NULL;
    decoder->wav = (struct wav_pcm){0};
    decoder->bytes = (struct stk_bytes){0};
    decoder->at = 0;
}

void audio_decoder_free(struct audio_decoder *decoder)
{
    if (!decoder)
        return;
    audio_end(decoder);
    memory_free(decoder);
}

uint64_t audio_decoder_bytes(const struct audio_decoder *decoder)
{
    return decoder ? sizeof *decoder : 0;
}

static stk_status check_header(const struct audio_decoder *decoder, const SF_INFO *info,
                               struct stk_error *err)
{
    uint64_t most;
    if (info->channels < 1 || info->samplerate < 1 || info->frames < 0)
        return fail(err, STK_CORRUPT,
                    "a recording of %d channels, %d frames a second and %lld frames",
                    info->channels, info->samplerate, (long long)info->frames);
    if (info->channels > AUDIO_MAX_CHANNELS)
        return fail(err, STK_LIMIT, "a recording of %d channels: %d at most", info->channels,
                    AUDIO_MAX_CHANNELS);
    if (info->samplerate > AUDIO_MAX_RATE)
        return fail(err, STK_LIMIT, "a recording of %d frames a second: %d at most",
                    info->samplerate, AUDIO_MAX_RATE);
    if (info->frames != SF_COUNT_MAX && checked_mul(decoder->bytes.len, FRAMES_A_BYTE, &most) &&
        (uint64_t)info->frames > most)
        return fail(err, STK_CORRUPT, "a header that says %lld frames, where %zu bytes are all",
                    (long long)info->frames, decoder->bytes.len);
    return STK_OK;
}

/* No header says how long it is (a flac written into a pipe): it is decoded once, to count. */
static stk_status count_frames(struct audio_decoder *decoder, struct stk_error *err)
{
    sf_count_t block = BLOCK_SAMPLES / decoder->header.channels, got;
    int64_t frames = 0;
    while ((got = sf_readf_float(decoder->file, decoder->block, block)) > 0)
        frames += got;
    if (sf_error(decoder->file))
        return fail(err, STK_CORRUPT, "a damaged recording, behind frame %lld: %s",
                    (long long)frames, sf_strerror(decoder->file));
    decoder->header.frames = decoder->next = frames;
    return STK_OK;
}

/* How many frames were promised, told from the bytes of those that are there. */
static long long promised_frames(const struct audio_cut *cut, int64_t frames)
{
    uint64_t count = (uint64_t)frames;
    if (!count)
        return 0;
    if (cut->found >= count) /* so many whole bytes a frame */
        return (long long)(cut->promised / (cut->found / count));
    return (long long)((double)cut->promised / (double)cut->found * (double)count);
}

static stk_status fail_cut(const struct audio_decoder *decoder, const struct audio_cut *cut,
                           struct stk_error *err)
{
    unsigned long long found = cut->found, promised = cut->promised;
    if (cut->frames >= 0) /* how many are missing nobody knows */
        return fail(
            err, STK_TRUNCATED,
            "the recording is cut: of an %s only %llu of %llu bytes are there, and what follows "
            "frame %lld is missing",
            cut->part, found, promised, (long long)cut->frames);
    return fail(err, STK_TRUNCATED,
                "the recording promises %lld frames and has %lld: its %s is cut after %llu of %llu "
                "bytes",
                promised_frames(cut, decoder->header.frames), (long long)decoder->header.frames,
                cut->part, found, promised);
}

/* At the first frame of the bytes. */
static stk_status open_handle(struct audio_decoder *decoder, SF_INFO *info, struct stk_error *err)
{
    SF_VIRTUAL_IO io = {.get_filelen = virtual_length,
                        .seek = virtual_seek,
                        .read = virtual_read,
                        .write = virtual_write,
                        .tell = virtual_tell};
    if (decoder->file)
        sf_close(decoder->file);
    *info = (SF_INFO){0};
    decoder->at = 0;
    decoder->next = 0;
    decoder->file = sf_open_virtual(&io, SFM_READ, info, decoder);
    return decoder->file
               ? STK_OK
               : fail(err, STK_CORRUPT, "a recording that cannot be read: %s", sf_strerror(NULL));
}

static stk_status open_file(struct audio_decoder *decoder, struct stk_error *err)
{
    SF_INFO info;
    stk_status status = open_handle(decoder, &info, err);
    if (!status)
        status = check_header(decoder, &info, err);
    if (status)
        return status;
    decoder->header = (struct audio_header){
        .frames = info.frames, .channels = info.channels, .rate = info.samplerate};
    return info.frames == SF_COUNT_MAX ? count_frames(decoder, err) : STK_OK;
}

stk_status audio_begin(struct audio_decoder *decoder, const struct stk_bytes *bytes,
                       struct audio_header *header, struct stk_error *err)
{
    audio_end(decoder);
    *header = decoder->header = (struct audio_header){0};
    enum audio_kind kind = audio_kind(bytes);
    if (kind == AUDIO_NONE)
        return fail(err, STK_CORRUPT, "not a recording: it looks like %s", audio_guess(bytes));
    struct audio_cut cut;
    int is_cut = audio_is_cut(bytes, kind, &cut);
    if (is_cut && cut.frames >= 0) /* libmpg123 would write to the terminal about it */
        return fail_cut(decoder, &cut, err);
    if (audio_head_is_damaged(bytes, kind))
        return fail(err, STK_CORRUPT, "the ogg's headers are damaged: a checksum does not fit");
    decoder->bytes = *bytes;
    decoder->kind = kind;
    stk_status status = STK_OK;
    if (kind == AUDIO_WAV && wav_pcm_find(bytes, &decoder->wav))
        decoder->header = decoder->wav.header;
    else
        status = open_file(decoder, err);
    if (!status && is_cut)
        status = fail_cut(decoder, &cut, err);
    if (status)
        audio_end(decoder);
    else
        *header = decoder->header;
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Pages of an ogg are all there: what is missing lies inside. Of the others, what the library has
 * read to the end of was cut. */
static stk_status fail_short(const struct audio_decoder *decoder, int64_t at, struct stk_error *err)
{
    int number = sf_error(decoder->file);
    int at_end = decoder->at == (sf_count_t)decoder->bytes.len && decoder->kind != AUDIO_OGG;
    return fail(err, at_end ? STK_TRUNCATED : STK_CORRUPT,
                "the recording promises %lld frames and has %lld%s%s",
                (long long)decoder->header.frames, (long long)at, number ? ": " : "",
                number ? sf_strerror(decoder->file) : "");
}

/* block: (frames, channels) -> to: (channels, frames), rows of `stride`. */
static void split(const float *block, int64_t frames, int32_t channels, float *to, int64_t stride)
{
    for (int32_t c = 0; c < channels; c++) {
        float *row = to + c * stride;
        for (int64_t i = 0; i < frames; i++)
            row[i] = block[i * channels + c];
    }
}

static int64_t read_frames(struct audio_decoder *decoder, int64_t count, float *to)
{
    int32_t channels = decoder->header.channels;
    int64_t done = 0, most = BLOCK_SAMPLES / channels;
    while (done < count) {
        int64_t want = count - done;
        if (channels == 1) {
            want = sf_readf_float(decoder->file, to + done, want);
        } else {
            want = sf_readf_float(decoder->file, decoder->block, want < most ? want : most);
            if (want > 0)
                split(decoder->block, want, channels, to + done, count);
        }
        if (want <= 0)
            break;
        done += want;
    }
    return done;
}

/* Stands at frame `first`: by seeking as far as that is exact, from there on by decoding. */
static stk_status go_to(struct audio_decoder *decoder, int64_t first, struct stk_error *err)
{
    SF_INFO info;
    int lossy = decoder->kind == AUDIO_OGG || decoder->kind == AUDIO_MPEG;
    if (first == decoder->next)
        return STK_OK;
    if (lossy && decoder->next) { /* a seek is exact only in a handle that has read nothing */
        stk_status status = open_handle(decoder, &info, err);
        if (status)
            return status;
    }
    double share = audio_exact_share(&decoder->bytes, decoder->kind);
    int64_t target = (int64_t)(share * (double)decoder->header.frames);
    target = share == 1 || target > first ? first : target;
    if (target != decoder->next && sf_seek(decoder->file, target, SEEK_SET) != target) {
        decoder->next = -1;
        return fail_short(decoder, target, err);
    }
    decoder->next = target;
    int64_t most = BLOCK_SAMPLES / decoder->header.channels;
    while (decoder->next < first) {
        int64_t left = first - decoder->next;
        int64_t got = sf_readf_float(decoder->file, decoder->block, left < most ? left : most);
        if (got <= 0)
            return fail_short(decoder, decoder->next, err);
        decoder->next += got;
    }
    return STK_OK;
}

stk_status audio_read(struct audio_decoder *decoder, int64_t first, int64_t count, float *to,
                      struct stk_error *err)
{
    assert(first >= 0 && count >= 0 && first <= decoder->header.frames - count);
    if (!count)
        return STK_OK;
    if (decoder->wav.data) {
        wav_pcm_read(&decoder->wav, first, count, to);
        return STK_OK;
    }
    assert(decoder->file);
    stk_status status = go_to(decoder, first, err);
    if (status)
        return status;
    int64_t done = read_frames(decoder, count, to);
    decoder->next = first + done;
    return done == count ? STK_OK : fail_short(decoder, first + done, err);
}
