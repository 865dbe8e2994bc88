#include "codec/video_codec.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/plugin_load.h"
#include "base/text.h"

#define PLUGIN_FILE "libstoker_video.so"
#define CANDIDATE_MOST 5
/* Where the build installs plugins, and how to get there from the folder of the command. */
#ifndef STOKER_PLUGIN_FOLDER
#define STOKER_PLUGIN_FOLDER "/usr/local/lib/stoker"
#endif
#ifndef STOKER_PLUGIN_RELATIVE
#define STOKER_PLUGIN_RELATIVE "../lib/stoker"
#endif

/* The decoder in use: the one thing here that is the process's. It stands for a library that would
 * be linked if every system had it, and like one it is never closed: decoders of any context and
 * FFmpeg's own tables point into it. */
static struct {
    pthread_mutex_t lock;
    struct plugin_library library; /* under lock; once handle is set, it does not change */
    struct stk_plugin_video video; /* likewise */
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct video_decoder {
    const struct stk_plugin_video *plugin;
    void *video; /* NULL: none is open */
};

/* --- finding the plugin ----------------------------------------------------------------------- */

/* Up to and with close: what version 1 began with. */
#define VIDEO_LEAST                                                                                \
    (offsetof(struct stk_plugin_video, close) + sizeof(((struct stk_plugin_video *)0)->close))

/* Under lock. */
static stk_status load(const char *path, struct stk_error *err)
{
    struct plugin_library library;
    stk_status status = plugin_open(&library, path, err);
    if (status)
        return status;
    const struct stk_plugin_video *video = library.plugin.video;
    if (!video)
        status = fail(err, STK_USAGE, "the plugin has no decoder of videos");
    else if (video->size < VIDEO_LEAST || !video->open || !video->read || !video->close)
        status = fail(err, STK_USAGE, "the plugin's decoder of videos is not complete");
    if (status) {
        fail_at(err, path, STK_NOWHERE);
        plugin_close(&library);
        return status;
    }
    size_t size = video->size < sizeof *video ? video->size : sizeof *video;
    memcpy(&loaded.video, video, size);
    loaded.library = library;
    return STK_OK;
}

/* The folder of the library, module or program that this code is in; "" when it cannot be told. */
static void own_folder(char folder[PATH_MAX])
{
    static const char here = 0;
    Dl_info info;
    char path[PATH_MAX] = "";
    int found = dladdr(&here, &info) && info.dli_fname && strchr(info.dli_fname, '/') &&
                realpath(info.dli_fname, path);
    if (!found) { /* a program that was found by $PATH, or moved away from where it was started */
        ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
        path[len > 0 ? len : 0] = 0;
    }
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    snprintf(folder, PATH_MAX, "%s", path);
}

/* Folders to look into, the most particular first. Returns how many. */
static int candidates(char folders[CANDIDATE_MOST][PATH_MAX])
{
    char own[PATH_MAX / 2];
    char whole[PATH_MAX];
    int count = 0;
    const char *chosen = getenv("STOKER_PLUGINS");
    if (chosen && chosen[0])
        snprintf(folders[count++], PATH_MAX, "%s", chosen);
    own_folder(whole);
    if (whole[0] && strlen(whole) < sizeof own) {
        strcpy(own, whole);
        snprintf(folders[count++], PATH_MAX, "%s/stoker", own); /* beside libstoker.so */
        snprintf(folders[count++], PATH_MAX, "%s", own);        /* the Python package */
        snprintf(folders[count++], PATH_MAX, "%s/%s", own, STOKER_PLUGIN_RELATIVE); /* bin/stoker */
    }
    snprintf(folders[count++], PATH_MAX, "%s", STOKER_PLUGIN_FOLDER);
    return count;
}

static void say_none(const char *tried, struct stk_error *err)
{
    (void)fail(err, STK_UNSUPPORTED, "there is no decoder of videos: no %s in %s", PLUGIN_FILE,
               tried);
    fail_remedy(err, "install FFmpeg (apt install ffmpeg) and the plugin: build Stoker where "
                     "FFmpeg's headers are (apt install libavformat-dev libavcodec-dev "
                     "libswscale-dev); $STOKER_PLUGINS may name its folder");
}

/* Under lock. The words are those of the first plugin that is there and does not load. */
static stk_status search(struct stk_error *err)
{
    char folders[CANDIDATE_MOST][PATH_MAX];
    int count = candidates(folders);
    struct text tried = {0};
    struct stk_error problem = {0};
    stk_status status = STK_UNSUPPORTED;
    for (int i = 0; i < count && status; i++) {
        char path[PATH_MAX + sizeof PLUGIN_FILE];
        struct stk_error found;
        snprintf(path, sizeof path, "%s/%s", folders[i], PLUGIN_FILE);
        text_format(&tried, "%s%s", i ? ", " : "", folders[i]);
        if (access(path, F_OK))
            continue;
        status = load(path, &found);
        if (status && !problem.status)
            problem = found;
    }
    if (status && problem.status && err) {
        *err = problem;
        err->status = STK_UNSUPPORTED;
        fail_remedy(err, "install the FFmpeg that it was built for (apt install ffmpeg), or build "
                         "the plugin here and name its folder in $STOKER_PLUGINS");
    } else if (status) {
        say_none(tried.data ? tried.data : "any folder", err);
    }
    text_free(&tried);
    return status ? STK_UNSUPPORTED : STK_OK;
}

static stk_status find(const struct stk_plugin_video **plugin, struct stk_error *err)
{
    pthread_mutex_lock(&loaded.lock);
    stk_status status = loaded.library.handle ? STK_OK : search(err);
    pthread_mutex_unlock(&loaded.lock);
    *plugin = status ? NULL : &loaded.video;
    return status;
}

stk_status video_codec_find(const char **name, struct stk_error *err)
{
    const struct stk_plugin_video *plugin;
    stk_status status = find(&plugin, err);
    *name = status ? NULL : plugin->name ? plugin->name : "?";
    return status;
}

stk_status video_codec_use(const char *path, struct stk_error *err)
{
    pthread_mutex_lock(&loaded.lock);
    struct plugin_library before = loaded.library;
    stk_status status = STK_OK;
    if (!before.handle) {
        status = load(path, err);
    } else {
        struct plugin_library library;
        status = plugin_open(&library, path, err);
        if (!status && library.handle != before.handle) {
            status =
                fail(err, STK_USAGE, "videos are decoded by plugin %s already", before.plugin.name);
            fail_at(err, path, STK_NOWHERE);
        }
        plugin_close(&library);
    }
    pthread_mutex_unlock(&loaded.lock);
    return status;
}

/* --- decoding --------------------------------------------------------------------------------- */

stk_status video_decoder_new(struct video_decoder **out, struct stk_error *err)
{
    const struct stk_plugin_video *plugin;
    *out = NULL;
    stk_status status = find(&plugin, err);
    if (status)
        return status;
    *out = memory_zero(1, sizeof **out);
    if (!*out)
        return fail_memory(err, sizeof **out);
    (*out)->plugin = plugin;
    return STK_OK;
}

void video_decoder_free(struct video_decoder *decoder)
{
    if (!decoder)
        return;
    video_end(decoder);
    memory_free(decoder);
}

void video_end(struct video_decoder *decoder)
{
    if (decoder->video)
        decoder->plugin->close(decoder->video);
    decoder->video = NULL;
}

stk_status video_begin(struct video_decoder *decoder, const struct stk_bytes *bytes,
                       struct stk_video_header *header, struct stk_error *err)
{
    char words[STK_PLUGIN_WORDS] = "";
    video_end(decoder);
    *header = (struct stk_video_header){0};
    int result = decoder->plugin->open(&decoder->video, bytes, header, words);
    words[sizeof words - 1] = 0;
    stk_status status = plugin_status("video", result, words, err);
    if (status)
        decoder->video = NULL; /* a failed open has closed what it opened */
    else if (header->width <= 0 || header->height <= 0 || header->frames <= 0)
        status = fail(err, STK_CORRUPT, "a video of %lld frames of %d x %d pixels",
                      (long long)header->frames, (int)header->width, (int)header->height);
    if (status)
        video_end(decoder);
    return status;
}

stk_status video_read(struct video_decoder *decoder, const struct video_want *want, uint8_t *to,
                      struct stk_error *err)
{
    char words[STK_PLUGIN_WORDS] = "";
    int result =
        decoder->plugin->read(decoder->video, want->first, want->stride, want->count, to, words);
    words[sizeof words - 1] = 0;
    return plugin_status("video", result, words, err);
}
