/* Arrow arrays with numbers and contents from the input. Each buffer is as large as length and
 * offset promise (the C data interface says nothing else of sizes); all that can be checked is the
 * input's: counts, offsets of strings, views, indices, bitmaps, formats. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pack/series_ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COLUMNS 4
#define MAX_ROWS 64
#define MAX_BUFFERS 5

struct input {
    const uint8_t *data;
    size_t left;
};

static uint8_t take(struct input *input)
{
    if (!input->left)
        return 0;
    input->left--;
    return *input->data++;
}

/* Mostly as it should be; now and then what the input says. */
static int64_t bend(struct input *input, int64_t right)
{
    static const int64_t odd[] = {-1, -2, 0, 1, INT64_MAX, INT64_MIN, INT64_MAX / 16, 7};
    uint8_t choice = take(input);
    return choice < 0xE0 ? right : odd[choice & 7];
}

/* Heap memory of exactly so many bytes, filled from the input; small numbers are likely. */
static void *fill(struct input *input, size_t len)
{
    uint8_t *bytes = malloc(len ? len : 1);
    if (!bytes)
        abort();
    memset(bytes, 0, len);
    uint8_t step = take(input);
    for (size_t i = 0; i < len; i += (size_t)(step & 7) + 1)
        bytes[i] = take(input);
    return bytes;
}

static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < COLUMNS && schema->children; i++) {
        schema_release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    if (schema->dictionary)
        schema_release(schema->dictionary);
    free(schema->dictionary);
    free((char *)schema->format);
    schema->release = NULL;
}

static void schema_start(struct ArrowSchema *schema, struct input *input, const char *name)
{
    static const char *const formats[] = {"f", "g",   "l",  "c",       "C",    "S",   "b", "e",
                                          "u", "U",   "vu", "tss:UTC", "tsn:", "tdD", "L", "i",
                                          "s", "tdm", "n",  "d:5,2",   "+l",   "I"};
    memset(schema, 0, sizeof(*schema));
    uint8_t choice = take(input);
    const char *format = formats[choice % (sizeof(formats) / sizeof(formats[0]))];
    schema->format = strdup(format);
    if (choice > 0xF8)
        ((char *)schema->format)[0] = (char)(take(input) | 1);
    schema->name = name;
    schema->release = schema_release;
}

static void array_release(struct ArrowArray *array)
{
    struct ArrowArray *kept = array->private_data; /* as it was made, before it was bent */
    for (int64_t i = 0; i < MAX_BUFFERS; i++)
        free((void *)kept->buffers[i]);
    free(kept->buffers);
    for (int64_t i = 0; i < COLUMNS && kept->children; i++) {
        array_release(kept->children[i]);
        free(kept->children[i]);
    }
    free(kept->children);
    if (kept->dictionary)
        array_release(kept->dictionary);
    free(kept->dictionary);
    free(kept);
    array->release = NULL;
}

static size_t width(const char *format)
{
    switch (format[0]) {
    case 'c':
    case 'C':
    case 'b':
        return 1;
    case 's':
    case 'S':
    case 'e':
        return 2;
    case 'i':
    case 'I':
    case 'f':
    case 'u':
        return 4;
    case 'd': /* decimals of 128 bits */
    case 'v':
        return 16;
    default:
        return !strcmp(format, "tdD") ? 4 : 8;
    }
}

/* What a view may look into: the sizes are told truly, or a view outside would not be its fault. */
static void add_views(struct ArrowArray *array, struct input *input)
{
    int64_t size = 16 + take(input) % 32;
    array->buffers[2] = fill(input, (size_t)size);
    array->buffers[3] = malloc(sizeof(size));
    memcpy((void *)array->buffers[3], &size, sizeof(size));
    array->n_buffers = 4;
}

/* Strings by offsets have as many bytes as their last offset says, if it says so soundly. */
static void add_bytes(struct ArrowArray *array, struct input *input, const char *format,
                      int64_t rows)
{
    int64_t largest = 0;
    for (int64_t i = 0; i <= rows; i++) {
        int64_t wide = 0;
        int32_t narrow = 0;
        if (format[0] == 'u')
            memcpy(&narrow, (const char *)array->buffers[1] + i * 4, sizeof(narrow));
        else
            memcpy(&wide, (const char *)array->buffers[1] + i * 8, sizeof(wide));
        wide += narrow;
        largest = wide > largest ? wide : largest;
    }
    if (largest <= 1 << 16)
        array->buffers[2] = fill(input, (size_t)largest);
    array->n_buffers = 3;
}

static void array_start(struct ArrowArray *array, struct input *input, const char *format,
                        int64_t rows)
{
    int64_t offset = take(input) % 4;
    size_t elements = (size_t)(rows + offset + 1);
    struct ArrowArray *kept = calloc(1, sizeof(*kept));

    memset(array, 0, sizeof(*array));
    array->buffers = calloc(MAX_BUFFERS, sizeof(*array->buffers));
    array->length = rows;
    array->offset = offset;
    array->n_buffers = 2;
    array->release = array_release;
    array->private_data = kept;
    if (take(input) & 1) {
        array->buffers[0] = fill(input, elements / 8 + 1);
        array->null_count = -1;
    }
    array->buffers[1] = fill(input, elements * width(format));
    if (format[0] == 'u' || format[0] == 'U')
        add_bytes(array, input, format, rows + offset);
    else if (format[0] == 'v')
        add_views(array, input);
    *kept = *array;
}

