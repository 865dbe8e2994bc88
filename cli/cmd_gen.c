/* `stoker gen`: synthetic data sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/pack.h"
#include "stoker/series.h"
#include "exit_status.h"
#include "made_report.h"
#include "message.h"
#include "option_value.h"
#include "options.h"

#define UNSAID UINT32_MAX /* as a number */

struct gen_arguments {
    struct arguments base;
    const char *out;
    uint64_t seed;
    int force;
    /* all but series */
    uint32_t shards, classes, threads;
    uint64_t samples;
    /* tensors */
    const char *loose;
    struct option_shape shape;
    enum stk_dtype dtype;
    /* series */
    uint64_t entities, rows;
    uint32_t features;
    int csv;
    /* media */
    const char *format, *size;
    int folder;
    uint32_t quality;
    /* images */
    const char *vary;
    uint32_t subsampling;
    int progressive;
    /* audio, video, points */
    const char *seconds, *fps;
    uint32_t rate, channels, frames, points;
};

static uint32_t said(uint32_t number, uint32_t usual)
{
    return number == UNSAID ? usual : number;
}

/* --- tensors --------------------------------------------------------------------------------- */

static int gen_tensors(struct stk_context *context, const struct gen_arguments *arguments)
{
    static const int64_t usual[] = {16, 112, 112, 3};
    struct stk_gen_tensors_options options = {
        .out = arguments->out,
        .loose = arguments->loose,
        .shards = arguments->shards == UNSAID ? 10 : arguments->shards,
        .samples = arguments->samples == UNSAID ? 1000 : arguments->samples,
        .shape = {.dtype = arguments->dtype == STK_DTYPE_COUNT ? STK_F16 : arguments->dtype,
                  .rank = arguments->shape.rank},
        .classes = arguments->classes == UNSAID ? 10 : arguments->classes,
        .seed = arguments->seed,
        .threads = arguments->threads == UNSAID ? 0 : arguments->threads,
        .force = arguments->force,
    };
    struct stk_pack_result result;
    struct stk_error err;

    memcpy(options.shape.shape, arguments->shape.shape, sizeof(options.shape.shape));
    if (arguments->shape.rank == 0) {
        options.shape.rank = 4;
        memcpy(options.shape.shape, usual, sizeof(usual));
    }
    if (stk_gen_tensors(context, &options, &result, &err))
        return message_error(&err);
    made_report_shards(arguments->base.json ? MADE_JSON : MADE_WORDS, arguments->out, &result);
    return EXIT_DONE;
}

/* --- series ---------------------------------------------------------------------------------- */

static int gen_series(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_series_options options = {
        .out = arguments->out,
        .entities = arguments->entities == UNSAID ? 100 : arguments->entities,
        .rows = arguments->rows == UNSAID ? 1000 : arguments->rows,
        .features = arguments->features == UNSAID ? 4 : arguments->features,
        .seed = arguments->seed,
        .csv = arguments->csv,
        .force = arguments->force,
    };
    struct stk_gen_series_result result;
    struct stk_error err;

    if (stk_gen_series(context, &options, &result, &err))
        return message_error(&err);
    made_report_tables(arguments->base.json ? MADE_JSON : MADE_WORDS, arguments->out, &result);
    return EXIT_DONE;
}

/* --- media ----------------------------------------------------------------------------------- */

/* Some shards of media, or a folder a class. */
static struct stk_gen_options common_options(const struct gen_arguments *arguments)
{
    uint64_t samples = arguments->samples == UNSAID ? 1000 : arguments->samples;

    return (struct stk_gen_options){
        .out = arguments->out,
        .samples = samples,
        .classes = said(arguments->classes, 10),
        .shards = said(arguments->shards, samples && samples < 10 ? (uint32_t)samples : 10),
        .folders = arguments->folder,
        .seed = arguments->seed,
        .threads = said(arguments->threads, 0),
        .force = arguments->force,
    };
}

static int report(const struct gen_arguments *arguments, stk_status status,
                  const struct stk_pack_result *result, const struct stk_error *err)
{
    if (status)
        return message_error(err);
    made_report_shards(arguments->base.json ? MADE_JSON : MADE_WORDS, arguments->out, result);
    return EXIT_DONE;
}

