/* Windows: samples that are computed. A sample's run (the windows of one entity) is found through a
 * table of hints, its last row by arithmetic. */
#include "index/windows_index.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "index/index_view.h"

#define WINDOWS_LIMIT (UINT64_C(1) << 62) /* sums of two such numbers fit */
#define WINDOWS_MOST (UINT64_C(1) << 63)  /* samples */
#define WINDOWS_BLOCK 64u                 /* samples resolved at a time */

static const char *windows_format(const struct windows_spec *spec)
{
    return spec->format ? spec->format : "series";
}

/* How a field's extents are made. */
struct windows_rule {
    enum windows_part part;
    uint32_t object;
    uint64_t row_bytes;
};

struct windows_index {
    struct index index; /* first, so that a pointer to it is one to this */
    uint64_t window, horizon, stride, gap, min_history;
    struct windows_run *runs; /* one more than run_count: its first is the number of samples */
    uint64_t run_count, short_count;
    uint64_t *origins; /* of each run's entity */
    uint64_t *names;   /* of each run's entity: where in name_bytes it begins; one more: the end */
    char *name_bytes;
    /* hints[b]: the run of sample b << shift; one more: the last run. Two to four a run, so that
     * most samples need no search at all, and none more than one among the runs of its bucket. */
    uint32_t *hints;
    unsigned shift;
    /* Samples of each run, when all but the last have the same (and that one no more): a division
     * finds the run then. 0: they differ. inverse: 2^64 / even, rounded down. */
    uint64_t even, inverse;
    struct windows_rule *rules; /* one a field */
};

static const struct windows_index *windows(const struct index *index)
{
    return (const struct windows_index *)index;
}

/* --- what is asked for ----------------------------------------------------------------------- */

static stk_status windows_check(const struct windows_spec *spec, struct stk_error *err)
{
    const struct {
        const char *name;
        uint64_t number, least;
    } numbers[] = {{"window", spec->window, 1},
                   {"stride", spec->stride, 1},
                   {"min_history", spec->min_history, 1},
                   {"horizon", spec->horizon, 0},
                   {"gap", spec->gap, 0}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].number < numbers[i].least)
            return fail(err, STK_USAGE, "%s is %llu, but it is at least %llu", numbers[i].name,
                        (unsigned long long)numbers[i].number,
                        (unsigned long long)numbers[i].least);
        if (numbers[i].number > WINDOWS_LIMIT)
            return fail(err, STK_USAGE, "%s is %llu: no series has so many rows", numbers[i].name,
                        (unsigned long long)numbers[i].number);
    }
    for (uint64_t i = 0; i < spec->entity_count; i++) {
        const struct windows_entity *entity = &spec->entities[i];
        if (entity->start > entity->end || entity->end > WINDOWS_LIMIT ||
            entity->origin > entity->start)
            return fail(err, STK_CORRUPT, "entity %s has impossible rows", entity->name);
    }
    if (spec->entity_count >= UINT32_MAX || spec->field_count > INDEX_MAX_FIELDS ||
        spec->object_count >= INDEX_PART_CHUNK)
        return fail(err, STK_UNSUPPORTED, "too many entities, fields or objects");
    return STK_OK;
}

/* Rows that a sample needs behind its last one. */
static uint64_t windows_ahead(const struct windows_index *self)
{
    return self->horizon ? self->gap + self->horizon : 0; /* without y, no gap either */
}

static stk_status windows_too_long(const struct windows_index *self,
                                   const struct windows_spec *spec, struct stk_error *err)
{
    const struct windows_entity *longest = NULL;
    for (uint64_t i = 0; i < spec->entity_count; i++) {
        const struct windows_entity *entity = &spec->entities[i];
        if (!longest || entity->end - entity->start > longest->end - longest->start)
            longest = entity;
    }
    if (!longest)
        return fail(err, STK_USAGE, "the series has no entity to take windows from");
    fail(err, STK_USAGE,
         "no entity is long enough: a sample needs %llu rows (%llu of history, %llu ahead), and "
         "the longest, %s, has %llu",
         (unsigned long long)(self->min_history + windows_ahead(self)),
         (unsigned long long)self->min_history, (unsigned long long)windows_ahead(self),
         longest->name, (unsigned long long)(longest->end - longest->start));
    fail_at(err, spec->path, STK_NOWHERE);
    fail_remedy(err, "take a smaller window or horizon, or pad short histories");
    return STK_USAGE;
}