/* Bends numbers; memory stays as it was made, and kept knows it. */
static void array_bend(struct ArrowArray *array, struct input *input)
{
    int64_t length = bend(input, array->length), offset = bend(input, array->offset);
    /* a smaller array is one as well; a larger one than there is memory cannot be told */
    if (length < 0 || length > INT64_MAX / 32 || length <= array->length)
        array->length = length;
    if (offset < 0 || offset > INT64_MAX / 32 || offset <= array->offset)
        array->offset = offset;
    array->null_count = bend(input, array->null_count);
    int64_t buffers = bend(input, array->n_buffers);
    array->n_buffers = buffers <= MAX_BUFFERS ? buffers : array->n_buffers;
}

struct source {
    struct input input;
    char formats[COLUMNS][16], words[COLUMNS][16];
    int tables;
};

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct source *source = stream->private_data;
    memset(out, 0, sizeof(*out));
    out->format = strdup("+s");
    out->release = schema_release;
    out->n_children = COLUMNS;
    out->children = calloc(COLUMNS, sizeof(*out->children));
    for (int i = 0; i < COLUMNS; i++) {
        struct ArrowSchema *child = out->children[i] = calloc(1, sizeof(*child));
        schema_start(child, &source->input, names[i]);
        source->words[i][0] = '\0';
        if (take(&source->input) > 0xB0) {
            child->dictionary = calloc(1, sizeof(*child));
            schema_start(child->dictionary, &source->input, "");
            snprintf(source->words[i], sizeof(source->words[i]), "%s", child->dictionary->format);
        }
        snprintf(source->formats[i], sizeof(source->formats[i]), "%s", child->format);
    }
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct source *source = stream->private_data;
    struct input *input = &source->input;
    memset(out, 0, sizeof(*out));
    if (!input->left)
        return 0;
    int64_t rows = take(input) % MAX_ROWS, first = take(input) % 3;
    array_start(out, input, "b", rows);
    out->n_buffers = 1;
    out->offset = first;
    out->n_children = COLUMNS;
    out->children = calloc(COLUMNS, sizeof(*out->children));
    ((struct ArrowArray *)out->private_data)->children = out->children;
    for (int i = 0; i < COLUMNS; i++) {
        struct ArrowArray *child = out->children[i] = calloc(1, sizeof(*child));
        array_start(child, input, source->formats[i], rows + first);
        if (source->words[i][0]) {
            child->dictionary = calloc(1, sizeof(*child));
            array_start(child->dictionary, input, source->words[i], take(input) % 8);
            array_bend(child->dictionary, input);
            ((struct ArrowArray *)child->private_data)->dictionary = child->dictionary;
        }
        array_bend(child, input);
    }
    array_bend(out, input);
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static stk_status next_table(void *user, struct ArrowArrayStream *stream, const char **name,
                             struct stk_error *err)
{
    struct source *source = user;
    (void)err;
    if (!source->input.left || source->tables++ == 3)
        return STK_END;
    *name = source->tables == 1 ? "one.csv" : source->tables == 2 ? "two.csv" : "three.csv";
    *stream =
        (struct ArrowArrayStream){get_schema, get_next, get_last_error, stream_release, source};
    return STK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {.input = {data, size}};
    uint8_t how = take(&source.input), more = take(&source.input);
    static const char *const features[] = {"a", "b"}, *const statics[] = {"b"};
    struct stk_series_options options = {.entity = how & 1 ? "c" : NULL,
                                         .time = how & 2 ? "d" : NULL,
                                         .features = how & 4 ? features : NULL,
                                         .feature_count = how & 4 ? (how & 8 ? 1 : 2) : 0,
                                         .statics = statics,
                                         .static_count = how & 8 ? 1 : 0,
                                         .missing = (enum stk_missing)(more % 5),
                                         .scaler = (enum stk_scaler_kind)(more / 5 % 4)};
    struct stk_tables tables = {.user = &source, .next = next_table};
    char memory[] = "/dev/shm/stoker-fuzz-XXXXXX", disk[] = "/tmp/stoker-fuzz-XXXXXX";
    char *folder = mkdtemp(memory);
    if (!folder)
        folder = mkdtemp(disk);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
    struct stk_error err;
    struct series_ingest ingest = {
        .options = &options, .folder_fd = fd, .label = "fuzz", .fit_all = how >> 7};
    if (fd < 0)
        abort();
    if (!series_ingest_run(&ingest, &tables, &err) && ingest.rows != row_spool_rows(ingest.spool))
        abort();
    series_ingest_reset(&ingest);
    close(fd);
    if (rmdir(folder)) /* something was left in it */
        abort();
    return 0;
}
