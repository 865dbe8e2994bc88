#include "pack/sndfile_write.h"

#include <stdio.h>
#include <string.h>

#include <sndfile.h>

#include "base/fail.h"
#include "pack/little_endian.h"

#define BLOCK 4096 /* frames handed over at a time: the Ogg encoder takes as much of the stack */

/* The file begins at `first` of the text; the library goes back to its header at the end. */
struct output {
    struct text *to;
    size_t first, at;
};

/* --- what the library calls ------------------------------------------------------------------ */

static sf_count_t on_length(void *user)
{
    const struct output *output = user;

    return (sf_count_t)(output->to->len - output->first);
}

static sf_count_t on_seek(sf_count_t offset, int whence, void *user)
{
    struct output *output = user;
    sf_count_t len = on_length(user);
    sf_count_t base = whence == SEEK_CUR ? (sf_count_t)output->at : whence == SEEK_END ? len : 0;

    if (offset < -base || offset > len - base)
        return -1;
    output->at = (size_t)(base + offset);
    return (sf_count_t)output->at;
}

static sf_count_t on_read(void *data, sf_count_t count, void *user)
{
    struct output *output = user;
    size_t left = output->to->len - output->first - output->at;
    size_t len = (size_t)count < left ? (size_t)count : left;

    if (len)
        memcpy(data, output->to->data + output->first + output->at, len);
    output->at += len;
    return (sf_count_t)len;
}

/* Memory that is short shows in the text; the library need not know. */
static sf_count_t on_write(const void *data, sf_count_t count, void *user)
{
    struct output *output = user;
    size_t left = output->to->len - output->first - output->at;
    size_t over = (size_t)count < left ? (size_t)count : left;

    if (over)
        memcpy(output->to->data + output->first + output->at, data, over);
    text_add(output->to, (const char *)data + over, (size_t)count - over);
    output->at += (size_t)count;
    if (output->to->failed)
        output->at = output->to->len - output->first;
    return count;
}

static sf_count_t on_tell(void *user)
{
    return (sf_count_t)((struct output *)user)->at;
}

/* --- Ogg pages ------------------------------------------------------------------------------- */

/* RFC 3533: the polynomial 0x04c11db7, highest bit first, begun with 0. */
static uint32_t page_sum(const uint8_t *page, size_t len)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum ^= (uint32_t)page[i] << 24;
        for (int bit = 0; bit < 8; bit++)
            sum = sum << 1 ^ (sum >> 31 ? 0x04c11db7u : 0);
    }
    return sum;
}

/* The library draws the stream's number by the clock; here it is always 1. */
static void fix_serial(uint8_t *file, size_t len)
{
    enum { HEADER = 27, SERIAL = 14, SUM = 22, SEGMENTS = 26 };

    while (len >= HEADER && !memcmp(file, "OggS", 4)) {
        size_t size = (size_t)HEADER + file[SEGMENTS];
        for (size_t i = 0; i < file[SEGMENTS] && HEADER + i < len; i++)
            size += file[HEADER + i];
        if (size > len)
            return;
        little_put(file + SERIAL, 1, 4);
        little_put(file + SUM, 0, 4);
        little_put(file + SUM, page_sum(file, size), 4);
        file += size;
        len -= size;
    }
}

/* --- the calls ------------------------------------------------------------------------------- */

static int write_frames(SNDFILE *file, const struct sound *sound)
{
    for (uint64_t at = 0; at < sound->frames; at += BLOCK) {
        uint64_t left = sound->frames - at;
        sf_count_t count = (sf_count_t)(left < BLOCK ? left : BLOCK);
        if (sf_writef_short(file, sound->samples + at * sound->channels, count) != count)
            return -1;
    }
    return 0;
}

stk_status sndfile_write(const struct sound *sound, enum sndfile_kind kind, struct text *to,
                         struct stk_error *err)
{
    SF_VIRTUAL_IO calls = {on_length, on_seek, on_read, on_write, on_tell};
    SF_INFO info = {.samplerate = (int)sound->rate, .channels = (int)sound->channels};
    struct output output = {to, to->len, 0};

    info.format =
        kind == SNDFILE_OGG ? SF_FORMAT_OGG | SF_FORMAT_VORBIS : SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
    SNDFILE *file = sf_open_virtual(&calls, SFM_WRITE, &info, &output);
    int failed = !file || write_frames(file, sound);
    if (failed) {
        fail(err, STK_UNSUPPORTED, "the sound cannot be encoded: %s", sf_strerror(file));
        fail_remedy(err, "choose a rate and a number of channels that the format knows, or wav");
    }
    if (file && sf_close(file) && !failed) {
        failed = 1;
        fail(err, STK_UNSUPPORTED, "the sound cannot be encoded");
    }
    if (!failed && kind == SNDFILE_OGG && !to->failed)
        fix_serial((uint8_t *)to->data + output.first, to->len - output.first);
    return failed ? STK_UNSUPPORTED : STK_OK;
}

stk_status sndfile_write_check(struct stk_error *err)
{
    (void)err;
    return STK_OK;
}
