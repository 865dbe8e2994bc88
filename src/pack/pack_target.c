#include "pack/pack_target.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "pack/numbered.h"
#include "pack/pack_upload.h"
#include "pack/staging.h"
#include "store/upload_place.h"

#define NAME_CAP 320

struct pack_target {
    struct staging *staging;    /* a folder, or ... */
    struct pack_upload *upload; /* ... a site */
    char front[NAME_CAP];       /* "shard-" */
    struct numbered names;
    uint32_t shards; /* a site: that will come */
    char label[PATH_MAX + NAME_CAP];
};

int pack_target_is_remote(const char *out)
{
    return upload_place_is(out);
}

static stk_status check_free(const struct pack_target *target,
                             const struct pack_target_options *options, struct stk_error *err)
{
    if (options->force || !numbered_any(&target->names, staging_target_fd(target->staging)))
        return STK_OK;
    stk_status status =
        fail(err, STK_USAGE, "the folder has shards %s....tar already", target->front);
    fail_at(err, options->out, STK_NOWHERE);
    fail_remedy(err, "choose another folder or --prefix, or replace them with --force");
    return status;
}

static stk_status open_upload(struct pack_target *target, const struct pack_target_options *options,
                              struct stk_error *err)
{
    struct pack_upload_options upload = {.context = options->context,
                                         .uri = options->out,
                                         .prefix = options->prefix,
                                         .shards = options->shards,
                                         .force = options->force};

    memcpy(upload.source, options->source, sizeof(upload.source));
    return pack_upload_open(&target->upload, &upload, err);
}

stk_status pack_target_open(struct pack_target **out, const struct pack_target_options *options,
                            struct stk_error *err)
{
    struct pack_target *target = memory_zero(1, sizeof(*target));
    stk_status status;

    *out = NULL;
    if (!target)
        return fail_memory(err, sizeof(*target));
    snprintf(target->front, sizeof(target->front), "%s-", options->prefix);
    target->names = (struct numbered){target->front, ".tar", 4};
    target->shards = options->shards;
    if (pack_target_is_remote(options->out)) {
        status = open_upload(target, options, err);
    } else {
        status = staging_open(&target->staging, options->out, options->prefix, err);
        if (!status)
            status = check_free(target, options, err);
    }
    if (!status) {
        *out = target;
        target = NULL;
    }
    pack_target_close(target);
    return status;
}

void pack_target_name(uint32_t number, char name[PACK_TARGET_NAME])
{
    snprintf(name, PACK_TARGET_NAME, "%" PRIu32, number);
}

int pack_target_folder(const struct pack_target *target)
{
    return target->upload ? pack_upload_folder(target->upload) : staging_fd(target->staging);
}

const char *pack_target_label(struct pack_target *target, uint32_t number)
{
    const char *folder =
        target->upload ? pack_upload_path(target->upload) : staging_target(target->staging);
    char name[NAME_CAP];

    if (target->upload)
        pack_target_name(number, name);
    else
        numbered_name(&target->names, number, name, sizeof(name));
    snprintf(target->label, sizeof(target->label), "%s/%s", folder, name);
    return target->label;
}

void pack_target_advise(const struct pack_target *target, struct stk_error *err)
{
    const char *path = target && target->upload ? pack_upload_path(target->upload) : NULL;

    if (path && err && !strncmp(err->object, path, strlen(path)))
        fail_remedy(err, "let TMPDIR name a folder with room for %d shards", PACK_UPLOADS + 1);
}

stk_status pack_target_shard(struct pack_target *target, uint32_t number, struct stk_error *err)
{
    char name[PACK_TARGET_NAME];

    if (!target->upload)
        return STK_OK;
    pack_target_name(number, name);
    return pack_upload_add(target->upload, number, name, err);
}

stk_status pack_target_finish(struct pack_target *target, uint32_t shards, struct stk_error *err)
{
    struct numbered names = target->names;
    stk_status status = STK_OK;
    char from[PACK_TARGET_NAME], to[NAME_CAP];

    if (target->upload) {
        assert(shards == target->shards);
        return pack_upload_finish(target->upload, err);
    }
    names.digits = numbered_digits(shards, names.digits);
    numbered_remove(&target->names, staging_target_fd(target->staging));
    for (uint32_t i = 0; i < shards && !status; i++) {
        pack_target_name(i, from);
        numbered_name(&names, i, to, sizeof(to));
        status = staging_publish(target->staging, from, to, err);
    }
    return status;
}

void pack_target_close(struct pack_target *target)
{
    if (!target)
        return;
    pack_upload_close(target->upload);
    staging_close(target->staging);
    memory_free(target);
}
