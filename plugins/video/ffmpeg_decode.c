#include <errno.h>
#include <stdlib.h>

#include "ffmpeg_video.h"

/* --- decoding --------------------------------------------------------------------------------- */

/* The decoder hands a packet's time on to its frame: we give it the packet's place in the list. */
static int send_packet(struct video *video, int64_t i)
{
    const struct packet *own = &video->packets[i];
    AVPacket *packet = video->packet;
    int code = 0;
    if (own->kept) {
        code = av_packet_ref(packet, own->kept);
        if (code < 0)
            return code;
    } else { /* not counted by reference: the decoder takes a padded copy */
        packet->data = (uint8_t *)(uintptr_t)(video->bytes.data + own->offset);
        packet->size = own->size;
    }
    packet->flags = own->flags;
    packet->pts = packet->dts = i;
    code = avcodec_send_packet(video->codec, packet);
    av_packet_unref(packet);
    return code;
}

/* All frames that are ready. Not 0: what take said, or a (negative) code of FFmpeg's. */
static int receive_frames(struct video *video, const struct run *run)
{
    int code;
    while ((code = avcodec_receive_frame(video->codec, video->frame)) >= 0) {
        int64_t packet = video->frame->pts;
        int result = 0;
        if (packet >= 0 && packet < video->packet_count)
            result = run->take(video, packet, run->user);
        av_frame_unref(video->frame);
        if (result)
            return result;
    }
    return code == AVERROR(EAGAIN) || code == AVERROR_EOF ? 0 : code;
}

int video_decode_run(struct video *video, const struct run *run)
{
    int result = 0;
    avcodec_flush_buffers(video->codec);
    for (int64_t i = run->first; i <= run->last && !result; i++) {
        int skip = run->skip && run->skip(video, i, run->user);
        video->codec->skip_frame = skip ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
        int code = send_packet(video, i);
        if (code >= 0 || code == AVERROR_EOF) {
            code = receive_frames(video, run);
            result = code > 0 ? code : 0;
        }
        if (code == AVERROR(ENOMEM))
            result = video_say_memory(video);
        else if (code < 0)
            result = run->damaged(video, i, run->user);
        if (!result && video_is_late(video))
            result = video_say_code(video, AVERROR_EXIT, "decoding");
    }
    if (!result && avcodec_send_packet(video->codec, NULL) >= 0) {
        int code = receive_frames(video, run);
        result = code > 0 ? code : 0; /* damage shows in frames that do not come */
    }
    avcodec_flush_buffers(video->codec);
    return result;
}

/* --- numbering the frames --------------------------------------------------------------------- */

struct place {
    int64_t shown;
    int32_t packet;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->shown != y->shown)
        return x->shown < y->shown ? -1 : 1;
    return x->packet < y->packet ? -1 : 1;
}

/* Numbers the frames by their times. 0: the times cannot be relied on. */
static int number_by_time(struct video *video, struct place *places)
{
    const struct packet *first = video->packets;
    int64_t count = 0;
    const AVCodecDescriptor *codec = avcodec_descriptor_get(video->codec->codec_id);
    int reorders = !codec || (codec->props & AV_CODEC_PROP_REORDER);
    if (!(first->flags & AV_PKT_FLAG_KEY) ||
        (video->is_avi && reorders)) /* AVI has no such times */
        return 0;
    for (int64_t i = 0; i < video->packet_count; i++) {
        const struct packet *packet = &video->packets[i];
        if (packet->shown == AV_NOPTS_VALUE)
            return 0;
        if (packet->number < 0)
            continue;
        if (packet->shown < first->shown) /* it needs frames that are not there */
            return 0;
        places[count++] = (struct place){packet->shown, (int32_t)i};
    }
    qsort(places, (size_t)count, sizeof *places, compare_places);
    for (int64_t n = 0; n < count; n++) {
        if (n && places[n].shown == places[n - 1].shown) /* two halves of one frame, perhaps */
            return 0;
        video->frames[n] = places[n].packet;
        video->packets[places[n].packet].number = n;
    }
    video->frame_count = count;
    return 1;
}

static int count_frame(struct video *video, int64_t packet, void *user)
{
    (void)user;
    if (video->packets[packet].number >= 0)
        return 0; /* the first was makeshift, for want of a keyframe: they are one */
    video->packets[packet].number = video->frame_count;
    video->frames[video->frame_count++] = (int32_t)packet;
    return 0;
}

static int ignore_damage(struct video *video, int64_t packet, void *user)
{
    (void)video, (void)packet, (void)user;
    return 0;
}

/* Slow, but it is what the decoder will do. Only which frames come counts: their pixels are not
 * finished. */
static int number_by_decoding(struct video *video)
{
    struct run run = {.last = video->packet_count - 1, .damaged = ignore_damage};
    run.take = count_frame;
    video->frame_count = 0;
    for (int64_t i = 0; i < video->packet_count; i++)
        video->packets[i].number = -1;
    video->codec->skip_loop_filter = video->codec->skip_idct = AVDISCARD_ALL;
    int result = video_decode_run(video, &run);
    video->codec->skip_loop_filter = video->codec->skip_idct = AVDISCARD_DEFAULT;
    for (int64_t i = 0; i < video->packet_count; i++)
        video->packets[i].shown = video->packets[i].number;
    return result;
}

int video_number_frames(struct video *video)
{
    size_t count = (size_t)video->packet_count;
    if (!count)
        return video_say(video, video->cut ? STK_TRUNCATED : STK_CORRUPT,
                         "there is no frame in it");
    struct place *places = av_malloc_array(count, sizeof *places);
    video->frames = av_malloc_array(count, sizeof *video->frames);
    int status = STK_OK;
    if (!places || !video->frames)
        status = video_say_memory(video);
    else if (!number_by_time(video, places))
        status = number_by_decoding(video);
    if (!status && !video->frame_count)
        status =
            video_say(video, video->cut ? STK_TRUNCATED : STK_CORRUPT, "no frame can be decoded");
    av_free(places);
    return status;
}
