#include "transform/chain.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/name_guess.h"
#include "transform/argument.h"
#include "transform/plugin_transform.h"

#define NAME_MAX_LEN 64

struct parser {
    const char *text, *at;
    const struct transform_registry *plugins;
};

static void skip_blanks(struct parser *parser)
{
    while (*parser->at && isspace((unsigned char)*parser->at))
        parser->at++;
}

/* Words so far, and where in the text they belong. */
static stk_status fail_here(const struct parser *parser, const char *at, stk_status status,
                            struct stk_error *err)
{
    if (err) {
        char words[sizeof err->what];
        snprintf(words, sizeof words, "%s", err->what);
        snprintf(err->what, sizeof err->what, "%.*s (at character %zu of \"%.60s\")",
                 (int)sizeof err->what - 100, words, (size_t)(at - parser->text) + 1, parser->text);
    }
    return status;
}

static size_t name_length(const char *at)
{
    size_t len = 0;
    while (isalnum((unsigned char)at[len]) || at[len] == '_')
        len++;
    return len;
}

/* --- names ------------------------------------------------------------------------------------ */

static const struct transform_ops *ops_at(const struct transform_registry *plugins, uint32_t row)
{
    uint32_t own = 0;
    while (transform_at(own))
        own++;
    return row < own ? transform_at(row) : transform_registry_at(plugins, row - own);
}

/* Names of torchvision's that mean something else here, and what to write. */
static const struct {
    const char *name, *remedy;
} elsewhere[] = {
    {"AutoAugment", "TrivialAugmentWide does the like, and needs no policy"},
    {"Compose", "a chain is a list already: write its steps, with '|' between them"},
    {"ConvertImageDtype", "write Cast('float32', scale=True)"},
    {"Lambda", "give a function of yours as sample_map= or map="},
    {"PILToTensor", "images are tensors already: write Layout('CHW') where channels come first"},
    {"RandAugment", "TrivialAugmentWide does the like, and needs no numbers"},
    {"ToDtype", "write Cast('float32', scale=True)"},
    {"ToImage", "images are tensors already: write Layout('CHW') where channels come first"},
    {"ToPureTensor", "leave it out: batches are plain tensors"},
    {"ToTensor", "write Cast('float32', scale=True) | Layout('CHW')"},
};

static stk_status found_elsewhere(const char *name, struct stk_error *err)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (!strcmp(elsewhere[i].name, name)) {
            stk_status status = fail(err, STK_USAGE, "there is no transform \"%s\"", name);
            fail_remedy(err, "%s", elsewhere[i].remedy);
            return status;
        }
    return STK_OK;
}

static stk_status no_transform(const struct parser *parser, const char *name, struct stk_error *err)
{
    struct name_guess guess = {.wanted = name};
    const struct transform_ops *ops;
    if (found_elsewhere(name, err))
        return STK_USAGE;
    for (uint32_t row = 0; (ops = ops_at(parser->plugins, row)); row++)
        name_guess_add(&guess, ops->name);
    (void)name_guess_fail(&guess, "transform", err);
    if (err)
        err->status = STK_USAGE;
    return STK_USAGE;
}

static stk_status find_ops(struct parser *parser, const struct transform_ops **ops,
                           struct stk_error *err)
{
    char name[NAME_MAX_LEN];
    const char *begin = parser->at;
    size_t len = name_length(begin);
    if (!len || len >= sizeof name)
        return fail_here(parser, begin, fail(err, STK_USAGE, "a transform's name is expected"),
                         err);
    memcpy(name, begin, len);
    name[len] = 0;
    parser->at += len;
    *ops = transform_find(name);
    if (!*ops)
        *ops = transform_registry_find(parser->plugins, name);
    return *ops ? STK_OK : fail_here(parser, begin, no_transform(parser, name, err), err);
}

/* --- arguments -------------------------------------------------------------------------------- */

static uint32_t arg_count(const struct transform_ops *ops)
{
    uint32_t count = 0;
    while (ops->args && ops->args[count].name)
        count++;
    return count;
}

