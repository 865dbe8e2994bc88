#include "base/plugin_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"

/* The part of the struct that every version has: what must be right before the rest is looked at.
 */
#define PLUGIN_LEAST offsetof(struct stk_plugin, transforms)

static stk_status check_plugin(const struct stk_plugin *plugin, const char *path,
                               struct stk_error *err)
{
    stk_status status = STK_OK;
    if (plugin->version != STK_PLUGIN_VERSION) {
        status = fail(err, STK_UNSUPPORTED, "the plugin is of version %u, this Stoker takes %d",
                      plugin->version, STK_PLUGIN_VERSION);
        fail_remedy(err, "compile it with this Stoker's include/stoker/plugin.h");
    } else if (plugin->size < PLUGIN_LEAST) {
        status = fail(err, STK_USAGE, "the plugin's size is %u: not sizeof(struct stk_plugin)",
                      plugin->size);
    } else if (!plugin->name || !plugin->name[0]) {
        status = fail(err, STK_USAGE, "the plugin has no name");
    }
    if (status)
        fail_at(err, path, STK_NOWHERE);
    return status;
}

/* A name without a slash would be looked for among the system's libraries. */
static const char *path_as_file(const char *path, char buf[PATH_MAX])
{
    int len = snprintf(buf, PATH_MAX, "%s%s", strchr(path, '/') ? "" : "./", path);
    return len < PATH_MAX ? buf : NULL;
}

static stk_status open_handle(void **handle, const char *path, struct stk_error *err)
{
    char buf[PATH_MAX];
    const char *file = path_as_file(path, buf);
    if (!file || access(file, R_OK)) {
        stk_status status =
            fail_errno(err, file ? errno : ENAMETOOLONG, "the plugin cannot be read");
        fail_at(err, path, STK_NOWHERE);
        return status;
    }
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*handle)
        return STK_OK;
    const char *words = dlerror();
    stk_status status =
        fail(err, STK_UNSUPPORTED, "the plugin does not load: %s", words ? words : "no reason");
    fail_at(err, path, STK_NOWHERE);
    return status;
}

stk_status plugin_open(struct plugin_library *library, const char *path, struct stk_error *err)
{
    *library = (struct plugin_library){0};
    if (!path || !path[0])
        return fail(err, STK_USAGE, "a plugin's path is needed");
    stk_status status = open_handle(&library->handle, path, err);
    if (status)
        return status;
    const struct stk_plugin *plugin = dlsym(library->handle, STK_PLUGIN_SYMBOL);
    if (plugin) {
        status = check_plugin(plugin, path, err);
    } else {
        status = fail(err, STK_USAGE, "not a plugin: it exports no %s", STK_PLUGIN_SYMBOL);
        fail_at(err, path, STK_NOWHERE);
    }
    if (status) {
        plugin_close(library);
        return status;
    }
    size_t size = plugin->size < sizeof *plugin ? plugin->size : sizeof *plugin;
    memcpy(&library->plugin, plugin, size);
    return STK_OK;
}

void plugin_close(struct plugin_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    *library = (struct plugin_library){0};
}

stk_status plugin_status(const char *name, int result, const char *words, struct stk_error *err)
{
    if (!result)
        return STK_OK;
    int known = result > STK_END && result <= STK_BUSY;
    return fail(err, known ? (stk_status)result : STK_USAGE, "%s: %.*s", name, STK_PLUGIN_WORDS - 1,
                words[0] ? words : "it failed and did not say why");
}