/* "500x375"; NULL leaves them. Not 0: it is none, and standard error says so. */
static int read_size(const char *text, uint32_t *width, uint32_t *height)
{
    size_t digits = text ? strspn(text, "0123456789") : 0;
    uint64_t wide, high;
    char first[12];

    if (!text)
        return 0;
    if (digits && digits < sizeof(first) && text[digits] == 'x') {
        memcpy(first, text, digits);
        first[digits] = 0;
        if (option_value_number(first, UINT32_MAX, &wide) &&
            option_value_number(text + digits + 1, UINT32_MAX, &high)) {
            *width = (uint32_t)wide;
            *height = (uint32_t)high;
            return 0;
        }
    }
    return message_usage("gen", "--size takes a width and a height such as 500x375, not %s", text);
}

/* The number of format's word among "a|b|c"; NULL is the first. -1: it is none, and standard error
 * says so. */
static int read_format(const char *kind, const char *format, const char *words)
{
    size_t len = format ? strlen(format) : 0;
    int number = 0;

    if (!format)
        return 0;
    for (const char *at = words; at; number++) {
        size_t word = strcspn(at, "|");
        if (word == len && !memcmp(at, format, len))
            return number;
        at = at[word] ? at + word + 1 : NULL;
    }
    (void)message_usage("gen", "gen %s takes --format %s, not %s", kind, words, format);
    return -1;
}

/* Not 0: it is no number, and standard error says so. */
static int read_number(const char *name, const char *text, double *out)
{
    char *end;

    if (!text)
        return 0;
    *out = strtod(text, &end);
    if (*end || end == text)
        return message_usage("gen", "%s takes a number, not %s", name, text);
    return 0;
}

static int gen_images(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_images_options options = {
        .common = common_options(arguments),
        .width = 500,
        .height = 375,
        .quality = (int)said(arguments->quality, 90),
        .subsampling = (int)said(arguments->subsampling, 420),
        .progressive = arguments->progressive,
    };
    int format = read_format("images", arguments->format, "jpeg|png");
    struct stk_pack_result result;
    struct stk_error err;

    if (format < 0 || read_size(arguments->size, &options.width, &options.height) ||
        read_number("--vary", arguments->vary, &options.vary))
        return EXIT_USAGE;
    options.format = (enum stk_gen_image_format)format;
    return report(arguments, stk_gen_images(context, &options, &result, &err), &result, &err);
}

static int gen_audio(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_audio_options options = {
        .common = common_options(arguments),
        .seconds = 1,
        .rate = said(arguments->rate, 16000),
        .channels = said(arguments->channels, 1),
    };
    int format = read_format("audio", arguments->format, "wav|flac|ogg");
    struct stk_pack_result result;
    struct stk_error err;

    if (format < 0 || read_number("--seconds", arguments->seconds, &options.seconds))
        return EXIT_USAGE;
    options.format = (enum stk_gen_audio_format)format;
    return report(arguments, stk_gen_audio(context, &options, &result, &err), &result, &err);
}

static int gen_video(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_video_options options = {
        .common = common_options(arguments),
        .width = 320,
        .height = 240,
        .frames = said(arguments->frames, 64),
        .fps = 25,
        .quality = (int)said(arguments->quality, 90),
    };
    struct stk_pack_result result;
    struct stk_error err;

    if (read_format("video", arguments->format, "avi") < 0 ||
        read_size(arguments->size, &options.width, &options.height) ||
        read_number("--fps", arguments->fps, &options.fps))
        return EXIT_USAGE;
    return report(arguments, stk_gen_video(context, &options, &result, &err), &result, &err);
}

static int gen_points(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_points_options options = {
        .common = common_options(arguments),
        .points = said(arguments->points, 4096),
    };
    int format = read_format("points", arguments->format, "bin|pcd|ply|npy");
    struct stk_pack_result result;
    struct stk_error err;

    if (format < 0)
        return EXIT_USAGE;
    options.format = (enum stk_gen_points_format)format;
    return report(arguments, stk_gen_points(context, &options, &result, &err), &result, &err);
}

/* --- the command ----------------------------------------------------------------------------- */

struct kind {
    const char *name;
    int (*run)(struct stk_context *context, const struct gen_arguments *arguments);
};