static uint32_t arg_find(const struct transform_ops *ops, const char *name, size_t len)
{
    uint32_t count = arg_count(ops);
    for (uint32_t i = 0; i < count; i++)
        if (strlen(ops->args[i].name) == len && !memcmp(ops->args[i].name, name, len))
            return i;
    return UINT32_MAX;
}

static stk_status no_argument(const struct transform_ops *ops, const char *name, size_t len,
                              struct stk_error *err)
{
    struct text known = {0};
    for (uint32_t i = 0; i < arg_count(ops); i++)
        text_format(&known, "%s%s", i ? ", " : "", ops->args[i].name);
    stk_status status =
        fail(err, STK_USAGE, "%s has no argument \"%.*s\"", ops->name, (int)len, name);
    fail_remedy(err, "its arguments: %s", known.data ? known.data : "none");
    text_free(&known);
    return status;
}

/* The argument that comes next: by name ("scale=..."), or the next in the table. */
static stk_status choose_argument(struct parser *parser, const struct transform_ops *ops,
                                  uint32_t place, uint32_t *number, struct stk_error *err)
{
    const char *begin = parser->at;
    size_t len = name_length(begin);
    const char *behind = begin + len;
    while (isspace((unsigned char)*behind))
        behind++;
    if (len && *behind == '=') {
        parser->at = behind + 1;
        *number = arg_find(ops, begin, len);
        return *number == UINT32_MAX ? no_argument(ops, begin, len, err) : STK_OK;
    }
    *number = place;
    if (place == UINT32_MAX)
        return fail(err, STK_USAGE, "a value without a name behind one with a name");
    if (place >= arg_count(ops))
        return fail(err, STK_USAGE, "%s takes %u arguments at most", ops->name, arg_count(ops));
    return STK_OK;
}

/* Normalize(imagenet): a word where numbers stand first names a preset of all of them. */
static uint32_t preset_argument(const struct transform_ops *ops, uint32_t number,
                                const struct value *value)
{
    uint32_t preset = arg_find(ops, "preset", 6);
    int fits = number == 0 && value->kind == VALUE_WORD && ops->args[0].type == ARG_FLOATS &&
               preset != UINT32_MAX;
    return fits ? preset : number;
}

static stk_status parse_argument(struct parser *parser, struct chain_step *step, uint32_t *place,
                                 uint32_t *given, struct stk_error *err)
{
    struct value value;
    uint32_t number = 0;
    const char *begin = parser->at;
    stk_status status = choose_argument(parser, step->ops, *place, &number, err);
    int named = !status && parser->at != begin;
    if (!status)
        status = value_parse(&parser->at, &value, err);
    if (!status)
        number = preset_argument(step->ops, number, &value);
    if (!status && *given >> number & 1)
        status = fail(err, STK_USAGE, "%s is given twice", step->ops->args[number].name);
    if (!status)
        status = argument_store(&step->ops->args[number], &value, step->args, err);
    if (status)
        return fail_here(parser, begin, status, err);
    *given |= UINT32_C(1) << number;
    *place = named || *place == UINT32_MAX ? UINT32_MAX : *place + 1;
    return STK_OK;
}

static stk_status parse_arguments(struct parser *parser, struct chain_step *step, uint32_t *given,
                                  struct stk_error *err)
{
    uint32_t place = 0;
    parser->at++; /* the parenthesis */
    for (skip_blanks(parser); *parser->at != ')'; skip_blanks(parser)) {
        stk_status status = parse_argument(parser, step, &place, given, err);
        if (status)
            return status;
        skip_blanks(parser);
        if (*parser->at == ',')
            parser->at++;
        else if (*parser->at != ')')
            return fail_here(parser, parser->at, fail(err, STK_USAGE, "a ',' or a ')' is expected"),
                             err);
    }
    parser->at++;
    return STK_OK;
}

/* Defaults of what was not given, and what the transform itself has to say. */
static stk_status finish_arguments(const struct chain_step *step, uint32_t given,
                                   struct stk_error *err)
{
    const struct transform_ops *ops = step->ops;
    for (uint32_t i = 0; i < arg_count(ops); i++) {
        if (given >> i & 1)
            continue;
        if (!ops->args[i].preset)
            return fail(err, STK_USAGE, "%s needs %s", ops->name, ops->args[i].name);
        stk_status status = argument_preset(&ops->args[i], step->args, err);
        if (status)
            return status;
    }
    return ops->check ? ops->check(step->args, err) : STK_OK;
}

