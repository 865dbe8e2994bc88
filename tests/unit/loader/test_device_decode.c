/* test_device_decode.c -- images that the device decodes, through the loader: on a GPU where there
 * is one, else on the simulated driver. The oracle is the loader without a device. */
#include <webp/encode.h>

#include "media_fixture.h"

#include "base/memory.h"
#include "gpu/gpu.h"
#include "loader/decode_share.h"
#include "loader/device_decode.h"
#include "loader/loader_impl.h"
#include "loader/ship_stage.h"
#include "pack/png_write.h"

/* Levels of 255 by which finished pixels may differ: by the decoder (nvjpeg_decoder.h) and by the
 * device's resampling. */
#define LEVELS 4
#define SIDE 24
#define ITEM (SIDE * SIDE * 3)
#define CHAIN "RandomResizedCrop(24) | RandomHorizontalFlip"

static const struct stk_field_chain crops = {"jpg", CHAIN};

/* --- a dataset of all sorts ------------------------------------------------------------------- */

enum sort { PLAIN, FULL, GREY, RESTARTS, PROGRESSIVE, CMYK, PNG, WEBP, SORTS };

static struct stk_bytes made_png(int width, int height)
{
    uint8_t *pixels = malloc((size_t)width * (size_t)height * 3);
    struct text text = {0};
    for (int y = 0; y < height; y++)
        made_row(pixels + y * width * 3, width, 3, y);
    struct png_picture picture = {pixels, (uint32_t)width, (uint32_t)height, 3};
    assert_int_equal(png_write(&picture, 1, &text, NULL), STK_OK);
    free(pixels);
    uint8_t *copy = malloc(text.len);
    memcpy(copy, text.data, text.len);
    struct stk_bytes bytes = {copy, text.len};
    text_free(&text);
    return bytes;
}

static struct stk_bytes made_webp(int width, int height)
{
    uint8_t *pixels = malloc((size_t)width * (size_t)height * 3), *data = NULL;
    for (int y = 0; y < height; y++)
        made_row(pixels + y * width * 3, width, 3, y);
    size_t len = WebPEncodeRGB(pixels, width, height, width * 3, 70, &data);
    uint8_t *copy = malloc(len);
    memcpy(copy, data, len);
    WebPFree(data);
    free(pixels);
    return (struct stk_bytes){copy, len};
}

static struct stk_bytes made_sort(enum sort sort, uint32_t number)
{
    struct jpeg_recipe recipe = {.width = 90 + (int)(number % 13),
                                 .height = 70 + (int)(number % 11),
                                 .h = sort == FULL ? 1 : 2,
                                 .v = sort == FULL ? 1 : 2,
                                 .restart = sort == RESTARTS ? 2 : 0,
                                 .progressive = sort == PROGRESSIVE,
                                 .quality = 60 + (int)(number % 30)};
    if (sort == PNG)
        return made_png(recipe.width, recipe.height);
    if (sort == WEBP)
        return made_webp(recipe.width, recipe.height);
    if (sort == GREY || sort == CMYK) {
        recipe.in = sort == GREY ? JCS_GRAYSCALE : JCS_CMYK;
        recipe.h = recipe.v = 0;
    }
    return jpeg_made(&recipe);
}

/* How each number's image is spoilt. */
enum spoil { SPOIL_NOT, SPOIL_END, SPOIL_TABLE };

struct sorts {
    uint32_t shards, each;
    const char *mode;                     /* gzopen's */
    enum sort (*sort)(uint32_t number);   /* NULL: PLAIN */
    enum spoil (*spoil)(uint32_t number); /* NULL: not */
};

static enum sort all_sorts(uint32_t number)
{
    return (enum sort)(number % SORTS);
}

/* More codes than bits allow in the first table: the header looks well, but nobody can decode it.
 */
static void spoil_table(uint8_t *data, size_t len)
{
    for (size_t at = 2; at + 21 < len; at += 2 + (size_t)(data[at + 2] << 8 | data[at + 3]))
        if (data[at + 1] == 0xc4) {
            memset(data + at + 5, 255, 16);
            return;
        }
}