static const struct kind kinds[] = {
    {"tensors", gen_tensors}, {"series", gen_series}, {"images", gen_images},
    {"audio", gen_audio},     {"video", gen_video},   {"points", gen_points},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Bits of the rows above. */
enum {
    TENSORS = 1,
    SERIES = 2,
    IMAGES = 4,
    AUDIO = 8,
    VIDEO = 16,
    POINTS = 32,
    MEDIA = IMAGES | AUDIO | VIDEO | POINTS
};

/* An option that another kind takes would do nothing: better said than passed over. */
static int check_kind(const struct command *command, const struct gen_arguments *arguments,
                      size_t kind)
{
    const struct {
        int given, kinds;
        const char *name;
    } options[] = {
        {arguments->loose != NULL, TENSORS, "--loose"},
        {arguments->shards != UNSAID, TENSORS | MEDIA, "--shards"},
        {arguments->classes != UNSAID, TENSORS | MEDIA, "--classes"},
        {arguments->threads != UNSAID, TENSORS | MEDIA, "--threads"},
        {arguments->samples != UNSAID, TENSORS | MEDIA, "--samples"},
        {arguments->shape.rank != 0, TENSORS, "--shape"},
        {arguments->dtype != STK_DTYPE_COUNT, TENSORS, "--dtype"},
        {arguments->entities != UNSAID, SERIES, "--entities"},
        {arguments->rows != UNSAID, SERIES, "--rows"},
        {arguments->features != UNSAID, SERIES, "--features"},
        {arguments->csv != 0, SERIES, "--csv"},
        {arguments->folder != 0, MEDIA, "--folder"},
        {arguments->format != NULL, MEDIA, "--format"},
        {arguments->size != NULL, IMAGES | VIDEO, "--size"},
        {arguments->vary != NULL, IMAGES, "--vary"},
        {arguments->quality != UNSAID, IMAGES | VIDEO, "--quality"},
        {arguments->subsampling != UNSAID, IMAGES, "--subsampling"},
        {arguments->progressive != 0, IMAGES, "--progressive"},
        {arguments->seconds != NULL, AUDIO, "--seconds"},
        {arguments->rate != UNSAID, AUDIO, "--rate"},
        {arguments->channels != UNSAID, AUDIO, "--channels"},
        {arguments->frames != UNSAID, VIDEO, "--frames"},
        {arguments->fps != NULL, VIDEO, "--fps"},
        {arguments->points != UNSAID, POINTS, "--points"},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        char names[128] = "";
        if (!options[i].given || options[i].kinds >> kind & 1)
            continue;
        for (size_t k = 0; k < KINDS; k++)
            if (options[i].kinds >> k & 1) {
                size_t len = strlen(names);
                snprintf(names + len, sizeof(names) - len, "%s%s", len ? "|" : "", kinds[k].name);
            }
        return message_usage(command->name, "%s goes with gen %s", options[i].name, names);
    }
    return 0;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct gen_arguments arguments = {.shards = UNSAID,
                                      .classes = UNSAID,
                                      .threads = UNSAID,
                                      .samples = UNSAID,
                                      .dtype = STK_DTYPE_COUNT,
                                      .entities = UNSAID,
                                      .rows = UNSAID,
                                      .features = UNSAID,
                                      .quality = UNSAID,
                                      .subsampling = UNSAID,
                                      .rate = UNSAID,
                                      .channels = UNSAID,
                                      .frames = UNSAID,
                                      .points = UNSAID};
    int status;
    size_t kind = 0;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    while (kind < KINDS && strcmp(arguments.base.words[0], kinds[kind].name))
        kind++;
    if (kind == KINDS)
        return message_usage(command->name, "cannot generate %s; it can generate: %s",
                             arguments.base.words[0], command->kinds);
    if (!arguments.out)
        return message_usage(command->name, "-o OUT is missing");
    status = check_kind(command, &arguments, kind);
    return status ? status : kinds[kind].run(context, &arguments);
}

#define AT(member) offsetof(struct gen_arguments, member)

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "OUT", "the folder for what is written; made when missing"},
    {"seed", 0, OPTION_U64, AT(seed), "N", "another seed gives other values (0)"},
    {"force", 0, OPTION_FLAG, AT(force), NULL, "replace what is there already"},
    {"samples", 0, OPTION_U64, AT(samples), "N", "all but series: how many in all (1000)"},
    {"classes", 0, OPTION_U32, AT(classes), "N", "all but series: how many classes (10)"},
    {"shards", 0, OPTION_U32, AT(shards), "N", "all but series: how many shards (10)"},
    {"threads", 0, OPTION_U32, AT(threads), "N",
     "all but series: threads (one a core); the bytes stay the same"},
    {"shape", 0, OPTION_SHAPE, AT(shape), "N,N,...", "tensors: of one sample (16,112,112,3)"},
    {"dtype", 0, OPTION_DTYPE, AT(dtype), "TYPE",
     "tensors: f16, bf16, f32, f64, u8, i8, ... (f16)"},
    {"loose", 0, OPTION_TEXT, AT(loose), "DIR", "tensors: the same samples as loose files too"},
    {"entities", 0, OPTION_U64, AT(entities), "N", "series: how many, a table each (100)"},
    {"rows", 0, OPTION_U64, AT(rows), "N", "series: rows of each (1000)"},
    {"features", 0, OPTION_U32, AT(features), "N", "series: columns of values (4)"},
    {"csv", 0, OPTION_FLAG, AT(csv), NULL, "series: CSV, also where Parquet could be written"},
    {"folder", 0, OPTION_FLAG, AT(folder), NULL, "media: a folder a class instead of shards"},
    {"format", 0, OPTION_TEXT, AT(format), "NAME",
     "images: jpeg or png; audio: wav, flac or ogg; video: avi; points: bin, pcd, ply or npy "
     "(the first of them)"},
    {"size", 0, OPTION_TEXT, AT(size), "WxH",
     "images (500x375), video (320x240): width and height"},
    {"quality", 0, OPTION_U32, AT(quality), "N", "images, video: of a JPEG, 1 to 100 (90)"},
    {"vary", 0, OPTION_TEXT, AT(vary), "SHARE",
     "images: sides differ by at most so much, 0.2 a fifth (0)"},
    {"subsampling", 0, OPTION_U32, AT(subsampling), "420|444", "images: of a JPEG's colours (420)"},
    {"progressive", 0, OPTION_FLAG, AT(progressive), NULL, "images: progressive JPEG"},
    {"seconds", 0, OPTION_TEXT, AT(seconds), "S", "audio: how long each lasts (1)"},
    {"rate", 0, OPTION_U32, AT(rate), "HZ", "audio: samples a second (16000)"},
    {"channels", 0, OPTION_U32, AT(channels), "N", "audio: 1 to 8 (1)"},
    {"frames", 0, OPTION_U32, AT(frames), "N", "video: frames of each (64)"},
    {"fps", 0, OPTION_TEXT, AT(fps), "N", "video: frames a second (25)"},
    {"points", 0, OPTION_U32, AT(points), "N", "points: of each cloud (4096)"},
    {0},
};

