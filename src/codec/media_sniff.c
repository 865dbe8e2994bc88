#include "codec/media_sniff.h"

#include <string.h>
#include <strings.h>

struct magic {
    enum stk_media media;
    uint32_t at;
    uint32_t len;
    const char *bytes;
    const char *words;
};

/* The first that fits counts: RIFF is told apart by its second word, MPEG audio comes last because
 * eleven bits are all it has. */
static const struct magic magics[] = {
    {STK_MEDIA_IMAGE, 0, 3, "\xFF\xD8\xFF", "a JPEG image"},
    {STK_MEDIA_IMAGE, 0, 8, "\x89PNG\r\n\x1A\n", "a PNG image"},
    {STK_MEDIA_IMAGE, 8, 4, "WEBP", "a WebP image"},
    {STK_MEDIA_AUDIO, 8, 4, "WAVE", "a WAV recording"},
    {STK_MEDIA_VIDEO, 8, 4, "AVI ", "an AVI video"},
    {STK_MEDIA_AUDIO, 0, 4, "fLaC", "a FLAC recording"},
    {STK_MEDIA_AUDIO, 0, 4, "OggS", "an Ogg recording"},
    {STK_MEDIA_AUDIO, 0, 4, "FORM", "an AIFF recording"},
    {STK_MEDIA_AUDIO, 0, 4, ".snd", "an AU recording"},
    {STK_MEDIA_AUDIO, 0, 3, "ID3", "an MP3 recording"},
    {STK_MEDIA_VIDEO, 4, 4, "ftyp", "an MP4 video"},
    {STK_MEDIA_VIDEO, 0, 4, "\x1A\x45\xDF\xA3", "a Matroska or WebM video"},
    {STK_MEDIA_POINTS, 0, 6, "# .PCD", "a PCD point cloud"},
    {STK_MEDIA_POINTS, 0, 8, "VERSION ", "a PCD point cloud"},
    {STK_MEDIA_POINTS, 0, 4, "ply\n", "a PLY point cloud"},
    {STK_MEDIA_POINTS, 0, 4, "ply\r", "a PLY point cloud"},
    {STK_MEDIA_TENSOR, 0, 6, "\x93NUMPY", "an .npy array"},
    {STK_MEDIA_TENSOR, 0, 4, "GIF8", "a GIF image"},
    {STK_MEDIA_TENSOR, 0, 2, "BM", "a BMP image"},
    {STK_MEDIA_TENSOR, 0, 4, "II*\0", "a TIFF image"},
    {STK_MEDIA_TENSOR, 0, 4, "MM\0*", "a TIFF image"},
    {STK_MEDIA_TENSOR, 0, 2, "\x1F\x8B", "a gzip file"},
    {STK_MEDIA_TENSOR, 0, 2, "PK", "a zip file"},
    {STK_MEDIA_AUDIO, 0, 2, "\xFF\xFB", "an MP3 recording"},
    {STK_MEDIA_AUDIO, 0, 2, "\xFF\xF3", "an MP3 recording"},
    {STK_MEDIA_AUDIO, 0, 2, "\xFF\xF2", "an MP3 recording"},
    {STK_MEDIA_AUDIO, 0, 2, "\xFF\xFA", "an MP3 recording"},
};

static const struct magic *magic_find(const struct stk_bytes *bytes)
{
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const struct magic *magic = &magics[i];
        if (bytes->len >= (size_t)magic->at + magic->len &&
            !memcmp((const uint8_t *)bytes->data + magic->at, magic->bytes, magic->len))
            return magic;
    }
    return NULL;
}

enum stk_media media_sniff(const struct stk_bytes *bytes)
{
    const struct magic *magic = magic_find(bytes);
    return magic ? magic->media : STK_MEDIA_TENSOR;
}

static int begins_as_page(const struct stk_bytes *bytes)
{
    const char *text = (const char *)bytes->data;
    size_t at = 0;
    while (at < bytes->len && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    size_t left = bytes->len - at;
    return (left >= 5 && !strncasecmp(text + at, "<html", 5)) ||
           (left >= 9 && !strncasecmp(text + at, "<!doctype", 9));
}

const char *media_looks_like(const struct stk_bytes *bytes)
{
    const struct magic *magic = magic_find(bytes);
    if (!bytes->len)
        return "0 bytes";
    if (magic)
        return magic->words;
    return begins_as_page(bytes) ? "an HTML page" : "nothing that is known";
}