/* --- runs ------------------------------------------------------------------------------------ */

static stk_status windows_allocate(struct windows_index *self, const struct windows_spec *spec,
                                   struct stk_error *err)
{
    uint64_t names = 0;
    size_t count = (size_t)spec->entity_count + 1;
    for (uint64_t i = 0; i < spec->entity_count; i++)
        names += strlen(spec->entities[i].name);
    self->runs = memory_zero(count, sizeof(*self->runs));
    self->origins = memory_zero(count, sizeof(*self->origins));
    self->names = memory_zero(count, sizeof(*self->names));
    self->name_bytes = memory_alloc(names);
    self->rules = memory_zero(spec->field_count + 1u, sizeof(*self->rules));
    self->index.fields = memory_zero(spec->field_count + 1u, sizeof(*self->index.fields));
    if (!self->runs || !self->origins || !self->names || !self->name_bytes || !self->rules ||
        !self->index.fields)
        return fail_memory(err, count * sizeof(*self->runs) + names);
    self->index.header.file_size = count * (sizeof(*self->runs) + 2 * sizeof(uint64_t)) + names;
    return STK_OK;
}

/* Adds the windows of one entity; those without any are counted. */
static stk_status windows_add(struct windows_index *self, const struct windows_entity *entity,
                              struct stk_error *err)
{
    uint64_t rows = entity->end - entity->start, need = self->min_history + windows_ahead(self);
    if (rows < need) {
        self->short_count++;
        return STK_OK;
    }
    uint64_t at = self->run_count, *samples = &self->index.header.samples;
    struct windows_run *run = &self->runs[at];
    *run = (struct windows_run){.first = *samples,
                                .count = (rows - need) / self->stride + 1,
                                .last_row = entity->start + self->min_history - 1,
                                .entity = entity->number};
    if (!checked_add(*samples, run->count, samples) || *samples > WINDOWS_MOST)
        return fail(err, STK_UNSUPPORTED, "there are more windows than 2^63");
    size_t len = strlen(entity->name);
    memcpy(self->name_bytes + self->names[at], entity->name, len);
    self->names[at + 1] = self->names[at] + len;
    self->origins[at] = entity->origin;
    self->runs[++self->run_count].first = *samples;
    return STK_OK;
}

static stk_status windows_hint(struct windows_index *self, struct stk_error *err)
{
    uint64_t last = self->index.header.samples - 1, most = 4 * self->run_count;
    while ((last >> self->shift) + 1 > most)
        self->shift++;
    uint64_t buckets = (last >> self->shift) + 1, run = 0;
    self->hints = memory_zero((size_t)buckets + 1, sizeof(*self->hints));
    if (!self->hints)
        return fail_memory(err, buckets * sizeof(*self->hints));
    for (uint64_t b = 0; b < buckets; b++) {
        while (self->runs[run + 1].first <= b << self->shift)
            run++;
        self->hints[b] = (uint32_t)run;
    }
    self->hints[buckets] = (uint32_t)(self->run_count - 1);
    self->index.header.file_size += (buckets + 1) * sizeof(*self->hints);
    return STK_OK;
}

static void windows_set_even(struct windows_index *self)
{
    uint64_t count = self->runs[0].count;
    int is_even = self->runs[self->run_count - 1].count <= count;
    for (uint64_t i = 1; i + 1 < self->run_count && is_even; i++)
        is_even = self->runs[i].count == count;
    self->even = is_even ? count : 0;
    self->inverse = UINT64_MAX / count;
}

/* --- fields ---------------------------------------------------------------------------------- */

/* The last row of any sample's field, and the longest history of any. */
struct windows_reach {
    uint64_t past, future, table, longest;
};

static struct windows_reach windows_reach(const struct windows_index *self)
{
    struct windows_reach reach = {0};
    for (uint64_t i = 0; i < self->run_count; i++) {
        const struct windows_run *run = &self->runs[i];
        uint64_t steps = (run->count - 1) * self->stride; /* inside the entity's rows */
        if (run->last_row + steps > reach.past)
            reach.past = run->last_row + steps;
        if (self->min_history + steps > reach.longest)
            reach.longest = self->min_history + steps;
        if (run->entity > reach.table)
            reach.table = run->entity;
    }
    reach.future = reach.past + windows_ahead(self);
    return reach;
}

