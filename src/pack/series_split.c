/* Texts are parsed into a spec first, so that a bad one is told before any row is read. Shares are
 * whole billionths: ranks come out of integer arithmetic and are the same everywhere. */
#include "pack/series_split.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/parse.h"
#include "pack/time_search.h"

#define MAX_PARTS 3
#define WHOLE UINT64_C(1000000000) /* billionths */
#define SLACK 1000                 /* shares may miss the whole by a millionth: 0.333333 thrice */

__extension__ typedef unsigned __int128 wide;

static const char *const part_names[MAX_PARTS] = {"train", "val", "test"};

struct piece {
    const char *text;
    size_t len;
};

enum split_by { BY_MOMENT, BY_SHARE, BY_ENTITY };

struct split_spec {
    enum split_by by;
    uint32_t parts;
    struct piece moments[MAX_PARTS - 1];
    uint64_t before[MAX_PARTS]; /* billionths in this part and those before it */
};

enum fit_by { FIT_ALL, FIT_FIRST_PART, FIT_MOMENTS, FIT_SHARE, FIT_ENTITIES };

struct fit_spec {
    enum fit_by by;
    struct piece from, to; /* empty: open */
    uint64_t share;
    const char *names;
};

/* --- texts ----------------------------------------------------------------------------------- */

/* "0.8", ".25", "1": billionths; what is finer than these is cut off. */
static int parse_share(struct piece piece, uint64_t *out)
{
    const char *dot = memchr(piece.text, '.', piece.len);
    size_t whole_len = dot ? (size_t)(dot - piece.text) : piece.len;
    size_t digits = dot ? piece.len - whole_len - 1 : 0;
    uint64_t whole = 0, part = 0;

    if ((dot && digits == 0) || (!dot && whole_len == 0))
        return 0;
    for (; digits > 9; digits--)
        if (!isdigit((unsigned char)dot[digits]))
            return 0;
    if (whole_len && (!parse_u64(piece.text, whole_len, &whole) || whole > 1))
        return 0;
    if (digits && !parse_u64(dot + 1, digits, &part))
        return 0;
    for (; digits < 9; digits++)
        part *= 10;
    *out = whole * WHOLE + part;
    return *out <= WHOLE;
}

/* The text up to the next comma; *rest is what lies behind it, NULL at the end. */
static struct piece next_piece(const char **rest)
{
    const char *comma = strchr(*rest, ',');
    struct piece piece = {*rest, comma ? (size_t)(comma - *rest) : strlen(*rest)};

    *rest = comma ? comma + 1 : NULL;
    return piece;
}

static stk_status fail_split(struct stk_error *err, const char *split, const char *why)
{
    stk_status status = fail(err, STK_USAGE, "the split \"%.200s\" %s", split, why);

    fail_remedy(err, "write \"0.8,0.1,0.1\", \"time:2024-01-01,2024-07-01\" or "
                     "\"entity:0.8,0.1,0.1\"; parts are train, val and test");
    return status;
}

static stk_status fail_no_time(struct stk_error *err, const char *what, const char *text)
{
    stk_status status = fail(err, STK_USAGE, "%s \"%.200s\" needs a time column", what, text);

    fail_remedy(err, "name the column that holds times (--time)");
    return status;
}

/* A time in some unit. */
static int is_time(struct piece piece)
{
    int64_t time;

    return series_time_parse(piece.text, piece.len, "s", &time);
}

static stk_status parse_shares(struct split_spec *spec, const char *split, const char *rest,
                               struct stk_error *err)
{
    uint64_t sum = 0, share;

    for (; rest; spec->parts++) {
        struct piece piece = next_piece(&rest);
        if (spec->parts == MAX_PARTS)
            return fail_split(err, split, "has more than three parts");
        if (!parse_share(piece, &share))
            return fail_split(err, split, "has a share that is no number from 0 to 1");
        if (share == 0)
            return fail_split(err, split, "has a share of 0");
        sum += share;
        spec->before[spec->parts] = sum;
    }
    if (spec->parts < 2)
        return fail_split(err, split, "has one part: there is nothing to hold out");
    if (sum + SLACK < WHOLE || sum > WHOLE + SLACK)
        return fail_split(err, split, "has shares that do not add up to 1");
    spec->before[spec->parts - 1] = WHOLE;
    if (spec->before[spec->parts - 2] >= WHOLE)
        return fail_split(err, split, "leaves nothing for its last part");
    return STK_OK;
}

