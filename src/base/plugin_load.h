/* plugin_load.h -- a plugin's shared library: opened, checked, closed.
 * Owns: the library's handle, until plugin_close.   Threads: any.
 * Errors: NOT_FOUND, USAGE (no plugin), UNSUPPORTED (another version, or it does not load); words
 * name the path and the reason.   Not here: what is done with its transforms
 * (transform/plugin_transform.h) and its videos (codec/video_codec.h). */
#ifndef BASE_PLUGIN_LOAD_H
#define BASE_PLUGIN_LOAD_H

#include "stoker/error.h"
#include "stoker/plugin.h"

struct plugin_library {
    void *handle;
    struct stk_plugin plugin; /* a copy; what the plugin's own was too short for is zero */
};

STK_CHECK stk_status plugin_open(struct plugin_library *library, const char *path,
                                 struct stk_error *err);
void plugin_close(struct plugin_library *library); /* zeroed is fine */

/* What a plugin's call came to, as a status with words "NAME: WORDS". result: what it returned. */
stk_status plugin_status(const char *name, int result, const char *words, struct stk_error *err);

#endif
