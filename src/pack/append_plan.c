#include "pack/append_plan.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* --- where rows go --------------------------------------------------------------------------- */

/* In place: first the newer rows of the array's last entity, then every other one that has newer
 * rows, whole. */
static void place_behind(struct append_plan *plan)
{
    uint64_t row = plan->old_rows;

    for (uint64_t i = 0; i < plan->count; i++) {
        struct append_entity *entity = &plan->entities[i];
        entity->start = entity->old_start;
        if (entity->is_tail)
            row += entity->new_rows;
    }
    for (uint64_t i = 0; i < plan->count; i++) {
        struct append_entity *entity = &plan->entities[i];
        if (!entity->new_rows || entity->is_tail)
            continue;
        entity->start = row;
        row += entity->old_rows + entity->new_rows;
    }
    plan->first_row = plan->old_rows;
    plan->rows = row;
    plan->is_compact = 0;
}

void append_plan_compact(struct append_plan *plan)
{
    uint64_t row = 0;

    for (uint64_t i = 0; i < plan->count; i++) {
        plan->entities[i].start = row;
        row += plan->entities[i].old_rows + plan->entities[i].new_rows;
    }
    plan->first_row = 0;
    plan->rows = row;
    plan->is_compact = 1;
}

static void find_tail(struct append_plan *plan)
{
    for (uint64_t i = 0; i < plan->known; i++) {
        struct append_entity *entity = &plan->entities[i];
        if (entity->old_rows && entity->new_rows &&
            entity->old_start + entity->old_rows == plan->old_rows)
            entity->is_tail = 1;
    }
}

stk_status append_plan_make(struct append_plan *plan, const struct series_meta *meta,
                            const struct series_ingest *ingest, struct stk_error *err)
{
    *plan = (struct append_plan){.known = meta->entity_count, .old_rows = meta->rows};
    plan->entities = memory_zero(ingest->entity_count, sizeof(*plan->entities));
    if (!plan->entities)
        return fail_memory(err, ingest->entity_count * sizeof(*plan->entities));
    for (uint64_t i = 0; i < ingest->entity_count; i++) {
        struct append_entity entity = {.name = ingest->entities[i].name,
                                       .number = i,
                                       .new_start = plan->added_rows,
                                       .new_rows = ingest->entities[i].rows};
        if (i < plan->known) {
            entity.old_start = meta->entities[i].start;
            entity.old_rows = meta->entities[i].end - meta->entities[i].start;
        } else if (!entity.new_rows) {
            continue; /* all of its rows were left out */
        }
        plan->used_rows += entity.old_rows + entity.new_rows;
        plan->added_rows += entity.new_rows;
        plan->entities[plan->count++] = entity;
    }
    find_tail(plan);
    place_behind(plan);
    if (plan->rows - plan->used_rows > plan->used_rows)
        append_plan_compact(plan);
    return STK_OK;
}

void append_plan_reset(struct append_plan *plan)
{
    memory_free(plan->entities);
    memory_free(plan->pieces);
    *plan = (struct append_plan){0};
}

static void add_piece(struct append_plan *plan, const struct append_source *from, uint64_t row,
                      uint64_t rows)
{
    if (rows)
        plan->pieces[plan->piece_count++] = (struct append_piece){from, row, rows};
}

stk_status append_plan_pieces(struct append_plan *plan, const struct append_source *old,
                              const struct append_source *added, struct stk_error *err)
{
    plan->pieces = memory_zero(2 * plan->count, sizeof(*plan->pieces));
    if (!plan->pieces)
        return fail_memory(err, 2 * plan->count * sizeof(*plan->pieces));
    for (uint64_t i = 0; i < plan->count && !plan->is_compact; i++)
        if (plan->entities[i].is_tail)
            add_piece(plan, added, plan->entities[i].new_start, plan->entities[i].new_rows);
    for (uint64_t i = 0; i < plan->count; i++) {
        const struct append_entity *entity = &plan->entities[i];
        if (!plan->is_compact && (!entity->new_rows || entity->is_tail))
            continue;
        add_piece(plan, old, entity->old_start, entity->old_rows);
        add_piece(plan, added, entity->new_start, entity->new_rows);
    }
    return STK_OK;
}

/* --- splits ---------------------------------------------------------------------------------- */

/* Ranges go with their entity; cut by its rows, the last part takes what is newer. */
static void shift_ranges(const struct append_entity *entity, struct series_range *ranges,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ranges[i].start = ranges[i].start - entity->old_start + entity->start;
        ranges[i].end = ranges[i].end - entity->old_start + entity->start;
    }
    if (entity->new_rows)
        ranges[count - 1].end = entity->start + entity->old_rows + entity->new_rows;
}

/* By time or by name, the split says itself where newer rows belong; else only for new entities. */
static int is_cut_anew(const struct series_meta *meta, const struct append_entity *entity)
{
    int by_name = meta->split_text && !strncmp(meta->split_text, "entity:", 7);

    return entity->new_rows && (!entity->old_rows || meta->split_by_time || by_name);
}

/* The entities that are cut anew, in a meta of their own that borrows the split. */
static stk_status cut_anew(const struct append_plan *plan, struct series_meta *meta,
                           const struct series_times *times, struct stk_error *err)
{
    struct series_meta some = *meta;
    uint64_t taken = 0;
    stk_status status;

    some.ranges = NULL;
    some.entity_count = 0;
    some.entities = memory_zero(plan->count, sizeof(*some.entities));
    if (!some.entities)
        return fail_memory(err, plan->count * sizeof(*some.entities));
    for (uint64_t i = 0; i < plan->count; i++)
        if (is_cut_anew(meta, &plan->entities[i]))
            some.entities[some.entity_count++] = meta->entities[i];
    status = series_split_extend(&some, 0, times, err);
    for (uint64_t i = 0; !status && some.entity_count && i < plan->count; i++)
        if (is_cut_anew(meta, &plan->entities[i]))
            memcpy(meta->ranges + i * meta->split_count, some.ranges + taken++ * meta->split_count,
                   meta->split_count * sizeof(*meta->ranges));
    memory_free(some.ranges);
    memory_free(some.entities);
    return status;
}

