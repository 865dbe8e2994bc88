#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stoker/cache.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "output_file.h"
#include "stream.h"

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

static void json_digest(struct json_out *json, const char *name, const struct stk_digest *digest)
{
    char text[33];

    if (digest)
        stk_digest_text(digest, text);
    json_out_text(json, name, digest ? text : NULL);
}

static void json_reads(struct json_out *json, const struct stk_loader_stats *stats)
{
    json_out_object(json, "reads");
    json_out_number(json, "issued", stats->reads);
    json_out_number(json, "merged", stats->merged_reads);
    json_out_number(json, "mapped", stats->mapped_copies);
    json_out_number(json, "chunks", stats->chunks_decoded);
    json_out_end_object(json);
}

/* What the run's cache did; 0: it has none. */
static int cache_counts(const struct stream *stream, struct stk_cache_counts *counts)
{
    const char *folder = stream->arguments->base.cache;

    folder = folder ? folder : getenv("STOKER_CACHE");
    return folder && folder[0] && stk_cache_counts(folder, counts);
}

static void json_cache(struct json_out *json, const struct stream *stream)
{
    struct stk_cache_counts counts;

    if (!cache_counts(stream, &counts)) {
        json_out_text(json, "cache", NULL);
        return;
    }
    json_out_object(json, "cache");
    json_out_number(json, "hits", counts.hits);
    json_out_number(json, "misses", counts.misses);
    json_out_number(json, "bypassed", counts.bypassed);
    json_out_number(json, "written", counts.written);
    json_out_number(json, "dropped", counts.dropped);
    json_out_number(json, "damaged", counts.damaged);
    json_out_number(json, "evicted", counts.evicted);
    json_out_bool(json, "disk_full", counts.disk_full);
    json_out_end_object(json);
}

static void json_device(struct json_out *json, const struct stk_loader_stats *stats)
{
    const struct stk_device_stats *device = &stats->device;

    if (!device->name[0]) {
        json_out_text(json, "device", NULL);
        return;
    }
    json_out_object(json, "device");
    json_out_text(json, "name", device->name);
    json_out_number(json, "peak_bytes", device->peak_bytes);
    json_out_number(json, "caller_peak_bytes", device->caller_peak_bytes);
    json_out_number(json, "shipped_bytes", device->shipped_bytes);
    json_out_number(json, "pinned_bytes", device->pinned_bytes);
    json_out_number(json, "pageable_batches", device->pageable_batches);
    json_out_number(json, "resident_bytes", device->resident_bytes);
    json_out_number(json, "resident_samples", device->resident_samples);
    json_out_number(json, "resident_batches", device->resident_batches);
    json_out_number(json, "decode_bytes", device->decode_bytes);
    json_out_number(json, "gpu_decoded", device->gpu_decoded);
    json_out_number(json, "cpu_decoded", device->cpu_decoded);
    json_out_real(json, "decode_share", device->decode_share);
    json_out_end_object(json);
}