static void add_sample(gzFile file, const struct sorts *sorts, uint32_t number)
{
    char name[64], text[32];
    struct stk_bytes bytes = made_sort(sorts->sort ? sorts->sort(number) : PLAIN, number);
    enum spoil spoil = sorts->spoil ? sorts->spoil(number) : SPOIL_NOT;
    if (spoil == SPOIL_TABLE)
        spoil_table((uint8_t *)(uintptr_t)bytes.data, bytes.len);
    snprintf(name, sizeof name, "%06u.jpg", number);
    fixture_member(file, name, bytes.data, spoil == SPOIL_END ? bytes.len / 2 : bytes.len);
    snprintf(name, sizeof name, "%06u.cls", number);
    snprintf(text, sizeof text, "%u", number);
    fixture_member(file, name, text, strlen(text));
    free((void *)(uintptr_t)bytes.data);
}

static void fixture_sorts(struct fixture *fixture, const struct sorts *sorts)
{
    char path[256], name[64], zeros[1024] = {0};
    const char *mode = sorts->mode ? sorts->mode : "wbT";
    fixture_folder(fixture);
    for (uint32_t s = 0; s < sorts->shards; s++) {
        snprintf(name, sizeof name, "shard-%04u.tar%s", s, strchr(mode, 'T') ? "" : ".gz");
        fixture_path(fixture, name, path, sizeof path);
        gzFile file = gzopen(path, mode);
        assert_non_null(file);
        for (uint32_t i = s * sorts->each; i < (s + 1) * sorts->each; i++)
            add_sample(file, sorts, i);
        gzwrite(file, zeros, 1024);
        gzclose(file);
    }
    fixture_open(fixture, "", NULL);
}

/* --- comparing -------------------------------------------------------------------------------- */

static void need_device(void)
{
    struct stk_error err = {0};
    if (gpu_count(&err) == 0) {
        print_message("skipped: %s\n", err.what);
        skip();
    }
}

static struct stk_loader_options wanted(enum stk_device device, enum stk_decode decode)
{
    return (struct stk_loader_options){.batch_size = 12,
                                       .shuffle = 1,
                                       .order = STK_ORDER_GLOBAL,
                                       .seed = 3,
                                       .threads = 2,
                                       .transforms = &crops,
                                       .transform_count = 1,
                                       .device = device,
                                       .decode = decode};
}

static uint32_t image_field(const struct stk_batch *batch)
{
    uint32_t f = 0;
    while (strcmp(batch->fields[f].field->name, "jpg"))
        f++;
    return f;
}

static uint8_t *batch_pixels(struct stk_batch *batch)
{
    const struct stk_tensor *tensor = &batch->fields[image_field(batch)].tensor;
    uint64_t size = stk_tensor_size(tensor);
    uint8_t *pixels = malloc(size);
    struct stk_error err = {0};
    assert_int_equal(tensor->dtype, STK_U8);
    assert_int_equal(size, (uint64_t)batch->count * ITEM);
    if (stk_batch_copy_out(batch, pixels, tensor->data, size, &err))
        fixture_fail(&err);
    return pixels;
}

static int worst_difference(const uint8_t *a, const uint8_t *b, uint64_t n)
{
    int worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        int difference = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
        worst = difference > worst ? difference : worst;
    }
    return worst;
}

/* An epoch of both side by side; returns the largest difference of a pixel. */
static int compare_epoch(struct stk_loader *one, struct stk_loader *other)
{
    struct stk_batch *a, *b;
    int worst = 0;
    while ((a = fixture_next(one)) != NULL) {
        b = fixture_next(other);
        assert_non_null(b);
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->samples, b->samples, a->count * sizeof(uint64_t));
        uint8_t *here = batch_pixels(a), *there = batch_pixels(b);
        int difference = worst_difference(here, there, (uint64_t)a->real * ITEM);
        worst = difference > worst ? difference : worst;
        free(here);
        free(there);
        stk_batch_release(a);
        stk_batch_release(b);
    }
    assert_null(fixture_next(other));
    return worst;
}

