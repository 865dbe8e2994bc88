/* Windows against a walk over all rows that knows nothing of the arithmetic. */
#include "base/testing.h"

#include "index/windows_index.h"

#define WORKS(call) assert_int_equal((call), STK_OK)
#define MOST 4096u

static const struct index_object objects[] = {{"all_features.mmap", UINT64_C(1) << 50, 3},
                                              {"time.mmap", UINT64_C(1) << 50, 4},
                                              {"static.mmap", UINT64_C(1) << 50, 5}};
static const struct windows_field fields[] = {
    {"x", WINDOWS_PAST, 0, 12, {.dtype = STK_F32, .rank = 2, .shape = {4, 3}}},
    {"y", WINDOWS_FUTURE, 0, 12, {.dtype = STK_F32, .rank = 1, .shape = {2}}},
    {"time", WINDOWS_LAST, 1, 8, {.dtype = STK_I64, .rank = 0}},
    {"y_time", WINDOWS_FUTURE, 1, 8, {.dtype = STK_I64, .rank = 1, .shape = {2}}},
    {"static", WINDOWS_TABLE, 2, 20, {.dtype = STK_F32, .rank = 1, .shape = {5}}},
    {"entity", WINDOWS_ENTITY, 0, 0, {.dtype = STK_I64, .rank = 0}},
    {"start", WINDOWS_START, 0, 0, {.dtype = STK_I64, .rank = 0}},
    {"x_mask", WINDOWS_MASK, 0, 0, {.dtype = STK_BOOL, .rank = 1, .shape = {4}}}};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Entity 2 begins with another split, 4 is short, 5 is empty, and rows 90..99 belong to none. */
static const struct windows_entity entities[] = {
    {"AAPL", 0, 0, 0, 17},       {"MSFT", 1, 17, 17, 25},    {"a b", 2, 25, 40, 61},
    {"\xc3\xa9", 3, 61, 61, 90}, {"tiny", 4, 100, 100, 102}, {"none", 5, 102, 102, 102},
    {"last", 6, 102, 102, 115}};
#define ENTITIES (sizeof(entities) / sizeof(entities[0]))

static struct windows_spec spec_new(void)
{
    return (struct windows_spec){.root = "/data/out",
                                 .path = "/data/out/metadata.json",
                                 .objects = objects,
                                 .object_count = 3,
                                 .entities = entities,
                                 .entity_count = ENTITIES,
                                 .window = 4,
                                 .horizon = 2,
                                 .stride = 1,
                                 .min_history = 4,
                                 .fields = fields,
                                 .field_count = FIELDS,
                                 .fingerprint = {1, 2, 3}};
}

/* One sample as the definition reads: row by row. */
struct naive {
    const struct windows_entity *entity;
    uint64_t last, past, rows, future;
};

static uint64_t naive_list(const struct windows_spec *spec, struct naive *out)
{
    uint64_t count = 0;
    for (uint64_t e = 0; e < spec->entity_count; e++) {
        const struct windows_entity *entity = &spec->entities[e];
        uint64_t skip = 0;
        for (uint64_t t = entity->start; t < entity->end; t++) {
            uint64_t last_needed = spec->horizon ? t + spec->gap + spec->horizon : t;
            if (t - entity->start + 1 < spec->min_history || last_needed >= entity->end)
                continue;
            if (skip++ % spec->stride)
                continue;
            struct naive *one = &out[count++];
            *one = (struct naive){.entity = entity, .last = t, .future = t + spec->gap + 1};
            for (uint64_t row = entity->start; row <= t; row++) {
                if (t - row >= spec->window)
                    continue;
                if (one->rows++ == 0)
                    one->past = row;
            }
            assert_true(count < MOST);
        }
    }
    return count;
}

static void extent_is(const struct extent *extent, uint64_t offset, uint64_t length,
                      uint32_t object)
{
    assert_int_equal(extent->offset, offset);
    assert_int_equal(extent->length, length);
    assert_int_equal(extent->object, object);
}

static void sample_is(const struct windows_spec *spec, const struct naive *one,
                      const struct extent *got)
{
    uint64_t start = one->last + 1 - spec->window - one->entity->origin;
    extent_is(&got[0], one->past * 12, one->rows * 12, 0);
    extent_is(&got[1], one->future * 12, spec->horizon * 12, 0);
    extent_is(&got[2], one->last * 8, 8, 1);
    extent_is(&got[3], one->future * 8, spec->horizon * 8, 1);
    extent_is(&got[4], one->entity->number * 20, 20, 2);
    extent_is(&got[5], one->entity->number, 8, EXTENT_VALUE);
    extent_is(&got[6], start, 8, EXTENT_VALUE);
    extent_is(&got[7], one->rows, 8, EXTENT_VALUE);
}