static stk_status windows_outside(const struct index_object *object, uint64_t row,
                                  uint64_t row_bytes, struct stk_error *err)
{
    fail(err, STK_TRUNCATED, "the array has %llu bytes, too few for its row %llu of %llu bytes",
         (unsigned long long)object->size, (unsigned long long)row, (unsigned long long)row_bytes);
    fail_at(err, object->name, object->size);
    return STK_TRUNCATED;
}

/* The same as windows_rows for files of the entities' own. */
static stk_status windows_files(struct windows_index *self, const struct windows_spec *spec,
                                uint32_t number, struct stk_error *err)
{
    uint64_t row_bytes = spec->fields[number].row_bytes, end;
    struct index_field *to = &self->index.fields[number];
    for (uint64_t i = 0; i < self->run_count; i++) {
        const struct windows_run *run = &self->runs[i];
        uint64_t last = run->last_row + (run->count - 1) * self->stride;
        if (run->entity >= spec->object_count || row_bytes == 0 || self->min_history < self->window)
            return fail(err, STK_CORRUPT, "field %s has no array", spec->fields[number].name);
        const struct index_object *object = &spec->objects[run->entity];
        if (!checked_mul(last + 1, row_bytes, &end) || end > object->size)
            return windows_outside(object, last, row_bytes, err);
    }
    to->min_length = to->max_length = self->window * row_bytes;
    return STK_OK;
}

/* Sets the lengths, and proves that no sample's rows lie outside their object. */
static stk_status windows_rows(struct windows_index *self, const struct windows_spec *spec,
                               uint32_t number, const struct windows_reach *reach,
                               struct stk_error *err)
{
    const struct windows_field *from = &spec->fields[number];
    struct index_field *to = &self->index.fields[number];
    uint64_t least = 1, most = 1, last = reach->past, end;
    if (from->object >= spec->object_count || from->row_bytes == 0)
        return fail(err, STK_CORRUPT, "field %s has no array", from->name);
    if (from->part == WINDOWS_PAST) {
        least = self->min_history < self->window ? self->min_history : self->window;
        most = reach->longest < self->window ? reach->longest : self->window;
    } else if (from->part == WINDOWS_FUTURE) {
        least = most = self->horizon;
        last = reach->future;
    } else if (from->part == WINDOWS_TABLE) {
        last = reach->table;
    }
    const struct index_object *object = &spec->objects[from->object];
    if (!checked_mul(last + 1, from->row_bytes, &end) || end > object->size)
        return windows_outside(object, last, from->row_bytes, err);
    to->min_length = least * from->row_bytes; /* least <= most <= last + 1: they fit */
    to->max_length = most * from->row_bytes;
    return STK_OK;
}

static stk_status windows_set_fields(struct windows_index *self, const struct windows_spec *spec,
                                     struct stk_error *err)
{
    struct windows_reach reach = windows_reach(self);
    stk_status status = STK_OK;
    self->index.header.field_count = spec->field_count;
    for (uint32_t i = 0; !status && i < spec->field_count; i++) {
        const struct windows_field *from = &spec->fields[i];
        struct index_field *to = &self->index.fields[i];
        self->rules[i] = (struct windows_rule){from->part, from->object, from->row_bytes};
        to->row = from->shape;
        to->row.data = NULL;
        to->is_value = from->part >= WINDOWS_ENTITY;
        if (stk_tensor_size(&from->shape) == UINT64_MAX)
            status = fail(err, STK_USAGE, "a sample of field %s has too many bytes", from->name);
        else if (to->is_value)
            to->min_length = to->max_length = sizeof(int64_t);
        else if (from->part == WINDOWS_FILE)
            status = windows_files(self, spec, i, err);
        else
            status = windows_rows(self, spec, i, &reach, err);
    }
    return status;
}

/* --- the image ------------------------------------------------------------------------------- */

static uint64_t image_section(struct index_header *header, enum index_section_number number,
                              uint64_t offset, uint64_t length, uint64_t *blocks)
{
    header->sections[number] = (struct index_section){offset, length, *blocks};
    *blocks += (length + INDEX_BLOCK - 1) >> INDEX_BLOCK_SHIFT;
    return (offset + length + INDEX_ALIGN - 1) / INDEX_ALIGN * INDEX_ALIGN;
}

