#include "filter/filter.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#include "filter/filter_ops.h"

#define BOMB_SIZE ((uint64_t)64 << 20)
#define BOMB_RATIO 200

struct filter {
    const char *name;
    const struct filter_ops *ops;
    void *state;
    uint64_t units;  /* finished */
    uint64_t offset; /* of the encoded stream: where the next byte lies */
    int inside;      /* a unit has begun and is not over */
};

static const struct {
    const char *name;
    const struct filter_ops *ops; /* NULL: no stream to decode */
} rows[] = {
    [FILTER_NONE] = {"none", NULL},         [FILTER_GZIP] = {"gzip", &gzip_filter},
    [FILTER_ZSTD] = {"zstd", &zstd_filter}, [FILTER_DEFLATE] = {"deflate", &deflate_filter},
    [FILTER_FORTRAN] = {"fortran", NULL},
};

static int filter_known(enum filter_kind kind)
{
    return (unsigned)kind < sizeof rows / sizeof rows[0];
}

const char *filter_name(enum filter_kind kind)
{
    return filter_known(kind) ? rows[kind].name : "unknown";
}

int filter_present(enum filter_kind kind)
{
    return filter_known(kind) && (!rows[kind].ops || rows[kind].ops->open);
}

enum filter_kind filter_sniff(const struct stk_bytes *head)
{
    static const uint8_t gzip[] = {0x1f, 0x8b, 8}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (head->len >= sizeof gzip && memcmp(head->data, gzip, sizeof gzip) == 0)
        return FILTER_GZIP;
    if (head->len >= sizeof zstd && memcmp(head->data, zstd, sizeof zstd) == 0)
        return FILTER_ZSTD;
    return FILTER_NONE;
}

stk_status filter_open(struct filter **out, enum filter_kind kind, struct stk_error *err)
{
    *out = NULL;
    if (!filter_known(kind) || !rows[kind].ops)
        return fail(err, STK_UNSUPPORTED, "filter %d (%s) decodes no stream", kind,
                    filter_name(kind));
    const struct filter_ops *ops = rows[kind].ops;
    if (!ops->open) {
        fail(err, STK_UNSUPPORTED, "%s is not in this build", filter_name(kind));
        fail_remedy(err, "%s", ops->remedy);
        return STK_UNSUPPORTED;
    }
    struct filter *filter = memory_zero(1, sizeof *filter);
    if (!filter)
        return fail_memory(err, sizeof *filter);
    filter->name = rows[kind].name;
    filter->ops = ops;
    filter->state = ops->open();
    if (!filter->state) {
        filter_close(filter);
        return fail_memory(err, 0);
    }
    *out = filter;
    return STK_OK;
}

void filter_close(struct filter *filter)
{
    if (!filter)
        return;
    filter->ops->close(filter->state);
    memory_free(filter);
}

/* What may stand between two units: nothing more, padding, another unit. *begin: another one does.
 */
static stk_status between_units(struct filter *filter, struct filter_run *run, int *begin,
                                struct stk_error *err)
{
    if (filter->ops->zeros_between && filter->units) {
        while (run->used < run->in_len && run->in[run->used] == 0)
            run->used++;
    }
    *begin = run->used < run->in_len;
    if (*begin && filter->units && filter->ops->one_unit)
        return fail(err, STK_CORRUPT, "%s: something follows the end of the stream", filter->name);
    return STK_OK;
}

static stk_status run_units(struct filter *filter, struct filter_run *run, struct stk_error *err)
{
    for (;;) {
        int begin = 1, over = 0;
        if (!filter->inside) {
            stk_status status = between_units(filter, run, &begin, err);
            if (status || !begin)
                return status;
        }
        filter->inside = 1;
        size_t used = run->used, made = run->made;
        stk_status status = filter->ops->step(filter->state, run, &over, err);
        if (status)
            return status;
        if (over) {
            filter->inside = 0;
            filter->units++;
        } else if (run->made == run->cap || (used == run->used && made == run->made)) {
            return STK_OK;
        }
    }
}

stk_status filter_step(struct filter *filter, const struct stk_bytes *in, size_t *used,
                       uint8_t *out, size_t cap, size_t *made, int last, int *ended,
                       struct stk_error *err)
{
    struct filter_run run = {in->data, in->len, *used, out, cap, *made};
    uint64_t offset = filter->offset - *used; /* of in->data[0] */
    *ended = 0;
    stk_status status = run_units(filter, &run, err);
    int moved = run.used != *used || run.made != *made;
    *used = run.used;
    *made = run.made;
    filter->offset = offset + run.used;
    if (!status && last && run.used == run.in_len) {
        if (!filter->inside && filter->units)
            *ended = 1;
        else if (!moved && run.made < run.cap) /* no input left, room for output, and yet no end */
            status = fail(err, STK_TRUNCATED, "%s: the stream ends too early", filter->name);
    }
    if (status)
        fail_at(err, NULL, filter->offset);
    return status;
}

stk_status filter_check_size(uint64_t encoded, uint64_t decoded, uint64_t limit,
                             struct stk_error *err)
{
    if (decoded > limit) {
        fail(err, STK_LIMIT, "the compressed bytes decode to more than %" PRIu64 " bytes", limit);
        fail_remedy(err, "raise chunk_limit, or make the shards smaller");
        return STK_LIMIT;
    }
    if (decoded > BOMB_SIZE && decoded / BOMB_RATIO > encoded)
        return fail(
            err, STK_LIMIT,
            "the compressed bytes decode to more than %d times their size: refused as a bomb",
            BOMB_RATIO);
    return STK_OK;
}