static stk_status parse_moments(struct split_spec *spec, const char *split, const char *rest,
                                struct stk_error *err)
{
    for (spec->parts = 1; rest; spec->parts++) {
        struct piece piece = next_piece(&rest);
        if (spec->parts == MAX_PARTS)
            return fail_split(err, split, "has more than three parts");
        if (!is_time(piece))
            return fail_split(err, split, "has a time that cannot be read");
        spec->moments[spec->parts - 1] = piece;
    }
    return STK_OK;
}

static stk_status parse_split(struct split_spec *spec, const char *split, int has_time,
                              struct stk_error *err)
{
    *spec = (struct split_spec){.by = BY_SHARE};
    if (!strncmp(split, "time:", 5)) {
        spec->by = BY_MOMENT;
        return has_time ? parse_moments(spec, split, split + 5, err)
                        : fail_no_time(err, "the split", split);
    }
    if (!strncmp(split, "entity:", 7)) {
        spec->by = BY_ENTITY;
        return parse_shares(spec, split, split + 7, err);
    }
    return parse_shares(spec, split, split, err);
}

static stk_status fail_fit_on(struct stk_error *err, const char *fit_on, const char *why)
{
    stk_status status = fail(err, STK_USAGE, "the rows to fit on, \"%.200s\", %s", fit_on, why);

    fail_remedy(err, "write \"all\", \"0.8\", \"time:2020-01-01..2024-01-01\" or "
                     "\"entities:A,B\"");
    return status;
}

static stk_status parse_fit_on(struct fit_spec *spec, const char *fit_on, int has_time,
                               struct stk_error *err)
{
    *spec = (struct fit_spec){.by = fit_on ? FIT_ALL : FIT_FIRST_PART};
    if (!fit_on || !strcmp(fit_on, "all"))
        return STK_OK;
    if (!strncmp(fit_on, "entities:", 9)) {
        spec->by = FIT_ENTITIES;
        spec->names = fit_on + 9;
        return *spec->names ? STK_OK : fail_fit_on(err, fit_on, "name no entity");
    }
    if (!strncmp(fit_on, "time:", 5)) {
        const char *dots = strstr(fit_on + 5, "..");
        spec->by = FIT_MOMENTS;
        if (!has_time)
            return fail_no_time(err, "fitting on", fit_on);
        if (!dots)
            return fail_fit_on(err, fit_on, "are no range: there is no \"..\" in it");
        spec->from = (struct piece){fit_on + 5, (size_t)(dots - fit_on - 5)};
        spec->to = (struct piece){dots + 2, strlen(dots + 2)};
        if ((spec->from.len && !is_time(spec->from)) || (spec->to.len && !is_time(spec->to)))
            return fail_fit_on(err, fit_on, "have a time that cannot be read");
        return STK_OK;
    }
    spec->by = FIT_SHARE;
    if (!parse_share((struct piece){fit_on, strlen(fit_on)}, &spec->share) || spec->share == 0)
        return fail_fit_on(err, fit_on, "are neither a share above 0 and up to 1 nor a list");
    return STK_OK;
}

stk_status series_split_check(const char *split, int has_time, struct stk_error *err)
{
    struct split_spec spec;

    return split ? parse_split(&spec, split, has_time, err) : STK_OK;
}

