#include "probe_report.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "stoker/version.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "source.h"

#define CURVE_POINTS 16
#define CURVE_WIDTH 48

struct point {
    uint32_t at_once;
    double bytes_per_s;
};

struct report {
    struct json_out *json; /* NULL: text */
    struct point curve[CURVE_POINTS];
    int count;
};

static void json_step(struct json_out *json, const struct stk_probe_row *row)
{
    static const char *const states[] = {"good", "absent", "bad"};

    json_out_object(json, NULL);
    json_out_text(json, "step", row->step);
    json_out_text(json, "state", states[row->state]);
    json_out_text(json, "value", row->value);
    json_out_text(json, "remedy", row->remedy);
    json_out_real(json, "seconds", row->seconds);
    json_out_end_object(json);
}

static void text_step(const struct stk_probe_row *row)
{
    static const char *const marks[] = {"ok", "-", "!"};

    printf("  %-2s %-10s %s", marks[row->state], row->step, row->value);
    if (row->seconds >= 0.0005)
        printf(" (%.0f ms)", row->seconds * 1e3);
    printf("\n");
    if (row->remedy[0])
        printf("     %-10s %s\n", "", row->remedy);
    fflush(stdout); /* the next step may take its time */
}

/* Speeds come in the end, one row each: they are drawn together. */
static void take_row(void *user, const struct stk_probe_row *row)
{
    struct report *report = user;

    if (row->at_once && report->count < CURVE_POINTS) {
        report->curve[report->count++] = (struct point){row->at_once, row->bytes_per_s};
        return;
    }
    if (report->json)
        json_step(report->json, row);
    else
        text_step(row);
}

static void curve_json(const struct report *report)
{
    struct json_out *json = report->json;

    json_out_array(json, "curve");
    for (int i = 0; i < report->count; i++) {
        json_out_object(json, NULL);
        json_out_number(json, "at_once", report->curve[i].at_once);
        json_out_real(json, "bytes_per_s", report->curve[i].bytes_per_s);
        json_out_end_object(json);
    }
    json_out_end_array(json);
}

/* The fewest requests that come within a twentieth of the best. */
static const struct point *curve_knee(const struct report *report, double best)
{
    for (int i = 0; i < report->count; i++)
        if (report->curve[i].bytes_per_s >= 0.95 * best)
            return &report->curve[i];
    return NULL;
}

static void curve_text(const struct report *report)
{
    static const char bar[] = "################################################";
    double best = 0;

    for (int i = 0; i < report->count; i++)
        best = report->curve[i].bytes_per_s > best ? report->curve[i].bytes_per_s : best;
    if (best <= 0)
        return;
    printf("\n  at a time       MB/s\n");
    for (int i = 0; i < report->count; i++) {
        const struct point *point = &report->curve[i];
        int len = (int)(point->bytes_per_s / best * CURVE_WIDTH + 0.5);
        printf("  %9u %10.1f  %.*s\n", point->at_once, point->bytes_per_s * 1e-6, len > 0 ? len : 1,
               bar);
    }
    const struct point *knee = curve_knee(report, best);
    printf("  best: %.1f MB/s, reached with %u at a time\n", best * 1e-6, knee->at_once);
}

/* The URI as far as it holds no secret: without its query, and without user and password. What
 * abfss and wasbs have before their host is a container. */
static void uri_shown(const char *uri, char *out, size_t cap)
{
    size_t scheme = strcspn(uri, ":") + 3, len = strcspn(uri, "?");
    const char *rest = uri + (scheme < len ? scheme : len);
    const char *at = memchr(rest, '@', strcspn(rest, "/?"));
    int names = !strncasecmp(uri, "abfs", 4) || !strncasecmp(uri, "wasb", 4);
    int hides = at && (!names || memchr(rest, ':', (size_t)(at - rest)));
    const char *from = hides ? at + 1 : rest;

    snprintf(out, cap, "%.*s%.*s", (int)(rest - uri), uri, (int)(uri + len - from), from);
}

static int probe_one(struct stk_context *context, const char *uri, struct json_out *json)
{
    struct report report = {.json = json};
    struct stk_error err = {0};
    char shown[1024];

    uri_shown(uri, shown, sizeof shown);
    if (json) {
        json_out_object(json, NULL);
        json_out_text(json, "uri", shown);
        json_out_array(json, "rows");
    } else {
        printf("%s\n", shown);
    }
    stk_status status = stk_remote_probe(context, uri, NULL, take_row, &report, &err);
    if (json) {
        json_out_end_array(json);
        curve_json(&report);
        json_out_bool(json, "works", status == STK_OK);
        json_out_end_object(json);
    } else {
        curve_text(&report);
    }
    if (status == STK_CANCELLED || status == STK_USAGE)
        return message_error(&err);
    return status ? EXIT_FAILED : EXIT_DONE;
}

int probe_report(struct stk_context *context, const struct arguments *arguments)
{
    struct json_out json = {.stream = stdout};
    struct json_out *out = arguments->json ? &json : NULL;
    struct stk_error err = {0};
    int status = EXIT_DONE;

    if (source_configure(arguments, &err))
        return message_error(&err);
    if (out) {
        json_out_object(out, NULL);
        json_out_text(out, "version", stk_version());
        json_out_array(out, "probes");
    }
    for (int i = 0; i < arguments->word_count && status <= EXIT_FAILED; i++) {
        int one = probe_one(context, arguments->words[i], out);
        status = one ? one : status;
        if (!out && i + 1 < arguments->word_count)
            printf("\n");
    }
    if (out) {
        json_out_end_array(out);
        json_out_end_object(out);
        json_out_end_line(out);
    }
    return status;
}
