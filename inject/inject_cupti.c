#include "inject_cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "inject_find.h"

#define AT(type, field, offset)                                                                    \
    _Static_assert(offsetof(struct type, field) == (offset), "as CUPTI lays records out")
AT(cupti_kernel, start, 16);
AT(cupti_kernel, end, 24);
AT(cupti_kernel, device, 40);
AT(cupti_kernel, stream, 48);
AT(cupti_kernel, correlation, 92);
AT(cupti_kernel, name, 104);
AT(cupti_kernel, graph_node, 144);
AT(cupti_kernel, graph, 156);
AT(cupti_copy, way, 4);
AT(cupti_copy, from, 5);
AT(cupti_copy, to, 6);
AT(cupti_copy, bytes, 8);
AT(cupti_copy, start, 16);
AT(cupti_copy, end, 24);
AT(cupti_copy, device, 32);
AT(cupti_copy, stream, 40);
AT(cupti_copy, correlation, 44);
AT(cupti_copy, graph_node, 64);
AT(cupti_sync, what, 4);
AT(cupti_sync, start, 8);
AT(cupti_sync, end, 16);
AT(cupti_sync, stream, 32);
AT(cupti_overhead, what, 4);
AT(cupti_overhead, start, 24);
AT(cupti_overhead, end, 32);

enum { VERSION_LEAST = 18 };         /* of CUDA 12.0: kernel records carry their graph */
enum { VERSION_BY_NUMBER = 100000 }; /* from CUDA 13 on the number says the version: 130401 */

static const struct wanted {
    const char *name;
    size_t at; /* in the table */
    int is_needed;
} wanted_functions[] = {
    {"cuptiGetVersion", offsetof(struct cupti_table, get_version), 1},
    {"cuptiGetTimestamp", offsetof(struct cupti_table, get_timestamp), 1},
    {"cuptiGetResultString", offsetof(struct cupti_table, get_words), 1},
    {"cuptiActivityRegisterCallbacks", offsetof(struct cupti_table, register_callbacks), 1},
    {"cuptiActivityEnable", offsetof(struct cupti_table, enable), 1},
    {"cuptiActivityDisable", offsetof(struct cupti_table, disable), 1},
    {"cuptiActivityFlushAll", offsetof(struct cupti_table, flush_all), 1},
    {"cuptiActivityGetNextRecord", offsetof(struct cupti_table, next_record), 1},
    {"cuptiActivityGetNumDroppedRecords", offsetof(struct cupti_table, get_dropped), 1},
    {"cuptiActivityRegisterTimestampCallback", offsetof(struct cupti_table, register_clock), 0},
    {"cuptiActivityEnableAllSyncRecords", offsetof(struct cupti_table, enable_all_syncs), 0},
};

int cupti_open(struct cupti_table *table, char words[CUPTI_WORDS])
{
    *table = (struct cupti_table){0};
    void *library = inject_find_cupti();
    if (!library) {
        snprintf(words, CUPTI_WORDS,
                 "CUPTI, which records kernels, was not found for this program: install "
                 "nvidia-cuda-cupti (CUDA 13) or nvidia-cuda-cupti-cu12 beside it, or set "
                 "CUDA_HOME to a toolkit");
        return -1;
    }
    for (size_t i = 0; i < sizeof wanted_functions / sizeof wanted_functions[0]; i++) {
        void *function = dlsym(library, wanted_functions[i].name);
        memcpy((char *)table + wanted_functions[i].at, &function, sizeof function);
        if (!function && wanted_functions[i].is_needed) {
            snprintf(words, CUPTI_WORDS,
                     "this CUPTI has no function %s: CUDA 12 or later is needed",
                     wanted_functions[i].name);
            return -1;
        }
    }
    uint32_t version = 0; /* 13.4 does not tell it before the driver is ready; that is no fault */
    if (!table->get_version(&version) && version < VERSION_LEAST) {
        snprintf(words, CUPTI_WORDS,
                 "this CUPTI is of API version %u, older than CUDA 12: its records are not read",
                 version);
        return -1;
    }
    return 0;
}

void cupti_version(const struct cupti_table *table, char *text, size_t size)
{
    static const uint8_t minors[] = {0, 2, 3, 4, 5,
                                     6, 6, 8, 9, 9}; /* of 12, from API version 19 on */
    uint32_t version = 0, last = VERSION_LEAST + sizeof minors - 1;
    if (table->get_version(&version))
        snprintf(text, size, "%s", "");
    else if (version >= VERSION_BY_NUMBER)
        snprintf(text, size, "%u.%u", version / 10000, version / 100 % 100);
    else
        snprintf(text, size, "12.%u", minors[(version < last ? version : last) - VERSION_LEAST]);
}

void cupti_refusal(const struct cupti_table *table, int result, const char *doing,
                   char words[CUPTI_WORDS])
{
    const char *name = NULL;
    if (table->get_words(result, &name) || !name)
        name = "no reason";
    const char *remedy = "";
    if (result == CUPTI_OTHER_TOOL)
        remedy = ": another profiler (Nsight, for one) holds it; run without that";
    else if (result == CUPTI_NOT_PRIVILEGED || result == CUPTI_NOT_THERE_VIRTUAL)
        remedy =
            ": the driver lets only administrators profile (NVreg_RestrictProfilingToAdminUsers)";
    snprintf(words, CUPTI_WORDS, "CUPTI refused to %s (%s, %d)%s", doing, name, result, remedy);
}