static struct stk_device_stats device_stats(struct stk_loader *loader)
{
    struct stk_loader_stats stats;
    stk_loader_stats(loader, &stats);
    return stats.device;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void mixed_images_come_in_order_and_as_the_cpu_decodes_them(void **state)
{
    (void)state;
    /* many to a shard are mapped, two to a shard are read, the third is in chunks */
    static const struct sorts sets[] = {
        {.shards = 1, .each = 48, .sort = all_sorts},
        {.shards = 24, .each = 2, .sort = all_sorts},
        {.shards = 3, .each = 16, .sort = all_sorts, .mode = "wb"},
    };
    need_device();
    for (int s = 0; s < 3; s++) {
        struct fixture fixture;
        fixture_sorts(&fixture, &sets[s]);
        struct stk_loader_options options = wanted(STK_DEVICE_CPU, STK_DECODE_CPU);
        struct stk_loader *cpu = fixture_loader(&fixture, &options);
        options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
        struct stk_loader *gpu = fixture_loader(&fixture, &options);
        for (int epoch = 0; epoch < 2; epoch++)
            assert_in_range(compare_epoch(gpu, cpu), 1, LEVELS);
        struct stk_device_stats stats = device_stats(gpu);
        assert_true(stats.gpu_decoded >= 48); /* half of them; and some of the next epoch */
        assert_true(stats.cpu_decoded >= 48);
        assert_true(stats.decode_share == 1);
        stk_loader_close(gpu);
        stk_loader_close(cpu);
        fixture_close(&fixture);
    }
}

static void decoding_by_the_cpu_gives_exactly_its_pixels(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 2, .each = 24, .sort = all_sorts};
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CPU, STK_DECODE_CPU);
    struct stk_loader *cpu = fixture_loader(&fixture, &options);
    options = wanted(STK_DEVICE_CUDA, STK_DECODE_CPU);
    struct stk_loader *gpu = fixture_loader(&fixture, &options);
    assert_int_equal(compare_epoch(gpu, cpu), 0);
    assert_int_equal(device_stats(gpu).gpu_decoded, 0);
    stk_loader_close(gpu);
    stk_loader_close(cpu);
    fixture_close(&fixture);
}

/* Images that are larger than their share of the memory. */
static void large_images_are_decoded_by_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 48};
    struct stk_error err = {0};
    need_device();
    fixture_sorts(&fixture, &sorts);
    for (int some = 0; some < 2; some++) { /* for none, for those of up to 96 x 75 */
        uint64_t limit = some ? 12 * 96 * 75 * 3 : 1;
        struct stk_loader_options options = wanted(STK_DEVICE_CPU, STK_DECODE_CPU);
        struct stk_loader *cpu = fixture_loader(&fixture, &options);
        options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
        struct stk_loader *gpu = fixture_loader(&fixture, &options);
        struct device_decode_options tight = {.gpu = ship_gpu(gpu->ship),
                                              .loader = gpu,
                                              .decode = STK_DECODE_GPU,
                                              .depth = gpu->depth,
                                              .threads = 2,
                                              .limit = limit};
        assert_int_equal(gpu_enter(tight.gpu, &err), STK_OK);
        device_decode_free(gpu->decode);
        assert_int_equal(device_decode_new(&gpu->decode, &tight, &err), STK_OK);
        gpu_leave(tight.gpu);
        assert_in_range(compare_epoch(gpu, cpu), some, some ? LEVELS : 0);
        struct stk_device_stats stats = device_stats(gpu);
        assert_true(stats.gpu_decoded + stats.cpu_decoded >= 48);
        assert_true(stats.cpu_decoded >= 12);
        assert_true(some == (stats.gpu_decoded > 0));
        stk_loader_close(gpu);
        stk_loader_close(cpu);
    }
    fixture_close(&fixture);
}

/* The words are for the simulated nvJPEG; a real one decodes as ever. */
static void what_nvjpeg_fails_to_decode_is_decoded_by_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 60};
    need_device();
    fixture_sorts(&fixture, &sorts);
    setenv("SIM_NVJPEG", "broken", 1);
    struct stk_loader_options options = wanted(STK_DEVICE_CPU, STK_DECODE_CPU);
    struct stk_loader *cpu = fixture_loader(&fixture, &options);
    options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
    struct stk_loader *gpu = fixture_loader(&fixture, &options);
    int simulated = strstr(gpu_info(ship_gpu(gpu->ship))->name, "Simulated") != NULL;
    assert_in_range(compare_epoch(gpu, cpu), 0, simulated ? 0 : LEVELS);
    assert_true(!simulated || device_stats(gpu).cpu_decoded >= 60);
    assert_true(simulated == (device_stats(gpu).gpu_decoded == 0));
    stk_loader_close(gpu);
    stk_loader_close(cpu);
    unsetenv("SIM_NVJPEG");
    fixture_close(&fixture);
}

static enum spoil some_are_spoilt(uint32_t number)
{
    return number % 16 == 3 ? SPOIL_END : number % 16 == 9 ? SPOIL_TABLE : SPOIL_NOT;
}