static void report_json(const struct stream *stream, const struct stk_loader_stats *stats)
{
    struct json_out json = {.stream = stdout};
    int hashed = !stream->arguments->no_digest;

    json_out_object(&json, NULL);
    json_out_number(&json, "samples", stream->samples);
    json_out_number(&json, "batches", stream->batches);
    json_out_number(&json, "bytes", stream->bytes);
    json_out_real(&json, "seconds", stream->seconds);
    json_out_real(&json, "samples_per_s", rate((double)stream->samples, stream->seconds));
    json_out_real(&json, "bytes_per_s", rate((double)stream->bytes, stream->seconds));
    json_out_object(&json, "waits");
    json_out_real(&json, "fetch", stats->waits.fetch);
    json_out_real(&json, "fill", stats->waits.fill);
    json_out_real(&json, "ship", stats->waits.ship);
    json_out_real(&json, "consumer", stats->waits.consumer);
    json_out_end_object(&json);
    json_out_number(&json, "peak_bytes", stats->peak_bytes);
    json_out_number(&json, "caller_peak_bytes", stats->caller_peak_bytes);
    json_out_number(&json, "bad", stats->bad);
    json_digest(&json, "digest", hashed ? &stream->digest : NULL);
    json_digest(&json, "run_digest",
                !hashed                     ? NULL
                : stream->has_run_digest    ? &stream->run_digest
                : stream->arguments->resume ? NULL
                                            : &stream->digest);
    json_out_number(&json, "epochs", stream->arguments->epochs);
    json_out_number(&json, "first_epoch", stream->first_epoch);
    json_out_number(&json, "epoch", stream->epoch);
    json_out_number(&json, "position", stream->position);
    json_out_number(&json, "steps", stk_loader_steps(stream->loader));
    json_out_text(&json, "io", stats->io);
    json_out_number(&json, "threads", stats->threads);
    json_reads(&json, stats);
    json_cache(&json, stream);
    json_device(&json, stats);
    json_out_real(&json, "open_seconds", stream->open_seconds);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static void text_device(const struct stk_loader_stats *stats)
{
    const struct stk_device_stats *device = &stats->device;
    char size[24];

    printf("device    %s: %s shipped", device->name, message_size(device->shipped_bytes, size));
    printf(", %s held at most", message_size(device->peak_bytes, size));
    printf(", waited %.3f s for it\n", stats->waits.ship);
    if (device->resident_bytes)
        printf("resident  %s, %" PRIu64 " batches made of it\n",
               message_size(device->resident_bytes, size), device->resident_batches);
    if (device->gpu_decoded || device->cpu_decoded)
        printf("decoded   %" PRIu64 " by the GPU, %" PRIu64 " by the CPU\n", device->gpu_decoded,
               device->cpu_decoded);
}

static void text_cache(const struct stream *stream)
{
    struct stk_cache_counts counts;

    if (!cache_counts(stream, &counts))
        return;
    printf("cache     %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64 " read past it%s\n",
           counts.hits, counts.misses, counts.bypassed,
           counts.disk_full ? ": its disk is full" : "");
    if (counts.damaged)
        printf("          %" PRIu64 " blocks were damaged, and fetched again\n", counts.damaged);
}

static void report_text(const struct stream *stream, const struct stk_loader_stats *stats)
{
    char size[24], digest[33];

    printf("samples   %" PRIu64 " in %" PRIu64 " batches\n", stream->samples, stream->batches);
    printf("bytes     %s\n", message_size(stream->bytes, size));
    printf("time      %.3f s (and %.3f s to open)\n", stream->seconds, stream->open_seconds);
    printf("rate      %.0f samples/s, %s/s\n", rate((double)stream->samples, stream->seconds),
           message_size((uint64_t)rate((double)stream->bytes, stream->seconds), size));
    printf("waits     fetch %.3f s, fill %.3f s, consumer %.3f s\n", stats->waits.fetch,
           stats->waits.fill, stats->waits.consumer);
    printf("memory    %s at most", message_size(stats->peak_bytes, size));
    printf(", and %s with the caller\n", message_size(stats->caller_peak_bytes, size));
    if (stats->device.name[0])
        text_device(stats);
    printf("io        %s, %" PRIu32 " threads\n", stats->io, stats->threads);
    text_cache(stream);
    printf("stopped   epoch %" PRIu64 ", sample %" PRIu64 "\n", stream->epoch, stream->position);
    printf("bad       %" PRIu64 "\n", stats->bad);
    if (!stream->arguments->no_digest) {
        stk_digest_text(&stream->digest, digest);
        printf("digest    %s\n", digest);
    }
}

void stream_report(const struct stream *stream)
{
    struct stk_loader_stats stats;

    stk_loader_stats(stream->loader, &stats);
    if (stream->arguments->base.json)
        report_json(stream, &stats);
    else
        report_text(stream, &stats);
}

static void write_quarantined(FILE *file, const struct stk_quarantined *bad)
{
    struct json_out json = {.stream = file};

    json_out_object(&json, NULL);
    json_out_text(&json, "object", bad->error.object[0] ? bad->error.object : NULL);
    json_out_place(&json, "offset", bad->error.offset);
    json_out_place(&json, "sample", bad->sample);
    json_out_text(&json, "key", bad->error.key[0] ? bad->error.key : NULL);
    json_out_text(&json, "field", bad->error.field[0] ? bad->error.field : NULL);
    json_out_text(&json, "reason", bad->error.what);
    json_out_place(&json, "substitute", bad->substitute);
    json_out_number(&json, "epoch", bad->epoch);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

int stream_quarantine(const struct stream *stream, const char *path)
{
    uint64_t count = stk_loader_quarantine(stream->loader, NULL, 0);
    struct stk_quarantined *bad = calloc(count + 1, sizeof(*bad));
    struct output_file file;
    int status;

    if (!bad)
        return message_failed("out of memory");
    uint64_t found = stk_loader_quarantine(stream->loader, bad, count);
    count = found < count ? found : count;
    status = output_file_begin(&file, path);
    if (!status) {
        for (uint64_t i = 0; i < count; i++)
            write_quarantined(file.stream, &bad[i]);
        status = output_file_commit(&file);
    }
    free(bad);
    return status;
}
