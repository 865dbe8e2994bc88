/* The decoder of videos, by FFmpeg's libraries: a plugin of its own (stoker/plugin.h), because
 * FFmpeg is not everywhere and may be under a licence that Stoker's own packages do not carry.
 *     cc -std=c11 -O2 -shared -fPIC -Iinclude plugins/video/ffmpeg_*.c -o libstoker_video.so \
 *        $(pkg-config --cflags --libs libavformat libavcodec libswscale libavutil) -lm */
#include <stdio.h>
#include <string.h>

#include "ffmpeg_video.h"

/* --- reading ---------------------------------------------------------------------------------- */

/* Wanted frames [done, done + count) of a call, decoded in one go. */
struct wanted {
    int64_t first, stride; /* number of frame k: first + k * stride */
    int64_t done, count;
    int64_t missing;
    uint8_t *to, *got; /* got[k]: it is there */
    uint64_t frame_bytes;
    int64_t damage; /* the first frame that is damaged; -1: none */
    int status;     /* ours, when decoding was stopped */
};

/* The wanted frame that a packet shows; -1: none. */
static int64_t wanted_at(const struct video *video, const struct wanted *wanted, int64_t packet)
{
    int64_t past = video->packets[packet].number - wanted->first;
    if (past < 0 || past % wanted->stride)
        return -1;
    int64_t k = past / wanted->stride;
    return k >= wanted->done && k < wanted->done + wanted->count ? k : -1;
}

/* A packet that shows nothing is no loss: a picture that leads its keyframe, perhaps. */
static int note_damage(struct video *video, int64_t packet, void *user)
{
    struct wanted *wanted = user;
    if (video->packets[packet].number >= 0 && wanted->damage < 0)
        wanted->damage = video->packets[packet].number;
    return 0;
}

static int skip_unwanted(struct video *video, int64_t packet, void *user)
{
    if (video->packets[packet].lost)
        (void)note_damage(video, packet, user);
    return wanted_at(video, user, packet) < 0;
}