static stk_status update_splits(const struct append_plan *plan, struct series_meta *meta,
                                const struct series_times *times, struct stk_error *err)
{
    uint32_t count = meta->split_count;
    struct series_range *ranges;

    if (!count)
        return STK_OK;
    ranges = memory_grow(meta->ranges, plan->count * count * sizeof(*ranges));
    if (!ranges)
        return fail_memory(err, plan->count * count * sizeof(*ranges));
    meta->ranges = ranges;
    for (uint64_t i = 0; i < plan->known; i++)
        shift_ranges(&plan->entities[i], ranges + i * count, count);
    return cut_anew(plan, meta, times, err);
}

/* --- entities, statics, counts --------------------------------------------------------------- */

static stk_status update_entities(const struct append_plan *plan, struct series_pack *pack,
                                  struct stk_error *err)
{
    struct series_meta *meta = &pack->meta;
    struct series_entity *entities =
        memory_grow(meta->entities, plan->count * sizeof(*meta->entities));

    if (!entities)
        return fail_memory(err, plan->count * sizeof(*entities));
    meta->entities = entities;
    for (uint64_t i = 0; i < plan->count; i++) {
        const struct append_entity *from = &plan->entities[i];
        if (i >= plan->known) { /* its name becomes the meta's */
            entities[i].name = pack->ingest.entities[from->number].name;
            pack->ingest.entities[from->number].name = NULL;
        }
        entities[i].start = from->start;
        entities[i].end = from->start + from->old_rows + from->new_rows;
    }
    meta->entity_count = plan->count;
    meta->rows = plan->rows;
    meta->unused_rows = plan->rows - plan->used_rows;
    return STK_OK;
}

static stk_status update_static(struct series_pack *pack, const struct append_entity *entity,
                                float *row, int is_known, struct stk_error *err)
{
    const double *seen = pack->ingest.entities[entity->number].statics;
    stk_status status = STK_OK;

    for (uint32_t k = 0; !status && k < pack->meta.static_count; k++) {
        float value;
        if (!seen || isnan(seen[k])) {
            if (!is_known)
                row[k] = NAN;
            continue;
        }
        status = series_pack_static(pack, entity->name, k, seen[k], &value, err);
        if (!status && is_known && !isnan(row[k]) && row[k] != value) {
            status = fail(err, STK_CORRUPT,
                          "entity '%.80s' has %g in the static column '%.60s', and "
                          "now comes %g",
                          entity->name, (double)row[k], pack->meta.statics[k], seen[k]);
            fail_remedy(err, "a static column has one value an entity");
        }
        row[k] = value;
    }
    return status;
}

static stk_status update_statics(const struct append_plan *plan, struct series_pack *pack,
                                 struct stk_error *err)
{
    uint32_t width = pack->meta.static_count;
    stk_status status = STK_OK;

    if (!width)
        return STK_OK;
    pack->statics = memory_zero(plan->count * width, sizeof(*pack->statics));
    if (!pack->statics)
        return fail_memory(err, plan->count * width * sizeof(*pack->statics));
    if (plan->known)
        status = series_files_read(pack->folder, SERIES_STATIC, pack->statics,
                                   plan->known * width * sizeof(*pack->statics), err);
    for (uint64_t i = 0; !status && i < plan->count; i++)
        status = update_static(pack, &plan->entities[i], pack->statics + i * width, i < plan->known,
                               err);
    return status;
}

static stk_status update_counts(struct series_pack *pack, struct stk_error *err)
{
    struct series_meta *meta = &pack->meta;
    struct series_ingest *ingest = &pack->ingest;

    if (!meta->missing)
        meta->missing = memory_zero(meta->column_count, sizeof(*meta->missing));
    if (!meta->missing)
        return fail_memory(err, meta->column_count * sizeof(*meta->missing));
    for (uint32_t i = 0; i < meta->column_count; i++)
        meta->missing[i] += ingest->missing[i];
    meta->dropped_rows += ingest->dropped_rows;
    if (pack->options->missing != STK_MISSING_ERROR || !meta->missing_policy) {
        const char *policy = series_pack_policy(pack->options->missing);
        memory_free(meta->missing_policy);
        meta->missing_policy = memory_text(policy, strlen(policy));
        if (!meta->missing_policy)
            return fail_memory(err, strlen(policy));
    }
    /* The ingest knows old and new values; it frees what the meta had. */
    struct series_category *categories = meta->categories;
    uint32_t count = meta->category_count;
    meta->categories = ingest->categories;
    meta->category_count = ingest->category_count;
    ingest->categories = categories;
    ingest->category_count = count;
    return STK_OK;
}

stk_status append_plan_meta(const struct append_plan *plan, struct series_pack *pack,
                            const struct series_times *times, struct stk_error *err)
{
    stk_status status = update_statics(plan, pack, err); /* while names are where they were */

    if (!status)
        status = update_entities(plan, pack, err);
    if (!status)
        status = update_splits(plan, &pack->meta, times, err);
    if (!status)
        status = update_counts(pack, err);
    return status;
}
