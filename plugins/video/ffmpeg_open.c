#include <errno.h>
#include <libavutil/display.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ffmpeg_video.h"

#define PACKET_MOST ((int64_t)1 << 22) /* 38 hours at 30 frames a second */
#define PIXEL_MOST ((int64_t)1 << 27)  /* of a frame */
#define IO_BUFFER 65536
#define HEAD_MOST 64 /* bytes between where a packet is said to be and its payload */
/* Containers of one file. Playlists and the like are left out: they open other files. */
#define CONTAINERS "mov,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,ivf,h264,hevc,m4v,mpegvideo,gif"

/* --- the file in memory ----------------------------------------------------------------------- */

static int memory_read(void *opaque, uint8_t *to, int size)
{
    struct video *video = opaque;
    size_t left = video->bytes.len - video->position;
    if (left == 0)
        return AVERROR_EOF;
    size_t count = (size_t)size < left ? (size_t)size : left;
    memcpy(to, video->bytes.data + video->position, count);
    video->position += count;
    return (int)count;
}

static int64_t memory_seek(void *opaque, int64_t offset, int whence)
{
    struct video *video = opaque;
    int64_t size = (int64_t)video->bytes.len;
    if (whence & AVSEEK_SIZE)
        return size;
    whence &= ~AVSEEK_FORCE;
    int64_t base = whence == SEEK_CUR ? (int64_t)video->position : whence == SEEK_END ? size : 0;
    if (offset < -base || offset > size - base)
        return AVERROR(EINVAL);
    video->position = (uint64_t)(base + offset);
    return base + offset;
}

/* A video may not make us open other files or addresses. */
static int refuse_open(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                       AVDictionary **options)
{
    (void)format, (void)url, (void)flags, (void)options;
    *io = NULL;
    return AVERROR(EPERM);
}

int video_open_format(struct video *video)
{
    AVDictionary *options = NULL;
    uint8_t *buffer = av_malloc(IO_BUFFER);
    AVIOContext *io =
        buffer ? avio_alloc_context(buffer, IO_BUFFER, 0, video, memory_read, NULL, memory_seek)
               : NULL;
    video->format = io ? avformat_alloc_context() : NULL;
    if (!video->format) {
        av_free(buffer);
        avio_context_free(&io);
        return video_say_memory(video);
    }
    video->format->pb = io;
    video->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    video->format->io_open = refuse_open;
    video->format->interrupt_callback =
        (AVIOInterruptCB){.callback = video_is_late, .opaque = video};
    av_dict_set(&options, "format_whitelist", CONTAINERS, 0);
    int code = avformat_open_input(&video->format, "", NULL, &options);
    av_dict_free(&options);
    if (code < 0) {
        av_freep(&io->buffer); /* open_input has freed the format, but not what is ours */
        avio_context_free(&io);
    }
    if (code == AVERROR(EINVAL)) { /* what FFmpeg says of its list of containers helps nobody */
        video_heard()[0] = 0;
        return video_say(video, STK_UNSUPPORTED, "not a kind of file that holds videos");
    }
    if (code < 0)
        return video_say_code(video, code, "not a video that FFmpeg reads");
    video->is_avi = !strcmp(video->format->iformat->name, "avi");
    return STK_OK;
}

void video_close_format(struct video *video)
{
    if (!video->format)
        return;
    AVIOContext *io = video->format->pb;
    avformat_close_input(&video->format);
    av_freep(&io->buffer);
    avio_context_free(&io);
}

/* --- the stream ------------------------------------------------------------------------------- */