/* --- steps ------------------------------------------------------------------------------------ */

static stk_status parse_step(struct parser *parser, struct chain *chain, struct stk_error *err)
{
    struct chain_step *step = &chain->steps[chain->count];
    const char *begin = parser->at;
    uint32_t given = 0;
    if (chain->count == CHAIN_MAX_STEPS)
        return fail_here(
            parser, begin,
            fail(err, STK_LIMIT, "a chain of more than %d transforms", CHAIN_MAX_STEPS), err);
    *step = (struct chain_step){0};
    stk_status status = find_ops(parser, &step->ops, err);
    if (status)
        return status;
    step->args = memory_zero(1, step->ops->size + 1);
    if (!step->args)
        return fail_memory(err, step->ops->size);
    if (step->ops->user) /* a plugin's: its calls find their row there */
        memcpy(step->args, &step->ops->user, sizeof step->ops->user);
    chain->count++; /* from here on chain_reset frees it */
    skip_blanks(parser);
    if (*parser->at == '(')
        status = parse_arguments(parser, step, &given, err);
    if (status)
        return status;
    status = finish_arguments(step, given, err);
    if (status)
        return fail_here(parser, begin, status, err);
    if (step->ops->instead && step->ops->instead(step->args))
        step->ops = step->ops->instead(step->args);
    return STK_OK;
}

stk_status chain_parse(struct chain *chain, const char *text,
                       const struct transform_registry *plugins, struct stk_error *err)
{
    struct parser parser = {.text = text, .at = text, .plugins = plugins};
    *chain = (struct chain){0};
    if (!text)
        return STK_OK;
    skip_blanks(&parser);
    stk_status status = STK_OK;
    while (*parser.at && !status) {
        status = parse_step(&parser, chain, err);
        skip_blanks(&parser);
        if (status || !*parser.at)
            break;
        if (*parser.at != '|') {
            status = fail_here(&parser, parser.at,
                               fail(err, STK_USAGE, "a '|' is expected between transforms"), err);
            break;
        }
        parser.at++;
        skip_blanks(&parser);
        if (!*parser.at)
            status = fail_here(&parser, parser.at,
                               fail(err, STK_USAGE, "a transform is expected behind '|'"), err);
    }
    if (status)
        chain_reset(chain);
    return status;
}

void chain_reset(struct chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        struct chain_step *step = &chain->steps[i];
        if (step->ops->release && step->args)
            step->ops->release(step->args);
        memory_free(step->args);
    }
    *chain = (struct chain){0};
}

/* --- the canonical text ----------------------------------------------------------------------- */

/* Positional while nothing was left out, by name behind the first default. */
static void step_text(const struct chain_step *step, struct text *text)
{
    const struct transform_ops *ops = step->ops;
    void *presets = memory_zero(1, ops->size + 1);
    uint32_t shown = 0, count = arg_count(ops);
    text_format(text, "%s", ops->name);
    for (uint32_t i = 0; presets && i < count; i++) {
        const struct transform_arg *arg = &ops->args[i];
        int is_preset = arg->preset && !argument_preset(arg, presets, NULL) &&
                        argument_same(arg, step->args, presets);
        if (is_preset)
            continue;
        text_format(text, "%s", shown ? ", " : "(");
        if (i != shown)
            text_format(text, "%s=", arg->name);
        argument_text(arg, step->args, text);
        shown++;
    }
    if (shown)
        text_format(text, ")");
    memory_free(presets);
}

size_t chain_text(const struct chain *chain, char *out, size_t cap)
{
    struct text text = {0};
    for (uint32_t i = 0; i < chain->count; i++) {
        if (i)
            text_format(&text, " | ");
        step_text(&chain->steps[i], &text);
    }
    size_t len = text.len;
    if (cap)
        snprintf(out, cap, "%s", text.data ? text.data : "");
    text_free(&text);
    return len;
}
