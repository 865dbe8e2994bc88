#include "sim_cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    OK = 0,
    INVALID_PARAMETER = 1,
    INVALID_OPERATION = 7,
    NO_MORE = 12,
    OTHER_TOOL = 39,
    KINDS = 64,
    BUFFERS = 256,
    OTHERS = 0xa5, /* bytes of fields that we do not know */
};

struct buffer {
    uint8_t *bytes;
    size_t size, used, most_records, records, open;
};

typedef void request_function(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void complete_function(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                               size_t valid);

/* The lock is never held while a callback runs. */
static struct {
    pthread_mutex_t lock;
    request_function *request;
    complete_function *complete;
    uint64_t (*clock)(void);
    struct buffer buffers[BUFFERS];
    int count; /* of buffers; the last one is being filled */
    size_t layouts[KINDS];
    struct sim_cupti_counts counts;
    uint64_t dropped;
    char refused[64];
    int refusal;
} cupti = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .layouts =
        {[1] = 112, [2] = 104, [4] = 40, [10] = 248, [17] = 56, [22] = 96, [38] = 56, [51] = 56},
    .counts = {.all_syncs = 1},
};

/* 0, or what the call must answer. */
static int enter(const char *function)
{
    pthread_mutex_lock(&cupti.lock);
    cupti.counts.calls++;
    int result = strcmp(cupti.refused, function) ? OK : cupti.refusal;
    pthread_mutex_unlock(&cupti.lock);
    return result;
}

/* --- CUPTI's own functions -------------------------------------------------------------------- */

SIM_API int cuptiGetVersion(uint32_t *version)
{
    *version = SIM_CUPTI_VERSION;
    return enter("cuptiGetVersion");
}

SIM_API int cuptiGetTimestamp(uint64_t *nanoseconds)
{
    *nanoseconds = sim_cupti_time();
    return enter("cuptiGetTimestamp");
}

SIM_API int cuptiGetResultString(int result, const char **words)
{
    *words =
        result == OTHER_TOOL ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR";
    return OK;
}

SIM_API int cuptiSubscribe(void **subscriber, void *callback, void *data)
{
    (void)callback, (void)data;
    *subscriber = &cupti;
    pthread_mutex_lock(&cupti.lock);
    cupti.counts.subscribes++;
    pthread_mutex_unlock(&cupti.lock);
    return enter("cuptiSubscribe");
}

SIM_API int cuptiActivityRegisterCallbacks(request_function *request, complete_function *complete)
{
    int result = enter("cuptiActivityRegisterCallbacks");
    if (result || !request || !complete)
        return result ? result : INVALID_PARAMETER;
    pthread_mutex_lock(&cupti.lock);
    cupti.request = request;
    cupti.complete = complete;
    cupti.counts.registers++;
    pthread_mutex_unlock(&cupti.lock);
    return OK;
}

SIM_API int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
    int result = enter("cuptiActivityRegisterTimestampCallback");
    if (result)
        return result;
    pthread_mutex_lock(&cupti.lock);
    cupti.clock = clock;
    pthread_mutex_unlock(&cupti.lock);
    return OK;
}

static int kind_set(const char *function, uint32_t kind, int is_enabled)
{
    int result = enter(function);
    if (result || kind >= KINDS)
        return result ? result : INVALID_PARAMETER;
    pthread_mutex_lock(&cupti.lock);
    uint64_t bit = UINT64_C(1) << kind;
    cupti.counts.enabled = is_enabled ? cupti.counts.enabled | bit : cupti.counts.enabled & ~bit;
    pthread_mutex_unlock(&cupti.lock);
    return OK;
}

SIM_API int cuptiActivityEnable(uint32_t kind)
{
    return kind_set("cuptiActivityEnable", kind, 1);
}

SIM_API int cuptiActivityDisable(uint32_t kind)
{
    return kind_set("cuptiActivityDisable", kind, 0);
}

SIM_API int cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
    pthread_mutex_lock(&cupti.lock);
    cupti.counts.all_syncs = enable;
    pthread_mutex_unlock(&cupti.lock);
    return enter("cuptiActivityEnableAllSyncRecords");
}

SIM_API int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    pthread_mutex_lock(&cupti.lock);
    *dropped = cupti.dropped;
    cupti.dropped = 0;
    pthread_mutex_unlock(&cupti.lock);
    return enter("cuptiActivityGetNumDroppedRecords");
}

SIM_API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    if (!buffer)
        return INVALID_PARAMETER;
    uint8_t *next = buffer;
    if (*record) {
        uint32_t kind;
        memcpy(&kind, *record, sizeof kind);
        next = *record + cupti.layouts[kind];
    }
    if (next >= buffer + valid)
        return NO_MORE;
    *record = next;
    return OK;
}

