/* test_dataset_open.c -- opening: which sources mean what, and values that come out as they were
 * put in. */
#include "dataset/fixture.h"

#include <sys/wait.h>

static void check_sample(struct stk_reader *reader, uint64_t position, int number)
{
    struct stk_value values[3];
    char text[32];
    read_or_fail(reader, position, values);
    assert_int_equal(values[0].kind, STK_KIND_TENSOR);
    assert_int_equal(values[0].tensor.rank, 1);
    assert_int_equal(values[0].tensor.shape[0], 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(((int32_t *)values[0].tensor.data)[i], number * 10 + i);
    assert_int_equal(values[1].kind, STK_KIND_INT);
    assert_int_equal(*(int64_t *)values[1].tensor.data, number % 3);
    snprintf(text, sizeof text, "text %d", number);
    assert_int_equal(values[2].kind, STK_KIND_TEXT);
    assert_int_equal(values[2].bytes.len, strlen(text));
    assert_memory_equal(values[2].bytes.data, text, strlen(text));
}

static void check_all(struct stk_dataset *dataset, int first, int count)
{
    struct stk_reader *reader;
    assert_int_equal(stk_dataset_samples(dataset), count);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    for (int i = 0; i < count; i++)
        check_sample(reader, (uint64_t)i, first + i);
    check_sample(reader, 0, first); /* and back */
    stk_reader_free(reader);
}

static void a_shard_gives_its_samples(void **state)
{
    char *path = path_of(*state, "a.tar");
    make_shard(path, 0, 20);
    struct stk_dataset *dataset = must_open(path, NULL);
    check_all(dataset, 0, 20);
    assert_int_equal(stk_dataset_field_count(dataset), 3);
    assert_string_equal(stk_dataset_field(dataset, 0)->name, "npy");
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.shape[0], 4);
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.dtype, STK_I32);
    assert_null(stk_dataset_field(dataset, 3));
    stk_dataset_close(dataset);
}

static void a_folder_of_shards_means_those_shards(void **state)
{
    make_shard(path_of(*state, "s-0.tar"), 0, 5);
    make_shard(path_of(*state, "s-1.tar"), 5, 5);
    make_file(path_of(*state, "metadata.parquet"), "PAR1", 4);
    struct stk_dataset *dataset = must_open(path_of(*state, ""), NULL);
    check_all(dataset, 0, 10);
    assert_int_equal(stk_dataset_object_count(dataset), 2);
    stk_dataset_close(dataset);
    dataset = must_open(path_of(*state, "s-{0..1}.tar"), NULL);
    check_all(dataset, 0, 10);
    stk_dataset_close(dataset);
}

static void keys_and_places_are_those_of_the_members(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct stk_bytes key;
    struct stk_place place;
    uint64_t position;
    make_shard(path, 0, 3);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_key(dataset, 2, &key, NULL), STK_OK);
    assert_int_equal(key.len, 6);
    assert_memory_equal(key.data, "000002", 6);
    assert_int_equal(stk_dataset_find(dataset, "000001", &position, NULL), STK_OK);
    assert_int_equal(position, 1);
    assert_int_equal(stk_dataset_find(dataset, "1", &position, NULL), STK_NOT_FOUND);
    assert_int_equal(stk_dataset_place(dataset, 0, 0, &place, NULL), STK_OK);
    assert_string_equal(place.object, path);
    assert_int_equal(place.offset, 512);
    assert_int_equal(place.length, 128 + 16);
    assert_int_equal(stk_dataset_key(dataset, 3, &key, NULL), STK_NOT_FOUND);
    stk_dataset_close(dataset);
}

static void loose_arrays_are_a_sample_each(void **state)
{
    uint8_t npy[1024];
    make_folder(path_of(*state, "loose"));
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "loose/%d.npy", i);
        make_file(path_of(*state, name), npy, make_npy(npy, i * 100, 6));
    }
    struct stk_dataset *dataset = must_open(path_of(*state, "loose"), NULL);
    struct stk_reader *reader;
    struct stk_value value;
    assert_int_equal(stk_dataset_samples(dataset), 3);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, 2, &value);
    assert_int_equal(value.tensor.shape[0], 6);
    assert_int_equal(*(int32_t *)value.tensor.data, 200);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    dataset = must_open(path_of(*state, "loose/*.npy"), NULL); /* several by glob: the same */
    assert_int_equal(stk_dataset_samples(dataset), 3);
    stk_dataset_close(dataset);
}

