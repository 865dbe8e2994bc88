#include "inject_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOLDERS = sizeof((struct find_loaded *)0)->folders / sizeof((struct find_loaded *)0)->folders[0]
};
enum { CUDA_OLDEST = 12, CUDA_NEWEST = 13 };

/* --- what is loaded --------------------------------------------------------------------------- */

static void folder_add(struct find_loaded *loaded, const char *base, size_t len, const char *below)
{
    char folder[sizeof loaded->folders[0]];
    int size = snprintf(folder, sizeof folder, "%.*s%s", (int)len, base, below);
    if (size < 0 || size >= (int)sizeof folder)
        return;
    for (int i = 0; i < FOLDERS; i++) {
        if (!strcmp(loaded->folders[i], folder))
            return;
        if (!loaded->folders[i][0]) {
            memcpy(loaded->folders[i], folder, (size_t)size + 1);
            return;
        }
    }
}

/* The number behind a library's name: libcudart.so.13.0.96 -> 13; 0: none. */
static int number_behind(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(name, prefix, len) ? 0 : atoi(name + len);
}

/* Branches of NVIDIA's driver and the CUDA they came with. */
static int driver_cuda(int branch)
{
    if (branch >= 580)
        return 13;
    return branch >= 525 ? 12 : branch >= 450 ? 11 : 0;
}

/* A line of the map ends with the path of the file. Pip packages lie side by side:
 * site-packages/torch/lib, site-packages/nvidia/cu13/lib, site-packages/nvidia/cuda_cupti/lib. */
void inject_find_line(struct find_loaded *loaded, const char *line)
{
    const char *path = strchr(line, '/');
    const char *name = path ? strrchr(path, '/') : NULL;
    if (!name)
        return;
    size_t folder_len = (size_t)(name - path);
    name++;
    int driver = number_behind(name, "libcuda.so.");
    if (driver > 1)
        loaded->driver = driver_cuda(driver);
    int runtime = number_behind(name, "libcudart.so.");
    if (runtime) {
        loaded->runtime = runtime;
        folder_add(loaded, path, folder_len, "");
        folder_add(loaded, path, folder_len, "/../../cuda_cupti/lib");
    }
    if (!strncmp(name, "libtorch", 8) || !strncmp(name, "libc10_cuda", 11)) {
        folder_add(loaded, path, folder_len, "/../../nvidia/cu13/lib");
        folder_add(loaded, path, folder_len, "/../../nvidia/cuda_cupti/lib");
    }
}

static void read_maps(struct find_loaded *loaded)
{
    *loaded = (struct find_loaded){0};
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return;
    char line[PATH_MAX + 128];
    while (fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = '\0';
        inject_find_line(loaded, line);
    }
    fclose(maps);
}

/* --- looking ---------------------------------------------------------------------------------- */

/* The version of the program's runtime first, then the newest that the driver runs. */
static int version_at(const struct find_loaded *loaded, int turn)
{
    int first = loaded->runtime >= CUDA_OLDEST && loaded->runtime <= CUDA_NEWEST ? loaded->runtime
                                                                                 : CUDA_NEWEST;
    return turn == 0 ? first : first == CUDA_NEWEST ? CUDA_OLDEST : CUDA_NEWEST;
}

/* In one folder; NULL: by name alone. */
static void *try_folder(const struct find_loaded *loaded, const char *folder, int flags)
{
    char path[PATH_MAX];
    for (int turn = 0; turn < 2; turn++) {
        int version = version_at(loaded, turn);
        if (loaded->driver && version > loaded->driver)
            continue; /* it would refuse to work with this driver */
        int size = folder && *folder
                       ? snprintf(path, sizeof path, "%s/libcupti.so.%d", folder, version)
                       : snprintf(path, sizeof path, "libcupti.so.%d", version);
        void *library =
            size < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | flags) : NULL;
        if (library)
            return library;
    }
    return NULL;
}

static void *try_toolkit(const struct find_loaded *loaded)
{
    static const char *const below[] = {"extras/CUPTI/lib64", "lib64", "lib"};
    const char *const homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    char folder[PATH_MAX];
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++)
        for (size_t j = 0; homes[i] && homes[i][0] && j < sizeof below / sizeof below[0]; j++) {
            int len = snprintf(folder, sizeof folder, "%s/%s", homes[i], below[j]);
            void *library = len < (int)sizeof folder ? try_folder(loaded, folder, 0) : NULL;
            if (library)
                return library;
        }
    return NULL;
}

void *inject_find_cupti(void)
{
    struct find_loaded loaded;
    read_maps(&loaded);
    void *library = try_folder(&loaded, NULL, RTLD_NOLOAD);
    for (int i = 0; i < FOLDERS && !library && loaded.folders[i][0]; i++)
        library = try_folder(&loaded, loaded.folders[i], 0);
    if (!library)
        library = try_toolkit(&loaded);
    if (!library)
        library = try_folder(&loaded, NULL, 0);
    return library;
}
