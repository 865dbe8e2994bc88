#include "stoker/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "stoker/device.h"
#include "base/parse.h"
#include "codec/audio_codec.h"
#include "codec/codec.h"
#include "codec/image_format.h"
#include "codec/video_codec.h"
#include "filter/filter.h"
#include "format/format.h"
#include "format/series_meta.h"
#include "gpu/gpu.h"
#include "gpu/library.h"
#include "gpu/module.h"
#include "store/remote_settings.h"
#include "store/store.h"
#include "transform/audio_resample.h"
#include "work/cores.h"

#define CHECK_GIB ((double)(1 << 30))
#define CHECK_FEW_FILES 4096      /* open files that a large dataset may want */
#define CHECK_LITTLE_LOCKED 65536 /* bytes: what rings needed before kernel 5.12 */

struct check {
    void (*row)(void *user, const struct stk_check_row *row);
    void *user;
    const char *group;
};

static void say(const struct check *check, const char *name, enum stk_check_state state,
                const char *remedy, const char *format, ...) STK_PRINTF(5, 6);

static void say(const struct check *check, const char *name, enum stk_check_state state,
                const char *remedy, const char *format, ...)
{
    char value[512];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    struct stk_check_row row = {check->group, name, state, value, remedy};
    check->row(check->user, &row);
}

/* The first bytes of a small file as text; 0 when it cannot be read. */
static int slurp(const char *path, char *text, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, cap - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* What stands behind "name<blanks>:" on a line of its own. */
static int line_value(const char *text, const char *name, char *value, size_t cap)
{
    const char *line = strstr(text, name);
    const char *colon = line ? strchr(line, ':') : NULL;
    if (!colon)
        return 0;
    colon += 1 + strspn(colon + 1, " \t");
    snprintf(value, cap, "%.*s", (int)strcspn(colon, "\n"), colon);
    return 1;
}

/* ---- machine ------------------------------------------------------------------------------- */

static void check_cpu(const struct check *check)
{
    char text[4096], model[256] = "of unknown make";
    if (slurp("/proc/cpuinfo", text, sizeof text))
        line_value(text, "model name", model, sizeof model);
    say(check, "cpu", STK_CHECK_GOOD, "", "%s", model);
    uint32_t usable = cores_usable();
    say(check, "cores", STK_CHECK_GOOD, "", "%u usable of %ld", usable,
        sysconf(_SC_NPROCESSORS_ONLN));
}

static uint64_t limit_in(const char *path, uint64_t least)
{
    char text[64];
    uint64_t limit;
    if (!slurp(path, text, sizeof text) || !parse_u64(text, strcspn(text, "\n"), &limit))
        return least; /* "max" */
    return limit < least ? limit : least;
}

/* The memory limit of this process's control group and those above it; UINT64_MAX: none. */
static uint64_t group_memory(void)
{
    char text[4096], path[4200];
    uint64_t least =
        limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", UINT64_MAX); /* version 1 */
    char *group = slurp("/proc/self/cgroup", text, sizeof text) ? strstr(text, "0::/") : NULL;
    if (!group)
        return least;
    group += 3;
    group[strcspn(group, "\n")] = 0;
    for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
        *slash = 0;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        least = limit_in(path, least);
    }
    return least;
}

static void check_memory(const struct check *check)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), limit = group_memory();
    double total = (double)((uint64_t)sysconf(_SC_PHYS_PAGES) * page) / CHECK_GIB;
    double available = (double)((uint64_t)sysconf(_SC_AVPHYS_PAGES) * page) / CHECK_GIB;
    if (limit < UINT64_C(1) << 60) /* version 1 writes a huge number for none */
        say(check, "memory", STK_CHECK_GOOD, "", "%.1f GiB, %.1f free, group limit %.1f GiB", total,
            available, (double)limit / CHECK_GIB);
    else
        say(check, "memory", STK_CHECK_GOOD, "", "%.1f GiB, %.1f free, no group limit", total,
            available);
}

static void check_machine(const struct check *check)
{
    struct utsname name;
    check_cpu(check);
    check_memory(check);
    if (!uname(&name))
        say(check, "kernel", STK_CHECK_GOOD, "", "%s %s %s", name.sysname, name.release,
            name.machine);
}

/* ---- limits -------------------------------------------------------------------------------- */

static void check_limit(const struct check *check, const char *name, int resource, uint64_t least,
                        const char *remedy)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit))
        say(check, name, STK_CHECK_WARN, "", "cannot be found out");
    else if (limit.rlim_cur == RLIM_INFINITY)
        say(check, name, STK_CHECK_GOOD, "", "unlimited");
    else
        say(check, name, limit.rlim_cur < least ? STK_CHECK_WARN : STK_CHECK_GOOD,
            limit.rlim_cur < least ? remedy : "", "%" PRIu64, (uint64_t)limit.rlim_cur);
}

