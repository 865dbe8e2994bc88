/* `stoker show`: a contact sheet of samples, as stored and as transforms leave them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/show.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "output_file.h"
#include "source.h"
#include "transform_options.h"

#define SHOW_OUT "sheet.png"
#define SHOW_SAMPLES 16
#define SHOW_SAMPLES_MOST 65536

struct show_arguments {
    struct arguments base;
    struct transform_arguments transforms;
    const char *out, *field;
    uint32_t samples, columns, cell;
    struct option_list keys;
    uint64_t seed, epoch;
    int shuffle;
};

/* --- which samples ---------------------------------------------------------------------------- */

/* The first ones of an epoch, as a loader with this seed would give them. */
static stk_status shuffled(struct stk_context *context, struct stk_dataset *dataset,
                           const struct show_arguments *arguments, uint32_t count,
                           uint64_t *positions, struct stk_error *err)
{
    struct stk_loader_options options = {.batch_size = count,
                                         .shuffle = 1,
                                         .seed = arguments->seed,
                                         .ragged = STK_RAGGED_LIST,
                                         .threads = 1};
    struct stk_loader *loader = NULL;
    struct stk_peek step;
    stk_status status = stk_loader_open(context, dataset, &loader, &options, err);

    if (!status)
        status = stk_loader_peek(loader, arguments->epoch, 0, &step, positions, err);
    stk_loader_close(loader);
    return status;
}

static stk_status choose(struct stk_context *context, struct stk_dataset *dataset,
                         const struct show_arguments *arguments, uint32_t count,
                         uint64_t *positions, struct stk_error *err)
{
    stk_status status = STK_OK;

    for (uint32_t i = 0; i < arguments->keys.count && !status; i++)
        status = stk_dataset_find(dataset, arguments->keys.words[i], &positions[i], err);
    if (arguments->keys.count)
        return status;
    if (arguments->shuffle && count)
        return shuffled(context, dataset, arguments, count, positions, err);
    for (uint32_t i = 0; i < count; i++)
        positions[i] = i;
    return STK_OK;
}

/* --- the result ------------------------------------------------------------------------------- */

static void json_box(struct json_out *json, const char *name, const struct stk_sheet_box *box)
{
    if (!box->width) {
        json_out_text(json, name, NULL);
        return;
    }
    json_out_array(json, name);
    json_out_number(json, NULL, box->x);
    json_out_number(json, NULL, box->y);
    json_out_number(json, NULL, box->width);
    json_out_number(json, NULL, box->height);
    json_out_end_array(json);
}

