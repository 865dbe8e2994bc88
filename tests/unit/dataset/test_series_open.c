/* test_series_open.c -- series: which folders are one, and every window against a naive walk. */
#include "dataset/series_fixture.h"

#include "base/memory.h"
#include "dataset/dataset_view.h"

static const struct plan usual = {
    .name = "usual",
    .columns = 3,
    .rows = {20, 7, 0, 33},
    .entities = 4,
    .statics = 2,
    .time = 1,
    .splits = 1,
    .more = ", \"sequence\": {\"window\": 5, \"horizon\": 2, \"stride\": 1, \"gap\": 0}",
};

/* ---- one opened series against the walk ---------------------------------------------------- */

struct wish {
    const char *const *features, *const *labels; /* NULL: the default */
    uint32_t x[8], x_count, y[8], y_count;       /* columns that come of it */
    struct naive_rule rule;
    int pad;
};

static double expected_value(const struct plan *plan, uint64_t row, uint32_t column)
{
    double value = plan_value(row, column);
    return plan->late ? (value - plan_center(column)) / plan_scale(column) : value;
}

static void check_x(const struct plan *plan, const struct wish *wish, const struct naive *naive,
                    const struct stk_value *x, const struct stk_value *mask)
{
    enum stk_dtype dtype = plan_dtype(plan);
    uint64_t size = stk_dtype_size(dtype), window = wish->rule.window;
    const uint8_t *at = x->tensor.data;
    assert_int_equal(x->tensor.rank, 2);
    assert_int_equal(x->tensor.shape[0], window);
    assert_int_equal(x->tensor.shape[1], wish->x_count);
    assert_int_equal(x->tensor.dtype, dtype);
    for (uint64_t i = 0; i < window; i++) {
        int there = naive->last + i + 1 >= naive->start + window;
        uint64_t row = naive->last + 1 + i - window;
        assert_int_equal(((const uint8_t *)mask->tensor.data)[i], there);
        for (uint32_t c = 0; c < wish->x_count; c++, at += size) {
            double expected = there ? expected_value(plan, row, wish->x[c]) : 0;
            assert_true(get_value(at, dtype) == expected);
        }
    }
}

static void check_y(const struct plan *plan, const struct wish *wish, const struct naive *naive,
                    const struct stk_value *y)
{
    enum stk_dtype dtype = plan_dtype(plan);
    const uint8_t *at = y->tensor.data;
    assert_int_equal(y->tensor.rank, wish->y_count == 1 ? 1 : 2);
    assert_int_equal(y->tensor.shape[0], wish->rule.horizon);
    for (uint64_t i = 0; i < wish->rule.horizon; i++)
        for (uint32_t c = 0; c < wish->y_count; c++, at += stk_dtype_size(dtype))
            assert_true(get_value(at, dtype) ==
                        expected_value(plan, naive->last + wish->rule.gap + 1 + i, wish->y[c]));
}

static int64_t number_of(const struct stk_value *value)
{
    int64_t number;
    memcpy(&number, value->tensor.data, sizeof number);
    return number;
}

static void check_sample(const struct plan *plan, const struct wish *wish,
                         const struct naive *naive, const struct stk_value *values)
{
    int64_t start = (int64_t)(naive->last + 1) - (int64_t)(wish->rule.window + naive->origin);
    check_x(plan, wish, naive, &values[0], &values[1]);
    assert_int_equal(number_of(&values[2]), naive->entity);
    assert_int_equal(number_of(&values[3]), start);
    assert_int_equal(number_of(&values[4]), plan_time(naive->last));
    const float *table = values[5].tensor.data;
    for (uint32_t i = 0; i < plan->statics; i++)
        assert_true(table[i] == (float)(naive->entity * plan->statics + i) + 0.5f);
    if (!wish->rule.horizon)
        return;
    check_y(plan, wish, naive, &values[6]);
    const int64_t *times = values[7].tensor.data;
    for (uint64_t i = 0; i < wish->rule.horizon; i++)
        assert_int_equal(times[i], plan_time(naive->last + wish->rule.gap + 1 + i));
}

