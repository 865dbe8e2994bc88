#include "watch/loader_facts.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

static void text_read(const struct json *json, const char *name, char *to, size_t room)
{
    const char *text;
    if (json_get_text(json, name, &text))
        snprintf(to, room, "%s", text);
}

/* A number, or true and false as 1 and 0. */
static void number_read(const struct json *json, const char *name, int64_t *to)
{
    const struct json *value = json_member(json, name);
    int flag;
    if (json_bool(value, &flag))
        *to = flag;
    else
        (void)json_i64(value, to);
}

static void small_read(const struct json *json, const char *name, int32_t *to)
{
    int64_t number = *to;
    number_read(json, name, &number);
    *to = number < -1 ? -1 : number > INT32_MAX ? INT32_MAX : (int32_t)number;
}

static void whole_read(const struct json *json, const char *name, uint64_t *to)
{
    double number;
    if (json_double(json_member(json, name), &number) && number >= 0 && number < 1e18)
        *to = (uint64_t)number;
}

void loader_facts_describe(struct loader_facts *facts, const char *text, size_t len)
{
    struct json *json;
    if (json_parse(&json, text, len, NULL))
        return;
    struct summary_loader *loader = &facts->summary;
    facts->described = 1;
    text_read(json, "kind", loader->kind, sizeof loader->kind);
    text_read(json, "class", loader->class_name, sizeof loader->class_name);
    text_read(json, "dataset", loader->dataset, sizeof loader->dataset);
    text_read(json, "collate", loader->collate, sizeof loader->collate);
    text_read(json, "file", loader->file, sizeof loader->file);
    uint64_t line = loader->line;
    whole_read(json, "line", &line);
    loader->line = line > UINT32_MAX ? 0 : (uint32_t)line;
    small_read(json, "batch_size", &loader->batch_size);
    small_read(json, "workers", &loader->workers);
    small_read(json, "prefetch_factor", &loader->prefetch_factor);
    small_read(json, "pin_memory", &loader->pin_memory);
    small_read(json, "persistent_workers", &loader->persistent_workers);
    small_read(json, "in_order", &loader->in_order);
    number_read(json, "samples", &loader->samples);
    number_read(json, "batches", &loader->batches);
    whole_read(json, "batch_bytes", &loader->batch_bytes);
    json_free(json);
}

void loader_facts_files(struct loader_facts *facts, const char *text, size_t len)
{
    struct json *json;
    if (json_parse(&json, text, len, NULL))
        return;
    struct summary_loader *loader = &facts->summary;
    whole_read(json, "opens", &loader->opens);
    whole_read(json, "distinct", &loader->distinct_files);
    whole_read(json, "bytes", &loader->opened_bytes);
    text_read(json, "folder", loader->folder, sizeof loader->folder);
    text_read(json, "extension", loader->extension, sizeof loader->extension);
    json_free(json);
}

void loader_facts_span(struct loader_facts *facts, const struct record_span *span)
{
    struct summary_loader *loader = &facts->summary;
    uint64_t ns = span->end - span->start, share = (span->head.flags & 0xffffu) >> SPAN_CPU_SHIFT;
    /* Unknown is taken for all of it: a fetch that reads says so by its spans. */
    uint64_t cpu = !share ? ns : (uint64_t)((double)ns * (double)(share - 1) / SPAN_CPU_WHOLE);
    cpu = cpu < ns ? cpu : ns;
    switch (span->what) {
    case SPAN_FETCH:
        loader->fetch_ns += ns;
        loader->fetch_cpu_ns += cpu;
        facts->busy_cpu_ns += cpu;
        facts->busy_batches++;
        durations_add(&facts->fetch_lengths, ns);
        break;
    case SPAN_COLLATE:
        loader->collate_ns += ns;
        facts->busy_cpu_ns += cpu;
        break;
    case SPAN_SEND:
        loader->send_ns += ns;
        facts->busy_cpu_ns += cpu;
        break;
    case SPAN_IDLE:
        loader->idle_ns += ns;
        break;
    case SPAN_PIN:
        loader->pin_ns += ns;
        break;
    case SPAN_ITER:
        loader->starts += span->b > 0;
        loader->start_ns += ns;
        break;
    default:
        break;
    }
}

stk_status loader_facts_epoch(struct loader_facts *facts, uint64_t start, struct stk_error *err)
{
    loader_facts_epoch_end(facts, start);
    facts->summary.epochs++;
    if (facts->epoch_count == LOADER_EPOCHS)
        return STK_OK;
    if (facts->epoch_count == facts->epoch_cap) {
        size_t cap = facts->epoch_cap ? facts->epoch_cap * 2 : 8;
        struct summary_epoch *grown = memory_grow(facts->epochs, cap * sizeof *grown);
        if (!grown)
            return fail_memory(err, cap * sizeof *grown);
        facts->epochs = grown;
        facts->epoch_cap = cap;
    }
    facts->epochs[facts->epoch_count++] = (struct summary_epoch){.start = start};
    return STK_OK;
}

struct summary_epoch *loader_facts_now(struct loader_facts *facts)
{
    struct summary_epoch *last = facts->epoch_count ? &facts->epochs[facts->epoch_count - 1] : NULL;
    return last && !last->end ? last : NULL;
}

void loader_facts_epoch_end(struct loader_facts *facts, uint64_t end)
{
    struct summary_epoch *now = loader_facts_now(facts);
    if (now)
        now->end = end > now->start ? end : now->start;
}

void loader_facts_reset(struct loader_facts *facts)
{
    memory_free(facts->epochs);
    *facts = (struct loader_facts){0};
}