static void print_json(const struct stk_dataset *dataset, const struct stk_sheet *sheet,
                       const char *out)
{
    struct json_out json = {.stream = stdout};
    struct stk_bytes key;

    json_out_object(&json, NULL);
    json_out_text(&json, "out", out);
    json_out_text(&json, "field", sheet->field);
    json_out_number(&json, "samples", sheet->count);
    json_out_number(&json, "bad", sheet->bad);
    json_out_number(&json, "width", sheet->width);
    json_out_number(&json, "height", sheet->height);
    json_out_array(&json, "cells");
    for (uint32_t i = 0; i < sheet->count; i++) {
        const struct stk_sheet_cell *cell = &sheet->cells[i];
        json_out_object(&json, NULL);
        json_out_number(&json, "sample", cell->position);
        if (!stk_dataset_key(dataset, cell->position, &key, NULL))
            json_out_bytes(&json, "key", key);
        json_box(&json, "before", &cell->before);
        json_box(&json, "after", &cell->after);
        json_out_text(&json, "error", *cell->words ? cell->words : NULL);
        json_out_end_object(&json);
    }
    json_out_end_array(&json);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static void print_words(const struct stk_sheet *sheet, const char *out)
{
    printf("%s: %" PRIu32 " samples of %s, %" PRIu32 " x %" PRIu32 " pixels\n", out, sheet->count,
           sheet->field, sheet->width, sheet->height);
    for (uint32_t i = 0; i < sheet->count; i++)
        if (*sheet->cells[i].words)
            printf("  sample %" PRIu64 ": %s\n", sheet->cells[i].position, sheet->cells[i].words);
}

static int write_sheet(struct stk_sheet *sheet, const char *out)
{
    struct output_file file;
    struct stk_bytes png;
    struct stk_error err;

    if (stk_sheet_png(sheet, &png, &err))
        return message_error(&err);
    int status = output_file_begin(&file, out);
    if (status)
        return status;
    fwrite(png.data, 1, png.len, file.stream);
    return output_file_commit(&file);
}

/* --- the command ------------------------------------------------------------------------------ */

static int draw(struct stk_context *context, struct stk_dataset *dataset,
                const struct show_arguments *arguments, struct stk_show_options *options)
{
    uint64_t samples = stk_dataset_samples(dataset);
    uint32_t count = arguments->keys.count ? arguments->keys.count : arguments->samples;
    struct stk_sheet *sheet = NULL;
    struct stk_error err;
    char title[512];
    int status = EXIT_DONE;

    if (!arguments->keys.count && count > samples)
        count = (uint32_t)samples;
    uint64_t *positions = calloc((size_t)count + 1, sizeof(*positions));
    if (!positions)
        return message_failed("out of memory");
    snprintf(title, sizeof(title), "%s: %" PRIu32 " of %" PRIu64 " samples",
             arguments->base.words[0], count, samples);
    options->title = title;
    options->positions = positions;
    options->count = count;
    if (choose(context, dataset, arguments, count, positions, &err) ||
        stk_sheet_draw(context, dataset, &sheet, options, &err)) {
        status = message_error(&err);
    } else {
        status = write_sheet(sheet, arguments->out);
        if (!status && arguments->base.json)
            print_json(dataset, sheet, arguments->out);
        else if (!status)
            print_words(sheet, arguments->out);
    }
    stk_sheet_free(sheet);
    free(positions);
    return status;
}

static int check_usage(const struct command *command, const struct show_arguments *arguments,
                       const struct stk_field_chain *chain)
{
    if (arguments->transforms.each.count > 1)
        return message_usage(command->name, "one field is shown: --transform may come once");
    if (chain->field && arguments->field && strcmp(chain->field, arguments->field))
        return message_usage(command->name, "--transform is for %s, but --field shows %s",
                             chain->field, arguments->field);
    if (arguments->keys.count && arguments->shuffle)
        return message_usage(command->name, "--keys says which samples: --shuffle does not");
    if (!arguments->samples || arguments->samples > SHOW_SAMPLES_MOST)
        return message_usage(command->name, "--samples is 1 to %d", SHOW_SAMPLES_MOST);
    return 0;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct show_arguments arguments = {.out = SHOW_OUT, .samples = SHOW_SAMPLES};
    struct stk_field_chain chains[TRANSFORM_CHAINS_MOST] = {{0}};
    struct stk_dataset *dataset;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    status = transforms_read(command->name, context, &arguments.transforms, chains);
    if (!status)
        status = check_usage(command, &arguments, &chains[0]);
    if (status)
        return status;
    if (source_open(context, &arguments.base, arguments.base.words, arguments.base.word_count,
                    &dataset, &err))
        return message_error(&err);
    struct stk_show_options options = {
        .field = chains[0].field ? chains[0].field : arguments.field,
        .chain = chains[0].chain,
        .columns = arguments.columns,
        .cell = arguments.cell,
        .seed = arguments.seed,
        .epoch = arguments.epoch,
    };
    status = draw(context, dataset, &arguments, &options);
    stk_dataset_close(dataset);
    return status;
}

#define AT(member) offsetof(struct show_arguments, member)

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "FILE", "the picture, a PNG (" SHOW_OUT ")"},
    {"transform", 0, OPTION_EACH, AT(transforms.each), "'FIELD: CHAIN'", TRANSFORM_HELP},
    {"plugin", 0, OPTION_EACH, AT(transforms.plugins), "FILE",
     "a library with transforms of your own"},
    {"field", 0, OPTION_TEXT, AT(field), "NAME",
     "which field (that of --transform, else the first that holds media, else a tensor)"},
    {"samples", 0, OPTION_U32, AT(samples), "N", "so many, from the first on (16)"},
    {"keys", 0, OPTION_LIST, AT(keys), "A,B,...", "the samples of these keys"},
    {"shuffle", 0, OPTION_FLAG, AT(shuffle), NULL,
     "the first samples of a shuffled epoch, as `stoker stream` would give them"},
    {"seed", 0, OPTION_U64, AT(seed), "N", "of the order and of the transforms (0)"},
    {"epoch", 0, OPTION_U64, AT(epoch), "N", "of the order and of the transforms (0)"},
    {"columns", 0, OPTION_U32, AT(columns), "N", "samples side by side (4)"},
    {"cell", 0, OPTION_U32, AT(cell), "PIXELS", "width and height of a cell (224)"},
    {0},
};

const struct command cmd_show = {
    .name = "show",
    .summary =
        "Draws a contact sheet: samples as they are stored, and beside them what transforms\n"
        "make of them, with the random numbers that training would have. Images as they "
        "are,\nframes of videos, waves and spectra of audio, points from above, other "
        "tensors as plots.",
    .usage = "SRC... [options]",
    .examples = "  stoker show shards/ -o sheet.png\n"
                "  stoker show shards/ --shuffle --transform \\\n"
                "    'jpg: RandomResizedCrop(224) | RandomHorizontalFlip | Normalize(imagenet)'\n"
                "  stoker show speech/ --transform 'flac: Resample(16000) | LogMel(n_mels=80)'\n"
                "  stoker show shards/ --keys 000007,000012 --columns 2 --cell 448\n",
    .options = options,
    .opens = OPENS_WINDOWS,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
