#include "pack/pack_names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "dataset/dataset_view.h"
#include "store/upload_place.h"

#define PREFIX_CAP 200

static stk_status check_prefix(const char *prefix, struct stk_error *err)
{
    size_t len = strlen(prefix);

    if (len == 0 || len > PREFIX_CAP || prefix[0] == '.' || strchr(prefix, '/'))
        return fail(err, STK_USAGE, "the prefix \"%s\" is no plain file name", prefix);
    return STK_OK;
}

/* path is folder, or lies below it. Both are as realpath gives them. */
static int is_inside(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    if (!strcmp(folder, "/"))
        return 1;
    return !strncmp(path, folder, len) && (path[len] == 0 || path[len] == '/');
}

static stk_status refuse(const char *source, const char *out, struct stk_error *err)
{
    stk_status status =
        fail(err, STK_USAGE, "the source lies in the folder to write to: %s", source);

    fail_at(err, out, STK_NOWHERE);
    fail_remedy(err, "write to a folder of its own");
    return status;
}

/* The folder of one object, resolved; 0 when it cannot be told. */
static int object_folder(const struct index *index, uint32_t number, char real[PATH_MAX])
{
    struct index_object object;
    struct text path = {0};
    int found = 0;

    if (index_object(index, number, &object, NULL))
        return 0;
    if (object.name[0] != '/' && index_root(index)[0])
        text_format(&path, "%s/", index_root(index));
    text_format(&path, "%s", object.name);
    if (!path.failed) {
        char *slash = strrchr(path.data, '/');
        if (slash)
            slash[slash == path.data] = 0;
        found = realpath(slash ? path.data : ".", real) != NULL;
    }
    text_free(&path);
    return found;
}

static stk_status check_uri(const struct index *index, const char *out, struct stk_error *err)
{
    const char *root = index_root(index);

    if (root[0])
        return upload_place_holds(out, root) ? refuse(root, out, err) : STK_OK;
    for (uint32_t i = 0; i < index_object_count(index); i++) {
        struct index_object object;
        if (!index_object(index, i, &object, NULL) && upload_place_holds(out, object.name))
            return refuse(object.name, out, err);
    }
    return STK_OK;
}

stk_status pack_names_check(const struct stk_dataset *dataset, const char *out, const char *prefix,
                            struct stk_error *err)
{
    const struct index *index = dataset_index(dataset);
    char target[PATH_MAX], source[PATH_MAX];
    stk_status status = check_prefix(prefix, err);

    if (status)
        return status;
    if (!out || !*out)
        return fail(err, STK_USAGE, "there is no folder to write to");
    if (upload_place_is(out))
        return check_uri(index, out, err);
    if (!realpath(out, target)) /* it is not there yet, so nothing can lie in it */
        return STK_OK;
    if (index_root(index)[0]) {
        if (realpath(index_root(index), source) && is_inside(source, target))
            return refuse(source, out, err);
        return STK_OK;
    }
    for (uint32_t i = 0; i < index_object_count(index); i++)
        if (object_folder(index, i, source) && is_inside(source, target))
            return refuse(source, out, err);
    return STK_OK;
}