static uint32_t list_length(const char *const *names)
{
    uint32_t count = 0;
    while (names && names[count])
        count++;
    return count;
}

static struct stk_dataset *open_wish(const char *folder, const struct wish *wish)
{
    static const char *const fields[] = {"x",    "x_mask", "entity", "start",
                                         "time", "static", "y",      "y_time"};
    static const char *const splits[] = {NULL, "train", "val"};
    struct stk_window_options window = {
        .window = wish->rule.window,
        .horizon = wish->rule.horizon,
        .stride = wish->rule.stride,
        .gap = wish->rule.gap,
        .min_history = wish->rule.history,
        .pad = wish->pad,
        .split = splits[wish->rule.split + 1],
        .features = wish->features,
        .feature_count = list_length(wish->features),
        .labels = wish->labels,
        .label_count = list_length(wish->labels),
    };
    struct stk_dataset_options options = {
        .fields = fields, .field_count = wish->rule.horizon ? 8 : 6, .window = &window};
    return must_open(folder, &options);
}

static void compare_with_walk(const struct fixture *fixture, const struct plan *plan,
                              const struct wish *wish)
{
    struct naive *naive;
    uint64_t count = naive_windows(plan, &wish->rule, &naive);
    struct stk_dataset *dataset = open_wish(path_of(fixture, plan->name), wish);
    struct stk_reader *reader;
    assert_int_equal(stk_dataset_samples(dataset), count);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    for (uint64_t i = 0; i < count; i++) {
        struct stk_value values[8];
        char key[64];
        uint64_t found;
        read_or_fail(reader, i, values);
        check_sample(plan, wish, &naive[i], values);
        snprintf(key, sizeof key, "e%u:%lld", naive[i].entity, (long long)number_of(&values[3]));
        assert_int_equal(stk_dataset_find(dataset, key, &found, NULL), STK_OK);
        assert_int_equal(found, i);
    }
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    free(naive);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void windows_are_those_of_a_naive_walk(void **state)
{
    const struct fixture *fixture = *state;
    static const uint64_t windows[] = {1, 5, 20}, horizons[] = {0, 1, 3}, strides[] = {1, 2, 7},
                          gaps[] = {0, 2};
    make_series(fixture, &usual);
    for (uint32_t i = 0; i < 3 * 3 * 3 * 2 * 3; i++) {
        struct wish wish = {.x = {0, 1, 2}, .x_count = 3, .y = {0}, .y_count = 1};
        uint64_t window = windows[i % 3];
        wish.rule =
            (struct naive_rule){window, horizons[i / 3 % 3], strides[i / 9 % 3], gaps[i / 27 % 2],
                                window, (int)(i / 54) - 1};
        if (window == 20 && wish.rule.split >= 0)
            continue; /* longer than any part */
        compare_with_walk(fixture, &usual, &wish);
    }
}

static void short_histories_are_padded_in_front(void **state)
{
    const struct fixture *fixture = *state;
    static const uint64_t histories[] = {1, 3, 5, 9};
    make_series(fixture, &usual);
    for (uint32_t i = 0; i < 8; i++) {
        struct wish wish = {.x = {0, 1, 2}, .x_count = 3, .y = {0}, .y_count = 1, .pad = 1};
        wish.rule = (struct naive_rule){5, 1, 1 + i / 4, 0, histories[i % 4], (int)(i % 3) - 1};
        compare_with_walk(fixture, &usual, &wish);
    }
}

static void every_type_is_read_stored_and_late(void **state)
{
    const struct fixture *fixture = *state;
    static const enum stk_dtype dtypes[] = {STK_F32, STK_F16, STK_BF16, STK_F64};
    static const char *const features[] = {"c", "a", NULL}, *const labels[] = {"b", "d", NULL};
    for (uint32_t i = 0; i < 16; i++) {
        char name[32];
        struct plan plan = usual;
        snprintf(name, sizeof name, "typed%u", i);
        plan.name = name;
        plan.columns = 4;
        plan.has_dtype = 1;
        plan.dtype = dtypes[i % 4];
        plan.late = i / 4 % 2;
        make_series(fixture, &plan);
        struct wish wish = {.x = {0, 1, 2, 3}, .x_count = 4, .y = {0}, .y_count = 1};
        struct wish some = {features, labels, .x = {2, 0}, .x_count = 2, .y = {1, 3}, .y_count = 2};
        wish.rule = some.rule = (struct naive_rule){4, 2, 3, 1, 4, -1};
        compare_with_walk(fixture, &plan, i / 8 ? &some : &wish);
    }
}

static void labels_that_are_no_features_are_not_in_x(void **state)
{
    const struct fixture *fixture = *state;
    struct plan plan = usual;
    plan.features = 2;
    plan.labels = "[\"c\"]";
    make_series(fixture, &plan);
    struct wish wish = {.x = {0, 1}, .x_count = 2, .y = {2}, .y_count = 1};
    wish.rule = (struct naive_rule){5, 1, 1, 0, 5, -1};
    compare_with_walk(fixture, &plan, &wish);
    struct stk_dataset *dataset = must_open(path_of(fixture, plan.name), NULL);
    assert_int_equal(stk_dataset_series(dataset)->features.count, 2);
    assert_string_equal(stk_dataset_series(dataset)->labels.columns[0], "c");
    stk_dataset_close(dataset);
}

static void a_folder_its_metadata_and_the_format_all_mean_a_series(void **state)
{
    const struct fixture *fixture = *state;
    struct stk_dataset_options forced = {.format = "series"}, folder = {.format = "folder"};
    char uri[4200];
    make_series(fixture, &usual);
    snprintf(uri, sizeof uri, "file://%s", series_path(fixture, &usual, SERIES_METADATA));
    const char *sources[] = {path_of(fixture, "usual"),
                             path_of(fixture, "usual/"),
                             series_path(fixture, &usual, SERIES_METADATA),
                             uri,
                             path_of(fixture, "us*l"),
                             path_of(fixture, "{usual}")};
    for (int i = 0; i < 6; i++) {
        struct stk_dataset *dataset = must_open(sources[i < 5 ? i : 0], i == 5 ? &forced : NULL);
        assert_non_null(stk_dataset_series(dataset));
        assert_string_equal(stk_dataset_index_path(dataset),
                            series_path(fixture, &usual, SERIES_METADATA));
        stk_dataset_close(dataset);
    }
    struct stk_dataset *files = must_open(sources[0], &folder);
    assert_null(stk_dataset_series(files));
    assert_int_equal(dataset_time_object(files), UINT32_MAX);
    stk_dataset_close(files);
}

static void the_metadata_says_what_is_not_asked_for(void **state)
{
    const struct fixture *fixture = *state;
    make_series(fixture, &usual);
    struct stk_dataset *dataset = must_open(path_of(fixture, "usual"), NULL);
    const struct stk_series_info *info = stk_dataset_series(dataset);
    static const char *const names[] = {"x", "y", "static"};
    assert_int_equal(stk_dataset_field_count(dataset), 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(stk_dataset_field(dataset, i)->name, names[i]);
    assert_int_equal(info->window, 5);
    assert_int_equal(info->horizon, 2);
    assert_int_equal(info->min_history, 5);
    assert_int_equal(info->rows, 60);
    assert_int_equal(info->entity_count, 4);
    assert_int_equal(info->short_entities, 1);
    assert_int_equal(info->split_count, 2);
    assert_null(info->split);
    assert_string_equal(info->splits[1], "val");
    assert_string_equal(info->time_unit, "s");
    assert_string_equal(info->features.kind, "standard");
    assert_int_equal(info->features.count, 3);
    assert_true(info->features.center[2] == plan_center(2));
    assert_true(info->labels.scale[0] == plan_scale(0));
    assert_int_equal(info->static_count, 2);
    assert_int_equal(stk_dataset_samples(dataset), 14 + 1 + 27);
    stk_dataset_close(dataset);
}

static void rows_that_lie_right_are_taken_as_they_lie(void **state)
{
    const struct fixture *fixture = *state;
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window};
    make_series(fixture, &usual);
    struct stk_dataset *plain = must_open(path_of(fixture, "usual"), &options);
    assert_null(dataset_field(plain, 0)->gather);
    assert_true(dataset_field(plain, 0)->plain);
    assert_int_equal(dataset_field(plain, 0)->payload, 5 * 3 * 4);
    assert_int_equal(dataset_field(plain, 0)->min_length, 5 * 3 * 4);
    assert_non_null(dataset_field(plain, 1)->gather); /* one column of three */
    assert_int_equal(dataset_field(plain, 1)->payload, 2 * 4);
    assert_int_equal(dataset_field(plain, 1)->max_length, 2 * 3 * 4);
    stk_dataset_close(plain);
    window.pad = 1;
    struct stk_dataset *padded = must_open(path_of(fixture, "usual"), &options);
    assert_non_null(dataset_field(padded, 0)->gather);
    assert_int_equal(dataset_field(padded, 0)->min_length, 3 * 4);
    assert_string_equal(stk_dataset_field(padded, 2)->name, "x_mask");
    assert_true(dataset_field(padded, 2)->is_mask);
    stk_dataset_close(padded);
}

static void fields_come_in_the_order_asked_for(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const names[] = {"time",   "nothing?",   "y=tensor",
                                        "what;x", "entity=int", "static?"};
    struct stk_dataset_options options = {.fields = names, .field_count = 6};
    struct stk_value values[6];
    struct stk_reader *reader;
    struct plan plan = usual;
    plan.statics = 0;
    make_series(fixture, &plan);
    struct stk_dataset *dataset = must_open(path_of(fixture, "usual"), &options);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, 3, values);
    assert_int_equal(number_of(&values[0]), plan_time(7));
    assert_false(values[1].present);
    assert_true(get_value(values[2].tensor.data, STK_F32) == plan_value(8, 0));
    assert_true(get_value(values[3].tensor.data, STK_F32) == plan_value(3, 0));
    assert_int_equal(number_of(&values[4]), 0);
    assert_false(values[5].present);
    assert_string_equal(stk_dataset_field(dataset, 3)->name, "what;x");
    assert_int_equal(dataset_time_object(dataset), 1);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void a_folder_made_by_hand_needs_little(void **state)
{
    const struct fixture *fixture = *state;
    float data[40];
    struct stk_value values[2];
    struct stk_reader *reader;
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window};
    for (int i = 0; i < 40; i++)
        data[i] = (float)i;
    make_folder(path_of(fixture, "hand"));
    make_file(path_of(fixture, "hand/all_features.mmap"), data, sizeof data);
    static const char *const texts[] = {
        "{\"features\": [\"p\", \"q\"], \"entities\": {\"A\": [0, 12], \"B\": [12, 20]}}",
        "{\"feature_cols\": [\"p\", \"q\"], \"seq_len\": 4, \"entities\": "
        "{\"A\": {\"start\": 0, \"end\": 12}, \"B\": {\"start\": 12, \"end\": 20}}}",
    };
    window.window = 4;
    for (int i = 0; i < 2; i++) {
        make_file(path_of(fixture, "hand/metadata.json"), texts[i], strlen(texts[i]));
        struct stk_dataset *dataset = must_open(path_of(fixture, "hand"), i ? NULL : &options);
        assert_int_equal(stk_dataset_samples(dataset), 8 + 4);
        assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
        read_or_fail(reader, 8, values);
        assert_memory_equal(values[0].tensor.data, data + 24, 8 * sizeof *data);
        assert_true(*(const float *)values[1].tensor.data == 32);
        stk_reader_free(reader);
        stk_dataset_close(dataset);
    }
}