static void check_limits(const struct check *check)
{
    check_limit(check, "open files", RLIMIT_NOFILE, CHECK_FEW_FILES, "ulimit -n 65536");
    check_limit(check, "locked memory", RLIMIT_MEMLOCK, CHECK_LITTLE_LOCKED, "ulimit -l unlimited");
}

/* ---- io ------------------------------------------------------------------------------------ */

static void no_object(const void *owner, uint32_t number, struct object *out)
{
    (void)owner;
    (void)number;
    *out = (struct object){.name = ""};
}

static void check_ring(const struct check *check)
{
    struct object_table table = {.root = "", .get = no_object};
    struct stk_error error = {0};
    struct store *store = NULL;
    struct store_queue *queue = NULL;
    stk_status status = store_open(&store, &table, NULL, &error);
    if (!status)
        status = store_queue_open(store, STORE_QUEUE_URING, 64, &queue, &error);
    if (status)
        say(check, "io_uring", STK_CHECK_ABSENT,
            *error.remedy ? error.remedy : "pread is used instead", "%s", error.what);
    else
        say(check, "io_uring", STK_CHECK_GOOD, "", "works, with 64 entries");
    store_queue_close(queue);
    store_close(store);
}

static void check_io(const struct check *check)
{
    char byte;
    struct iovec part = {&byte, 1};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : preadv2(fd, &part, 1, 0, RWF_NOWAIT);
    check_ring(check);
    say(check, "pread", STK_CHECK_GOOD, "", "works");
    if (got < 0)
        say(check, "RWF_NOWAIT", STK_CHECK_ABSENT, "", "cannot tell what is in the page cache");
    else
        say(check, "RWF_NOWAIT", STK_CHECK_GOOD, "", "works");
    if (fd >= 0)
        close(fd);
}

/* ---- gpu ----------------------------------------------------------------------------------- */

/* ", 3 % busy, 1.2 GiB used, 71 W, 35 C", of what NVML tells; "" when it is not there. */
static void device_load(uint32_t number, char *out, size_t cap)
{
    struct stk_device_sample sample;
    size_t len = 0;
    out[0] = 0;
    if (stk_device_sample(number, &sample, NULL))
        return;
    const struct {
        uint64_t value;
        double scale;
        const char *unit;
    } parts[] = {{sample.busy, 1, "% busy"},
                 {sample.memory_used, CHECK_GIB, "GiB used"},
                 {sample.power, 1000, "W"},
                 {sample.temperature, 1, "C"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].value != STK_DEVICE_UNKNOWN && len < cap)
            len += (size_t)snprintf(out + len, cap - len, ", %.4g %s",
                                    (double)parts[i].value / parts[i].scale, parts[i].unit);
}

/* Returns how many devices there are. */
static uint32_t check_devices(const struct check *check)
{
    struct stk_error err = {0};
    struct stk_device_info info = {0};
    uint32_t count = stk_device_count(&err);
    if (!count) {
        say(check, "driver", STK_CHECK_ABSENT, err.remedy, "%s", err.what);
        say(check, "device", STK_CHECK_ABSENT, "", "none: batches stay in the CPU's memory");
        return 0;
    }
    for (uint32_t number = 0; number < count; number++) {
        char name[32], load[96];
        snprintf(name, sizeof name, "cuda:%" PRIu32, number);
        if (stk_device_info(number, &info, &err)) {
            say(check, name, STK_CHECK_WARN, err.remedy, "%s", err.what);
            continue;
        }
        if (!number)
            say(check, "driver", STK_CHECK_GOOD, "", "CUDA %d.%d", info.driver / 1000,
                info.driver % 1000 / 10);
        device_load(number, load, sizeof load);
        say(check, name, STK_CHECK_GOOD, "", "%s, %.1f GiB, compute capability %d.%d, %s%s",
            info.name, (double)info.memory / CHECK_GIB, info.major, info.minor, info.bus, load);
    }
    return count;
}

/* Loads a module, to see which way it goes here. */
static stk_status try_kernels(enum module_way *way, struct stk_error *err)
{
    struct gpu *gpu = NULL;
    *way = MODULE_NONE;
    stk_status status = gpu_open(&gpu, 0, err);
    if (status)
        return status;
    status = gpu_enter(gpu, err);
    if (!status) {
        status = module_load(gpu, gpu_modules[0].name, way, err);
        gpu_leave(gpu);
    }
    gpu_close(gpu);
    return status;
}

static void check_kernels(const struct check *check, uint32_t devices)
{
    struct stk_error err = {0};
    enum module_way way;
    uint32_t count = 0;
    while (gpu_modules[count].name)
        count++;
    const char *form = count && gpu_modules[0].ptx ? "PTX and source" : "source";
    if (!count)
        say(check, "kernels", STK_CHECK_ABSENT, "", "none in this build: the CPU does their work");
    else if (!devices)
        say(check, "kernels", STK_CHECK_ABSENT, "", "not used; %" PRIu32 " in this build, as %s",
            count, form);
    else if (try_kernels(&way, &err))
        say(check, "kernels", STK_CHECK_WARN, err.remedy, "%s; the CPU does their work", err.what);
    else
        say(check, "kernels", STK_CHECK_GOOD, "", "%" PRIu32 " files, loaded %s", count,
            way == MODULE_PTX ? "from their PTX" : "from their source, by NVRTC");
}

