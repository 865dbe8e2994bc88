/* ffmpeg_video.h -- what the files of the FFmpeg plugin share: one open video.
 * Owns: a video owns FFmpeg's handles, its list of packets and one frame of pixels.
 * Threads: one a video; FFmpeg's own threads are not used.   Errors: a stk_status, words into the
 * call's `words`.   Not here: the contract with the engine (stoker/plugin.h).
 *
 * A file is demuxed once, at open, into a list of its packets. They are numbered by when their
 * frames are shown, so that frame numbers are exact whatever the frame rate does and however frames
 * are reordered; where the container does not say (no times, no keyframe at the start), the order
 * is found by decoding. Reading begins at the last keyframe that is shown no later than the wanted
 * frame. Frames that nobody wants and no other needs are not decoded. Pixels are those of
 *     ffmpeg -i FILE -fps_mode passthrough -f rawvideo -pix_fmt rgb24 */
#ifndef VIDEO_FFMPEG_VIDEO_H
#define VIDEO_FFMPEG_VIDEO_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

#include "stoker/plugin.h"

/* One packet of the video's stream, in the order of decoding. */
struct packet {
    int64_t shown;   /* orders the frames: their time, or their number when they were counted */
    uint64_t offset; /* of its payload in the file ... */
    AVPacket *kept;  /* ... or the packet itself, when the payload does not lie there as it is */
    int32_t size;
    int32_t flags;  /* AV_PKT_FLAG_* */
    int32_t lost;   /* something before it could not be read: it may refer to what is missing */
    int64_t number; /* of its frame; -1: it shows none */
};

struct video {
    struct stk_bytes bytes;
    uint64_t position; /* of the demuxer in bytes */
    AVFormatContext *format;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    struct packet *packets;
    int64_t packet_count, packet_room;
    int32_t *frames; /* number -> packet */
    int64_t frame_count;
    int is_avi;
    int cut; /* the file ends too early */
    int64_t deadline;
    /* How pixels are turned: first transposed, then flipped. */
    int transpose, flip_x, flip_y;
    int32_t width, height; /* before that */
    struct SwsContext *scaler;
    int scaler_key[5];
    uint8_t *rgb; /* a frame whose rows are padded, or that is to be turned */
    int rgb_stride;
    char *words;
};

/* --- ffmpeg_words.c --- */

/* FFmpeg's log is heard from begin to end; end hands result on. */
void video_call_begin(struct video *video, char *words);
int video_call_end(int result);
/* The last error that FFmpeg has logged in this call; may be set to "". */
char *video_heard(void);
/* Sets the words, with what was heard; returns status. */
int video_say(struct video *video, int status, const char *what);
int video_say_code(struct video *video, int code, const char *what); /* code: FFmpeg's */
int video_say_memory(struct video *video);
int video_is_late(void *video); /* the call has taken too long */

/* --- ffmpeg_open.c: in this order --- */

int video_open_format(struct video *video);
void video_close_format(struct video *video); /* NULL is fine */
int video_open_stream(struct video *video, AVStream **chosen, const AVCodec **codec);
int video_open_codec(struct video *video, const AVStream *stream, const AVCodec *codec);
int video_list_packets(struct video *video, const AVStream *stream);

/* --- ffmpeg_decode.c --- */

/* Decodes packets first to last, and what they leave in the decoder. */
struct run {
    int64_t first, last;
    /* Not 0: the packet need be decoded only if others refer to it. NULL: all are decoded. */
    int (*skip)(struct video *video, int64_t packet, void *user);
    /* Told of packets that fail. Not 0 ends it. */
    int (*damaged)(struct video *video, int64_t packet, void *user);
    /* Each frame that comes out, in video->frame; packet: where it came from. Not 0 ends it. */
    int (*take)(struct video *video, int64_t packet, void *user);
    void *user;
};
int video_decode_run(struct video *video, const struct run *run);
/* Fills `frames`. */
int video_number_frames(struct video *video);

/* --- ffmpeg_pixels.c --- */

/* A decoded frame -> upright RGB, without padding. */
int video_write_frame(struct video *video, const AVFrame *frame, uint8_t *to);

#endif
