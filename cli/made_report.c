#include "made_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "json_out.h"
#include "message.h"

/* So many of something, by its name in JSON. */
struct made_count {
    const char *name;
    uint64_t number;
};
#define COUNTS 3

static void print_json(const char *out, const struct made_count counts[COUNTS])
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_text(&json, "out", out);
    for (size_t i = 0; i < COUNTS; i++)
        json_out_number(&json, counts[i].name, counts[i].number);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

void made_report_shards(enum made_style style, const char *out,
                        const struct stk_pack_result *result)
{
    char size[24];

    if (style == MADE_JSON)
        print_json(out, (const struct made_count[COUNTS]){{"samples", result->samples},
                                                          {"shards", result->shards},
                                                          {"bytes", result->bytes}});
    else if (result->shards == 0)
        printf("%" PRIu64 " samples, %s, in %s\n", result->samples,
               message_size(result->bytes, size), out);
    else
        printf("%" PRIu64 " samples in %" PRIu32 " shards, %s, in %s\n", result->samples,
               result->shards, message_size(result->bytes, size), out);
}

void made_report_tables(enum made_style style, const char *out,
                        const struct stk_gen_series_result *result)
{
    char size[24];

    if (style == MADE_JSON)
        print_json(out, (const struct made_count[COUNTS]){{"files", result->files},
                                                          {"rows", result->rows},
                                                          {"bytes", result->bytes}});
    else
        printf("%" PRIu64 " rows in %" PRIu64 " tables, %s, in %s\n", result->rows, result->files,
               message_size(result->bytes, size), out);
}