static void broken_images_are_replaced_as_ever(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 2, .each = 24, .spoil = some_are_spoilt};
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CPU, STK_DECODE_CPU);
    options.bad = STK_BAD_REPLACE;
    struct stk_loader *cpu = fixture_loader(&fixture, &options);
    options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
    options.bad = STK_BAD_REPLACE;
    struct stk_loader *gpu = fixture_loader(&fixture, &options);
    assert_in_range(compare_epoch(gpu, cpu), 1, LEVELS);
    struct stk_quarantined here[16], there[16];
    uint64_t count = stk_loader_quarantine(gpu, here, 16);
    assert_int_equal(count, 6);
    assert_int_equal(stk_loader_quarantine(cpu, there, 16), count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(here[i].sample, there[i].sample);
        assert_int_equal(here[i].substitute, there[i].substitute);
        assert_string_equal(here[i].error.what, there[i].error.what);
    }
    stk_loader_close(gpu);
    stk_loader_close(cpu);
    fixture_close(&fixture);
}

static enum spoil one_is_spoilt(uint32_t number)
{
    return number == 17 ? SPOIL_TABLE : SPOIL_NOT;
}

static void a_broken_image_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 36, .spoil = one_is_spoilt};
    struct stk_batch *batch;
    struct stk_error err = {0};
    stk_status status;
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    assert_int_equal(status, STK_CORRUPT);
    assert_int_equal(err.sample, 17);
    assert_string_equal(err.field, "jpg");
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void the_share_is_measured_once_and_kept_in_the_state(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 96};
    char text[STK_STATE_CAP];
    struct stk_error err = {0};
    size_t len;
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_AUTO);
    struct stk_loader *first = fixture_loader(&fixture, &options);
    struct stk_loader *second = fixture_loader(&fixture, &options);
    double share = device_stats(first).decode_share;
    assert_true(share >= 0 && share <= 1);
    device_decode_set_share(first->decode, 0.4); /* whatever it was: now the two differ */
    assert_int_equal(stk_loader_save(first, text, sizeof text, &len, &err), STK_OK);
    assert_int_equal(stk_loader_load(second, text, &err), STK_OK);
    assert_true(device_stats(second).decode_share == device_stats(first).decode_share);
    assert_int_equal(compare_epoch(first, second), 0);
    struct stk_device_stats stats = device_stats(second);
    uint64_t wants = 0;
    for (uint64_t i = 0; i < 96; i++)
        wants += (uint64_t)(device_decode_wants(second->decode, i) != 0);
    assert_in_range(wants, 20, 60);
    assert_true(stats.gpu_decoded >= wants); /* and some of the next epoch */
    assert_true(stats.cpu_decoded >= 96 - wants);
    stk_loader_close(first);
    stk_loader_close(second);
    fixture_close(&fixture);
}

static void decoding_by_the_device_alone_stays_so_whatever_the_state_says(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 24};
    char text[STK_STATE_CAP];
    struct stk_error err = {0};
    size_t len;
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_AUTO);
    struct stk_loader *shared = fixture_loader(&fixture, &options);
    options.decode = STK_DECODE_GPU;
    struct stk_loader *alone = fixture_loader(&fixture, &options);
    device_decode_set_share(shared->decode, 0.4);
    assert_int_equal(stk_loader_save(shared, text, sizeof text, &len, &err), STK_OK);
    assert_int_equal(stk_loader_load(alone, text, &err), STK_OK);
    assert_true(device_stats(alone).decode_share == 1);
    stk_loader_close(shared);
    stk_loader_close(alone);
    fixture_close(&fixture);
}

/* Batches behind the place that a running loader is sent to are all made by the state's share. */
static void a_state_holds_for_every_batch_of_a_running_loader(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 96};
    char text[STK_STATE_CAP];
    struct stk_error err = {0};
    size_t len;
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_AUTO);
    struct stk_loader *first = fixture_loader(&fixture, &options);
    device_decode_set_share(first->decode, 0);
    assert_int_equal(stk_loader_save(first, text, sizeof text, &len, &err), STK_OK);
    for (int round = 0; round < 8; round++) {
        struct stk_loader *second = fixture_loader(&fixture, &options);
        device_decode_set_share(second->decode, 1);
        stk_batch_release(fixture_next(second));
        assert_int_equal(stk_loader_load(second, text, &err), STK_OK);
        assert_int_equal(stk_loader_load(first, text, &err), STK_OK);
        assert_int_equal(compare_epoch(first, second), 0);
        stk_loader_close(second);
    }
    stk_loader_close(first);
    fixture_close(&fixture);
}