static void an_array_alone_is_its_rows(void **state)
{
    uint8_t npy[1024];
    char *path = path_of(*state, "rows.npy");
    struct stk_bytes key;
    make_file(path, npy, make_npy(npy, 40, 6));
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader;
    struct stk_value value;
    assert_int_equal(stk_dataset_samples(dataset), 6);
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.rank, 0);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, 5, &value);
    assert_int_equal(value.tensor.rank, 0);
    assert_int_equal(*(int32_t *)value.tensor.data, 45);
    assert_int_equal(stk_dataset_key(dataset, 5, &key, NULL), STK_OK);
    assert_int_equal(key.len, 1);
    assert_memory_equal(key.data, "5", 1);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void a_raw_array_is_read_by_its_dtype_and_shape(void **state)
{
    int16_t values[12];
    int64_t shape[] = {2, 2};
    char *path = path_of(*state, "x.bin");
    for (int i = 0; i < 12; i++)
        values[i] = (int16_t)(i * 3);
    make_file(path, values, sizeof values);
    struct stk_dataset_options options = {.dtype = "int16", .shape = shape, .rank = 2};
    struct stk_dataset *dataset = must_open(path, &options);
    struct stk_reader *reader;
    struct stk_value value;
    assert_int_equal(stk_dataset_samples(dataset), 3);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, 2, &value);
    assert_memory_equal(value.tensor.data, values + 8, 8);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void a_raw_layout_that_does_not_fit_is_refused(void **state) /* FAULTS 34 */
{
    char *path = path_of(*state, "x.bin");
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    int64_t shape[] = {2, 2}, none[] = {0}, negative[] = {-4}, huge[] = {INT64_MAX, INT64_MAX};
    make_file(path, "0123456789", 10);
    struct stk_dataset_options options = {.dtype = "f32", .shape = shape, .rank = 2};
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_CORRUPT);
    assert_string_equal(err.object, path);
    options = (struct stk_dataset_options){.dtype = "f32", .shape = none, .rank = 1};
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    options.shape = negative;
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    options = (struct stk_dataset_options){.dtype = "f32", .shape = huge, .rank = 2};
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    options = (struct stk_dataset_options){.dtype = "float33", .shape = shape, .rank = 1};
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    options = (struct stk_dataset_options){.format = "raw"};
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    assert_null(dataset);
}

static void class_folders_give_classes(void **state)
{
    struct stk_value values[2];
    struct stk_reader *reader;
    struct stk_bytes bytes;
    make_folder(path_of(*state, "set"));
    make_folder(path_of(*state, "set/dog"));
    make_folder(path_of(*state, "set/cat"));
    make_file(path_of(*state, "set/dog/1.txt"), "woof", 4);
    make_file(path_of(*state, "set/cat/1.txt"), "meow", 4);
    struct stk_dataset *dataset = must_open(path_of(*state, "set"), NULL);
    assert_int_equal(stk_dataset_class_count(dataset), 2);
    assert_string_equal(stk_dataset_class(dataset, 0), "cat");
    assert_string_equal(stk_dataset_class(dataset, 1), "dog");
    assert_null(stk_dataset_class(dataset, 2));
    assert_int_equal(stk_dataset_samples(dataset), 2);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, 1, values);
    assert_memory_equal(values[0].bytes.data, "woof", 4);
    assert_int_equal(*(int64_t *)values[1].tensor.data, 1);
    assert_int_equal(stk_reader_bytes(reader, 1, 1, &bytes, NULL), STK_OK); /* as text */
    assert_int_equal(bytes.len, 1);
    assert_memory_equal(bytes.data, "1", 1);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    const char *fields[] = {"txt", "cls=text"};
    struct stk_dataset_options options = {.fields = fields, .field_count = 2};
    assert_int_equal(open_with(&dataset, path_of(*state, "set"), &options, NULL), STK_USAGE);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void check_not_tar(const char *path, const void *data, size_t len, const char *words)
{
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    make_file(path, data, len);
    stk_status status = open_with(&dataset, path, NULL, &err);
    assert_true(status == STK_CORRUPT || status == STK_TRUNCATED);
    assert_null(dataset);
    assert_string_equal(err.object, path);
    if (!strstr(err.what, words))
        fail_msg("\"%s\" lacks \"%s\"", err.what, words);
}