static void key_is(const struct index *index, uint64_t sample, const struct windows_spec *spec,
                   const struct naive *one)
{
    char scratch[INDEX_KEY_SCRATCH], wanted[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    WORKS(index_key(index, sample, scratch, &key, NULL));
    int len = snprintf(wanted, sizeof(wanted), "%s:%lld", one->entity->name,
                       (long long)(one->last + 1 - spec->window - one->entity->origin));
    assert_int_equal(key.len, len);
    assert_memory_equal(key.data, wanted, key.len);
}

static uint64_t compare(const struct windows_spec *spec)
{
    static struct naive naive[MOST];
    static struct extent got[MOST * FIELDS];
    static uint64_t samples[MOST];
    static uint32_t found[MOST];
    struct stk_error err;
    struct index *index = NULL;
    uint64_t count = naive_list(spec, naive), runs;
    if (count == 0) {
        assert_int_equal(windows_index_new(&index, spec, &err), STK_USAGE);
        assert_null(index);
        return 0;
    }
    WORKS(windows_index_new(&index, spec, &err));
    assert_int_equal(index_samples(index), count);
    for (uint64_t i = 0; i < count; i++)
        samples[i] = (i * 7919) % count; /* shuffled, some twice */
    WORKS(index_resolve(index, samples, (uint32_t)count, got, &err));
    for (uint64_t i = 0; i < count; i++) {
        sample_is(spec, &naive[samples[i]], &got[i * FIELDS]);
        key_is(index, samples[i], spec, &naive[samples[i]]);
    }
    const struct windows_run *run = windows_index_runs(index, &runs);
    assert_int_equal(runs + windows_index_short(index), spec->entity_count);
    windows_index_find(index, samples, (uint32_t)count, found);
    for (uint64_t i = 0; i < count; i++) {
        const struct windows_run *own = &run[windows_index_run(index, i)];
        assert_int_equal(found[i], windows_index_run(index, samples[i]));
        assert_int_equal(own->entity, naive[i].entity->number);
        assert_true(own->first <= i && i - own->first < own->count);
        assert_int_equal(own->last_row + (i - own->first) * windows_index_stride(index),
                         naive[i].last);
    }
    index_close(index);
    return count;
}

static void every_option_gives_what_a_walk_over_the_rows_gives(void **state)
{
    (void)state;
    uint64_t total = 0;
    for (uint64_t window = 1; window <= 9; window += 2) {
        for (uint64_t horizon = 0; horizon <= 3; horizon++) {
            for (uint64_t gap = 0; gap <= 4; gap += 2) {
                for (uint64_t stride = 1; stride <= 11; stride += 5) {
                    for (uint64_t history = 1; history <= 13; history += 3) {
                        struct windows_spec spec = spec_new();
                        spec.window = window;
                        spec.horizon = horizon;
                        spec.gap = gap;
                        spec.stride = stride;
                        spec.min_history = history;
                        total += compare(&spec);
                    }
                }
            }
        }
    }
    assert_true(total > 1000);
}

static void many_entities_of_very_unequal_length_are_found(void **state)
{
    (void)state;
    static struct windows_entity many[700];
    uint64_t row = 0;
    for (uint64_t i = 0; i < 700; i++) { /* most have 4 rows, one has 1500, some are short */
        uint64_t rows = i == 350 ? 1500 : i % 7 == 3 ? 2 : 4 + i % 3;
        many[i] = (struct windows_entity){"e", i, row, row, row + rows};
        row += rows;
    }
    struct windows_spec spec = spec_new();
    spec.entities = many;
    spec.entity_count = 700;
    spec.window = spec.min_history = 3;
    spec.horizon = 1;
    assert_true(compare(&spec) > 2000);
}

static void entities_of_one_length_are_found(void **state)
{
    static struct windows_entity many[100];
    (void)state;
    for (uint64_t rows = 4; rows <= 40; rows++) {
        for (uint64_t last = 2; last <= rows + 2; last += rows - 2) { /* short, as long, longer */
            for (uint64_t i = 0; i < 100; i++)
                many[i] = (struct windows_entity){"e", i, i * rows, i * rows, (i + 1) * rows};
            many[99].end = 99 * rows + last;
            struct windows_spec spec = spec_new();
            spec.entities = many;
            spec.entity_count = 100;
            spec.window = spec.min_history = 3;
            spec.horizon = 1;
            spec.stride = 1 + rows % 2;
            assert_true(compare(&spec) >= 99);
        }
    }
}

/* Where the inverse of a length is least exact. */
static void long_entities_of_one_length_are_told_apart_at_their_ends(void **state)
{
    static const struct index_object large[] = {{"time.mmap", UINT64_MAX, 1}};
    static const struct windows_field time[] = {{"time", WINDOWS_LAST, 0, 1, {.dtype = STK_I8}}};
    static struct windows_entity many[7];
    (void)state;
    for (uint64_t rows = (UINT64_C(1) << 59) - 9; rows > 1; rows = rows / 3 + 1) {
        struct windows_spec spec = spec_new();
        struct index *index;
        for (uint64_t i = 0; i < 7; i++)
            many[i] = (struct windows_entity){"e", i, i * rows, i * rows, (i + 1) * rows};
        spec.objects = large;
        spec.object_count = 1;
        spec.entities = many;
        spec.entity_count = 7;
        spec.window = spec.min_history = 1;
        spec.horizon = 0;
        spec.fields = time;
        spec.field_count = 1;
        WORKS(windows_index_new(&index, &spec, NULL));
        for (uint64_t i = 0; i < 7; i++) {
            uint64_t ends[] = {i * rows, i * rows + 1, i * rows + rows / 2, (i + 1) * rows - 1};
            uint32_t found[4];
            windows_index_find(index, ends, 4, found);
            for (int k = 0; k < 4; k++)
                assert_int_equal(found[k], i);
        }
        index_close(index);
    }
}

static void the_index_answers_as_one_from_a_file_would(void **state)
{
    (void)state;
    struct windows_spec spec = spec_new();
    struct index *index;
    struct index_object object;
    struct stk_error err;
    WORKS(windows_index_new(&index, &spec, &err));
    assert_string_equal(index_format(index), "series");
    assert_string_equal(index_root(index), "/data/out");
    assert_string_equal(index_path(index), "/data/out/metadata.json");
    assert_int_equal(index_chunk_count(index), 0);
    assert_int_equal(index_class_count(index), 0);
    assert_null(index_class(index, 0));
    assert_int_equal(index_object_count(index), 3);
    WORKS(index_object(index, 1, &object, &err));
    assert_string_equal(object.name, "time.mmap");
    assert_true(object.size == UINT64_C(1) << 50 && object.version == 4);
    assert_int_equal(index_object(index, 3, &object, &err), STK_NOT_FOUND);
    assert_int_equal(index_field_count(index), FIELDS);
    assert_string_equal(index_field(index, 3)->name, "y_time");
    assert_int_equal(index_field(index, 0)->row.rank, 2);
    assert_int_equal(index_field(index, 0)->min_length, 48);
    assert_int_equal(index_field(index, 0)->max_length, 48);
    assert_true(index_field(index, 5)->is_value && !index_field(index, 1)->is_value);
    assert_true(index_size(index) > 0);
    WORKS(index_verify(index, &err));
    index_trim(index);
    assert_string_equal(index_field(index, 7)->name, "x_mask"); /* still there */
    struct extent got[FIELDS];
    char scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    uint64_t beyond = index_samples(index);
    assert_int_equal(index_resolve(index, &beyond, 1, got, &err), STK_NOT_FOUND);
    assert_int_equal(index_key(index, beyond, scratch, &key, &err), STK_NOT_FOUND);
    index_close(index);
}

static void padded_windows_tell_their_least_and_their_greatest_length(void **state)
{
    (void)state;
    struct windows_spec spec = spec_new();
    struct index *index;
    spec.window = 100; /* longer than any entity */
    spec.min_history = 3;
    spec.horizon = 0;
    WORKS(windows_index_new(&index, &spec, NULL));
    assert_int_equal(index_field(index, 0)->min_length, 3 * 12);
    assert_int_equal(index_field(index, 0)->max_length, 29 * 12);
    index_close(index);
}

static void a_trillion_windows_take_no_memory_of_their_own(void **state)
{
    (void)state;
    static const struct windows_entity huge[] = {
        {"one", 0, 0, 0, UINT64_C(500000000000)},
        {"two", 1, UINT64_C(500000000000), UINT64_C(500000000000), UINT64_C(1000000000100)}};
    struct windows_spec spec = spec_new();
    struct index *index;
    struct extent got[FIELDS];
    spec.entities = huge;
    spec.entity_count = 2;
    WORKS(windows_index_new(&index, &spec, NULL));
    uint64_t count = index_samples(index), last = count - 1;
    assert_int_equal(count, UINT64_C(1000000000100) - 2 * 5);
    assert_true(index_size(index) < 4096);
    WORKS(index_resolve(index, &last, 1, got, NULL));
    extent_is(&got[0], (UINT64_C(1000000000100) - 2 - 4) * 12, 48, 0);
    extent_is(&got[1], (UINT64_C(1000000000100) - 2) * 12, 24, 0);
    extent_is(&got[6], UINT64_C(500000000100) - 6, 8, EXTENT_VALUE);
    index_close(index);
}

static void a_window_that_no_entity_can_hold_names_the_longest(void **state)
{
    (void)state;
    struct windows_spec spec = spec_new();
    struct index *index = (struct index *)&spec;
    struct stk_error err;
    spec.min_history = 30;
    assert_int_equal(windows_index_new(&index, &spec, &err), STK_USAGE);
    assert_null(index);
    assert_non_null(strstr(err.what, "32 rows"));
    assert_non_null(strstr(err.what, "\xc3\xa9, has 29"));
    spec.entity_count = 0;
    assert_int_equal(windows_index_new(&index, &spec, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "no entity"));
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct index *index;
    struct stk_error err;
    const uint64_t wrong[][5] = {{0, 2, 1, 0, 4},          {4, 2, 0, 0, 4},
                                 {4, 2, 1, 0, 0},          {UINT64_MAX, 2, 1, 0, 4},
                                 {4, UINT64_MAX, 1, 0, 4}, {4, 2, UINT64_MAX, 0, 4},
                                 {4, 2, 1, UINT64_MAX, 4}, {4, 2, 1, 0, UINT64_MAX}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct windows_spec spec = spec_new();
        spec.window = wrong[i][0];
        spec.horizon = wrong[i][1];
        spec.stride = wrong[i][2];
        spec.gap = wrong[i][3];
        spec.min_history = wrong[i][4];
        assert_int_equal(windows_index_new(&index, &spec, &err), STK_USAGE);
        assert_null(index);
    }
    struct windows_spec spec = spec_new(); /* the largest legal numbers: too long, no overflow */
    spec.window = spec.horizon = spec.gap = spec.min_history = UINT64_C(1) << 62;
    assert_int_equal(windows_index_new(&index, &spec, &err), STK_USAGE);
    const struct windows_entity broken[] = {
        {"a", 0, 0, 5, 4}, {"b", 0, 6, 5, 9}, {"c", 0, 0, 0, UINT64_MAX}};
    for (size_t i = 0; i < 3; i++) {
        spec = spec_new();
        spec.entities = &broken[i];
        spec.entity_count = 1;
        assert_int_equal(windows_index_new(&index, &spec, &err), STK_CORRUPT);
        assert_null(index);
    }
}

static void an_array_that_is_too_short_is_found_before_any_sample(void **state)
{
    (void)state;
    struct index_object cut[] = {
        {"all_features.mmap", 115 * 12, 0}, {"time.mmap", 115 * 8, 0}, {"static.mmap", 7 * 20, 0}};
    struct windows_spec spec = spec_new();
    struct index *index;
    struct stk_error err;
    spec.objects = cut;
    WORKS(windows_index_new(&index, &spec, &err));
    index_close(index);
    for (int i = 0; i < 3; i++) {
        cut[i].size--;
        assert_int_equal(windows_index_new(&index, &spec, &err), STK_TRUNCATED);
        assert_null(index);
        assert_string_equal(err.object, cut[i].name);
        cut[i].size++;
    }
    struct windows_field wide = fields[0]; /* rows times bytes overflow */
    wide.row_bytes = UINT64_MAX / 4;
    spec.fields = &wide;
    spec.field_count = 1;
    assert_int_equal(windows_index_new(&index, &spec, &err), STK_TRUNCATED);
    wide = fields[0];
    wide.object = 3;
    assert_int_equal(windows_index_new(&index, &spec, &err), STK_CORRUPT);
    wide = fields[0];
    wide.shape.shape[0] = INT64_MAX;
    assert_int_equal(windows_index_new(&index, &spec, &err), STK_USAGE);
}

static void the_fingerprint_is_of_samples_and_not_of_fields(void **state)
{
    (void)state;
    uint8_t prints[9][16];
    for (int i = 0; i < 9; i++) {
        struct windows_spec spec = spec_new();
        struct windows_entity changed[ENTITIES];
        struct index *index;
        memcpy(changed, entities, sizeof(entities));
        spec.entities = changed;
        if (i == 1)
            spec.field_count = 2;
        else if (i == 2)
            spec.window = 5, spec.min_history = 4;
        else if (i == 3)
            spec.stride = 2;
        else if (i == 4)
            spec.gap = 1;
        else if (i == 5)
            spec.horizon = 1;
        else if (i == 6)
            spec.fingerprint[15] = 1;
        else if (i == 7)
            changed[0].name = "AAPM";
        else if (i == 8)
            changed[6].end--;
        WORKS(windows_index_new(&index, &spec, NULL));
        index_fingerprint(index, prints[i]);
        index_close(index);
    }
    assert_memory_equal(prints[0], prints[1], 16);
    for (int i = 2; i < 9; i++) {
        for (int k = 0; k < i; k++)
            assert_true((i == 1 && k == 0) || (k == 1) || memcmp(prints[i], prints[k], 16) != 0);
    }
}

static void a_long_name_gives_a_key_that_fits_and_stays_apart(void **state)
{
    (void)state;
    char name[400], scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    for (size_t i = 0; i < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    name[398] = '\0';
    struct windows_entity two[] = {{name, 41, 0, 0, 6}, {name, 42, 6, 6, 12}};
    struct windows_spec spec = spec_new();
    struct index *index;
    spec.entities = two;
    spec.entity_count = 2;
    WORKS(windows_index_new(&index, &spec, NULL));
    WORKS(index_key(index, 1, scratch, &key, NULL));
    assert_true(key.len < INDEX_KEY_SCRATCH);
    assert_memory_equal(key.data + key.len - 5, "~42:0", 5);
    assert_true((key.len - 5) % 2 == 0); /* cut between two characters */
    index_close(index);
}

static void each_entity_may_have_a_file_of_its_own(void **state)
{
    (void)state;
    static const struct index_object files[] = {{"a", 40, 1}, {"b", 6, 1}, {"c", 28, 1}};
    static const struct windows_field field = {
        "tokens", WINDOWS_FILE, 0, 2, {.dtype = STK_U16, .rank = 1, .shape = {5}}};
    /* c has a head of 4 rows, which belong to no window */
    static const struct windows_entity own[] = {
        {"a", 0, 0, 0, 20}, {"b", 1, 0, 0, 3}, {"c", 2, 4, 4, 14}};
    struct windows_spec spec = spec_new();
    spec.format = "tokens";
    spec.objects = files;
    spec.entities = own;
    spec.entity_count = 3;
    spec.window = spec.min_history = 5;
    spec.horizon = 0;
    spec.stride = 5;
    spec.fields = &field;
    spec.field_count = 1;
    struct index *index;
    struct extent extents[6];
    const uint64_t samples[] = {0, 1, 2, 3, 4, 5};
    WORKS(windows_index_new(&index, &spec, NULL));
    assert_string_equal(index_format(index), "tokens");
    assert_int_equal(index_samples(index), 6);
    assert_int_equal(windows_index_short(index), 1);
    WORKS(index_resolve(index, samples, 6, extents, NULL));
    for (uint32_t i = 0; i < 4; i++)
        extent_is(&extents[i], 10 * i, 10, 0);
    extent_is(&extents[4], 8, 10, 2);
    extent_is(&extents[5], 18, 10, 2);
    index_close(index);
    struct index_object cut[] = {files[0], files[1], {"c", 27, 1}};
    spec.objects = cut;
    assert_int_equal(windows_index_new(&index, &spec, NULL), STK_TRUNCATED);
    spec.object_count = 2;
    assert_int_equal(windows_index_new(&index, &spec, NULL), STK_CORRUPT);
}

static int create(void *user)
{
    struct windows_spec spec = spec_new();
    struct index *index;
    struct stk_error err;
    (void)user;
    stk_status status = windows_index_new(&index, &spec, &err);
    assert_true(status == STK_OK || status == STK_MEMORY);
    index_close(index);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(create, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_gives_what_a_walk_over_the_rows_gives),
        cmocka_unit_test(many_entities_of_very_unequal_length_are_found),
        cmocka_unit_test(entities_of_one_length_are_found),
        cmocka_unit_test(long_entities_of_one_length_are_told_apart_at_their_ends),
        cmocka_unit_test(the_index_answers_as_one_from_a_file_would),
        cmocka_unit_test(padded_windows_tell_their_least_and_their_greatest_length),
        cmocka_unit_test(a_trillion_windows_take_no_memory_of_their_own),
        cmocka_unit_test(a_window_that_no_entity_can_hold_names_the_longest),
        cmocka_unit_test(numbers_that_make_no_sense_are_refused),
        cmocka_unit_test(an_array_that_is_too_short_is_found_before_any_sample),
        cmocka_unit_test(the_fingerprint_is_of_samples_and_not_of_fields),
        cmocka_unit_test(a_long_name_gives_a_key_that_fits_and_stays_apart),
        cmocka_unit_test(each_entity_may_have_a_file_of_its_own),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
