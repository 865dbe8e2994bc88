/* limit_video.c -- libavcodec's own decode: of each video in RAM the frames from the keyframe
 * before FIRST to LAST, left as they are coded (YUV), each video by one thread, a thread a core.
 *
 *     limit_video EXTENTS THREADS SECONDS FIRST LAST
 *
 * EXTENTS is a text file with a line "offset length path" for each video. Prints one JSON object.
 */
#include "limit_crew.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

enum { IO_BUFFER = 65536 };

struct range {
    int first, last;
};

struct reader {
    const struct sample *sample;
    int64_t at;
    struct range range;
    AVPacket *packet;
    AVFrame *frame;
};

static int memory_read(void *opaque, uint8_t *to, int wanted)
{
    struct reader *reader = opaque;
    int64_t left = (int64_t)reader->sample->len - reader->at;
    if (left <= 0)
        return AVERROR_EOF;
    int taken = wanted < left ? wanted : (int)left;
    memcpy(to, reader->sample->data + reader->at, (size_t)taken);
    reader->at += taken;
    return taken;
}

static int64_t memory_seek(void *opaque, int64_t offset, int whence)
{
    struct reader *reader = opaque;
    int64_t size = (int64_t)reader->sample->len;
    if (whence & AVSEEK_SIZE)
        return size;
    whence &= ~AVSEEK_FORCE;
    reader->at = offset + (whence == SEEK_CUR ? reader->at : whence == SEEK_END ? size : 0);
    return reader->at;
}

static void *reader_open(const void *about)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        limit_fail("memory");
    reader->range = *(const struct range *)about;
    reader->packet = av_packet_alloc();
    reader->frame = av_frame_alloc();
    if (!reader->packet || !reader->frame)
        limit_fail("memory");
    return reader;
}

static AVFormatContext *format_open(struct reader *reader)
{
    AVFormatContext *format = avformat_alloc_context();
    uint8_t *buffer = av_malloc(IO_BUFFER);
    if (!format || !buffer)
        limit_fail("memory");
    format->pb = avio_alloc_context(buffer, IO_BUFFER, 0, reader, memory_read, NULL, memory_seek);
    if (!format->pb || avformat_open_input(&format, "", NULL, NULL) < 0)
        limit_fail("a video does not open");
    return format;
}

static AVCodecContext *codec_open(const AVStream *stream)
{
    const AVCodec *found = avcodec_find_decoder(stream->codecpar->codec_id);
    AVCodecContext *codec = avcodec_alloc_context3(found);
    if (!codec || avcodec_parameters_to_context(codec, stream->codecpar) < 0)
        limit_fail("memory");
    codec->thread_count = 1;
    if (avcodec_open2(codec, found, NULL) < 0)
        limit_fail("there is no decoder");
    return codec;
}

/* Takes the frames that are ready; 1: the last one has come. */
static int frames_take(struct reader *reader, AVCodecContext *codec, int64_t last, uint64_t *bytes)
{
    while (avcodec_receive_frame(codec, reader->frame) == 0) {
        *bytes += (uint64_t)reader->frame->width * (uint64_t)reader->frame->height * 3 / 2;
        if (reader->frame->best_effort_timestamp >= last)
            return 1;
    }
    return 0;
}

static uint64_t video_decode(void *state, const struct sample *sample)
{
    struct reader *reader = state;
    uint64_t bytes = 0;
    int is_over = 0;
    reader->sample = sample;
    reader->at = 0;
    AVFormatContext *format = format_open(reader);
    AVStream *stream = format->streams[0];
    AVCodecContext *codec = codec_open(stream);
    int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
    int64_t step = stream->nb_frames ? stream->duration / stream->nb_frames : 1;
    int64_t last = start + reader->range.last * step;
    av_seek_frame(format, 0, start + reader->range.first * step, AVSEEK_FLAG_BACKWARD);
    while (!is_over && av_read_frame(format, reader->packet) == 0) {
        avcodec_send_packet(codec, reader->packet);
        av_packet_unref(reader->packet);
        is_over = frames_take(reader, codec, last, &bytes);
    }
    if (!is_over) { /* the end of the file: what the decoder still holds */
        avcodec_send_packet(codec, NULL);
        is_over = frames_take(reader, codec, last, &bytes);
    }
    if (!is_over)
        limit_fail("a video ends before its clip");
    avcodec_free_context(&codec);
    AVIOContext *io = format->pb;
    avformat_close_input(&format);
    av_freep(&io->buffer);
    avio_context_free(&io);
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: limit_video EXTENTS THREADS SECONDS FIRST LAST\n");
        return 2;
    }
    struct range range = {atoi(argv[4]), atoi(argv[5])};
    return crew_main(argc, argv, &(struct limit_job){reader_open, video_decode, &range});
}