static void what_is_not_tar_says_what_it_is(void **state) /* FAULTS 22 */
{
    static const char page[] = "\n<!DOCTYPE html><html><body>404 Not Found</body></html>";
    char *path = path_of(*state, "x.tar");
    uint8_t noise[4096];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    check_not_tar(path, page, sizeof page - 1, "not tar: it looks like an HTML page");
    check_not_tar(path, noise, sizeof noise, "not tar");
    check_not_tar(path, "\xff\xd8\xff\xe0 and so on", 14, "");
    check_not_tar(path, "", 0, "an empty file");
    check_not_tar(path, "{\"error\": 404}", 14, "JSON");
    check_not_tar(path, "PK\3\4", 4, "");
}

static void a_shard_that_is_not_tar_among_others_is_named(void **state)
{
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    make_shard(path_of(*state, "s-0.tar"), 0, 2);
    make_file(path_of(*state, "s-1.tar"), "<html></html>", 13);
    assert_int_equal(open_with(&dataset, path_of(*state, ""), NULL, &err), STK_CORRUPT);
    assert_non_null(strstr(err.object, "s-1.tar"));
}

static void sources_without_samples_say_so(void **state) /* FAULTS 103 */
{
    static const uint8_t zeros[10240];
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    char *path = path_of(*state, "empty.tar");
    make_file(path, zeros, sizeof zeros);
    assert_int_equal(open_with(&dataset, path, NULL, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.what, "holds no samples"));
    make_folder(path_of(*state, "nothing"));
    assert_int_equal(open_with(&dataset, path_of(*state, "nothing"), NULL, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.what, "holds no samples"));
}

static void one_sample_is_a_dataset(void **state) /* FAULTS 103 */
{
    make_shard(path_of(*state, "one.tar"), 7, 1);
    struct stk_dataset *dataset = must_open(path_of(*state, "one.tar"), NULL);
    check_all(dataset, 7, 1);
    stk_dataset_close(dataset);
}

static void a_field_twice_in_a_sample_is_refused(void **state) /* FAULTS 19 */
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    char *path = path_of(*state, "x.tar");
    tar_add_text(tar, "a.txt", "one");
    tar_add_text(tar, "b.txt", "one");
    tar_add_text(tar, "b.txt", "two");
    tar_write(tar, path);
    assert_int_equal(open_with(&dataset, path, NULL, &err), STK_CORRUPT);
    assert_string_equal(err.object, path);
    assert_string_equal(err.key, "b");
    assert_int_equal(err.offset, 2 * 1024); /* of the second header */
    free(tar);
}

static void a_file_of_no_format_asks_for_one(void **state)
{
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    make_file(path_of(*state, "x.dat"), "\1\2\3", 3);
    assert_int_equal(open_with(&dataset, path_of(*state, "x.dat"), NULL, &err), STK_UNSUPPORTED);
    struct stk_dataset_options options = {.format = "zip"};
    assert_int_equal(open_with(&dataset, path_of(*state, "x.dat"), &options, &err), STK_USAGE);
    assert_non_null(strstr(err.remedy, "tar"));
}

static void a_table_is_to_be_packed(void **state)
{
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    make_file(path_of(*state, "x.Parquet"), "PAR1\1\2\3", 7);
    assert_int_equal(open_with(&dataset, path_of(*state, "x.Parquet"), NULL, &err),
                     STK_UNSUPPORTED);
    assert_non_null(strstr(err.remedy, "stoker pack --to series"));
}

/* ---- the index ----------------------------------------------------------------------------- */

struct notes {
    char text[2048];
    int count, progress;
};

static void take_note(void *user, const char *text)
{
    struct notes *notes = user;
    notes->count++;
    snprintf(notes->text, sizeof notes->text, "%s", text);
}

static struct stk_dataset *open_noting(struct notes *notes, const char *source,
                                       const struct stk_dataset_options *options)
{
    struct stk_hooks hooks = {.user = notes, .notice = take_note};
    struct stk_context *context;
    struct stk_dataset *dataset = NULL;
    struct stk_error err = {0};
    notes->count = 0;
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    if (stk_dataset_open(context, &dataset, &source, 1, options, &err))
        fail_msg("%s (%s)", err.what, err.object);
    stk_context_free(context);
    return dataset;
}