static uint64_t image_text(char *base, uint64_t *at, const char *text)
{
    uint64_t offset = *at, len = strlen(text) + 1;
    memcpy(base + offset, text, len);
    *at += len;
    return offset;
}

static void windows_fill_image(struct windows_index *self, const struct windows_spec *spec,
                               uint8_t *image)
{
    struct index_header *header = &self->index.header;
    uint64_t at = 0;
    char *strings = (char *)image + header->sections[INDEX_STRINGS].offset;
    header->root = image_text(strings, &at, spec->root);
    header->format = image_text(strings, &at, windows_format(spec));
    for (uint32_t i = 0; i < spec->field_count; i++)
        self->index.fields[i].name = strings + image_text(strings, &at, spec->fields[i].name);
    struct index_file_object *objects =
        (struct index_file_object *)(image + header->sections[INDEX_OBJECTS].offset);
    char *names = (char *)image + header->sections[INDEX_NAMES].offset;
    at = 0;
    for (uint32_t i = 0; i < spec->object_count; i++)
        objects[i] = (struct index_file_object){spec->objects[i].size, spec->objects[i].version,
                                                image_text(names, &at, spec->objects[i].name)};
}

/* The sections that index.c looks into, laid out as in a file; the others are empty. */
static stk_status windows_image(struct windows_index *self, const struct windows_spec *spec,
                                struct stk_error *err)
{
    struct index *index = &self->index;
    struct index_header *header = &index->header;
    uint64_t strings = strlen(spec->root) + strlen(windows_format(spec)) + 2;
    uint64_t names = 0, blocks = 0;
    for (uint32_t i = 0; i < spec->field_count; i++)
        strings += strlen(spec->fields[i].name) + 1;
    for (uint32_t i = 0; i < spec->object_count; i++)
        names += strlen(spec->objects[i].name) + 1;
    header->object_count = spec->object_count;
    uint64_t end = image_section(header, INDEX_STRINGS, 0, strings, &blocks);
    end = image_section(header, INDEX_NAMES, end, names, &blocks);
    end = image_section(header, INDEX_OBJECTS, end,
                        spec->object_count * sizeof(struct index_file_object), &blocks);
    uint8_t *image = memory_zero(1, end);
    uint8_t *checked = memory_alloc(blocks);
    index->map = image;
    index->checked = (_Atomic uint8_t *)checked;
    index->path = memory_text(spec->path, strlen(spec->path));
    if (!image || !checked || !index->path)
        return fail_memory(err, end);
    memset(checked, 1, blocks);
    windows_fill_image(self, spec, image);
    index->objects = index_section(index, INDEX_OBJECTS);
    header->file_size += end;
    return STK_OK;
}

/* The same for the same samples in the same order, whichever fields are asked for. Not of the
 * files' sizes: an append that did not finish leaves bytes behind the rows. */
static void windows_fingerprint(struct windows_index *self, const struct windows_spec *spec)
{
    struct hash128 hash;
    const uint64_t numbers[] = {self->window, self->horizon,     self->stride,
                                self->gap,    self->min_history, self->run_count};
    hash128_init(&hash, 0);
    hash128_add(&hash, spec->fingerprint, sizeof(spec->fingerprint));
    hash128_add(&hash, numbers, sizeof(numbers));
    hash128_add(&hash, self->runs, self->run_count * sizeof(*self->runs));
    hash128_add(&hash, self->names, self->run_count * sizeof(*self->names));
    hash128_add(&hash, self->name_bytes, self->names[self->run_count]);
    hash128_out(&hash, self->index.header.fingerprint);
}

static const struct index_ops windows_index_ops;

stk_status windows_index_new(struct index **out, const struct windows_spec *spec,
                             struct stk_error *err)
{
    *out = NULL;
    struct windows_index *self = NULL;
    stk_status status = windows_check(spec, err);
    if (status)
        goto done;
    self = memory_zero(1, sizeof(*self));
    if (!self) {
        status = fail_memory(err, sizeof(*self));
        goto done;
    }
    self->index.ops = &windows_index_ops;
    self->index.in_memory = 1;
    self->window = spec->window;
    self->horizon = spec->horizon;
    self->stride = spec->stride;
    self->gap = spec->gap;
    self->min_history = spec->min_history;
    status = windows_allocate(self, spec, err);
    for (uint64_t i = 0; !status && i < spec->entity_count; i++)
        status = windows_add(self, &spec->entities[i], err);
    if (!status && self->run_count == 0)
        status = windows_too_long(self, spec, err);
    if (!status)
        status = windows_hint(self, err);
    if (!status)
        windows_set_even(self);
    if (!status)
        status = windows_set_fields(self, spec, err);
    if (!status)
        status = windows_image(self, spec, err);
    if (status)
        goto done;
    windows_fingerprint(self, spec);
    *out = &self->index;
    self = NULL; /* the caller owns it now */
done:
    index_close((struct index *)self);
    return status;
}