static void entities_and_places_are_told(void **state)
{
    const struct fixture *fixture = *state;
    const char *name;
    uint64_t start, end;
    struct stk_place place;
    struct stk_error err;
    make_series(fixture, &usual);
    struct stk_dataset *dataset = must_open(path_of(fixture, "usual"), NULL);
    assert_int_equal(stk_dataset_entity(dataset, 3, &name, &start, &end, &err), STK_OK);
    assert_string_equal(name, "e3");
    assert_int_equal(start, 27);
    assert_int_equal(end, 60);
    assert_int_equal(stk_dataset_entity(dataset, 4, &name, &start, &end, &err), STK_NOT_FOUND);
    assert_int_equal(stk_dataset_place(dataset, 15, 0, &place, &err), STK_OK); /* e3:0 */
    assert_string_equal(place.object, series_path(fixture, &usual, SERIES_ARRAY));
    assert_int_equal(place.offset, 27 * 12);
    assert_int_equal(place.length, 5 * 12);
    assert_int_equal(stk_dataset_place(dataset, 15, 1, &place, &err), STK_OK);
    assert_int_equal(place.offset, 32 * 12);
    stk_dataset_close(dataset);
}

static void keys_are_found_in_subsets_and_not_where_there_are_none(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const none[] = {
        "e0:16", "e0:-1", "e2:0", "e9:0", "e0", "", ":", "e0:x", "e0:99999999999999999999",
        "e0:+1", "e0:01"};
    static const uint64_t listed[] = {9, 3, 3, 7};
    double shares[] = {0.5, 0.5};
    struct stk_dataset *split, *list;
    uint64_t position, sample;
    struct stk_error err;
    make_series(fixture, &usual);
    struct stk_dataset *dataset = must_open(path_of(fixture, "usual"), NULL);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(stk_dataset_find(dataset, none[i], &position, &err), STK_NOT_FOUND);
    assert_int_equal(stk_dataset_split(dataset, &split, shares, 2, 1, 5, &err), STK_OK);
    assert_int_equal(stk_dataset_select(split, &list, listed, 4, &err), STK_OK);
    for (uint64_t i = 0; i < stk_dataset_samples(split); i++) {
        struct stk_bytes key;
        char text[64];
        assert_int_equal(stk_dataset_key(split, i, &key, &err), STK_OK);
        snprintf(text, sizeof text, "%.*s", (int)key.len, (const char *)key.data);
        assert_int_equal(stk_dataset_find(split, text, &position, &err), STK_OK);
        assert_int_equal(position, i);
        uint64_t first = i == 9 ? 0 : i == 3 ? 1 : i == 7 ? 3 : STK_NOWHERE;
        assert_int_equal(stk_dataset_find(list, text, &position, &err),
                         first == STK_NOWHERE ? STK_NOT_FOUND : STK_OK);
        assert_int_equal(position, first);
        assert_int_equal(stk_dataset_sample(split, i, &sample, &err), STK_OK);
        assert_int_equal(stk_dataset_find(dataset, text, &position, &err), STK_OK);
        assert_int_equal(position, sample);
    }
    stk_dataset_close(list);
    stk_dataset_close(split);
    stk_dataset_close(dataset);
}

