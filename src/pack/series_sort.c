#include "pack/series_sort.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "pack/series_split.h"
#include "pack/write_all.h"

#define RUN_ROWS_MIN 64u
#define RUN_ROWS_MAX (UINT32_MAX / 2)
#define MERGE_BUFFER_MIN (64u << 10)
#define MERGE_BUFFER_MAX (4u << 20)
#define SINK_BYTES (256u << 10)
#define SPOOL_BUFFERS (UINT64_C(8) << 20) /* what two spools and a run file hold */
#define KEY_ROWS 8192u                    /* whose keys are read at a time */
#define DIGITS 12                         /* bytes of a key: time, then entity */
#define PREFETCH_AHEAD 12u

struct sort_key {
    uint64_t time; /* biased, so that it compares unsigned */
    uint32_t entity, index;
};

/* In front of each row of a run. */
struct run_head {
    uint64_t time;
    uint32_t entity, unused;
};

struct run {
    uint64_t offset; /* in its file */
    uint64_t rows;
};

struct run_file {
    int fd;
    char name[16];
    uint64_t written;
    size_t used;
    uint8_t *buf; /* [SINK_BYTES] */
};

/* Where rows in order go: a run file, or the new spool. */
struct sink {
    struct run_file *file;  /* NULL: to the spool */
    struct row_block block; /* gathered for the spool */
    uint32_t cap;           /* rows of block */
    struct sort_key last;   /* the row before, to find two of one time */
    int has_last;
};

struct sorter {
    const struct series_sort *sort;
    struct row_spool *in, *out;
    size_t row_bytes, record; /* record: head and row */
    int has_times;
    uint64_t usable; /* bytes for runs or for buffers */
    struct run *runs;
    uint32_t run_count, run_cap;
    struct run_file files[2]; /* runs are read from one and merged into the other */
    int source;
    struct sink sink;
    uint64_t entity; /* where reading keys stands, in a spool without numbers of entities */
    uint64_t done, total;
    struct context_timer timer;
};

static stk_status sorter_tell(struct sorter *sorter, uint64_t rows, struct stk_error *err)
{
    struct stk_progress progress = {.what = "sorting", .unit = "rows", .total = sorter->total};

    sorter->done += rows;
    progress.done = sorter->done;
    if (context_progress(sorter->sort->context, &sorter->timer, &progress))
        return fail(err, STK_CANCELLED, "sorting was stopped");
    return STK_OK;
}

/* --- run files ------------------------------------------------------------------------------- */

static stk_status run_file_failed(const struct sorter *sorter, const struct run_file *file,
                                  int number, struct stk_error *err)
{
    char path[512];
    stk_status status = fail_errno(err, number, "sorting rows on the disk failed");

    snprintf(path, sizeof(path), "%s/%s", sorter->sort->label, file->name);
    fail_at(err, path, file->written);
    return status;
}

