#include <libavutil/opt.h>
#include <string.h>

#include "ffmpeg_video.h"

/* As the command's scale filter sets it up, so that the pixels are the same. */
static int open_scaler(struct video *video, const AVFrame *frame)
{
    int key[5] = {frame->width, frame->height, frame->format, (int)frame->colorspace,
                  (int)frame->color_range};
    if (video->scaler && !memcmp(key, video->scaler_key, sizeof key))
        return STK_OK;
    sws_freeContext(video->scaler);
    video->scaler = sws_alloc_context();
    if (!video->scaler)
        return video_say_memory(video);
    memcpy(video->scaler_key, key, sizeof key);
    av_opt_set_int(video->scaler, "srcw", frame->width, 0);
    av_opt_set_int(video->scaler, "srch", frame->height, 0);
    av_opt_set_int(video->scaler, "src_format", frame->format, 0);
    av_opt_set_int(video->scaler, "dstw", video->width, 0);
    av_opt_set_int(video->scaler, "dsth", video->height, 0);
    av_opt_set_int(video->scaler, "dst_format", AV_PIX_FMT_RGB24, 0);
    av_opt_set_int(video->scaler, "sws_flags", SWS_BICUBIC, 0);
    if (frame->format == AV_PIX_FMT_YUV420P) /* where MPEG-2 has its colours, and all others */
        av_opt_set_int(video->scaler, "src_v_chr_pos", 128, 0);
    int code = sws_init_context(video->scaler, NULL, NULL);
    if (code < 0)
        return video_say_code(video, code, "its pixels cannot become RGB");
    int *inverse, *table, from_full, to_full, brightness, contrast, saturation;
    if (sws_getColorspaceDetails(video->scaler, &inverse, &from_full, &table, &to_full, &brightness,
                                 &contrast, &saturation) < 0)
        return STK_OK; /* no YUV: nothing to choose */
    int space = (int)frame->colorspace;
    int is_known = space >= 1 && space <= 10 && space != AVCOL_SPC_YCGCO;
    const int *chosen = sws_getCoefficients(is_known ? space : AVCOL_SPC_BT470BG);
    if (frame->color_range != AVCOL_RANGE_UNSPECIFIED)
        from_full = frame->color_range == AVCOL_RANGE_JPEG;
    sws_setColorspaceDetails(video->scaler, chosen, from_full, chosen, to_full, brightness,
                             contrast, saturation);
    return STK_OK;
}

/* Pixels (width, height) in padded rows -> the upright frame. */
static void turn_pixels(const struct video *video, uint8_t *to)
{
    int32_t width = video->transpose ? video->height : video->width;
    int32_t height = video->transpose ? video->width : video->height;
    ptrdiff_t stride = video->rgb_stride;
    ptrdiff_t step_x = video->transpose ? stride : 3, step_y = video->transpose ? 3 : stride;
    const uint8_t *from = video->rgb;
    if (video->flip_x) {
        from += step_x * (width - 1);
        step_x = -step_x;
    }
    if (video->flip_y) {
        from += step_y * (height - 1);
        step_y = -step_y;
    }
    for (int32_t y = 0; y < height; y++, from += step_y) {
        const uint8_t *pixel = from;
        if (step_x == 3) {
            memcpy(to, from, (size_t)width * 3);
            to += (size_t)width * 3;
            continue;
        }
        for (int32_t x = 0; x < width; x++, pixel += step_x, to += 3)
            memcpy(to, pixel, 3);
    }
}

/* The scaler writes whole vectors: rows that are no multiple of them go through a padded frame. */
int video_write_frame(struct video *video, const AVFrame *frame, uint8_t *to)
{
    int turned = video->transpose || video->flip_x || video->flip_y;
    int status = open_scaler(video, frame);
    if (status)
        return status;
    int direct = !turned && video->width % 16 == 0;
    if (!direct && !video->rgb) {
        video->rgb_stride = (video->width * 3 + 127) / 64 * 64;
        video->rgb = av_malloc((size_t)video->rgb_stride * (size_t)video->height + 64);
        if (!video->rgb)
            return video_say_memory(video);
    }
    uint8_t *planes[4] = {direct ? to : video->rgb};
    int strides[4] = {direct ? video->width * 3 : video->rgb_stride};
    int code = sws_scale(video->scaler, (const uint8_t *const *)frame->data, frame->linesize, 0,
                         frame->height, planes, strides);
    if (code < 0)
        return video_say_code(video, code, "its pixels cannot become RGB");
    if (!direct)
        turn_pixels(video, to);
    return STK_OK;
}
