#include "gpu/gpu_fixture.h"

#include <ftw.h>

#include "gpu/kernel_cache.h"
#include "gpu/module.h"
#include "gpu/nvrtc.h"
#include "transform/gather_kernel.h"

/* Each test has a cache folder of its own. */
struct place {
    char cache[PATH_MAX];
    struct gpu *gpu;
};

static int place_setup(void **state)
{
    struct place *place = *state = calloc(1, sizeof *place);
    folder_new(place->cache);
    setenv("XDG_CACHE_HOME", place->cache, 1);
    unsetenv("STOKER_REFUSE_PTX");
    place->gpu = gpu_begin();
    return 0;
}

static int place_end(void **state)
{
    struct place *place = *state;
    gpu_end(place->gpu);
    if (sim_function("sim_cuda_counts"))
        nothing_is_left();
    folder_remove(place->cache);
    free(place);
    return 0;
}

static char found[PATH_MAX]; /* the last file that count_file saw */
static int files;

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)where;
    if (kind == FTW_F) {
        files++;
        snprintf(found, sizeof found, "%s", path);
    }
    return 0;
}

static int files_in(const char *folder)
{
    files = 0;
    nftw(folder, count_file, 16, FTW_PHYS);
    return files;
}

/* Runs a kernel over three values of sixteen bytes; the last place is cleared. */
static void kernel_gathers(struct gpu *gpu)
{
    struct gpu_kernel *kernel;
    struct gpu_stream *stream;
    gpu_address memory;
    unsigned char store[64], out[48];
    const uint64_t homes[2] = {32, 5};
    OK(gpu_kernel(gpu, "gather_kernel", "gather_unit_1", &kernel, &err));
    OK(gpu_stream_new(gpu, GPU_NORMAL, &stream, &err));
    OK(gpu_alloc(gpu, 256, &memory, &err));
    for (int i = 0; i < 64; i++)
        store[i] = (unsigned char)(i + 100);
    OK(gpu_copy_in(gpu, memory, store, sizeof store, stream, &err));
    OK(gpu_copy_in(gpu, memory + 64, homes, sizeof homes, stream, &err));
    struct gather_job job = {.store = memory,
                             .homes = memory + 64,
                             .values = memory + 128,
                             .deal = {16, 2, 0}, /* two chunks of eight bytes */
                             .count = 3,
                             .real = 2};
    struct gpu_grid grid = {.x = 1, .threads = 32};
    OK(gpu_launch(gpu, kernel, &grid, &job, sizeof job, stream, &err));
    grid.x = 0; /* nothing to do is fine */
    OK(gpu_launch(gpu, kernel, &grid, &job, sizeof job, stream, &err));
    OK(gpu_copy_out(gpu, out, memory + 128, sizeof out, stream, &err));
    OK(gpu_stream_sync(gpu, stream, &err));
    for (int i = 0; i < 16; i++)
        assert_true(out[i] == 132 + i && out[16 + i] == 105 + i && out[32 + i] == 0);
    gpu_free(gpu, memory);
    gpu_stream_free(gpu, stream);
}

static enum module_way way_of(struct gpu *gpu)
{
    enum module_way way;
    OK(module_load(gpu, "gather_kernel", &way, &err));
    return way;
}

/* --- loading ---------------------------------------------------------------------------------- */

static void the_table_holds_whole_texts(void **state)
{
    (void)state;
    assert_non_null(gpu_modules[0].name);
    for (const struct gpu_module *module = gpu_modules; module->name; module++) {
        assert_non_null(strstr(module->name, "_kernel"));
        assert_non_null(strstr(module->source, "__global__")); /* kernel_language.h is inside */
        assert_null(strstr(module->source, "#include \""));
        if (module->ptx && module->ptx[0] == '/') /* a comment: text, not a fat binary */
            assert_non_null(strstr(module->ptx, ".entry"));
    }
}

static void a_kernel_runs(void **state)
{
    struct place *place = *state;
    kernel_gathers(place->gpu);
}

static void ptx_needs_no_compiler(void **state)
{
    struct place *place = *state;
    if (!gpu_modules[0].ptx)
        skip();
    assert_int_equal(way_of(place->gpu), MODULE_PTX);
    assert_int_equal(files_in(place->cache), 0);
}

static void where_ptx_is_refused_the_source_is_compiled_and_kept(void **state)
{
    struct place *place = *state;
    struct nvrtc_target target;
    if (nvrtc_aim(9, 0, &target, NULL))
        skip(); /* a real GPU without NVRTC */
    setenv("STOKER_REFUSE_PTX", "1", 1);
    assert_int_equal(way_of(place->gpu), MODULE_NVRTC);
    assert_int_equal(files_in(place->cache), 1);
    assert_non_null(strstr(found, "/stoker/kernels/"));
    kernel_gathers(place->gpu);
}

/* Opens the device anew, so that the module is loaded again. */
static void reopen(struct place *place)
{
    gpu_end(place->gpu);
    place->gpu = gpu_begin();
}

