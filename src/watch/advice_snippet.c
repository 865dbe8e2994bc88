#include "watch/advice_snippet.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "watch/plain_words.h"

enum media {
    MEDIA_NONE,
    MEDIA_ARRAY,
    MEDIA_SHARD,
    MEDIA_IMAGE,
    MEDIA_SOUND,
    MEDIA_VIDEO,
    MEDIA_POINTS
};

static enum media media_of(const char *extension)
{
    static const struct {
        const char *extension;
        enum media media;
    } known[] = {
        {"npy", MEDIA_ARRAY}, {"tar", MEDIA_SHARD},  {"jpg", MEDIA_IMAGE},  {"jpeg", MEDIA_IMAGE},
        {"png", MEDIA_IMAGE}, {"webp", MEDIA_IMAGE}, {"wav", MEDIA_SOUND},  {"flac", MEDIA_SOUND},
        {"ogg", MEDIA_SOUND}, {"opus", MEDIA_SOUND}, {"mp3", MEDIA_SOUND},  {"aiff", MEDIA_SOUND},
        {"mp4", MEDIA_VIDEO}, {"mkv", MEDIA_VIDEO},  {"avi", MEDIA_VIDEO},  {"webm", MEDIA_VIDEO},
        {"mov", MEDIA_VIDEO}, {"pcd", MEDIA_POINTS}, {"ply", MEDIA_POINTS},
    };
    const char *name = extension[0] == '.' ? extension + 1 : extension;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp(known[i].extension, name) == 0)
            return known[i].media;
    return MEDIA_NONE;
}

int advice_snippet_known(const char *extension)
{
    return media_of(extension) != MEDIA_NONE;
}

int advice_snippet_does(const char *function)
{
    static const char *const parts[] = {
        "decode", "imread",   "open",      "load",    "read",      "resize",    "crop",
        "flip",   "blur",     "rotate",    "jitter",  "erasing",   "normalize", "grayscale",
        "mel",    "resample", "to_tensor", "convert", "fromarray", "stack",
    };
    for (size_t i = 0; function && i < sizeof parts / sizeof parts[0]; i++)
        if (strcasestr(function, parts[i]))
            return 1;
    return 0;
}

int advice_snippet_small(const struct summary_loader *loader)
{
    enum media media = media_of(loader->extension);
    return loader->distinct_files >= 1000 && media != MEDIA_NONE && media != MEDIA_SHARD &&
           loader->folder[0] && loader->opens &&
           loader->opened_bytes / loader->opens < ADVICE_SMALL_FILE;
}

/* 'it'\''s' */
static void add_shell(struct text *text, const char *word, const char *ending)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+:@%,";
    if (word[0] && strspn(word, plain) == strlen(word)) {
        text_format(text, "%s%s", word, ending);
        return;
    }
    text_add(text, "'", 1);
    for (const char *at = word; *at; at++)
        if (*at == '\'')
            text_add(text, "'\\''", 4);
        else
            text_add(text, at, 1);
    text_format(text, "%s'", ending);
}

/* "a \"quoted\" name" */
static void add_python(struct text *text, const char *word, const char *ending)
{
    text_add(text, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)word; *at; at++) {
        if (*at == '"' || *at == '\\')
            text_format(text, "\\%c", *at);
        else if (*at < 0x20)
            text_format(text, "\\x%02x", *at);
        else
            text_add(text, (const char *)at, 1);
    }
    text_format(text, "%s\"", ending);
}

static void put_text(char *out, size_t room, struct text *text)
{
    /* Code that is cut is worse than none. */
    if (text->failed || !text->data || text->len >= room)
        out[0] = '\0';
    else
        memcpy(out, text->data, text->len + 1);
    text_free(text);
}

static void add_pack(struct text *text, const struct summary_loader *loader)
{
    text_format(text, "stoker pack ");
    add_shell(text, loader->folder, "");
    text_format(text, " -o ");
    add_shell(text, loader->folder, "-shards");
    text_format(text, " --to tar");
}

void advice_snippet_pack(char *out, size_t room, const struct summary_loader *loader)
{
    struct text text = {0};
    add_pack(&text, loader);
    put_text(out, room, &text);
}

/* Of images: the transforms that the script seems to do itself, else the usual ones. */
static void add_image_chain(struct text *text, const struct findings *findings)
{
    const char *function = findings->transform.functions[0].function;
    text_format(text, "    stoker.RandomResizedCrop(224),  # or stoker.Resize(256)\n"
                      "    stoker.RandomHorizontalFlip(),\n");
    if (function && strcasestr(function, "blur"))
        text_format(text, "    stoker.GaussianBlur(5),\n");
    if (function && strcasestr(function, "jitter"))
        text_format(text, "    stoker.ColorJitter(0.4, 0.4, 0.4),\n");
    if (function && strcasestr(function, "rotat"))
        text_format(text, "    stoker.RandomRotation(15),\n");
    text_format(text, "    stoker.Normalize(\"imagenet\"),\n    stoker.Layout(\"CHW\"),\n");
}

static int add_chain(struct text *text, enum media media, const struct findings *findings)
{
    if (media == MEDIA_ARRAY || media == MEDIA_SHARD)
        return 0;
    text_format(text, "chain = [\n");
    if (media == MEDIA_IMAGE)
        add_image_chain(text, findings);
    else if (media == MEDIA_SOUND)
        text_format(text, "    stoker.DecodeAudio(rate=16000, mono=True, seconds=4),\n");
    else if (media == MEDIA_VIDEO)
        text_format(text, "    stoker.DecodeVideo(frames=16),\n    stoker.Resize(224),\n");
    else
        text_format(text, "    stoker.DecodePoints(count=4096),\n");
    text_format(text, "]\n");
    return 1;
}

void advice_snippet(char *out, size_t room, const struct findings *findings)
{
    const struct summary_loader *loader = findings->loader;
    enum media media = loader ? media_of(loader->extension) : MEDIA_NONE;
    struct text text = {0};
    out[0] = '\0';
    if (media == MEDIA_NONE || !loader->folder[0])
        return;
    const char *field = loader->extension[0] == '.' ? loader->extension + 1 : loader->extension;
    const char *shards = advice_snippet_small(loader) ? "-shards" : "";
    if (shards[0]) {
        text_format(&text, "# once, in a shell: ");
        add_pack(&text, loader);
        text_format(&text, "\n");
    }
    text_format(&text, "import stoker\n\n");
    int chain = add_chain(&text, media, findings);
    text_format(&text, "dataset = stoker.open(");
    add_python(&text, loader->folder, shards);
    text_format(&text,
                ")\nloader = stoker.Loader(\n    dataset, batch_size=%" PRId32 ", shuffle=True",
                loader->batch_size > 0 ? loader->batch_size : 32);
    if (chain)
        text_format(&text, ", transforms={\"%s\": chain}", field);
    text_format(&text, "%s\n)\nfor batch in loader:\n",
                findings->gpu ? ",\n    device=\"cuda\"," : "");
    if (media == MEDIA_SHARD)
        text_format(&text, "    ...  # batch is a dict of the fields: print(dataset.fields)\n");
    else
        text_format(&text, "    x = batch[\"%s\"]\n", field);
    put_text(out, room, &text);
}