stk_status series_fit_on_check(const char *fit_on, int has_time, struct stk_error *err)
{
    struct fit_spec spec;

    return parse_fit_on(&spec, fit_on, has_time, err);
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Rows that make at least so many billionths of all: never more than there are. */
static uint64_t share_rows(uint64_t rows, uint64_t share)
{
    return (uint64_t)(((wide)rows * share + WHOLE - 1) / WHOLE);
}

static uint64_t entity_rows(const struct series_meta *meta)
{
    uint64_t rows = 0;

    for (uint64_t i = 0; i < meta->entity_count; i++)
        rows += meta->entities[i].end - meta->entities[i].start;
    return rows;
}

static stk_status read_moment(const struct series_meta *meta, struct piece piece, int64_t *out,
                              struct stk_error *err)
{
    if (series_time_parse(piece.text, piece.len, meta->time_unit, out))
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "\"%.*s\" is no time of the column \"%s\"",
                             piece.len < 100 ? (int)piece.len : 100, piece.text,
                             meta->time_column ? meta->time_column : "");
    if (*meta->time_unit)
        fail_remedy(err, "its times are in %s: a date beyond their reach cannot be a cut",
                    meta->time_unit);
    else
        fail_remedy(err, "the column holds plain numbers: write a whole number");
    return status;
}

static stk_status find_cuts(struct series_meta *meta, const struct split_spec *spec,
                            const struct series_times *times, struct stk_error *err)
{
    stk_status status = STK_OK;

    if (spec->by == BY_SHARE) {
        struct time_ranks wanted = {.meta = meta, .times = times};
        uint64_t rows = entity_rows(meta);
        for (uint32_t i = 0; i + 1 < spec->parts; i++)
            wanted.ranks[wanted.count++] = share_rows(rows, spec->before[i]);
        return rows ? time_search_ranks(&wanted, meta->cuts, err) : STK_OK;
    }
    for (uint32_t i = 0; i + 1 < spec->parts && !status; i++) {
        status = read_moment(meta, spec->moments[i], &meta->cuts[i], err);
        if (!status && i > 0 && meta->cuts[i] <= meta->cuts[i - 1])
            status = fail(err, STK_USAGE, "the split \"%.200s\" has times that do not rise",
                          meta->split_text);
    }
    return status;
}

static uint32_t dealt_part(const struct split_spec *spec, const char *name)
{
    uint64_t place = (uint64_t)((wide)hash_bytes(name, strlen(name), 0) * WHOLE >> 64);
    uint32_t part = 0;

    while (place >= spec->before[part])
        part++;
    return part;
}

struct cutter {
    const struct series_meta *meta;
    const struct split_spec *spec;
    struct time_search *search; /* NULL: not by time */
};

/* Where part i + 1 of an entity begins, for every part but the last. */
static stk_status entity_cuts(const struct cutter *cutter, const struct series_entity *entity,
                              uint64_t *out, struct stk_error *err)
{
    const struct series_meta *meta = cutter->meta;
    uint64_t rows = entity->end - entity->start, at = entity->start;
    stk_status status = STK_OK;

    for (uint32_t i = 0; i + 1 < meta->split_count && !status; i++) {
        if (cutter->search)
            status = time_search_row(cutter->search, (struct series_range){at, entity->end},
                                     meta->cuts[i], &at, err);
        else if (cutter->spec->by == BY_ENTITY)
            at = dealt_part(cutter->spec, entity->name) > i ? entity->start : entity->end;
        else
            at = entity->start + share_rows(rows, cutter->spec->before[i]);
        out[i] = at;
    }
    return status;
}

/* times: NULL where the split is not by time. */
static stk_status fill_ranges(struct series_meta *meta, const struct split_spec *spec,
                              uint64_t first, const struct series_times *times,
                              struct stk_error *err)
{
    struct cutter cutter = {meta, spec, NULL};
    uint64_t cuts[SERIES_MAX_SPLITS];
    stk_status status = times ? time_search_new(&cutter.search, times, err) : STK_OK;

    for (uint64_t i = first; i < meta->entity_count && !status; i++) {
        const struct series_entity *entity = &meta->entities[i];
        struct series_range *ranges = meta->ranges + i * meta->split_count;
        status = entity_cuts(&cutter, entity, cuts, err);
        for (uint32_t part = 0; part < meta->split_count && !status; part++) {
            ranges[part].start = part == 0 ? entity->start : cuts[part - 1];
            ranges[part].end = part + 1 == meta->split_count ? entity->end : cuts[part];
        }
    }
    time_search_free(cutter.search);
    return status;
}