static void what_is_kept_is_used_and_what_is_damaged_made_anew(void **state)
{
    struct place *place = *state;
    struct nvrtc_target target;
    struct stat before, after;
    if (nvrtc_aim(9, 0, &target, NULL))
        skip();
    setenv("STOKER_REFUSE_PTX", "1", 1);
    assert_int_equal(way_of(place->gpu), MODULE_NVRTC);
    assert_int_equal(files_in(place->cache), 1);
    assert_int_equal(stat(found, &before), 0);
    reopen(place);
    assert_int_equal(way_of(place->gpu), MODULE_NVRTC);
    assert_int_equal(stat(found, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not written again */

    size_t len;
    char *whole = file_read(found, &len);
    whole[len / 2] ^= 1;
    file_write(found, whole, len);
    reopen(place);
    kernel_gathers(place->gpu);
    assert_int_equal(files_in(place->cache), 1);
    whole[len / 2] ^= 1;
    char *again = file_read(found, NULL);
    assert_memory_equal(again, whole, len);
    free(whole);
    free(again);
}

static void a_cache_that_cannot_be_written_costs_only_time(void **state)
{
    struct place *place = *state;
    struct nvrtc_target target;
    if (nvrtc_aim(9, 0, &target, NULL))
        skip();
    setenv("STOKER_REFUSE_PTX", "1", 1);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    kernel_gathers(place->gpu);
    reopen(place);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "", 1);
    kernel_gathers(place->gpu);
}

static void with_neither_ptx_nor_nvrtc_the_words_say_both(void **state)
{
    struct place *place = *state;
    struct stk_error err = {0};
    struct gpu_kernel *kernel;
    NEEDS_SIMULATION();
    setenv("STOKER_REFUSE_PTX", "1", 1);
    setenv("SIM_NVRTC", "refuse", 1);
    for (int i = 0; i < 2; i++) { /* the second answer is remembered */
        assert_int_equal(gpu_kernel(place->gpu, "gather_kernel", "gather_unit_1", &kernel, &err),
                         STK_UNSUPPORTED);
        assert_null(kernel);
        assert_non_null(strstr(err.what, "STOKER_REFUSE_PTX"));
        assert_non_null(strstr(err.what, "NVRTC does not compile"));
        unsetenv("SIM_NVRTC");
    }
    reopen(place);
    kernel_gathers(place->gpu);
}

static void a_driver_that_is_too_old_for_the_ptx_gets_the_source(void **state)
{
    struct place *place = *state;
    NEEDS_SIMULATION();
    if (!gpu_modules[0].ptx)
        skip();
    fail_driver("cuModuleLoadDataEx:1:222");
    assert_int_equal(way_of(place->gpu), MODULE_NVRTC);
    fail_driver(NULL);
    kernel_gathers(place->gpu);
}

static void no_memory_and_a_lost_device_are_no_reason_to_compile(void **state)
{
    struct place *place = *state;
    enum module_way way;
    NEEDS_SIMULATION();
    if (!gpu_modules[0].ptx)
        skip();
    fail_driver("cuModuleLoadDataEx:1:2");
    assert_int_equal(module_load(place->gpu, "gather_kernel", &way, NULL), STK_MEMORY);
    fail_driver("cuModuleLoadDataEx:1:700");
    assert_int_equal(module_load(place->gpu, "gather_kernel", &way, NULL), STK_RESOURCE);
    fail_driver(NULL);
    assert_int_equal(files_in(place->cache), 0);
    assert_int_equal(way_of(place->gpu), MODULE_PTX); /* it was not remembered */
}

static void names_that_are_not_there_are_refused(void **state)
{
    struct place *place = *state;
    struct gpu_kernel *kernel;
    struct stk_error err = {0};
    assert_int_equal(gpu_kernel(place->gpu, "no_kernel", "x", &kernel, &err), STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "no_kernel"));
    assert_int_equal(gpu_kernel(place->gpu, "gather_kernel", "no_such", &kernel, &err),
                     STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "no_such"));
    assert_null(kernel);
}

/* --- the cache alone -------------------------------------------------------------------------- */

static void a_kept_image_comes_back_or_not_at_all(void **state)
{
    struct place *place = *state;
    char bytes[1000], key[KERNEL_KEY_CAP], other[KERNEL_KEY_CAP];
    struct nvrtc_target target = {13000, 90, NVRTC_CUBIN};
    struct kernel_image image = {bytes, sizeof bytes}, back;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31);
    kernel_key("a source", &target, key);
    assert_int_equal(strlen(key), 32);
    target.arch = 75;
    kernel_key("a source", &target, other);
    assert_string_not_equal(key, other);
    assert_int_equal(kernel_cache_load(key, &back), 0);
    kernel_cache_save(key, &image);
    assert_int_equal(kernel_cache_load(other, &back), 0);
    assert_int_equal(kernel_cache_load(key, &back), 1);
    assert_int_equal(back.size, sizeof bytes);
    assert_memory_equal(back.data, bytes, sizeof bytes);
    memory_free(back.data);

    assert_int_equal(files_in(place->cache), 1); /* nothing lies beside it */
    size_t len;
    char *whole = file_read(found, &len);
    for (size_t at = 0; at < len; at += at < 40 ? 1 : 97) {
        file_write(found, whole, at); /* cut */
        assert_int_equal(kernel_cache_load(key, &back), 0);
        whole[at] ^= 0x40;
        file_write(found, whole, len);
        assert_int_equal(kernel_cache_load(key, &back), 0);
        whole[at] ^= 0x40;
    }
    file_write(found, whole, len);
    assert_int_equal(kernel_cache_load(key, &back), 1);
    memory_free(back.data);
    free(whole);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_holds_whole_texts),
        TEST(a_kernel_runs),
        TEST(ptx_needs_no_compiler),
        TEST(where_ptx_is_refused_the_source_is_compiled_and_kept),
        TEST(what_is_kept_is_used_and_what_is_damaged_made_anew),
        TEST(a_cache_that_cannot_be_written_costs_only_time),
        TEST(with_neither_ptx_nor_nvrtc_the_words_say_both),
        TEST(a_driver_that_is_too_old_for_the_ptx_gets_the_source),
        TEST(no_memory_and_a_lost_device_are_no_reason_to_compile),
        TEST(names_that_are_not_there_are_refused),
        TEST(a_kept_image_comes_back_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