/* Without a device a library is of no use, and there is nothing to do about it. */
static void check_gpu(const struct check *check)
{
    uint32_t devices = check_devices(check);
    check_kernels(check, devices);
    for (int library = 0; library < GPU_LIBRARY_COUNT; library++) {
        struct stk_error err = {0};
        void *handle;
        const char *name = gpu_library_name(library);
        if (gpu_library_open(library, &handle, &err))
            say(check, name, STK_CHECK_ABSENT, devices ? err.remedy : "", "%s", err.what);
        else
            say(check, name, devices ? STK_CHECK_GOOD : STK_CHECK_ABSENT, "", "%s%s",
                gpu_library_path(library), devices ? "" : ", not used");
    }
}

/* ---- what the build has -------------------------------------------------------------------- */

static void check_filter(const struct check *check, const char *name, enum filter_kind kind,
                         const char *package)
{
    char remedy[128];
    snprintf(remedy, sizeof remedy, "apt-get install %s, then build again", package);
    if (filter_present(kind))
        say(check, name, STK_CHECK_GOOD, "", "in this build");
    else
        say(check, name, STK_CHECK_ABSENT, remedy, "not in this build");
}

static void check_images(const struct check *check)
{
    const struct image_format *const images[] = {&jpeg_image_format, &png_image_format,
                                                 &webp_image_format};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        if (images[i]->remedy)
            say(check, images[i]->name, STK_CHECK_ABSENT, images[i]->remedy, "not in this build");
        else
            say(check, images[i]->name, STK_CHECK_GOOD, "", "in this build");
}

/* A library that says itself whether it is there. */
static void check_tried(const struct check *check, const char *name, stk_status status,
                        const char *found, const struct stk_error *err)
{
    if (status)
        say(check, name, STK_CHECK_ABSENT, err->remedy, "%s", err->what);
    else
        say(check, name, STK_CHECK_GOOD, "", "%s", found);
}

static void check_media(const struct check *check)
{
    struct stk_error err = {0};
    struct audio_decoder *audio = NULL;
    struct audio_resampler *resampler = NULL;
    const char *video = "";
    check_images(check);
    stk_status status = audio_decoder_new(&audio, &err);
    check_tried(check, "sndfile", status, "in this build", &err);
    audio_decoder_free(audio);
    status = audio_resampler_new(&resampler, &err);
    check_tried(check, "soxr", status, "in this build", &err);
    audio_resampler_free(resampler);
    status = video_codec_find(&video, &err);
    check_tried(check, "video", status, video, &err);
}

/* What reads from the network; it is there when it can be begun with. */
static void check_network(const struct check *check)
{
    struct stk_error err = {0};
    struct net *net = NULL;
    stk_status status = remote_hold(&net, &err);
    check_tried(check, "curl", status, "in this build: http, https, s3, gs, az, abfss", &err);
    remote_let_go(net);
}

static void check_formats(const struct check *check)
{
    for (uint32_t row = 0; format_at(row); row++) {
        const struct format_ops *format = format_at(row);
        char value[256] = "";
        size_t len = 0;
        for (const char *const *suffix = format->suffixes; suffix && *suffix; suffix++)
            if (len < sizeof value)
                len += (size_t)snprintf(value + len, sizeof value - len, "%s%s", len ? " " : "",
                                        *suffix);
        say(check, format->name, STK_CHECK_GOOD, "", "%s", len ? value : "by option or by folder");
    }
    say(check, "series", STK_CHECK_GOOD, "", "a folder with %s and %s", SERIES_METADATA,
        SERIES_ARRAY);
}

static void check_codecs(const struct check *check)
{
    static const char *const kinds[] = {"", "tensor", "int", "text", "json", "bytes"};
    for (uint32_t row = 0; codec_at(row); row++)
        say(check, codec_at(row)->name, STK_CHECK_GOOD, "", "%s",
            codec_at(row)->media ? "media, decoded to a tensor" : kinds[codec_at(row)->kind]);
}

void stk_check(struct stk_context *context,
               void (*row)(void *user, const struct stk_check_row *row), void *user)
{
    struct check check = {.row = row, .user = user};
    (void)context;
    check.group = "machine";
    check_machine(&check);
    check.group = "limits";
    check_limits(&check);
    check.group = "io";
    check_io(&check);
    check.group = "gpu";
    check_gpu(&check);
    check.group = "libraries";
    say(&check, "jansson", STK_CHECK_GOOD, "", "in this build");
    check_filter(&check, "zlib", FILTER_GZIP, "zlib1g-dev");
    check_filter(&check, "zstd", FILTER_ZSTD, "libzstd-dev");
    check_media(&check);
    check_network(&check);
    check.group = "formats";
    check_formats(&check);
    check.group = "codecs";
    check_codecs(&check);
}
