/* video_fixture.h -- videos made by the ffmpeg command, and what it decodes them to.
 * Owns: the folder they are in.   Threads: one.   Errors: a failed assertion; a codec that this
 * ffmpeg cannot write is a NULL.   Not here: any test. */
#ifndef TESTS_PIPELINE_VIDEO_FIXTURE_H
#define TESTS_PIPELINE_VIDEO_FIXTURE_H

#include "base/testing.h"

#include "codec/video_codec.h"

static char video_folder[PATH_MAX];
static int video_ready; /* there are an ffmpeg and a plugin */

/* A plugin lies beside the folder of the unit tests; where ctest said another place, that is it. */
TESTING int video_setup(void **state)
{
    char path[PATH_MAX];
    const char *name;
    (void)state;
    folder_new(video_folder);
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 8);
    assert_true(len > 0);
    path[len] = 0;
    strcpy(strrchr(path, '/'), "/..");
    setenv("STOKER_PLUGINS", path, 0);
    video_ready = system("ffmpeg -version > /dev/null 2>&1") == 0 &&
                  access(path_in(getenv("STOKER_PLUGINS"), "libstoker_video.so"), R_OK) == 0;
    if (!video_ready)
        print_message("skipped: no ffmpeg command, or no libstoker_video.so in %s\n",
                      getenv("STOKER_PLUGINS"));
    else
        assert_int_equal(video_codec_find(&name, NULL), STK_OK);
    return 0;
}

TESTING int video_teardown(void **state)
{
    (void)state;
    folder_remove(video_folder);
    return 0;
}

TESTING int ffmpeg(const char *arguments)
{
    char command[4 * PATH_MAX];
    int len = snprintf(command, sizeof command,
                       "cd '%s' && ffmpeg -nostdin -hide_banner -loglevel quiet -y %s",
                       video_folder, arguments);
    assert_true(len > 0 && (size_t)len < sizeof command);
    return system(command) == 0;
}

/* The bytes of a file in the folder. */
TESTING struct stk_bytes video_bytes(const char *name)
{
    struct stk_bytes bytes;
    bytes.data = (const uint8_t *)file_read(path_in(video_folder, name), &bytes.len);
    return bytes;
}

/* What the command decodes it to: RGB, frame behind frame. The caller frees it. */
TESTING uint8_t *video_oracle(const char *name, size_t *len)
{
    char arguments[PATH_MAX];
    snprintf(arguments, sizeof arguments,
             "-i %s -fps_mode passthrough -f rawvideo -pix_fmt rgb24 oracle.raw", name);
    assert_true(ffmpeg(arguments));
    return (uint8_t *)file_read(path_in(video_folder, "oracle.raw"), len);
}

/* A moving pattern, as written by `arguments` (codec and file name last). 0: it cannot. */
TESTING int video_make(double seconds, const char *arguments)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "-f lavfi -i testsrc2=size=128x96:rate=30:duration=%g %s",
             seconds, arguments);
    return ffmpeg(whole);
}

#endif