static stk_status run_file_open(struct sorter *sorter, int which, struct stk_error *err)
{
    struct run_file *file = &sorter->files[which];

    snprintf(file->name, sizeof(file->name), "runs.%d", which);
    file->written = 0;
    file->used = 0;
    if (!file->buf)
        file->buf = memory_map(SINK_BYTES);
    if (!file->buf)
        return fail_memory(err, SINK_BYTES);
    file->fd =
        openat(sorter->sort->folder_fd, file->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return run_file_failed(sorter, file, errno, err);
    return STK_OK;
}

static void run_file_close(struct sorter *sorter, int which)
{
    struct run_file *file = &sorter->files[which];

    if (file->fd >= 0) {
        (void)unlinkat(sorter->sort->folder_fd, file->name, 0);
        close(file->fd);
    }
    file->fd = -1;
}

static stk_status run_file_flush(struct sorter *sorter, struct run_file *file,
                                 struct stk_error *err)
{
    int number = write_all_at(file->fd, file->buf, file->used, file->written);

    if (number)
        return run_file_failed(sorter, file, number, err);
    file->written += file->used;
    file->used = 0;
    return STK_OK;
}

static stk_status run_file_add(struct sorter *sorter, struct run_file *file, const void *data,
                               size_t len, struct stk_error *err)
{
    const uint8_t *from = data;
    stk_status status = STK_OK;

    while (!status && len) {
        size_t room = SINK_BYTES - file->used;
        size_t part = len < room ? len : room;
        memcpy(file->buf + file->used, from, part);
        file->used += part;
        from += part;
        len -= part;
        if (file->used == SINK_BYTES)
            status = run_file_flush(sorter, file, err);
    }
    return status;
}

static stk_status runs_add(struct sorter *sorter, uint64_t offset, uint64_t rows,
                           struct stk_error *err)
{
    if (sorter->run_count == sorter->run_cap) {
        uint32_t cap = sorter->run_cap ? 2 * sorter->run_cap : 64;
        struct run *grown = memory_grow(sorter->runs, cap * sizeof(*grown));
        if (!grown)
            return fail_memory(err, cap * sizeof(*grown));
        sorter->runs = grown;
        sorter->run_cap = cap;
    }
    sorter->runs[sorter->run_count++] = (struct run){offset, rows};
    return STK_OK;
}

/* --- the sink -------------------------------------------------------------------------------- */

static int64_t key_time(uint64_t biased)
{
    return (int64_t)(biased ^ (UINT64_C(1) << 63));
}

static stk_status fail_duplicate(const struct sorter *sorter, const struct sort_key *key,
                                 struct stk_error *err)
{
    char time[64];
    stk_status status;

    series_time_format(key_time(key->time), sorter->sort->time_unit, time, sizeof(time));
    status = fail(err, STK_CORRUPT, "entity '%.100s' has two rows at the time %s",
                  sorter->sort->entities[key->entity].name, time);
    fail_remedy(err, "keep one row a time of each entity, or name the column of entities");
    return status;
}

static stk_status sink_flush(struct sorter *sorter, struct stk_error *err)
{
    struct sink *sink = &sorter->sink;
    uint32_t rows = sink->block.rows;
    stk_status status = row_spool_append(sorter->out, &sink->block, err);

    sink->block.rows = 0;
    return status ? status : sorter_tell(sorter, rows, err);
}

static stk_status sink_add(struct sorter *sorter, const struct sort_key *key, const void *row,
                           struct stk_error *err)
{
    struct sink *sink = &sorter->sink;

    if (sink->file) {
        struct run_head head = {.time = key->time, .entity = key->entity};
        stk_status status = run_file_add(sorter, sink->file, &head, sizeof(head), err);
        return status ? status : run_file_add(sorter, sink->file, row, sorter->row_bytes, err);
    }
    if (sorter->has_times && sink->has_last && sink->last.entity == key->entity &&
        sink->last.time == key->time)
        return fail_duplicate(sorter, key, err);
    sink->last = *key;
    sink->has_last = 1;
    memcpy((uint8_t *)sink->block.values + sink->block.rows * sorter->row_bytes, row,
           sorter->row_bytes);
    if (sorter->has_times)
        sink->block.times[sink->block.rows] = key_time(key->time);
    sink->block.rows++;
    return sink->block.rows == sink->cap ? sink_flush(sorter, err) : STK_OK;
}

/* The spool in order; the sink's rows go there from now on. */
static stk_status sink_to_spool(struct sorter *sorter, struct stk_error *err)
{
    const struct series_sort *sort = sorter->sort;
    const struct row_spool_options options = {.folder_fd = sort->folder_fd,
                                              .label = sort->label,
                                              .dtype = row_spool_dtype(sorter->in),
                                              .columns = row_spool_columns(sorter->in),
                                              .has_times = sorter->has_times,
                                              .values_name = "sorted.rows",
                                              .times_name = "sorted.times",
                                              .is_final = sort->is_final};
    struct sink *sink = &sorter->sink;

    sink->file = NULL;
    sink->cap = (uint32_t)(SINK_BYTES / sorter->row_bytes);
    sink->cap = sink->cap ? sink->cap : 1;
    sink->block.values = memory_alloc(sink->cap * sorter->row_bytes);
    sink->block.times = memory_alloc(sink->cap * sizeof(int64_t));
    if (!sink->block.values || !sink->block.times)
        return fail_memory(err, sink->cap * (sorter->row_bytes + sizeof(int64_t)));
    return row_spool_open(&sorter->out, &options, err);
}

/* --- runs ------------------------------------------------------------------------------------ */

static inline uint32_t key_digit(const struct sort_key *key, int digit)
{
    uint64_t digits = digit < 8 ? key->time >> (8 * digit) : key->entity >> (8 * (digit - 8));

    return (uint32_t)(digits & 255);
}

/* Least digit first, so that equal keys stay as they came. Digits that are the same everywhere cost
 * nothing but the count. The result lies in `keys`. */
static void keys_sort(struct sort_key *keys, struct sort_key *other, uint32_t n)
{
    uint32_t counts[DIGITS][256] = {{0}};
    struct sort_key *from = keys, *to = other, *swap;

    for (uint32_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++)
            counts[d][key_digit(&keys[i], d)]++;
    for (int d = 0; d < DIGITS; d++) {
        uint32_t sum = 0;
        if (counts[d][key_digit(&from[0], d)] == n)
            continue;
        for (int b = 0; b < 256; b++) {
            uint32_t count = counts[d][b];
            counts[d][b] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++)
            to[counts[d][key_digit(&from[i], d)]++] = from[i];
        swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof(*keys));
}

/* The number of the entity that row `row` belongs to; rows are asked for in order. */
static uint32_t entity_at(struct sorter *sorter, uint64_t row)
{
    const struct ingest_entity *entities = sorter->sort->entities;

    while (row >= entities[sorter->entity].first_row + entities[sorter->entity].rows) {
        sorter->entity++;
        assert(sorter->entity < sorter->sort->entity_count);
    }
    return (uint32_t)sorter->entity;
}

static stk_status keys_read(struct sorter *sorter, uint64_t first, uint32_t n,
                            struct sort_key *keys, struct stk_error *err)
{
    int64_t times[KEY_ROWS];
    uint32_t entities[KEY_ROWS];
    int has_entities = row_spool_has_entities(sorter->in);
    stk_status status = STK_OK;

    for (uint32_t at = 0; !status && at < n; at += KEY_ROWS) {
        uint32_t part = n - at < KEY_ROWS ? n - at : KEY_ROWS;
        struct row_block block = {.rows = part,
                                  .times = sorter->has_times ? times : NULL,
                                  .entities = has_entities ? entities : NULL};
        status = row_spool_read(sorter->in, first + at, &block, err);
        for (uint32_t i = 0; !status && i < part; i++) {
            int64_t time = sorter->has_times ? times[i] : 0;
            keys[at + i] = (struct sort_key){
                .time = (uint64_t)time ^ (UINT64_C(1) << 63),
                .entity = has_entities ? entities[i] : entity_at(sorter, first + at + i),
                .index = at + i};
        }
    }
    return status;
}

/* Memory of one run. */
struct run_memory {
    uint8_t *values;
    struct sort_key *keys, *other;
    size_t values_bytes, keys_bytes;
};

static stk_status run_memory_open(struct run_memory *memory, uint32_t rows, size_t row_bytes,
                                  struct stk_error *err)
{
    *memory = (struct run_memory){.values_bytes = rows * row_bytes,
                                  .keys_bytes = rows * sizeof(struct sort_key)};
    memory->values = memory_map(memory->values_bytes);
    memory->keys = memory_map(memory->keys_bytes);
    memory->other = memory_map(memory->keys_bytes);
    if (!memory->values || !memory->keys || !memory->other)
        return fail_memory(err, memory->values_bytes + 2 * memory->keys_bytes);
    return STK_OK;
}

static void run_memory_close(struct run_memory *memory)
{
    memory_unmap(memory->values, memory->values_bytes);
    memory_unmap(memory->keys, memory->keys_bytes);
    memory_unmap(memory->other, memory->keys_bytes);
}

static stk_status run_sort(struct sorter *sorter, struct run_memory *memory, uint64_t first,
                           uint32_t n, struct stk_error *err)
{
    struct row_block block = {.rows = n, .values = memory->values};
    stk_status status = row_spool_read(sorter->in, first, &block, err);

    if (!status)
        status = keys_read(sorter, first, n, memory->keys, err);
    if (status)
        return status;
    keys_sort(memory->keys, memory->other, n);
    for (uint32_t i = 0; !status && i < n; i++) {
        if (i + PREFETCH_AHEAD < n)
            __builtin_prefetch(memory->values +
                               memory->keys[i + PREFETCH_AHEAD].index * sorter->row_bytes);
        status = sink_add(sorter, &memory->keys[i],
                          memory->values + memory->keys[i].index * sorter->row_bytes, err);
    }
    return status;
}

static stk_status runs_make(struct sorter *sorter, uint32_t run_rows, struct stk_error *err)
{
    uint64_t rows = row_spool_rows(sorter->in);
    struct run_memory memory;
    stk_status status = run_memory_open(&memory, run_rows, sorter->row_bytes, err);

    if (!status && rows > run_rows) {
        status = run_file_open(sorter, 0, err);
        sorter->sink.file = &sorter->files[0];
    } else if (!status) {
        status = sink_to_spool(sorter, err);
    }
    for (uint64_t first = 0; !status && first < rows; first += run_rows) {
        uint32_t n = (uint32_t)(rows - first < run_rows ? rows - first : run_rows);
        struct run_file *file = sorter->sink.file;
        uint64_t offset = file ? file->written + file->used : 0;
        status = run_sort(sorter, &memory, first, n, err);
        if (!status && file)
            status = runs_add(sorter, offset, n, err);
        if (!status && file)
            status = sorter_tell(sorter, n, err);
    }
    run_memory_close(&memory);
    return status;
}

/* --- merging --------------------------------------------------------------------------------- */

struct cursor {
    uint64_t offset, left; /* bytes of the run that are still in the file */
    uint8_t *buf;
    size_t at, filled;
    struct sort_key key;
};

struct merge {
    struct sorter *sorter;
    struct cursor *cursors;
    uint32_t *heap; /* numbers of cursors, the least on top */
    uint32_t count;
    uint8_t *memory;
    size_t memory_bytes, buffer;
};

static int cursor_less(const struct merge *merge, uint32_t a, uint32_t b)
{
    const struct sort_key *left = &merge->cursors[a].key, *right = &merge->cursors[b].key;

    if (left->entity != right->entity)
        return left->entity < right->entity;
    if (left->time != right->time)
        return left->time < right->time;
    return a < b; /* earlier runs hold earlier rows */
}

static void heap_sift(struct merge *merge, uint32_t at)
{
    uint32_t item = merge->heap[at];

    for (uint32_t child; (child = 2 * at + 1) < merge->count; at = child) {
        if (child + 1 < merge->count &&
            cursor_less(merge, merge->heap[child + 1], merge->heap[child]))
            child++;
        if (cursor_less(merge, item, merge->heap[child]))
            break;
        merge->heap[at] = merge->heap[child];
    }
    merge->heap[at] = item;
}

/* To the next row. *ended: there is none. */
static stk_status cursor_next(struct merge *merge, struct cursor *cursor, int *ended,
                              struct stk_error *err)
{
    struct sorter *sorter = merge->sorter;
    struct run_head head;

    *ended = 0;
    if (cursor->at == cursor->filled) {
        const struct run_file *file = &sorter->files[sorter->source];
        size_t want = cursor->left < merge->buffer ? (size_t)cursor->left : merge->buffer;
        *ended = !want;
        for (cursor->filled = 0; cursor->filled < want;) {
            ssize_t got = pread(file->fd, cursor->buf + cursor->filled, want - cursor->filled,
                                (off_t)(cursor->offset + cursor->filled));
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return run_file_failed(sorter, file, got ? errno : EIO, err);
            cursor->filled += (size_t)got;
        }
        cursor->offset += want;
        cursor->left -= want;
        cursor->at = 0;
    }
    if (*ended)
        return STK_OK;
    memcpy(&head, cursor->buf + cursor->at, sizeof(head));
    cursor->key = (struct sort_key){.time = head.time, .entity = head.entity};
    return STK_OK;
}

static stk_status merge_open(struct merge *merge, const struct run *runs, uint32_t count,
                             struct stk_error *err)
{
    struct sorter *sorter = merge->sorter;
    uint64_t each = sorter->usable / count;
    stk_status status = STK_OK;

    each = each < MERGE_BUFFER_MAX ? each : MERGE_BUFFER_MAX;
    merge->buffer = (size_t)(each / sorter->record * sorter->record);
    merge->buffer = merge->buffer ? merge->buffer : sorter->record;
    merge->memory_bytes = merge->buffer * count;
    merge->memory = memory_map(merge->memory_bytes);
    merge->cursors = memory_zero(count, sizeof(*merge->cursors));
    merge->heap = memory_zero(count, sizeof(*merge->heap));
    if (!merge->memory || !merge->cursors || !merge->heap)
        return fail_memory(err, merge->memory_bytes);
    for (uint32_t i = 0; !status && i < count; i++) {
        int ended;
        merge->cursors[i] = (struct cursor){.offset = runs[i].offset,
                                            .left = runs[i].rows * sorter->record,
                                            .buf = merge->memory + i * merge->buffer};
        status = cursor_next(merge, &merge->cursors[i], &ended, err);
        merge->heap[i] = i;
    }
    merge->count = count;
    for (uint32_t i = count / 2; !status && i-- > 0;)
        heap_sift(merge, i);
    return status;
}

static stk_status merge_rows(struct merge *merge, struct stk_error *err)
{
    struct sorter *sorter = merge->sorter;
    stk_status status = STK_OK;

    while (!status && merge->count) {
        struct cursor *cursor = &merge->cursors[merge->heap[0]];
        int ended = 0;
        status =
            sink_add(sorter, &cursor->key, cursor->buf + cursor->at + sizeof(struct run_head), err);
        cursor->at += sorter->record;
        if (!status)
            status = cursor_next(merge, cursor, &ended, err);
        if (ended)
            merge->heap[0] = merge->heap[--merge->count];
        heap_sift(merge, 0);
    }
    return status;
}

static stk_status merge_runs(struct sorter *sorter, const struct run *runs, uint32_t count,
                             struct stk_error *err)
{
    struct merge merge = {.sorter = sorter};
    stk_status status = merge_open(&merge, runs, count, err);

    if (!status)
        status = merge_rows(&merge, err);
    memory_unmap(merge.memory, merge.memory_bytes);
    memory_free(merge.cursors);
    memory_free(merge.heap);
    return status;
}

/* One round: each `fan` runs that lie side by side become one, in the other file. */
static stk_status merge_round(struct sorter *sorter, uint32_t fan, struct stk_error *err)
{
    int target = !sorter->source;
    uint32_t count = sorter->run_count, made = 0;
    stk_status status = run_file_open(sorter, target, err);

    sorter->sink.file = &sorter->files[target];
    for (uint32_t first = 0; !status && first < count; first += fan) {
        uint32_t n = count - first < fan ? count - first : fan;
        struct run merged = {.offset = sorter->sink.file->written + sorter->sink.file->used};
        for (uint32_t i = 0; i < n; i++)
            merged.rows += sorter->runs[first + i].rows;
        status = merge_runs(sorter, sorter->runs + first, n, err);
        sorter->runs[made++] = merged; /* made <= first: it was read already */
        if (!status)
            status = sorter_tell(sorter, 0, err);
    }
    if (!status)
        status = run_file_flush(sorter, sorter->sink.file, err);
    run_file_close(sorter, sorter->source);
    sorter->source = target;
    sorter->run_count = made;
    return status;
}

static stk_status merge_all(struct sorter *sorter, struct stk_error *err)
{
    uint64_t each = sorter->record > MERGE_BUFFER_MIN ? sorter->record : MERGE_BUFFER_MIN;
    uint64_t room = sorter->usable / each;
    uint32_t fan = (uint32_t)(room < 2 ? 2 : room < 4096 ? room : 4096);
    stk_status status = run_file_flush(sorter, &sorter->files[0], err);

    while (!status && sorter->run_count > fan)
        status = merge_round(sorter, fan, err);
    if (!status)
        status = sink_to_spool(sorter, err);
    row_spool_free(sorter->in); /* its rows are in the runs: half the disk is free again */
    sorter->in = NULL;
    if (!status)
        status = merge_runs(sorter, sorter->runs, sorter->run_count, err);
    return status;
}

stk_status series_sort_run(const struct series_sort *sort, struct row_spool **spool,
                           struct stk_error *err)
{
    struct sorter sorter = {.sort = sort, .in = *spool, .files = {{.fd = -1}, {.fd = -1}}};
    uint64_t rows = row_spool_rows(*spool);
    uint64_t run_rows;
    stk_status status;

    *spool = NULL;
    sorter.row_bytes = (size_t)row_spool_row_bytes(sorter.in);
    sorter.record = sorter.row_bytes + sizeof(struct run_head);
    sorter.has_times = row_spool_times_fd(sorter.in) >= 0;
    sorter.usable =
        sort->memory > 2 * SPOOL_BUFFERS ? sort->memory - SPOOL_BUFFERS : sort->memory / 2;
    run_rows = sorter.usable / (sorter.row_bytes + 2 * sizeof(struct sort_key));
    run_rows = run_rows < RUN_ROWS_MIN ? RUN_ROWS_MIN : run_rows;
    run_rows = run_rows > RUN_ROWS_MAX ? RUN_ROWS_MAX : run_rows;
    run_rows = run_rows > rows ? rows : run_rows;
    sorter.total = rows > run_rows ? 2 * rows : rows;
    status = runs_make(&sorter, (uint32_t)run_rows, err);
    if (!status && rows > run_rows)
        status = merge_all(&sorter, err);
    if (!status && sorter.sink.block.rows)
        status = sink_flush(&sorter, err);
    if (!status)
        status = row_spool_flush(sorter.out, err);
    if (!status) {
        *spool = sorter.out;
        sorter.out = NULL;
    }
    for (int i = 0; i < 2; i++) {
        run_file_close(&sorter, i);
        memory_unmap(sorter.files[i].buf, SINK_BYTES);
    }
    memory_free(sorter.sink.block.values);
    memory_free(sorter.sink.block.times);
    memory_free(sorter.runs);
    row_spool_free(sorter.in);
    row_spool_free(sorter.out);
    return status;
}