static void fingerprint_of(const char *folder, const struct stk_window_options *window,
                           const char *field, uint8_t out[16])
{
    const char *fields[] = {"x", field};
    struct stk_dataset_options options = {
        .window = window, .fields = field ? fields : NULL, .field_count = field ? 2 : 0};
    struct stk_dataset *dataset = must_open(folder, &options);
    stk_dataset_fingerprint(dataset, out);
    stk_dataset_close(dataset);
}

static void the_fingerprint_is_of_data_and_windows_not_of_fields_or_places(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const feature[] = {"b"}, *const label[] = {"b"};
    struct stk_window_options base = STK_WINDOW_DEFAULTS, others[8];
    uint8_t first[16], other[16];
    struct plan moved = usual, changed = usual;
    make_series(fixture, &usual);
    moved.name = "moved";
    make_series(fixture, &moved);
    fingerprint_of(path_of(fixture, "usual"), &base, NULL, first);
    fingerprint_of(path_of(fixture, "moved"), NULL, NULL, other);
    assert_memory_equal(first, other, 16);
    fingerprint_of(path_of(fixture, "usual"), &base, "entity", other);
    assert_memory_equal(first, other, 16);
    for (int i = 0; i < 8; i++)
        others[i] = base;
    others[0].window = 4;
    others[1].horizon = 1;
    others[2].stride = 2;
    others[3].gap = 1;
    others[4].pad = 1;
    others[5].split = "train";
    others[6].features = feature;
    others[6].feature_count = 1;
    others[7].labels = label;
    others[7].label_count = 1;
    for (int i = 0; i < 8; i++) {
        fingerprint_of(path_of(fixture, "usual"), &others[i], NULL, other);
        assert_memory_not_equal(first, other, 16);
    }
    changed.name = "changed";
    changed.late = 1;
    make_series(fixture, &changed);
    fingerprint_of(path_of(fixture, "changed"), NULL, NULL, other);
    assert_memory_not_equal(first, other, 16);
}