static void windows_reset(struct index *index)
{
    struct windows_index *self = (struct windows_index *)index;
    memory_free(self->runs);
    memory_free(self->origins);
    memory_free(self->names);
    memory_free(self->name_bytes);
    memory_free(self->hints);
    memory_free(self->rules);
}

/* --- samples --------------------------------------------------------------------------------- */

/* Samples come shuffled: whether one lies in the first or the second run of its bucket is nobody's
 * guess, so that this is a comparison to be added and no branch. */
static inline uint64_t windows_search(const struct windows_index *self, uint64_t sample)
{
    uint64_t bucket = sample >> self->shift;
    uint64_t low = self->hints[bucket], high = self->hints[bucket + 1];
    if (high - low <= 1)
        return low + (self->runs[low + 1].first <= sample);
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (self->runs[middle].first <= sample)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The run of a sample where all have as many: the estimate is right or one too small. */
static inline uint64_t windows_divide(const struct windows_index *self, uint64_t sample)
{
    uint64_t run = (uint64_t)(((unsigned __int128)sample * self->inverse) >> 64);
    return run + (sample - run * self->even >= self->even);
}

void windows_index_find(const struct index *index, const uint64_t *samples, uint32_t n,
                        uint32_t *runs)
{
    const struct windows_index *self = windows(index);
    for (uint32_t i = 0; i < n && self->even; i++)
        runs[i] = (uint32_t)windows_divide(self, samples[i]);
    for (uint32_t i = 0; i < n && !self->even; i++)
        runs[i] = (uint32_t)windows_search(self, samples[i]);
}

/* A few samples on their way: which run, and how many rows behind the run's first last row. */
struct windows_block {
    uint32_t count;
    uint32_t runs[WINDOWS_BLOCK];
    uint64_t steps[WINDOWS_BLOCK];
};

/* Two walks, so that the misses of one sample overlap with those of the others. */
static void windows_find(const struct windows_index *self, const uint64_t *samples,
                         struct windows_block *block)
{
    windows_index_find(&self->index, samples, block->count, block->runs);
    for (uint32_t i = 0; i < block->count; i++)
        block->steps[i] = (samples[i] - self->runs[block->runs[i]].first) * self->stride;
}

static void windows_past(const struct windows_index *self, const struct windows_rule *rule,
                         const struct windows_block *block, struct extent *out)
{
    for (uint32_t i = 0; i < block->count; i++, out += self->index.header.field_count) {
        uint64_t history = self->min_history + block->steps[i];
        uint64_t rows = history < self->window ? history : self->window;
        const struct windows_run *run = &self->runs[block->runs[i]];
        uint64_t first = run->last_row + block->steps[i] + 1 - rows;
        uint32_t object = rule->part == WINDOWS_FILE ? (uint32_t)run->entity : rule->object;
        *out = (struct extent){first * rule->row_bytes, rows * rule->row_bytes, object};
    }
}

/* `rows` rows, the first of them `ahead` rows behind the window's last one. */
static void windows_ahead_rows(const struct windows_index *self, const struct windows_rule *rule,
                               const struct windows_block *block, struct extent *out)
{
    int is_future = rule->part == WINDOWS_FUTURE;
    uint64_t ahead = is_future ? self->gap + 1 : 0;
    uint64_t length = (is_future ? self->horizon : 1) * rule->row_bytes;
    for (uint32_t i = 0; i < block->count; i++, out += self->index.header.field_count) {
        uint64_t first = self->runs[block->runs[i]].last_row + block->steps[i] + ahead;
        *out = (struct extent){first * rule->row_bytes, length, rule->object};
    }
}

static uint64_t windows_value(const struct windows_index *self, enum windows_part part,
                              uint32_t number, uint64_t steps)
{
    const struct windows_run *run = &self->runs[number];
    uint64_t history = self->min_history + steps;
    if (part == WINDOWS_ENTITY)
        return run->entity;
    if (part == WINDOWS_MASK)
        return history < self->window ? history : self->window;
    /* modulo 2^64, and so right as an int64 below 0 */
    return run->last_row + steps + 1 - self->window - self->origins[number];
}

static void windows_other(const struct windows_index *self, const struct windows_rule *rule,
                          const struct windows_block *block, struct extent *out)
{
    for (uint32_t i = 0; i < block->count; i++, out += self->index.header.field_count) {
        uint32_t run = block->runs[i];
        if (rule->part == WINDOWS_TABLE)
            *out = (struct extent){self->runs[run].entity * rule->row_bytes, rule->row_bytes,
                                   rule->object};
        else
            *out = (struct extent){windows_value(self, rule->part, run, block->steps[i]),
                                   sizeof(int64_t), EXTENT_VALUE};
    }
}

/* Extents need no check here: windows_rows made sure of all of them at once. */
static stk_status windows_resolve(const struct index *index, const uint64_t *samples, uint32_t n,
                                  struct extent *out, struct stk_error *err)
{
    const struct windows_index *self = windows(index);
    struct windows_block block;
    for (uint32_t i = 0; i < n; i++) {
        if (samples[i] >= index->header.samples)
            return fail(err, STK_NOT_FOUND, "the index has no sample %llu",
                        (unsigned long long)samples[i]);
    }
    for (uint32_t at = 0; at < n; at += block.count) {
        block.count = n - at < WINDOWS_BLOCK ? n - at : WINDOWS_BLOCK;
        windows_find(self, samples + at, &block);
        struct extent *row = out + (uint64_t)at * index->header.field_count;
        for (uint32_t f = 0; f < index->header.field_count; f++) {
            const struct windows_rule *rule = &self->rules[f];
            if (rule->part == WINDOWS_PAST || rule->part == WINDOWS_FILE)
                windows_past(self, rule, &block, row + f);
            else if (rule->part == WINDOWS_FUTURE || rule->part == WINDOWS_LAST)
                windows_ahead_rows(self, rule, &block, row + f);
            else
                windows_other(self, rule, &block, row + f);
        }
    }
    return STK_OK;
}

/* A name that leaves no room for the rest is cut between two characters, and the entity's number
 * keeps it apart from its like. */
static stk_status windows_key(const struct index *index, uint64_t sample, char *scratch,
                              struct stk_bytes *key, struct stk_error *err)
{
    const struct windows_index *self = windows(index);
    enum { NUMBERS = 2 * 21 + 2 }; /* two numbers with a sign, and what stands between */
    uint64_t run = windows_search(self, sample);
    uint64_t steps = (sample - self->runs[run].first) * self->stride;
    uint64_t len = self->names[run + 1] - self->names[run];
    const char *name = self->name_bytes + self->names[run];
    long long start = (long long)windows_value(self, WINDOWS_START, (uint32_t)run, steps);
    int used;
    (void)err;
    if (len < INDEX_KEY_SCRATCH - NUMBERS) {
        used = snprintf(scratch, INDEX_KEY_SCRATCH, "%.*s:%lld", (int)len, name, start);
    } else {
        len = INDEX_KEY_SCRATCH - NUMBERS;
        while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
            len--;
        used = snprintf(scratch, INDEX_KEY_SCRATCH, "%.*s~%llu:%lld", (int)len, name,
                        (unsigned long long)self->runs[run].entity, start);
    }
    *key = (struct stk_bytes){(const uint8_t *)scratch, (size_t)used};
    return STK_OK;
}

static const struct index_ops windows_index_ops = {
    .resolve = windows_resolve, .key = windows_key, .reset = windows_reset};

/* --- runs, for orders by time ---------------------------------------------------------------- */

const struct windows_run *windows_index_runs(const struct index *index, uint64_t *count)
{
    int is_windows = index->ops == &windows_index_ops;
    *count = is_windows ? windows(index)->run_count : 0;
    return is_windows ? windows(index)->runs : NULL;
}

uint64_t windows_index_stride(const struct index *index)
{
    return index->ops == &windows_index_ops ? windows(index)->stride : 0;
}

uint64_t windows_index_short(const struct index *index)
{
    return index->ops == &windows_index_ops ? windows(index)->short_count : 0;
}

uint64_t windows_index_run(const struct index *index, uint64_t sample)
{
    return windows_search(windows(index), sample);
}