/* Takes the first buffer that may be handed out. 1: there is one. */
static int buffer_out(int is_forced, struct buffer *out)
{
    int found = 0;
    pthread_mutex_lock(&cupti.lock);
    for (int i = 0; i < cupti.count && !found; i++) {
        struct buffer *buffer = &cupti.buffers[i];
        if (!is_forced && (buffer->open || !buffer->records))
            continue;
        *out = *buffer;
        memmove(buffer, buffer + 1, (size_t)(cupti.count - i - 1) * sizeof *buffer);
        cupti.count--;
        found = 1;
    }
    pthread_mutex_unlock(&cupti.lock);
    return found;
}

SIM_API int cuptiActivityFlushAll(uint32_t flag)
{
    int result = enter("cuptiActivityFlushAll");
    if (result)
        return result;
    pthread_mutex_lock(&cupti.lock);
    complete_function *complete = cupti.complete;
    cupti.counts.flushes++;
    cupti.counts.forced += flag;
    pthread_mutex_unlock(&cupti.lock);
    if (!complete)
        return INVALID_OPERATION;
    struct buffer buffer;
    while (buffer_out((int)flag, &buffer))
        complete(NULL, 0, buffer.bytes, buffer.size, buffer.used);
    return OK;
}

SIM_API int cuptiFinalize(void)
{
    sim_cupti_finalize();
    return OK;
}

/* --- for tests -------------------------------------------------------------------------------- */

uint64_t sim_cupti_time(void)
{
    pthread_mutex_lock(&cupti.lock);
    uint64_t (*clock)(void) = cupti.clock;
    pthread_mutex_unlock(&cupti.lock);
    if (clock)
        return clock();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void sim_cupti_counts(struct sim_cupti_counts *out)
{
    pthread_mutex_lock(&cupti.lock);
    *out = cupti.counts;
    out->held = (uint64_t)cupti.count;
    pthread_mutex_unlock(&cupti.lock);
}

/* The buffer that has room for a record, under lock; NULL: none. */
static struct buffer *buffer_filled(size_t size)
{
    struct buffer *buffer = cupti.count ? &cupti.buffers[cupti.count - 1] : NULL;
    if (!buffer || buffer->size - buffer->used < size ||
        (buffer->most_records && buffer->records == buffer->most_records))
        return NULL;
    return buffer;
}

/* Asks for a buffer, with the lock let go. */
static struct buffer *buffer_new(void)
{
    request_function *request = cupti.request;
    if (!request || cupti.count == BUFFERS)
        return NULL;
    struct buffer buffer = {0};
    pthread_mutex_unlock(&cupti.lock);
    request(&buffer.bytes, &buffer.size, &buffer.most_records);
    if (buffer.bytes)
        memset(buffer.bytes, 0, buffer.size);
    pthread_mutex_lock(&cupti.lock);
    if (!buffer.bytes)
        return NULL;
    struct sim_cupti_counts *counts = &cupti.counts;
    counts->largest = buffer.size > counts->largest ? buffer.size : counts->largest;
    if (!counts->smallest || buffer.size < counts->smallest)
        counts->smallest = buffer.size;
    cupti.buffers[cupti.count] = buffer;
    return &cupti.buffers[cupti.count++];
}

void sim_cupti_add(const void *record, size_t size, int is_over)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    pthread_mutex_lock(&cupti.lock);
    int is_recorded = cupti.counts.enabled >> kind & 1;
    size_t layout = cupti.layouts[kind];
    if (is_recorded && layout) {
        struct buffer *buffer = buffer_filled(layout);
        buffer = buffer ? buffer : buffer_new();
        if (buffer) {
            size_t known = size < layout ? size : layout;
            memcpy(buffer->bytes + buffer->used, record, known);
            memset(buffer->bytes + buffer->used + known, OTHERS, layout - known);
            buffer->used += layout;
            buffer->records++;
            buffer->open += !is_over;
        } else {
            cupti.dropped++;
        }
    }
    pthread_mutex_unlock(&cupti.lock);
}

void sim_cupti_complete(void)
{
    pthread_mutex_lock(&cupti.lock);
    for (int i = 0; i < cupti.count; i++)
        cupti.buffers[i].open = 0;
    pthread_mutex_unlock(&cupti.lock);
}

void sim_cupti_layout(uint32_t kind, size_t size)
{
    pthread_mutex_lock(&cupti.lock);
    if (kind < KINDS)
        cupti.layouts[kind] = size;
    pthread_mutex_unlock(&cupti.lock);
}

void sim_cupti_refuse(const char *function, int result)
{
    pthread_mutex_lock(&cupti.lock);
    cupti.refused[0] = '\0';
    if (function)
        strncpy(cupti.refused, function, sizeof cupti.refused - 1);
    cupti.refusal = result;
    pthread_mutex_unlock(&cupti.lock);
}

void sim_cupti_finalize(void)
{
    pthread_mutex_lock(&cupti.lock);
    cupti.request = NULL;
    cupti.complete = NULL;
    cupti.clock = NULL;
    cupti.counts.enabled = 0;
    cupti.count = 0;
    pthread_mutex_unlock(&cupti.lock);
}