static void bytes_are_those_of_the_value(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const names[] = {"x", "y", "x_mask", "entity", "time"};
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.fields = names, .field_count = 5, .window = &window};
    struct stk_reader *reader;
    struct stk_value values[5];
    window.pad = 1;
    make_series(fixture, &usual);
    struct stk_dataset *dataset = must_open(path_of(fixture, "usual"), &options);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    for (uint32_t f = 0; f < 5; f++) {
        struct stk_bytes bytes;
        uint8_t copy[256];
        assert_int_equal(stk_reader_bytes(reader, 1, f, &bytes, NULL), STK_OK);
        assert_true(bytes.len <= sizeof copy);
        memcpy(copy, bytes.data, bytes.len);
        size_t len = bytes.len;
        read_or_fail(reader, 1, values);
        if (f == 3) { /* a number is told in digits */
            assert_int_equal(len, 1);
            assert_int_equal(copy[0], '0');
            continue;
        }
        assert_int_equal(len, stk_tensor_size(&values[f].tensor));
        assert_memory_equal(copy, values[f].tensor.data, len);
    }
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

/* Keys of long names are cut, and told apart by the entity's number. */
static void long_names_are_found_by_their_keys(void **state)
{
    const struct fixture *fixture = *state;
    char name[401], text[2048], key[INDEX_KEY_SCRATCH + 1];
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window};
    float data[40] = {0};
    memset(name, 'n', 400);
    name[400] = 0;
    snprintf(text, sizeof text,
             "{\"features\": [\"v\"], \"entities\": {\"%sA\": [0, 20], \"%sB\": [20, 40]}}", name,
             name);
    make_folder(path_of(fixture, "long"));
    make_file(path_of(fixture, "long/all_features.mmap"), data, sizeof data);
    make_file(path_of(fixture, "long/metadata.json"), text, strlen(text));
    window.window = 5;
    struct stk_dataset *dataset = must_open(path_of(fixture, "long"), &options);
    for (uint64_t i = 0; i < stk_dataset_samples(dataset); i++) {
        struct stk_bytes own;
        uint64_t found;
        assert_int_equal(stk_dataset_key(dataset, i, &own, NULL), STK_OK);
        snprintf(key, sizeof key, "%.*s", (int)own.len, (const char *)own.data);
        assert_int_equal(stk_dataset_find(dataset, key, &found, NULL), STK_OK);
        assert_int_equal(found, i);
    }
    stk_dataset_close(dataset);
}