static int take_wanted(struct video *video, int64_t packet, void *user)
{
    struct wanted *wanted = user;
    const AVFrame *frame = video->frame;
    if ((frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags)
        (void)note_damage(video, packet, wanted);
    int64_t k = wanted_at(video, wanted, packet);
    if (k < 0)
        return 0;
    wanted->missing -= !wanted->got[k]; /* a second frame is the better one: see count_frame */
    wanted->got[k] = 1;
    wanted->status =
        video_write_frame(video, frame, wanted->to + (uint64_t)k * wanted->frame_bytes);
    return wanted->status;
}

/* The packet to begin with, so that frame `number` can be decoded. */
static int64_t key_before(const struct video *video, int64_t number)
{
    int64_t at = video->frames[number];
    int64_t shown = video->packets[at].shown;
    for (; at > 0; at--) {
        const struct packet *packet = &video->packets[at];
        if ((packet->flags & AV_PKT_FLAG_KEY) && packet->shown <= shown)
            break;
    }
    return at;
}

static int read_run(struct video *video, struct wanted *wanted, int64_t first, int64_t last)
{
    struct run run = {.first = first, .last = last, .skip = skip_unwanted, .user = wanted};
    run.damaged = note_damage;
    run.take = take_wanted;
    wanted->missing = wanted->count;
    wanted->damage = -1;
    memset(wanted->got + wanted->done, 0, (size_t)wanted->count);
    return video_decode_run(video, &run);
}

static int say_damage(struct video *video, const struct wanted *wanted)
{
    char text[64];
    int64_t number = wanted->damage;
    for (int64_t k = wanted->done; number < 0; k++)
        if (!wanted->got[k])
            number = wanted->first + k * wanted->stride;
    snprintf(text, sizeof text, "frame %lld of %lld is damaged", (long long)number,
             (long long)video->frame_count);
    return video_say(video, STK_CORRUPT, text);
}

/* Frames that lie between the same keyframes are read in one run. A keyframe may promise more than
 * it holds: then once more from the beginning of the video. */
static int read_wanted(struct video *video, struct wanted *wanted, int64_t total)
{
    int status = STK_OK;
    for (wanted->done = 0; wanted->done < total && !status; wanted->done += wanted->count) {
        int64_t number = wanted->first + wanted->done * wanted->stride;
        int64_t first = key_before(video, number), last = video->frames[number];
        wanted->count = 1;
        while (wanted->done + wanted->count < total) {
            number += wanted->stride;
            if (key_before(video, number) > last)
                break;
            if (video->frames[number] > last)
                last = video->frames[number];
            wanted->count++;
        }
        status = read_run(video, wanted, first, last);
        if (!status && first > 0 && (wanted->missing || wanted->damage >= 0))
            status = read_run(video, wanted, 0, last);
        if (!status && (wanted->missing || wanted->damage >= 0))
            status = say_damage(video, wanted);
    }
    return status;
}

static int video_read(void *opaque, int64_t first, int64_t stride, int64_t count, uint8_t *to,
                      char *words)
{
    struct video *video = opaque;
    struct wanted wanted = {.first = first, .stride = stride, .to = to};
    int64_t total = 1 + (video->frame_count - 1 - first) / stride;
    video_call_begin(video, words);
    wanted.frame_bytes = (uint64_t)video->width * (uint64_t)video->height * 3;
    if (total > count)
        total = count;
    if (total < count && video->cut)
        return video_call_end(
            video_say(video, STK_TRUNCATED, "the file ends before the frames that are wanted"));
    wanted.got = av_mallocz((size_t)total);
    int status = wanted.got ? read_wanted(video, &wanted, total) : video_say_memory(video);
    av_free(wanted.got);
    if (status || total == count)
        return video_call_end(status);
    /* The last frame is not always among those that were read. */
    uint8_t *last = to + (uint64_t)total * wanted.frame_bytes;
    int64_t number = video->frame_count - 1;
    if (first + (total - 1) * stride == number)
        memcpy(last, last - wanted.frame_bytes, wanted.frame_bytes);
    else
        status = video_read(video, number, 1, 1, last, words);
    for (int64_t k = total + 1; k < count && !status; k++)
        memcpy(to + (uint64_t)k * wanted.frame_bytes, last, wanted.frame_bytes);
    return video_call_end(status);
}

/* --- the plugin ------------------------------------------------------------------------------- */

static void video_close(void *opaque)
{
    struct video *video = opaque;
    if (!video)
        return;
    video_close_format(video);
    for (int64_t i = 0; i < video->packet_count; i++)
        av_packet_free(&video->packets[i].kept);
    av_free(video->packets);
    av_free(video->frames);
    avcodec_free_context(&video->codec);
    av_packet_free(&video->packet);
    av_frame_free(&video->frame);
    sws_freeContext(video->scaler);
    av_free(video->rgb);
    av_free(video);
}

static void fill_header(const struct video *video, const AVStream *stream,
                        struct stk_video_header *header)
{
    AVRational rate = stream->avg_frame_rate.num ? stream->avg_frame_rate : stream->r_frame_rate;
    header->width = video->transpose ? video->height : video->width;
    header->height = video->transpose ? video->width : video->height;
    header->frames = video->frame_count;
    header->rate = rate.den ? av_q2d(rate) : 0;
}

static int video_open(void **out, const struct stk_bytes *bytes, struct stk_video_header *header,
                      char *words)
{
    struct video *video = av_mallocz(sizeof *video);
    AVStream *stream = NULL;
    const AVCodec *codec = NULL;
    *out = NULL;
    if (!video) {
        snprintf(words, STK_PLUGIN_WORDS, "out of memory");
        return STK_MEMORY;
    }
    video->bytes = *bytes;
    video_call_begin(video, words);
    int status = bytes->len ? video_open_format(video)
                            : video_say(video, STK_TRUNCATED, "the file is empty");
    if (!status)
        status = video_open_stream(video, &stream, &codec);
    if (!status)
        status = video_open_codec(video, stream, codec);
    if (!status)
        status = video_list_packets(video, stream);
    if (!status)
        status = video_number_frames(video);
    if (!status) {
        fill_header(video, stream, header);
        video_close_format(video);
        *out = video;
        video = NULL;
    }
    video_close(video);
    return video_call_end(status);
}

static const struct stk_plugin_video ffmpeg = {
    .size = sizeof(struct stk_plugin_video),
    .name = "FFmpeg, libavcodec " AV_STRINGIFY(LIBAVCODEC_VERSION),
    .open = video_open,
    .read = video_read,
    .close = video_close,
};

STK_API const struct stk_plugin stoker_plugin = {
    .version = STK_PLUGIN_VERSION,
    .size = sizeof(struct stk_plugin),
    .name = "ffmpeg",
    .video = &ffmpeg,
};