static stk_status check_parts(const struct series_meta *meta, struct stk_error *err)
{
    for (uint32_t part = 0; part < meta->split_count; part++) {
        uint64_t rows = 0;
        for (uint64_t i = 0; i < meta->entity_count; i++) {
            const struct series_range *range = &meta->ranges[i * meta->split_count + part];
            rows += range->end - range->start;
        }
        if (rows)
            continue;
        stk_status status = fail(err, STK_USAGE, "the split \"%.200s\" leaves no row for \"%s\"",
                                 meta->split_text, meta->split_names[part]);
        fail_remedy(err, "%s",
                    strncmp(meta->split_text, "entity:", 7)
                        ? "move the cuts, or use fewer parts"
                        : "there are too few entities for these shares: split by time, "
                          "or use fewer parts");
        return status;
    }
    return STK_OK;
}

static void forget_split(struct series_meta *meta)
{
    for (uint32_t i = 0; i < SERIES_MAX_SPLITS; i++) {
        memory_free(meta->split_names[i]);
        meta->split_names[i] = NULL;
    }
    memory_free(meta->split_text);
    memory_free(meta->ranges);
    meta->split_text = NULL;
    meta->ranges = NULL;
    meta->split_count = 0;
    meta->split_by_time = 0;
    memset(meta->cuts, 0, sizeof(meta->cuts));
}

static stk_status name_parts(struct series_meta *meta, const struct split_spec *spec,
                             const char *split, struct stk_error *err)
{
    meta->split_count = spec->parts;
    meta->split_text = memory_text(split, strlen(split));
    meta->ranges = memory_zero(meta->entity_count * spec->parts, sizeof(*meta->ranges));
    if (!meta->split_text || !meta->ranges)
        return fail_memory(err, meta->entity_count * spec->parts * sizeof(*meta->ranges));
    for (uint32_t i = 0; i < spec->parts; i++) {
        meta->split_names[i] = memory_text(part_names[i], strlen(part_names[i]));
        if (!meta->split_names[i])
            return fail_memory(err, sizeof("train"));
    }
    return STK_OK;
}

stk_status series_split_apply(struct series_meta *meta, const char *split,
                              const struct series_times *times, struct stk_error *err)
{
    struct split_spec spec;
    stk_status status = parse_split(&spec, split, times != NULL, err);

    forget_split(meta);
    if (status)
        return status;
    status = name_parts(meta, &spec, split, err);
    meta->split_by_time = times && spec.by != BY_ENTITY;
    if (!status && meta->split_by_time)
        status = find_cuts(meta, &spec, times, err);
    if (!status)
        status = fill_ranges(meta, &spec, 0, meta->split_by_time ? times : NULL, err);
    if (!status)
        status = check_parts(meta, err);
    if (status)
        forget_split(meta);
    return status;
}

stk_status series_split_extend(struct series_meta *meta, uint64_t first,
                               const struct series_times *times, struct stk_error *err)
{
    struct split_spec spec = {.by = BY_MOMENT};
    size_t size = meta->entity_count * meta->split_count * sizeof(*meta->ranges);
    stk_status status = STK_OK;

    if (meta->split_count == 0 || first >= meta->entity_count)
        return STK_OK;
    if (meta->split_by_time && !times)
        return fail_no_time(err, "the split", meta->split_text ? meta->split_text : "");
    if (!meta->split_by_time) {
        if (!meta->split_text)
            return fail(err, STK_USAGE,
                        "the series was split by hand: nothing says where new "
                        "entities belong");
        status = parse_split(&spec, meta->split_text, 0, err);
        if (!status && spec.parts != meta->split_count)
            status = fail(err, STK_CORRUPT, "the split \"%.200s\" does not have %" PRIu32 " parts",
                          meta->split_text, meta->split_count);
    }
    if (status)
        return status;
    struct series_range *ranges = memory_grow(meta->ranges, size);
    if (!ranges)
        return fail_memory(err, size);
    meta->ranges = ranges;
    return fill_ranges(meta, &spec, first, meta->split_by_time ? times : NULL, err);
}

