#include "base/testing.h"

#include <dirent.h>

#include "stoker/pack.h"

#include "base/fail.h"

/* --- helpers --------------------------------------------------------------------------------- */

static int count_entries(const char *folder)
{
    DIR *found = opendir(folder);
    int count = 0;

    if (!found)
        return 0;
    for (struct dirent *entry; (entry = readdir(found));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(found);
    return count;
}

struct place {
    char folder[PATH_MAX], out[2 * PATH_MAX], loose[2 * PATH_MAX];
};

static int place_open(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    folder_new(place->folder);
    snprintf(place->out, sizeof(place->out), "%s/out", place->folder);
    snprintf(place->loose, sizeof(place->loose), "%s/loose", place->folder);
    setenv("XDG_CACHE_HOME", path_in(place->folder, "cache"), 1);
    *state = place;
    return 0;
}

static int place_close(void **state)
{
    struct place *place = *state;

    folder_remove(place->folder);
    free(place);
    return 0;
}

static struct stk_gen_tensors_options small(const struct place *place)
{
    return (struct stk_gen_tensors_options){
        .out = place->out,
        .shards = 2,
        .samples = 6,
        .shape = {.dtype = STK_F32, .rank = 2, .shape = {3, 5}},
        .classes = 3,
        .threads = 1,
    };
}

static void generate(const struct place *place, const char *loose)
{
    struct stk_gen_tensors_options options = small(place);
    struct stk_pack_result result;
    struct stk_error err;

    options.loose = loose;
    assert_int_equal(stk_gen_tensors(NULL, &options, &result, &err), STK_OK);
}

static struct stk_dataset *open_set(const char *source)
{
    struct stk_dataset_options options = {0};
    struct stk_dataset *dataset;

    assert_int_equal(stk_dataset_open(NULL, &dataset, &source, 1, &options, NULL), STK_OK);
    return dataset;
}

/* --- generating ------------------------------------------------------------------------------ */

static void generated_shards_are_a_dataset(void **state)
{
    struct place *place = *state;

    generate(place, NULL);
    struct stk_dataset *dataset = open_set(place->out);
    assert_int_equal(stk_dataset_samples(dataset), 6);
    assert_int_equal(stk_dataset_field_count(dataset), 2);
    const struct stk_tensor *shape = &stk_dataset_field(dataset, 0)->shape;
    assert_int_equal(shape->dtype, STK_F32);
    assert_int_equal(shape->rank, 2);
    assert_int_equal(shape->shape[1], 5);
    uint64_t bad;
    assert_int_equal(stk_dataset_verify(dataset, 1, NULL, NULL, &bad, NULL), STK_OK);
    assert_int_equal(bad, 0);
    stk_dataset_close(dataset);
}

static void bad_options_are_refused_before_anything_is_written(void **state)
{
    struct place *place = *state;
    struct stk_pack_result result;
    struct stk_error err;

    for (int i = 0; i < 8; i++) {
        struct stk_gen_tensors_options options = small(place);
        stk_status wanted = STK_USAGE;
        switch (i) {
        case 0:
            options.samples = 0;
            break;
        case 1:
            options.shards = 7;
            break;
        case 2:
            options.classes = 0;
            break;
        case 3:
            options.shape.rank = 0;
            break;
        case 4:
            options.shape.rank = STK_MAX_RANK + 1;
            break;
        case 5:
            options.shape.shape[0] = -1;
            break;
        case 6:
            options.shape.shape[0] = INT64_MAX;
            wanted = STK_LIMIT;
            break;
        default:
            options.threads = 100000;
        }
        assert_int_equal(stk_gen_tensors(NULL, &options, &result, &err), wanted);
        assert_int_equal(count_entries(place->folder), 0);
    }
}

static int generate_once(void *user)
{
    struct place *place = user;
    struct stk_gen_tensors_options options = small(place);
    struct stk_pack_result result;
    stk_status status;

    options.loose = place->loose;
    options.force = 1;
    status = stk_gen_tensors(NULL, &options, &result, NULL);
    if (status) {
        assert_int_equal(status, STK_MEMORY);
        assert_int_equal(count_entries(place->folder), 0); /* neither folder is left */
    }
    return status == STK_OK;
}

static void generating_without_memory_leaves_nothing(void **state)
{
    fail_each_allocation(generate_once, *state);
}

struct watcher {
    int calls, cancel_at;
    const char *table;
    uint64_t rows;
};

static int watch_progress(void *user, const struct stk_progress *progress)
{
    struct watcher *watcher = user;

    assert_true(progress->done <= progress->total);
    return ++watcher->calls == watcher->cancel_at;
}

static stk_status take_table(void *user, const char *path, const struct stk_column *columns,
                             uint32_t column_count, uint64_t rows, struct stk_error *err)
{
    static const char *const names[] = {"key", "shard", "label", "shape", "dtype", "bytes"};
    struct watcher *watcher = user;

    (void)err;
    assert_int_equal(column_count, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_string_equal(columns[i].name, names[i]);
    assert_string_equal(((const char *const *)columns[0].values)[5], "000005");
    assert_string_equal(((const char *const *)columns[1].values)[2], "shard-0000.tar");
    assert_string_equal(((const char *const *)columns[1].values)[3], "shard-0001.tar");
    assert_in_range(((const int64_t *)columns[2].values)[0], 0, 2);
    assert_string_equal(((const char *const *)columns[3].values)[0], "3,5");
    assert_string_equal(((const char *const *)columns[4].values)[0], "float32");
    assert_int_equal(((const int64_t *)columns[5].values)[0], 60);
    watcher->rows = rows;
    file_write(path, "table", 5);
    return STK_OK;
}

static stk_status refuse_table(void *user, const char *path, const struct stk_column *columns,
                               uint32_t column_count, uint64_t rows, struct stk_error *err)
{
    (void)user, (void)path, (void)columns, (void)column_count, (void)rows;
    return fail(err, STK_IO, "no room for tables");
}

static struct stk_context *watched(struct watcher *watcher, int refuse)
{
    struct stk_hooks hooks = {.user = watcher,
                              .progress = watch_progress,
                              .write_table = refuse ? refuse_table : take_table};
    struct stk_context *context;

    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    return context;
}

static void the_table_has_a_row_a_sample(void **state)
{
    struct place *place = *state;
    struct watcher watcher = {0};
    struct stk_context *context = watched(&watcher, 0);
    struct stk_gen_tensors_options options = small(place);
    struct stk_pack_result result;

    assert_int_equal(stk_gen_tensors(context, &options, &result, NULL), STK_OK);
    assert_int_equal(watcher.rows, 6);
    size_t len;
    char *table = file_read(path_in(place->out, "metadata.parquet"), &len);
    assert_string_equal(table, "table");
    free(table);
    assert_int_equal(count_entries(place->out), 3);
    stk_context_free(context);
}

static void a_table_that_cannot_be_written_leaves_nothing(void **state)
{
    struct place *place = *state;
    struct watcher watcher = {0};
    struct stk_context *context = watched(&watcher, 1);
    struct stk_gen_tensors_options options = small(place);
    struct stk_pack_result result;
    struct stk_error err;

    assert_int_equal(stk_gen_tensors(context, &options, &result, &err), STK_IO);
    assert_string_equal(err.what, "no room for tables");
    assert_int_equal(count_entries(place->folder), 0);
    stk_context_free(context);
}

static void generating_can_be_cancelled(void **state)
{
    struct place *place = *state;
    struct watcher watcher = {.cancel_at = 1};
    struct stk_context *context = watched(&watcher, 0);
    struct stk_gen_tensors_options options = small(place);
    struct stk_pack_result result;

    assert_int_equal(stk_gen_tensors(context, &options, &result, NULL), STK_CANCELLED);
    assert_int_equal(count_entries(place->folder), 0);
    stk_context_free(context);
}

/* --- packing --------------------------------------------------------------------------------- */

struct packing {
    struct place *place;
    struct stk_dataset *dataset;
    const char *out;
};

static int pack_once(void *user)
{
    struct packing *packing = user;
    struct stk_pack_options options = {.out = packing->out, .shard_samples = 2, .force = 1};
    struct stk_pack_result result;
    stk_status status = stk_pack_tar(NULL, packing->dataset, &options, &result, NULL);

    if (status) {
        assert_int_equal(status, STK_MEMORY);
        assert_int_equal(access(packing->out, F_OK), -1);
    } else {
        assert_int_equal(result.shards, 3);
        assert_int_equal(result.samples, 6);
    }
    return status == STK_OK;
}

static void packing_without_memory_leaves_nothing(void **state)
{
    struct place *place = *state;
    struct packing packing = {.place = place, .out = path_in(place->folder, "packed")};

    generate(place, place->loose);
    packing.dataset = open_set(place->loose);
    fail_each_allocation(pack_once, &packing);
    assert_int_equal(count_entries(packing.out), 3);
    stk_dataset_close(packing.dataset);
}

static void packing_can_be_cancelled(void **state)
{
    struct place *place = *state;
    struct watcher watcher = {.cancel_at = 1};
    struct stk_context *context = watched(&watcher, 0);
    struct stk_pack_options options = {.out = path_in(place->folder, "packed")};
    struct stk_pack_result result;

    generate(place, place->loose);
    struct stk_dataset *dataset = open_set(place->loose);
    assert_int_equal(stk_pack_tar(context, dataset, &options, &result, NULL), STK_CANCELLED);
    assert_int_equal(access(options.out, F_OK), -1);
    stk_dataset_close(dataset);
    stk_context_free(context);
}

static void a_subset_is_packed_in_its_own_order(void **state)
{
    struct place *place = *state;
    const uint64_t positions[] = {5, 0, 3};
    struct stk_pack_options options = {.out = path_in(place->folder, "packed")};
    struct stk_pack_result result;
    struct stk_dataset *subset;
    struct stk_bytes key;

    generate(place, NULL);
    struct stk_dataset *dataset = open_set(place->out);
    assert_int_equal(stk_dataset_select(dataset, &subset, positions, 3, NULL), STK_OK);
    assert_int_equal(stk_pack_tar(NULL, subset, &options, &result, NULL), STK_OK);
    struct stk_dataset *packed = open_set(options.out);
    assert_int_equal(stk_dataset_samples(packed), 3);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(stk_dataset_key(packed, i, &key, NULL), STK_OK);
        assert_int_equal(key.data[5] - '0', positions[i]);
    }
    stk_dataset_close(packed);
    stk_dataset_close(subset);
    stk_dataset_close(dataset);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(generated_shards_are_a_dataset),
        TEST(bad_options_are_refused_before_anything_is_written),
        TEST(generating_without_memory_leaves_nothing),
        TEST(the_table_has_a_row_a_sample),
        TEST(a_table_that_cannot_be_written_leaves_nothing),
        TEST(generating_can_be_cancelled),
        TEST(packing_without_memory_leaves_nothing),
        TEST(packing_can_be_cancelled),
        TEST(a_subset_is_packed_in_its_own_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