static void the_index_is_kept_beside_the_data_and_used_again(void **state)
{
    struct notes notes;
    struct stat before, after;
    char kept[4096];
    make_shard(path_of(*state, "a.tar"), 0, 5);
    struct stk_dataset *dataset = open_noting(&notes, path_of(*state, "a.tar"), NULL);
    snprintf(kept, sizeof kept, "%s", stk_dataset_index_path(dataset));
    assert_non_null(strstr(kept, "/.stoker/"));
    assert_int_equal(stat(kept, &before), 0);
    stk_dataset_close(dataset);
    dataset = open_noting(&notes, path_of(*state, "a.tar"), NULL);
    assert_string_equal(stk_dataset_index_path(dataset), kept);
    assert_int_equal(stat(kept, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not written again */
    assert_int_equal(notes.count, 0);
    stk_dataset_close(dataset);
    struct stk_dataset_options options = {.reindex = 1};
    dataset = open_noting(&notes, path_of(*state, "a.tar"), &options);
    assert_int_equal(stat(kept, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    stk_dataset_close(dataset);
}

static void a_changed_shard_is_indexed_anew(void **state) /* FAULTS 76 */
{
    struct notes notes;
    char *path = path_of(*state, "a.tar");
    make_shard(path, 0, 5);
    stk_dataset_close(open_noting(&notes, path, NULL));
    assert_int_equal(unlink(path), 0);
    make_shard(path, 3, 5); /* as long as before */
    struct stk_dataset *dataset = open_noting(&notes, path, NULL);
    check_all(dataset, 3, 5);
    assert_int_equal(notes.count, 1);
    assert_non_null(strstr(notes.text, "a.tar changed"));
    stk_dataset_close(dataset);
}

static void a_shard_replaced_while_open_is_stale(void **state) /* FAULTS 76 */
{
    char *path = path_of(*state, "a.tar");
    struct stk_value values[3];
    struct stk_reader *reader;
    struct stk_error err = {0};
    const char *fields[] = {"txt"}; /* no tensor: opening reads nothing of the shard */
    struct stk_dataset_options options = {.fields = fields, .field_count = 1};
    make_shard(path, 0, 5);
    struct stk_dataset *dataset = must_open(path, &options);
    assert_int_equal(unlink(path), 0);
    make_shard(path, 3, 5);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    assert_int_equal(stk_reader_read(reader, 2, values, &err), STK_STALE);
    assert_string_equal(err.object, path);
    assert_int_equal(err.sample, 2);
    assert_string_equal(err.key, "000002");
    assert_string_equal(err.field, "txt");
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void a_file_more_or_less_in_a_folder_is_seen(void **state)
{
    struct notes notes;
    uint8_t npy[1024];
    char *folder = path_of(*state, "set");
    make_folder(folder);
    make_file(path_of(*state, "set/a.npy"), npy, make_npy(npy, 0, 4));
    make_file(path_of(*state, "set/a-1.npy"), npy, make_npy(npy, 0, 4)); /* list's order differs */
    make_file(path_of(*state, "set/README"), "no sample", 9);
    stk_dataset_close(open_noting(&notes, folder, NULL));
    stk_dataset_close(open_noting(&notes, folder, NULL));
    assert_int_equal(notes.count, 0);
    make_file(path_of(*state, "set/b.npy"), npy, make_npy(npy, 0, 4));
    struct stk_dataset *dataset = open_noting(&notes, folder, NULL);
    assert_int_equal(notes.count, 1);
    assert_int_equal(stk_dataset_samples(dataset), 3);
    stk_dataset_close(dataset);
    assert_int_equal(unlink(path_of(*state, "set/README")), 0);
    assert_int_equal(rename(path_of(*state, "set/b.npy"), path_of(*state, "set/c.npy")), 0);
    make_file(path_of(*state, "set/d.npy"), npy, make_npy(npy, 0, 4));
    dataset = open_noting(&notes, folder, NULL);
    assert_int_equal(notes.count, 1);
    assert_int_equal(stk_dataset_samples(dataset), 4);
    stk_dataset_close(dataset);
}

static void damage(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 0x55, file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_index_is_made_anew(void **state)
{
    static const long places[] = {0, 9, 100}; /* magic, version, header */
    struct notes notes;
    char kept[4096];
    make_shard(path_of(*state, "a.tar"), 0, 5);
    struct stk_dataset *dataset = must_open(path_of(*state, "a.tar"), NULL);
    snprintf(kept, sizeof kept, "%s", stk_dataset_index_path(dataset));
    stk_dataset_close(dataset);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        damage(kept, places[i]);
        dataset = open_noting(&notes, path_of(*state, "a.tar"), NULL);
        assert_int_equal(notes.count, 1);
        assert_non_null(strstr(notes.text, "made anew"));
        check_all(dataset, 0, 5);
        stk_dataset_close(dataset);
    }
    assert_int_equal(truncate(kept, 300), 0);
    dataset = open_noting(&notes, path_of(*state, "a.tar"), NULL);
    assert_int_equal(notes.count, 1);
    check_all(dataset, 0, 5);
    stk_dataset_close(dataset);
}

static void the_index_can_be_put_anywhere_but_not_over_data(void **state)
{
    struct notes notes;
    struct stk_error err = {0};
    struct stk_dataset *dataset;
    char *path = path_of(*state, "a.tar");
    struct stk_dataset_options options = {.index = path_of(*state, "sub/my.index")};
    make_shard(path, 0, 5);
    dataset = must_open(path, &options);
    assert_string_equal(stk_dataset_index_path(dataset), options.index);
    stk_dataset_close(dataset);
    damage(options.index, 100);
    stk_dataset_close(open_noting(&notes, path, &options));
    assert_int_equal(notes.count, 1);
    options.index = path_of(*state, "a.tar");
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    dataset = must_open(path, NULL);
    check_all(dataset, 0, 5); /* untouched */
    stk_dataset_close(dataset);
}

static void an_index_of_other_options_is_made_anew(void **state)
{
    char *path = path_of(*state, "x.bin");
    int64_t shape[] = {4};
    struct stk_dataset_options options = {
        .dtype = "u8", .shape = shape, .rank = 1, .index = path_of(*state, "i")};
    make_file(path, "0123456789ab", 12);
    struct stk_dataset *dataset = must_open(path, &options);
    assert_int_equal(stk_dataset_samples(dataset), 3);
    stk_dataset_close(dataset);
    shape[0] = 6;
    dataset = must_open(path, &options);
    assert_int_equal(stk_dataset_samples(dataset), 2);
    stk_dataset_close(dataset);
}

/* Root writes anywhere: there a file in the way of the folder stands for a read-only place. */
static void a_place_that_takes_no_index_sends_it_to_the_cache(void **state)
{
    struct fixture *fixture = *state;
    struct notes notes;
    make_shard(path_of(fixture, "a.tar"), 0, 5);
    make_file(path_of(fixture, ".stoker"), "", 0);
    struct stk_dataset *dataset = open_noting(&notes, path_of(fixture, "a.tar"), NULL);
    assert_int_equal(
        strncmp(stk_dataset_index_path(dataset), fixture->cache, strlen(fixture->cache)), 0);
    check_all(dataset, 0, 5);
    stk_dataset_close(dataset);
    dataset = open_noting(&notes, path_of(fixture, "a.tar"), NULL);
    assert_int_equal(notes.count, 0); /* found there again */
    stk_dataset_close(dataset);
}

static void an_index_that_can_be_kept_nowhere_serves_while_it_is_open(void **state)
{
    struct fixture *fixture = *state;
    struct notes notes;
    make_shard(path_of(fixture, "a.tar"), 0, 5);
    make_file(path_of(fixture, ".stoker"), "", 0);
    make_file(fixture->cache, "", 0);
    struct stk_dataset *dataset = open_noting(&notes, path_of(fixture, "a.tar"), NULL);
    assert_int_equal(notes.count, 1);
    assert_int_not_equal(access(stk_dataset_index_path(dataset), F_OK), 0);
    check_all(dataset, 0, 5);
    stk_dataset_close(dataset);
}

static void two_processes_may_build_one_index_at_once(void **state)
{
    char *path = path_of(*state, "a.tar");
    pid_t children[4];
    make_shard(path, 0, 50);
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            struct stk_dataset *dataset;
            stk_status status = open_with(&dataset, path, NULL, NULL);
            _exit(status || stk_dataset_samples(dataset) != 50);
        }
    }
    for (int i = 0; i < 4; i++) {
        int result;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    struct stk_dataset *dataset = must_open(path, NULL);
    check_all(dataset, 0, 50);
    stk_dataset_close(dataset);
}

static int stop_at_once(void *user, const struct stk_progress *progress)
{
    (void)user;
    (void)progress;
    return 1;
}

static void indexing_that_is_stopped_leaves_nothing_behind(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct stk_hooks hooks = {.progress = stop_at_once};
    struct stk_context *context;
    struct stk_dataset *dataset;
    const char *source = path;
    make_shard(path, 0, 5);
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    assert_int_equal(stk_dataset_open(context, &dataset, &source, 1, NULL, NULL), STK_CANCELLED);
    stk_context_free(context);
    assert_null(dataset);
    assert_int_not_equal(access(path_of(*state, ".stoker"), F_OK), 0);
    assert_int_not_equal(access(path_of(*state, ".cache"), F_OK), 0);
}

/* ---- fingerprints -------------------------------------------------------------------------- */

static void fingerprint_of(const char *source, uint8_t out[16])
{
    struct stk_dataset *dataset = must_open(source, NULL);
    stk_dataset_fingerprint(dataset, out);
    stk_dataset_close(dataset);
}

static void the_fingerprint_is_that_of_the_samples(void **state) /* FAULTS 102 */
{
    uint8_t one[16], again[16], two[16], reversed[16], moved[16];
    make_folder(path_of(*state, "here"));
    make_shard(path_of(*state, "here/s-0.tar"), 0, 5);
    make_shard(path_of(*state, "here/s-1.tar"), 5, 5);
    fingerprint_of(path_of(*state, "here/s-0.tar"), one);
    fingerprint_of(path_of(*state, "here/s-{0,1}.tar"), two);
    fingerprint_of(path_of(*state, "here/s-{1,0}.tar"), reversed);
    fingerprint_of(path_of(*state, "here"), again);
    assert_memory_not_equal(one, two, 16);
    assert_memory_not_equal(two, reversed, 16);
    assert_memory_equal(two, again, 16);
    assert_int_equal(rename(path_of(*state, "here"), path_of(*state, "there")), 0);
    fingerprint_of(path_of(*state, "there"), moved);
    assert_memory_equal(two, moved, 16);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_shard_gives_its_samples),
        WITH_FOLDER(a_folder_of_shards_means_those_shards),
        WITH_FOLDER(keys_and_places_are_those_of_the_members),
        WITH_FOLDER(loose_arrays_are_a_sample_each),
        WITH_FOLDER(an_array_alone_is_its_rows),
        WITH_FOLDER(a_raw_array_is_read_by_its_dtype_and_shape),
        WITH_FOLDER(a_raw_layout_that_does_not_fit_is_refused),
        WITH_FOLDER(class_folders_give_classes),
        WITH_FOLDER(what_is_not_tar_says_what_it_is),
        WITH_FOLDER(a_shard_that_is_not_tar_among_others_is_named),
        WITH_FOLDER(sources_without_samples_say_so),
        WITH_FOLDER(one_sample_is_a_dataset),
        WITH_FOLDER(a_field_twice_in_a_sample_is_refused),
        WITH_FOLDER(a_file_of_no_format_asks_for_one),
        WITH_FOLDER(a_table_is_to_be_packed),
        WITH_FOLDER(the_index_is_kept_beside_the_data_and_used_again),
        WITH_FOLDER(a_changed_shard_is_indexed_anew),
        WITH_FOLDER(a_shard_replaced_while_open_is_stale),
        WITH_FOLDER(a_file_more_or_less_in_a_folder_is_seen),
        WITH_FOLDER(a_damaged_index_is_made_anew),
        WITH_FOLDER(the_index_can_be_put_anywhere_but_not_over_data),
        WITH_FOLDER(an_index_of_other_options_is_made_anew),
        WITH_FOLDER(a_place_that_takes_no_index_sends_it_to_the_cache),
        WITH_FOLDER(an_index_that_can_be_kept_nowhere_serves_while_it_is_open),
        WITH_FOLDER(two_processes_may_build_one_index_at_once),
        WITH_FOLDER(indexing_that_is_stopped_leaves_nothing_behind),
        WITH_FOLDER(the_fingerprint_is_that_of_the_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
