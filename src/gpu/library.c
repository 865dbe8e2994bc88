#include "gpu/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/cuda_api.h"

#define SONAME_MOST 4

/* A file's name and the CUDA it is part of: a driver runs libraries of its own number or less. */
struct soname {
    const char *file;
    int cuda; /* 0: comes with the driver */
};

static const struct library_row {
    const char *name;
    const char *package;                /* of pip; NULL: not by pip */
    struct soname sonames[SONAME_MOST]; /* the newest first; ended by a NULL */
} rows[GPU_LIBRARY_COUNT] = {
    [GPU_NVRTC] = {"nvrtc",
                   "nvidia-cuda-nvrtc",
                   {{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, {"libnvrtc.so.11.2", 11}}},
    [GPU_NVJPEG] = {"nvjpeg",
                    "nvidia-nvjpeg",
                    {{"libnvjpeg.so.13", 13}, {"libnvjpeg.so.12", 12}, {"libnvjpeg.so.11", 11}}},
    [GPU_CUFFT] = {"cufft",
                   "nvidia-cufft",
                   {{"libcufft.so.12", 13}, {"libcufft.so.11", 12}, {"libcufft.so.10", 11}}},
    [GPU_CUPTI] = {"cupti",
                   "nvidia-cuda-cupti",
                   {{"libcupti.so.13", 13}, {"libcupti.so.12", 12}, {"libcupti.so.11.8", 11}}},
    [GPU_NVML] = {"nvml", NULL, {{"libnvidia-ml.so.1", 0}}},
};

static struct {
    pthread_mutex_t lock;
    char *folders; /* under lock, as all below; NULL: none */
    void *handles[GPU_LIBRARY_COUNT];
    char paths[GPU_LIBRARY_COUNT][PATH_MAX]; /* do not change once the handle is set */
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- looking ---------------------------------------------------------------------------------- */

/* The newest CUDA that the driver runs; INT_MAX when there is no telling. */
static int driver_cuda(void)
{
    const struct cuda_api *api;
    int version = 0;
    if (cuda_api_load(&api, NULL) || api->cuDriverGetVersion(&version) || version < 1000)
        return INT_MAX;
    return version / 1000;
}

/* In one folder; NULL: by name alone, as the loader finds it. */
static void *try_folder(const struct library_row *row, const char *folder, size_t len, int flags)
{
    /* What comes with the driver has no number, and must not load CUDA itself. */
    int most = row->sonames[0].cuda ? driver_cuda() : INT_MAX;
    char path[PATH_MAX];
    for (int i = 0; i < SONAME_MOST && row->sonames[i].file; i++) {
        if (row->sonames[i].cuda > most)
            continue;
        int size =
            folder ? snprintf(path, sizeof path, "%.*s/%s", (int)len, folder, row->sonames[i].file)
                   : snprintf(path, sizeof path, "%s", row->sonames[i].file);
        void *handle = size < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | flags) : NULL;
        if (handle)
            return handle;
    }
    return NULL;
}

static void *try_list(const struct library_row *row, const char *folders)
{
    void *handle = NULL;
    while (folders && *folders && !handle) {
        size_t len = strcspn(folders, ":");
        if (len)
            handle = try_folder(row, folders, len, 0);
        folders += len + (folders[len] == ':');
    }
    return handle;
}

/* The toolkit, where its installer puts it; CUPTI has a folder of its own there. */
static void *try_toolkit(const struct library_row *row)
{
    static const char *const below[] = {"lib64", "lib", "extras/CUPTI/lib64"};
    const char *const homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    char folder[PATH_MAX];
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++)
        for (size_t j = 0; homes[i] && homes[i][0] && j < sizeof below / sizeof below[0]; j++) {
            int len = snprintf(folder, sizeof folder, "%s/%s", homes[i], below[j]);
            void *handle =
                len < (int)sizeof folder ? try_folder(row, folder, (size_t)len, 0) : NULL;
            if (handle)
                return handle;
        }
    return NULL;
}

/* Under lock. */
static void *search(const struct library_row *row)
{
    void *handle = try_folder(row, NULL, 0, RTLD_NOLOAD);
    if (!handle)
        handle = try_folder(row, NULL, 0, 0);
    if (!handle)
        handle = try_list(row, opened.folders);
    if (!handle)
        handle = try_toolkit(row);
    return handle;
}

static void remember_path(void *handle, char path[PATH_MAX], const char *name)
{
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || !map->l_name[0])
        snprintf(path, PATH_MAX, "%s", name);
    else
        snprintf(path, PATH_MAX, "%s", map->l_name);
}

/* The version to ask for: the newest that this driver runs. */
static const struct soname *best_soname(const struct library_row *row, int most)
{
    int i = 0;
    while (row->sonames[i].cuda > most && i + 1 < SONAME_MOST && row->sonames[i + 1].file)
        i++;
    return &row->sonames[i];
}

static stk_status fail_absent(const struct library_row *row, struct stk_error *err)
{
    const struct soname *best = best_soname(row, driver_cuda());
    (void)fail(err, STK_UNSUPPORTED, "CUDA's library %s (%s) is not there", row->name, best->file);
    if (!row->package)
        fail_remedy(err, "it comes with NVIDIA's driver: install the driver's libraries too");
    else if (best->cuda <= 12) /* from 13 on the packages have no number behind them */
        fail_remedy(err, "pip install %s-cu%d, or install the CUDA toolkit and set CUDA_HOME",
                    row->package, best->cuda);
    else
        fail_remedy(err, "pip install %s, or install the CUDA toolkit and set CUDA_HOME",
                    row->package);
    return STK_UNSUPPORTED;
}

/* --- what others call ------------------------------------------------------------------------- */

stk_status gpu_library_open(enum gpu_library library, void **handle, struct stk_error *err)
{
    const struct library_row *row = &rows[library];
    pthread_mutex_lock(&opened.lock);
    if (!opened.handles[library]) {
        void *found = search(row);
        if (found)
            remember_path(found, opened.paths[library], row->name);
        opened.handles[library] = found;
    }
    *handle = opened.handles[library];
    pthread_mutex_unlock(&opened.lock);
    return *handle ? STK_OK : fail_absent(row, err);
}

stk_status gpu_library_folders(const char *folders, struct stk_error *err)
{
    char *copy = folders ? memory_text(folders, strlen(folders)) : NULL;
    if (folders && !copy)
        return fail_memory(err, strlen(folders) + 1);
    pthread_mutex_lock(&opened.lock);
    char *old = opened.folders;
    opened.folders = copy;
    pthread_mutex_unlock(&opened.lock);
    memory_free(old);
    return STK_OK;
}

const char *gpu_library_path(enum gpu_library library)
{
    pthread_mutex_lock(&opened.lock);
    const char *path = opened.handles[library] ? opened.paths[library] : "";
    pthread_mutex_unlock(&opened.lock);
    return path;
}

const char *gpu_library_name(enum gpu_library library)
{
    return rows[library].name;
}

stk_status gpu_library_function(enum gpu_library library, const char *name, void *function,
                                struct stk_error *err)
{
    void *handle, *found;
    stk_status status = gpu_library_open(library, &handle, err);
    found = status ? NULL : dlsym(handle, name);
    memcpy(function, &found, sizeof found); /* ISO C has no cast from data to function */
    if (status || found)
        return status;
    (void)fail(err, STK_UNSUPPORTED, "CUDA's library %s has no %s", rows[library].name, name);
    fail_at(err, gpu_library_path(library), STK_NOWHERE);
    fail_remedy(err, "it is too old: install a newer one");
    return STK_UNSUPPORTED;
}