const struct command cmd_gen = {
    .name = "gen",
    .summary =
        "Writes a synthetic data set: tensors that carry their class as a pattern under noise,\n"
        "tables of entities whose next value can be learned from the last ones, or media whose\n"
        "class can be learned: images with the statistics of natural ones, audio, video, points.\n"
        "Run from the Python package it writes Parquet: metadata.parquet of tensors, and tables\n"
        "that are CSV otherwise.",
    .usage = "tensors|series|images|audio|video|points -o OUT [options]",
    .examples =
        "  stoker gen tensors -o shards --shards 10 --samples 1000 --shape 16,112,112,3 "
        "--dtype f16 \\\n      --classes 10 --seed 0\n"
        "  stoker gen tensors -o shards --loose files --samples 100 --shape 3,32,32\n"
        "  stoker gen series -o tables --entities 100 --rows 1000 --features 4\n"
        "  stoker gen images -o photos --samples 2000 --size 500x375 --vary 0.2 "
        "--quality 90\n"
        "  stoker gen audio -o words --samples 1000 --seconds 1 --rate 16000 --format flac\n"
        "  stoker gen video -o clips --samples 100 --frames 64 --size 320x240 --fps 25\n"
        "  stoker gen points -o clouds --samples 500 --points 4096 --format pcd\n",
    .kinds = "tensors series images audio video points",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .word = "what to generate (tensors, series, images, audio, video or points)",
    .run = run,
};
