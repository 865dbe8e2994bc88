#include "transform_options.h"

#include <stdio.h>
#include <string.h>

#include "stoker/pipeline.h"
#include "json_out.h"
#include "message.h"

/* "jpg: Resize(224)" -> "jpg" and "Resize(224)". A chain has no ':' of its own. */
static int take_apart(char *text, struct stk_field_chain *chain)
{
    char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return 0;
    *chain = (struct stk_field_chain){.field = text, .chain = colon + 1};
    while (colon > text && (colon[-1] == ' ' || colon[-1] == '\t'))
        colon--;
    *colon = 0;
    return colon > text;
}

int transforms_read(const char *command, struct stk_context *context,
                    const struct transform_arguments *arguments,
                    struct stk_field_chain chains[TRANSFORM_CHAINS_MOST])
{
    struct stk_error err;
    for (uint32_t i = 0; i < arguments->plugins.count; i++)
        if (stk_context_load_plugin(context, arguments->plugins.words[i], &err))
            return message_error(&err);
    if (arguments->each.count > TRANSFORM_CHAINS_MOST)
        return message_usage(command, "more than 64 chains of transforms");
    for (uint32_t i = 0; i < arguments->each.count; i++)
        if (!take_apart((char *)(uintptr_t)arguments->each.words[i], &chains[i]))
            return message_usage(command, "--transform needs a field and a chain: "
                                          "'jpg: Resize(256) | CenterCrop(224)'");
    return 0;
}

/* --- the list --------------------------------------------------------------------------------- */

static void print_arguments(const struct stk_transform_info *info)
{
    for (uint32_t i = 0; i < info->argument_count; i++) {
        const struct stk_transform_argument *argument = &info->arguments[i];
        printf("%s%s", i ? ", " : "", argument->name);
        if (argument->preset)
            printf("=%s", argument->preset);
    }
}

static const char *takes(const struct stk_transform_info *info, char words[128])
{
    words[0] = 0;
    for (int media = 0; media < STK_MEDIA_COUNT; media++)
        if (info->media & STK_MEDIA_BIT(media)) {
            strcat(words, *words ? ", " : "");
            strcat(words, stk_media_name((enum stk_media)media));
        }
    return info->of_batch ? "whole batches" : words;
}

static void json_transform(struct json_out *json, const struct stk_transform_info *info)
{
    char words[128];
    json_out_object(json, NULL);
    json_out_text(json, "name", info->name);
    json_out_text(json, "help", info->help);
    json_out_text(json, "takes", takes(info, words));
    json_out_array(json, "arguments");
    for (uint32_t i = 0; i < info->argument_count; i++) {
        const struct stk_transform_argument *argument = &info->arguments[i];
        json_out_object(json, NULL);
        json_out_text(json, "name", argument->name);
        json_out_text(json, "type", argument->type);
        json_out_text(json, "default", argument->preset);
        json_out_text(json, "choices", argument->choices);
        json_out_end_object(json);
    }
    json_out_end_array(json);
    json_out_end_object(json);
}

static void print_json(struct stk_context *context)
{
    struct json_out json = {.stream = stdout};
    struct stk_transform_info info;
    json_out_object(&json, NULL);
    json_out_array(&json, "transforms");
    for (uint32_t row = 0; stk_transform_at(context, row, &info); row++)
        json_transform(&json, &info);
    json_out_end_array(&json);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

void transforms_print(struct stk_context *context, int json)
{
    struct stk_transform_info info;
    char words[128];
    if (json) {
        print_json(context);
        return;
    }
    printf("A chain is a list of transforms joined by '|'; arguments are written as in Python:\n"
           "  RandomResizedCrop(224, scale=(0.08, 1)) | RandomHorizontalFlip | "
           "Normalize(imagenet)\n\n");
    for (uint32_t row = 0; stk_transform_at(context, row, &info); row++) {
        printf("%s(", info.name);
        print_arguments(&info);
        printf(")\n    takes %s: %s\n", takes(&info, words), info.help);
    }
}
