#include <errno.h>
#include <libavutil/time.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ffmpeg_video.h"

#define TIME_MOST ((int64_t)60000000) /* microseconds for one call */

/* FFmpeg tells its reasons only to its log. While one of our calls runs on this thread, the last
 * error goes here; what others do with FFmpeg in this process is logged as ever. */
static _Thread_local struct {
    int active;
    char line[160];
} heard;

static void hear(void *source, int level, const char *format, va_list list)
{
    if (!heard.active) {
        av_log_default_callback(source, level, format, list);
        return;
    }
    if (level > AV_LOG_ERROR)
        return;
    char line[sizeof heard.line];
    vsnprintf(line, sizeof line, format, list);
    line[strcspn(line, "\r\n")] = 0;
    if (line[0])
        memcpy(heard.line, line, sizeof line);
}

static void hear_from_now_on(void)
{
    av_log_set_callback(hear);
}

void video_call_begin(struct video *video, char *words)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hear_from_now_on);
    heard.active = 1;
    heard.line[0] = 0;
    video->words = words;
    video->deadline = av_gettime_relative() + TIME_MOST;
}

int video_call_end(int result)
{
    heard.active = 0;
    return result;
}

int video_say(struct video *video, int status, const char *what)
{
    if (heard.line[0])
        snprintf(video->words, STK_PLUGIN_WORDS, "%.90s (%s)", what, heard.line);
    else
        snprintf(video->words, STK_PLUGIN_WORDS, "%s", what);
    return status;
}

int video_say_code(struct video *video, int code, const char *what)
{
    char reason[64], text[128];
    int status = code == AVERROR(ENOMEM)        ? STK_MEMORY
                 : code == AVERROR_EOF          ? STK_TRUNCATED
                 : code == AVERROR_EXIT         ? STK_LIMIT
                 : code == AVERROR_PATCHWELCOME ? STK_UNSUPPORTED
                                                : STK_CORRUPT;
    av_strerror(code, reason, sizeof reason);
    snprintf(text, sizeof text, "%s: %s", what,
             status == STK_LIMIT ? "it takes longer than a minute" : reason);
    return video_say(video, status, text);
}

int video_say_memory(struct video *video)
{
    return video_say(video, STK_MEMORY, "out of memory");
}

char *video_heard(void)
{
    return heard.line;
}

int video_is_late(void *opaque)
{
    const struct video *video = opaque;
    return av_gettime_relative() > video->deadline;
}
