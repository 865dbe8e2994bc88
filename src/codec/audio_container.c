#include "codec/audio_container.h"

#include <string.h>
#include <strings.h>

/* --- kinds ------------------------------------------------------------------------------------ */

static int has(const struct stk_bytes *bytes, size_t offset, const char *text)
{
    size_t len = strlen(text);
    return bytes->len >= offset + len && !memcmp(bytes->data + offset, text, len);
}

static uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t little32(const uint8_t *at)
{
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Length of the ID3v2 tag in front, with its header; 0: none. Seven bits a byte. */
static size_t id3_length(const struct stk_bytes *bytes)
{
    if (bytes->len < 10 || !has(bytes, 0, "ID3"))
        return 0;
    const uint8_t *size = bytes->data + 6;
    size_t len = 10 + ((size_t)(size[0] & 0x7f) << 21 | (size_t)(size[1] & 0x7f) << 14 |
                       (size_t)(size[2] & 0x7f) << 7 | (size_t)(size[3] & 0x7f));
    return len + (bytes->data[5] & 0x10 ? 10 : 0); /* a footer repeats the header */
}

/* Bytes of the MPEG audio frame (ISO 11172-3, 2.4.1.3) whose header is at `at`, which has 4 bytes.
 * 0: no frame begins here, or one of free format. */
static size_t mpeg_frame(const uint8_t *at)
{
    static const uint16_t kbits[2][3][15] = {
        {{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
         {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
         {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}},
        {{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
         {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
         {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}};
    static const uint32_t rates[3] = {44100, 48000, 32000};
    if (at[0] != 0xff || (at[1] & 0xe0) != 0xe0)
        return 0;
    unsigned version = at[1] >> 3 & 3, layer = 4 - (at[1] >> 1 & 3); /* version 3: MPEG-1 */
    unsigned kbit = at[2] >> 4, rate = at[2] >> 2 & 3, padding = at[2] >> 1 & 1;
    if (version == 1 || layer == 4 || kbit == 0 || kbit == 15 || rate == 3)
        return 0;
    int low = version != 3;
    uint32_t hertz = rates[rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
    uint32_t bits = kbits[low][layer - 1][kbit] * 1000u;
    if (layer == 1)
        return (12 * bits / hertz + padding) * 4;
    return (layer == 3 && low ? 72 : 144) * bits / hertz + padding;
}

/* Audio frames in an MPEG frame. */
static int64_t mpeg_samples(const uint8_t *at)
{
    unsigned version = at[1] >> 3 & 3, layer = 4 - (at[1] >> 1 & 3);
    if (layer == 1)
        return 384;
    return layer == 3 && version != 3 ? 576 : 1152;
}

/* Some files have a few bytes of nothing between the tag and the first frame. */
#define MPEG_SEARCH 4096
/* Where the first frame begins: one that another follows, or that ends the file; else the length.
 */
static size_t mpeg_first(const struct stk_bytes *bytes)
{
    size_t begin = id3_length(bytes), end = begin + MPEG_SEARCH;
    for (size_t at = begin; at + 4 <= bytes->len && at < end; at++) {
        size_t len = mpeg_frame(bytes->data + at), next = at + len;
        if (len && (next + 4 > bytes->len || mpeg_frame(bytes->data + next) ||
                    has(bytes, next, "TAG") || has(bytes, next, "APE")))
            return at;
    }
    return bytes->len;
}

enum audio_kind audio_kind(const struct stk_bytes *bytes)
{
    int riff = has(bytes, 0, "RIFF") || has(bytes, 0, "RIFX") || has(bytes, 0, "RF64");
    if (riff && has(bytes, 8, "WAVE"))
        return AUDIO_WAV;
    if (has(bytes, 0, "FORM") && (has(bytes, 8, "AIFF") || has(bytes, 8, "AIFC")))
        return AUDIO_AIFF;
    if (has(bytes, 0, ".snd") || has(bytes, 0, "dns."))
        return AUDIO_AU;
    if (has(bytes, 0, "fLaC"))
        return AUDIO_FLAC;
    if (has(bytes, 0, "OggS"))
        return AUDIO_OGG;
    size_t tag = id3_length(bytes);
    if (tag && has(bytes, tag, "fLaC"))
        return AUDIO_FLAC;
    int mpeg = tag || (bytes->len >= 4 && mpeg_frame(bytes->data));
    return mpeg && mpeg_first(bytes) < bytes->len ? AUDIO_MPEG : AUDIO_NONE;
}

static int is_text(const struct stk_bytes *bytes)
{
    size_t len = bytes->len < 64 ? bytes->len : 64;
    for (size_t i = 0; i < len; i++)
        if (bytes->data[i] < 9 || (bytes->data[i] > 13 && bytes->data[i] < 32))
            return 0;
    return 1;
}

const char *audio_guess(const struct stk_bytes *bytes)
{
    const char *start = (const char *)bytes->data;
    if (!bytes->len)
        return "nothing: 0 bytes";
    size_t blanks = 0;
    while (blanks < bytes->len && strchr(" \t\r\n", start[blanks]) && start[blanks])
        blanks++;
    size_t rest = bytes->len - blanks;
    if ((rest >= 5 && !strncasecmp(start + blanks, "<html", 5)) ||
        (rest >= 9 && !strncasecmp(start + blanks, "<!doctype", 9)))
        return "an HTML page, as a server sends in place of a file that is not there";
    if (rest >= 5 && !strncasecmp(start + blanks, "<?xml", 5))
        return "an XML page, as a store sends in place of a file that is not there";
    if (has(bytes, 4, "ftyp"))
        return "an MP4 or M4A file, which libsndfile cannot read: convert it to flac";
    if (has(bytes, 0, "\x1a\x45\xdf\xa3"))
        return "a Matroska or WebM file, which libsndfile cannot read: convert it to flac";
    if (has(bytes, 0, "\xff\xd8\xff") || has(bytes, 0, "\x89PNG"))
        return "an image";
    if (has(bytes, 0, "\x1f\x8b") || has(bytes, 0, "PK\3\4"))
        return "a compressed archive";
    if (has(bytes, 0, "\x93NUMPY"))
        return "an .npy array";
    if (id3_length(bytes))
        return "an ID3 tag without a recording behind it";
    return is_text(bytes) ? "text" : "none of wav, flac, ogg, mp3, aiff and au";
}

/* --- cuts ------------------------------------------------------------------------------------- */

/* A size that a writer into a pipe leaves, who cannot go back to fill it in. */
#define SIZE_UNKNOWN 0x7ffff000u

static int cut_at(struct audio_cut *cut, const char *part, uint64_t promised, uint64_t found)
{
    cut->promised = promised;
    cut->found = found;
    cut->part = part;
    return found < promised;
}

static uint64_t little64(const uint8_t *at)
{
    return (uint64_t)little32(at + 4) << 32 | little32(at);
}

/* RIFF, RIFX and FORM: chunks of a name, a size and so many bytes, padded to even. RF64: the first
 * chunk, ds64, holds the sizes that 32 bits cannot. */
static int chunk_is_cut(const struct stk_bytes *bytes, const char *data, struct audio_cut *cut)
{
    int big = has(bytes, 0, "RIFX") || has(bytes, 0, "FORM");
    int wide = has(bytes, 0, "RF64") && has(bytes, 12, "ds64") && bytes->len >= 36;
    for (uint64_t at = 12; at + 8 <= bytes->len;) {
        const uint8_t *size_at = bytes->data + at + 4;
        uint64_t size = big ? big32(size_at) : little32(size_at), left = bytes->len - at - 8;
        if (has(bytes, at, data) && wide && size == UINT32_MAX)
            return cut_at(cut, "data chunk", little64(bytes->data + 28), left);
        if (has(bytes, at, data)) {
            uint64_t inner =
                has(bytes, 0, "FORM") && left >= 8 && size >= 8 ? 8 : 0; /* SSND's own */
            return size < SIZE_UNKNOWN && cut_at(cut, "data chunk", size - inner, left - inner);
        }
        at += 8 + size + (size & 1);
    }
    return 0;
}

static int au_is_cut(const struct stk_bytes *bytes, struct audio_cut *cut)
{
    if (bytes->len < 24)
        return 0;
    int big = has(bytes, 0, ".snd");
    uint32_t offset = big ? big32(bytes->data + 4) : little32(bytes->data + 4);
    uint32_t size = big ? big32(bytes->data + 8) : little32(bytes->data + 8);
    return size < SIZE_UNKNOWN && offset <= bytes->len &&
           cut_at(cut, "data", size, bytes->len - offset);
}

#define OGG_HEADER 27
#define OGG_SUM 22 /* where in it the checksum stands */
/* Bytes of the page (RFC 3533) of which `left` bytes are there: a header, a table of segment
 * lengths, the segments. */
static uint64_t page_size(const uint8_t *page, uint64_t left)
{
    uint64_t segments = left < OGG_HEADER ? 0 : page[26], size = OGG_HEADER + segments;
    if (size > left)
        return size;
    for (uint64_t i = 0; i < segments; i++)
        size += page[OGG_HEADER + i];
    return size;
}

/* Other bytes behind the last page are nobody's business. */
static int page_is_cut(const struct stk_bytes *bytes, struct audio_cut *cut)
{
    cut->frames = 0;
    for (uint64_t at = 0; at < bytes->len;) {
        const uint8_t *page = bytes->data + at;
        uint64_t left = bytes->len - at;
        if (!has(bytes, at, "OggS"))
            return 0;
        uint64_t size = page_size(page, left);
        if (size > left)
            return cut_at(cut, "ogg page", size, left);
        int64_t position = (int64_t)little64(page + 6);
        if (position > 0)
            cut->frames = position;
        at += size;
    }
    return 0;
}

/* RFC 3533, appendix: polynomial 0x04c11db7, highest bit first; four bits at a time. */
static uint32_t page_sum(const uint8_t *page, uint64_t size)
{
    static const uint32_t steps[16] = {0x00000000, 0x04c11db7, 0x09823b6e, 0x0d4326d9,
                                       0x130476dc, 0x17c56b6b, 0x1a864db2, 0x1e475005,
                                       0x2608edb8, 0x22c9f00f, 0x2f8ad6d6, 0x2b4bcb61,
                                       0x350c9b64, 0x31cd86d3, 0x3c8ea00a, 0x384fbdbd};
    uint32_t sum = 0;
    for (uint64_t i = 0; i < size; i++) {
        uint32_t byte = i >= OGG_SUM && i < OGG_SUM + 4 ? 0 : page[i]; /* the sum's own place */
        sum = sum << 4 ^ steps[sum >> 28 ^ byte >> 4];
        sum = sum << 4 ^ steps[sum >> 28 ^ (byte & 15)];
    }
    return sum;
}

/* Headers end at frame 0, or (-1) go on on the next page. */
int audio_head_is_damaged(const struct stk_bytes *bytes, enum audio_kind kind)
{
    for (uint64_t at = 0; kind == AUDIO_OGG && at < bytes->len;) {
        const uint8_t *page = bytes->data + at;
        uint64_t left = bytes->len - at, size = page_size(page, left);
        if (!has(bytes, at, "OggS") || size > left ||
            page_sum(page, size) != little32(page + OGG_SUM))
            return 1;
        if ((int64_t)little64(page + 6) > 0) /* the first page of sound */
            return 0;
        at += size;
    }
    return 0;
}

/* Bytes that the first frame says there are, when an encoder left word in it (Xing, Info); else 0.
 */
static uint64_t mpeg_promise(const struct stk_bytes *bytes, uint64_t first)
{
    static const uint8_t places[] = {13, 21, 36}; /* behind side information of each length */
    for (unsigned i = 0; i < sizeof places; i++) {
        uint64_t at = first + places[i];
        if (at + 16 > bytes->len || (!has(bytes, at, "Xing") && !has(bytes, at, "Info")))
            continue;
        uint32_t flags = big32(bytes->data + at + 4); /* 1: frames are told, 2: bytes are */
        return flags & 2 ? big32(bytes->data + at + (flags & 1 ? 12 : 8)) : 0;
    }
    return 0;
}

static int frame_is_cut(const struct stk_bytes *bytes, struct audio_cut *cut)
{
    uint64_t first = mpeg_first(bytes), there = bytes->len - first;
    uint64_t promised = mpeg_promise(bytes, first), size;
    cut->frames = 0;
    for (uint64_t at = first; at + 4 <= bytes->len; at += size) {
        const uint8_t *frame = bytes->data + at;
        size = mpeg_frame(frame);
        if (!size)
            break; /* a tag, or bytes that the decoder will step over */
        if (size > bytes->len - at)
            return cut_at(cut, "mp3 frame", size, bytes->len - at);
        cut->frames += mpeg_samples(frame);
    }
    uint64_t slack = there / 64 + 1500; /* tags may be counted, or not */
    return promised > there + slack && cut_at(cut, "mp3 stream", promised, there);
}

int audio_is_cut(const struct stk_bytes *bytes, enum audio_kind kind, struct audio_cut *cut)
{
    *cut = (struct audio_cut){.part = "", .frames = -1};
    switch (kind) {
    case AUDIO_WAV:
        return chunk_is_cut(bytes, "data", cut);
    case AUDIO_AIFF:
        return chunk_is_cut(bytes, "SSND", cut);
    case AUDIO_AU:
        return au_is_cut(bytes, cut);
    case AUDIO_OGG:
        return page_is_cut(bytes, cut);
    case AUDIO_MPEG:
        return frame_is_cut(bytes, cut);
    default:
        return 0; /* flac: its header tells how many frames must come */
    }
}

double audio_exact_share(const struct stk_bytes *bytes, enum audio_kind kind)
{
    int64_t ends[3] = {0}; /* where the last three pages end, in frames of the codec */
    if (kind != AUDIO_OGG)
        return kind != AUDIO_MPEG;
    for (uint64_t at = 0; has(bytes, at, "OggS");) {
        uint64_t left = bytes->len - at, size = page_size(bytes->data + at, left);
        if (size > left)
            break;
        int64_t position = (int64_t)little64(bytes->data + at + 6);
        if (position > ends[2]) {
            ends[0] = ends[1];
            ends[1] = ends[2];
            ends[2] = position;
        }
        at += size;
    }
    return ends[2] ? (double)ends[0] / (double)ends[2] : 0;
}