#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100) /* FFmpeg 6.1 */
static const int32_t *display_matrix(const AVStream *stream)
{
    const AVPacketSideData *data =
        av_packet_side_data_get(stream->codecpar->coded_side_data,
                                stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    return data && data->size >= 9 * sizeof(int32_t) ? (const int32_t *)(const void *)data->data
                                                     : NULL;
}
#else
static const int32_t *display_matrix(const AVStream *stream)
{
    size_t size = 0;
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    return data && size >= 9 * sizeof(int32_t) ? (const int32_t *)(const void *)data : NULL;
}
#endif

/* Quarter turns and mirror images, as the ffmpeg command turns them. Other angles are left. */
static void find_turn(struct video *video, const int32_t *matrix)
{
    if (!matrix)
        return;
    double angle = -round(av_display_rotation_get(matrix));
    if (isnan(angle))
        return;
    angle -= 360 * floor(angle / 360 + 0.9 / 360);
    if (fabs(angle - 90) < 1) {
        video->transpose = 1;
        video->flip_x = matrix[3] <= 0;
    } else if (fabs(angle - 180) < 1) {
        video->flip_x = matrix[0] < 0;
        video->flip_y = matrix[4] < 0;
    } else if (fabs(angle - 270) < 1) {
        video->transpose = 1;
        video->flip_x = matrix[3] < 0;
        video->flip_y = 1;
    } else if (fabs(angle) < 1) {
        video->flip_y = matrix[4] < 0;
    }
}

int video_open_codec(struct video *video, const AVStream *stream, const AVCodec *codec)
{
    video->codec = avcodec_alloc_context3(codec);
    video->packet = av_packet_alloc();
    video->frame = av_frame_alloc();
    if (!video->codec || !video->packet || !video->frame)
        return video_say_memory(video);
    int code = avcodec_parameters_to_context(video->codec, stream->codecpar);
    if (code < 0)
        return video_say_code(video, code, "the video's header");
    video->codec->thread_count = 1; /* the engine has a thread for every core already */
    video->codec->max_pixels = PIXEL_MOST;
    code = avcodec_open2(video->codec, codec, NULL);
    if (code < 0)
        return video_say_code(video, code, "the decoder does not take the video");
    return STK_OK;
}

/* Chooses the stream. */
int video_open_stream(struct video *video, AVStream **chosen, const AVCodec **codec)
{
    AVFormatContext *format = video->format;
    int code = avformat_find_stream_info(format, NULL);
    if (code < 0)
        return video_say_code(video, code, "what is in the video cannot be told");
    int number = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, codec, 0);
    if (number == AVERROR_DECODER_NOT_FOUND)
        return video_say(video, STK_UNSUPPORTED,
                         "this FFmpeg has no decoder for the video's codec");
    int is_cover =
        number >= 0 && (format->streams[number]->disposition & AV_DISPOSITION_ATTACHED_PIC);
    if (number < 0 || is_cover)
        return video_say(video, STK_UNSUPPORTED,
                         "there is no video in the file, only other streams");
    *chosen = format->streams[number];
    const AVCodecParameters *par = (*chosen)->codecpar;
    if (par->width <= 0 || par->height <= 0)
        return video_say(video, STK_CORRUPT, "the video does not say how large its frames are");
    if ((int64_t)par->width * par->height > PIXEL_MOST) {
        snprintf(video->words, STK_PLUGIN_WORDS, "frames of %d x %d pixels are too large",
                 par->width, par->height);
        return STK_LIMIT;
    }
    for (unsigned i = 0; i < format->nb_streams; i++)
        if ((int)i != number)
            format->streams[i]->discard = AVDISCARD_ALL;
    video->width = par->width;
    video->height = par->height;
    find_turn(video, display_matrix(*chosen));
    return STK_OK;
}

/* --- packets ---------------------------------------------------------------------------------- */

/* Most containers hold a packet's payload as it is, a few bytes behind where they say it is. Then
 * only its place is kept, and memory does not hold the video twice. */
static int find_payload(const struct video *video, const AVPacket *packet, uint64_t *offset)
{
    const uint8_t *data = video->bytes.data;
    uint64_t len = video->bytes.len, size = (uint64_t)packet->size;
    if (packet->pos < 0 || packet->side_data_elems || size < 8)
        return 0;
    for (uint64_t at = (uint64_t)packet->pos; at < (uint64_t)packet->pos + HEAD_MOST; at++) {
        if (at > len || size > len - at)
            return 0;
        if (!memcmp(data + at, packet->data, 8) && !memcmp(data + at, packet->data, size)) {
            *offset = at;
            return 1;
        }
    }
    return 0;
}

/* VP8 has packets that are never shown; their containers do not say so, their first byte does. */
static int is_shown(const struct video *video, const AVPacket *packet)
{
    if (packet->flags & AV_PKT_FLAG_DISCARD)
        return 0;
    return video->codec->codec_id != AV_CODEC_ID_VP8 || (packet->data[0] >> 4 & 1);
}

static int add_packet(struct video *video)
{
    AVPacket *packet = video->packet;
    if (video->packet_count == PACKET_MOST)
        return video_say(video, STK_LIMIT, "the video has too many frames");
    if (video->packet_count == video->packet_room) {
        int64_t room = video->packet_room ? 2 * video->packet_room : 256;
        struct packet *packets = av_realloc_array(video->packets, (size_t)room, sizeof *packets);
        if (!packets)
            return video_say_memory(video);
        video->packets = packets;
        video->packet_room = room;
    }
    struct packet *own = &video->packets[video->packet_count];
    *own = (struct packet){.shown = packet->pts, .size = packet->size, .flags = packet->flags};
    own->number = is_shown(video, packet) ? 0 : -1;
    own->lost = video_heard()[0] && !(packet->flags & AV_PKT_FLAG_KEY);
    if (!find_payload(video, packet, &own->offset)) {
        own->kept = av_packet_alloc();
        if (!own->kept)
            return video_say_memory(video);
        av_packet_move_ref(own->kept, packet);
    }
    video->packet_count++;
    return STK_OK;
}

int video_list_packets(struct video *video, const AVStream *stream)
{
    int status = STK_OK, code = 0;
    video_heard()[0] = 0;
    while (!status && (code = av_read_frame(video->format, video->packet)) >= 0) {
        int is_ours = video->packet->stream_index == stream->index && video->packet->size > 0;
        if (video->packet->flags & AV_PKT_FLAG_CORRUPT) /* the file ends within it */
            video->cut = 1;
        else if (is_ours)
            status = add_packet(video);
        video_heard()[0] = 0;
        av_packet_unref(video->packet);
        if (!status && video_is_late(video))
            status = video_say_code(video, AVERROR_EXIT, "the list of frames");
    }
    if (status)
        return status;
    video->cut |= code != AVERROR_EOF || video_heard()[0]; /* a clean end has no words */
    return STK_OK;
}