static void both_decode_only_where_that_is_clearly_faster(void **state)
{
    static const struct {
        struct decode_rates alone, together;
        double share;
    } cases[] = {
        {{30000, 10000}, {27000, 9000}, 0.75},
        {{1000, 1000}, {530, 530}, 0.5},
        {{30000, 10000}, {22000, 9000}, 1},
        {{9000, 10000}, {4000, 6000}, 0},
        {{1000, 1000}, {500, 500}, 1},
        {{0, 10}, {0, 0}, 0},
        {{10, 0}, {0, 0}, 1},
        {{0, 0}, {0, 0}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(decode_share_choose(&cases[i].alone, &cases[i].together) == cases[i].share);
}

static enum sort none_is_a_jpeg(uint32_t number)
{
    return number % 2 ? PNG : WEBP;
}

static enum spoil all_but_the_first_are_spoilt(uint32_t number)
{
    return number ? SPOIL_TABLE : SPOIL_NOT;
}

/* One image, images of which most cannot be decoded, none that the device takes; one thread and
 * more threads than cores; a simulated nvJPEG that fails gets nothing. */
static void a_share_is_measured_on_whatever_there_is(void **state)
{
    static const struct sorts sets[] = {
        {.shards = 1, .each = 1},
        {.shards = 1, .each = 24, .spoil = all_but_the_first_are_spoilt},
        {.shards = 1, .each = 24, .sort = none_is_a_jpeg},
    };
    (void)state;
    need_device();
    for (int s = 0; s < 3; s++) {
        struct fixture fixture;
        fixture_sorts(&fixture, &sets[s]);
        for (int broken = 0; broken < 2; broken++) {
            struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_AUTO);
            options.threads = broken ? 1 : 1 + 4 * (uint32_t)s;
            setenv("SIM_NVJPEG", broken ? "broken" : "gpu", 1);
            struct stk_loader *loader = fixture_loader(&fixture, &options);
            int simulated = strstr(gpu_info(ship_gpu(loader->ship))->name, "Simulated") != NULL;
            double share = device_stats(loader).decode_share;
            assert_true(share >= 0 && share <= (s == 2 || (broken && simulated) ? 0 : 1));
            stk_loader_close(loader);
        }
        fixture_close(&fixture);
    }
    unsetenv("SIM_NVJPEG");
}

static void hear(void *user, const char *text)
{
    char *heard = user;
    if (strstr(text, "JPEG"))
        strncat(heard, text, 1023 - strlen(heard));
}

static void without_nvjpeg_the_cpu_serves_or_the_remedy_is_told(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 24};
    char heard[1024] = "";
    struct stk_hooks hooks = {.notice = hear, .user = heard};
    struct stk_error err = {0};
    struct stk_loader *gpu;
    struct gpu *device;
    need_device();
    assert_int_equal(gpu_open(&device, 0, &err), STK_OK);
    int simulated = strstr(gpu_info(device)->name, "Simulated") != NULL;
    gpu_close(device);
    if (!simulated)
        skip(); /* a real nvJPEG cannot be talked away */
    fixture_sorts(&fixture, &sorts);
    stk_context_free(fixture.context);
    assert_int_equal(stk_context_new(&fixture.context, &hooks, &err), STK_OK);
    setenv("SIM_NVJPEG", "none", 1);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
    assert_int_equal(stk_loader_open(fixture.context, fixture.dataset, &gpu, &options, &err),
                     STK_UNSUPPORTED);
    assert_null(gpu);
    assert_non_null(strstr(err.remedy, "fits the driver"));
    assert_non_null(strstr(err.remedy, "decode=\"cpu\""));
    assert_string_equal(heard, "");
    options.decode = STK_DECODE_AUTO;
    gpu = fixture_loader(&fixture, &options);
    assert_non_null(strstr(heard, "by the CPU alone"));
    options = wanted(STK_DEVICE_CPU, STK_DECODE_CPU);
    struct stk_loader *cpu = fixture_loader(&fixture, &options);
    assert_int_equal(compare_epoch(gpu, cpu), 0);
    assert_int_equal(device_stats(gpu).gpu_decoded, 0);
    stk_loader_close(gpu);
    stk_loader_close(cpu);
    unsetenv("SIM_NVJPEG");
    fixture_close(&fixture);
}