static int open_and_read(void *user)
{
    const char *source = user;
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window};
    struct stk_dataset *dataset = NULL;
    struct stk_reader *reader = NULL;
    struct stk_value values[4];
    struct stk_error err = {0};
    window.pad = 1;
    stk_status status = open_with(&dataset, source, &options, &err);
    if (!status)
        status = stk_reader_new(dataset, &reader, &err);
    if (!status)
        status = stk_reader_read(reader, 2, values, &err);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static int fail_nth(void *user, size_t size)
{
    (void)size;
    return --*(long *)user == 0;
}

static void running_out_of_memory_is_told(void **state)
{
    const struct fixture *fixture = *state;
    char source[4096];
    make_series(fixture, &usual);
    snprintf(source, sizeof source, "%s", path_of(fixture, "usual"));
    for (long n = 1, left = 0; left <= 0; n++) {
        left = n;
        memory_set_hook(fail_nth, &left);
        int good = open_and_read(source);
        memory_set_hook(NULL, NULL);
        assert_true(n < 10000);
        if (left > 0)
            assert_true(good);
    }
}

/* 10^12 rows in a sparse file: nothing is kept for a window, and no number overflows. */
static void a_million_million_windows_are_opened_and_found(void **state)
{
    const struct fixture *fixture = *state;
    const uint64_t rows = UINT64_C(1000000000000);
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window};
    double shares[] = {0.25, 0.75};
    struct stk_dataset *part;
    struct stk_reader *reader;
    struct stk_value values[2];
    struct stk_place place;
    uint64_t position, sample;
    char text[256];
    make_folder(path_of(fixture, "vast"));
    make_file(path_of(fixture, "vast/all_features.mmap"), "", 0);
    if (truncate(path_of(fixture, "vast/all_features.mmap"), (off_t)(rows * 2)))
        skip(); /* this file system has no such files */
    snprintf(text, sizeof text,
             "{\"features\": [\"v\"], \"dtype\": \"float16\", \"entities\": {\"A\": [0, 7], "
             "\"B:C\": [7, %llu]}}",
             (unsigned long long)rows);
    make_file(path_of(fixture, "vast/metadata.json"), text, strlen(text));
    window.window = 60;
    struct stk_dataset *dataset = must_open(path_of(fixture, "vast"), &options);
    uint64_t last = rows - 7 - 60 - 1;
    assert_int_equal(stk_dataset_samples(dataset), last + 1);
    snprintf(text, sizeof text, "B:C:%llu", (unsigned long long)last);
    assert_int_equal(stk_dataset_find(dataset, text, &position, NULL), STK_OK);
    assert_int_equal(position, last);
    assert_int_equal(stk_dataset_place(dataset, last, 0, &place, NULL), STK_OK);
    assert_int_equal(place.offset, (rows - 61) * 2);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, last, values);
    stk_reader_free(reader);
    assert_int_equal(stk_dataset_split(dataset, &part, shares, 2, 1, 9, NULL), STK_OK);
    assert_int_equal(stk_dataset_sample(part, 123456789, &sample, NULL), STK_OK);
    snprintf(text, sizeof text, "B:C:%llu", (unsigned long long)sample);
    assert_int_equal(stk_dataset_find(part, text, &position, NULL), STK_OK);
    assert_int_equal(position, 123456789);
    stk_dataset_close(part);
    stk_dataset_close(dataset);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(windows_are_those_of_a_naive_walk),
        TEST(short_histories_are_padded_in_front),
        TEST(every_type_is_read_stored_and_late),
        TEST(labels_that_are_no_features_are_not_in_x),
        TEST(a_folder_its_metadata_and_the_format_all_mean_a_series),
        TEST(the_metadata_says_what_is_not_asked_for),
        TEST(rows_that_lie_right_are_taken_as_they_lie),
        TEST(fields_come_in_the_order_asked_for),
        TEST(a_folder_made_by_hand_needs_little),
        TEST(entities_and_places_are_told),
        TEST(keys_are_found_in_subsets_and_not_where_there_are_none),
        TEST(the_fingerprint_is_of_data_and_windows_not_of_fields_or_places),
        TEST(bytes_are_those_of_the_value),
        TEST(long_names_are_found_by_their_keys),
        TEST(running_out_of_memory_is_told),
        TEST(a_million_million_windows_are_opened_and_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