/* --- rows that shape the scaler -------------------------------------------------------------- */

static stk_status fit_moments(const struct series_meta *meta, const struct fit_spec *spec,
                              const struct series_times *times, struct series_range *out,
                              struct stk_error *err)
{
    struct time_search *search = NULL;
    int64_t from = INT64_MIN, to = INT64_MIN;
    stk_status status = time_search_new(&search, times, err);

    if (!status && spec->from.len)
        status = read_moment(meta, spec->from, &from, err);
    if (!status && spec->by == FIT_SHARE) {
        uint64_t rank = share_rows(entity_rows(meta), spec->share);
        struct time_ranks wanted = {meta, times, {rank}, 1};
        status = rank ? time_search_ranks(&wanted, &to, err) : STK_OK;
    } else if (!status && spec->to.len) {
        status = read_moment(meta, spec->to, &to, err);
    }
    int is_open = spec->by == FIT_SHARE ? spec->share == WHOLE : spec->to.len == 0;
    for (uint64_t i = 0; i < meta->entity_count && !status; i++) {
        const struct series_entity *entity = &meta->entities[i];
        out[i] = (struct series_range){entity->start, entity->end};
        if (from != INT64_MIN)
            status = time_search_row(search, out[i], from, &out[i].start, err);
        if (!status && !is_open)
            status = time_search_row(search, out[i], to, &out[i].end, err);
    }
    time_search_free(search);
    return status;
}

static stk_status fit_entities(const struct series_meta *meta, const struct fit_spec *spec,
                               struct series_range *out, struct stk_error *err)
{
    for (uint64_t i = 0; i < meta->entity_count; i++)
        out[i] = (struct series_range){meta->entities[i].start, meta->entities[i].start};
    for (const char *rest = spec->names; rest;) {
        struct piece name = next_piece(&rest);
        uint64_t i = 0;
        while (i < meta->entity_count && (strncmp(meta->entities[i].name, name.text, name.len) ||
                                          meta->entities[i].name[name.len]))
            i++;
        if (i == meta->entity_count) {
            stk_status status = fail(err, STK_USAGE, "there is no entity \"%.*s\" to fit on",
                                     name.len < 200 ? (int)name.len : 200, name.text);
            fail_remedy(err, "names of entities stand behind \"entities:\", with commas between");
            return status;
        }
        out[i].end = meta->entities[i].end;
    }
    return STK_OK;
}

/* Without times: all rows, the first part's, or a share of each entity's. */
static void fit_rows(const struct series_meta *meta, const struct fit_spec *spec,
                     struct series_range *out)
{
    for (uint64_t i = 0; i < meta->entity_count; i++) {
        const struct series_entity *entity = &meta->entities[i];
        out[i] = (struct series_range){entity->start, entity->end};
        if (spec->by == FIT_FIRST_PART && meta->split_count)
            out[i] = meta->ranges[i * meta->split_count];
        else if (spec->by == FIT_SHARE)
            out[i].end = entity->start + share_rows(entity->end - entity->start, spec->share);
    }
}

stk_status series_fit_ranges(const struct series_meta *meta, const char *fit_on,
                             const struct series_times *times, struct series_range *out,
                             struct stk_error *err)
{
    struct fit_spec spec;
    stk_status status = parse_fit_on(&spec, fit_on, times != NULL, err);
    uint64_t rows = 0;

    if (status)
        return status;
    if (spec.by == FIT_ENTITIES)
        status = fit_entities(meta, &spec, out, err);
    else if (spec.by == FIT_MOMENTS || (spec.by == FIT_SHARE && times))
        status = fit_moments(meta, &spec, times, out, err);
    else
        fit_rows(meta, &spec, out);
    for (uint64_t i = 0; i < meta->entity_count && !status; i++)
        rows += out[i].end - out[i].start;
    if (!status && rows == 0)
        status = fail_fit_on(err, fit_on ? fit_on : "the first part", "are none at all");
    return status;
}