static void a_larger_share_wants_more_and_never_other_samples(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 4};
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    struct device_decode *decode = loader->decode;
    enum { COUNT = 10000 };
    static uint8_t before[COUNT];
    memset(before, 0, sizeof before);
    for (int tenth = 0; tenth <= 10; tenth++) {
        uint32_t wants = 0;
        device_decode_set_share(decode, tenth / 10.0);
        for (uint64_t i = 0; i < COUNT; i++) {
            int is = device_decode_wants(decode, i) != 0;
            assert_true(is >= before[i]);
            before[i] = (uint8_t)is;
            wants += (uint32_t)is;
        }
        assert_in_range(wants + COUNT / 50, (uint32_t)tenth * COUNT / 10,
                        (uint32_t)tenth * COUNT / 10 + COUNT / 25);
    }
    device_decode_set_share(decode, -1);
    assert_true(device_decode_share(decode) == 0);
    device_decode_set_share(decode, 7);
    assert_true(device_decode_share(decode) == 1);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

struct counted {
    _Atomic uint64_t calls;
    uint64_t fail_at;
};

static int count_call(void *user, size_t size)
{
    struct counted *counted = user;
    (void)size;
    return ++counted->calls == counted->fail_at;
}

static void every_failed_allocation_at_open_is_an_error(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 4};
    uint64_t failures = 0;
    stk_status status = STK_MEMORY;
    need_device();
    fixture_sorts(&fixture, &sorts);
    for (; status; failures++) {
        struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
        struct counted counted = {.fail_at = failures + 1};
        struct stk_loader *loader;
        struct stk_error err = {0};
        memory_set_hook(count_call, &counted);
        status = stk_loader_open(fixture.context, fixture.dataset, &loader, &options, &err);
        memory_set_hook(NULL, NULL);
        if (counted.calls >= counted.fail_at)
            status = STK_MEMORY; /* some do without, and open all the same */
        stk_loader_close(loader);
    }
    assert_in_range(failures, 50, 5000);
    fixture_close(&fixture);
}

/* Those while the threads decode are no errors: the sample is passed by. */
static void every_failed_allocation_while_measuring_is_an_error_or_does_no_harm(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sorts sorts = {.shards = 1, .each = 2};
    struct stk_error err = {0};
    uint32_t errors = 0, harmless = 0;
    need_device();
    fixture_sorts(&fixture, &sorts);
    struct stk_loader_options options = wanted(STK_DEVICE_CUDA, STK_DECODE_GPU);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    struct device_decode_options wants = {.gpu = ship_gpu(loader->ship),
                                          .loader = loader,
                                          .decode = STK_DECODE_AUTO,
                                          .depth = loader->depth,
                                          .threads = 1};
    assert_int_equal(gpu_enter(wants.gpu, &err), STK_OK);
    for (uint64_t at = 1; harmless < 5; at++) {
        struct counted counted = {.fail_at = at};
        struct device_decode *decode = NULL;
        memory_set_hook(count_call, &counted);
        stk_status status = device_decode_new(&decode, &wants, &err);
        memory_set_hook(NULL, NULL);
        assert_int_equal(status, decode ? STK_OK : STK_MEMORY);
        *(decode ? &harmless : &errors) += 1;
        device_decode_free(decode);
    }
    gpu_leave(wants.gpu);
    assert_in_range(errors, 20, 1000);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_images_come_in_order_and_as_the_cpu_decodes_them),
        cmocka_unit_test(decoding_by_the_cpu_gives_exactly_its_pixels),
        cmocka_unit_test(large_images_are_decoded_by_the_cpu),
        cmocka_unit_test(what_nvjpeg_fails_to_decode_is_decoded_by_the_cpu),
        cmocka_unit_test(broken_images_are_replaced_as_ever),
        cmocka_unit_test(a_broken_image_is_an_error_that_names_it),
        cmocka_unit_test(the_share_is_measured_once_and_kept_in_the_state),
        cmocka_unit_test(decoding_by_the_device_alone_stays_so_whatever_the_state_says),
        cmocka_unit_test(a_state_holds_for_every_batch_of_a_running_loader),
        cmocka_unit_test(both_decode_only_where_that_is_clearly_faster),
        cmocka_unit_test(a_share_is_measured_on_whatever_there_is),
        cmocka_unit_test(without_nvjpeg_the_cpu_serves_or_the_remedy_is_told),
        cmocka_unit_test(every_failed_allocation_at_open_is_an_error),
        cmocka_unit_test(every_failed_allocation_while_measuring_is_an_error_or_does_no_harm),
        cmocka_unit_test(a_larger_share_wants_more_and_never_other_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
