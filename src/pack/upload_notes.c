#include "pack/upload_notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define NOTES_MOST (UINT64_C(256) << 20)

void upload_notes_reset(struct upload_notes *notes)
{
    for (uint64_t i = 0; i < notes->count; i++)
        memory_free(notes->notes[i].name);
    memory_free(notes->notes);
    *notes = (struct upload_notes){0};
}

/* Where a name is, or belongs: notes are sorted bytewise. Most come in that order. */
static uint64_t place_of(const struct upload_notes *notes, const char *name, int *is_there)
{
    uint64_t low = 0, high = notes->count;

    *is_there = 0;
    if (high && strcmp(notes->notes[high - 1].name, name) < 0)
        return high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = strcmp(notes->notes[middle].name, name);
        *is_there |= !order;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct upload_note *upload_notes_find(const struct upload_notes *notes, const char *name)
{
    int is_there;
    uint64_t at = place_of(notes, name, &is_there);

    return is_there ? &notes->notes[at] : NULL;
}

stk_status upload_notes_add(struct upload_notes *notes, const struct upload_note *note,
                            struct stk_error *err)
{
    int is_there;
    uint64_t at = place_of(notes, note->name, &is_there);
    struct upload_note copy = *note;

    if (is_there) {
        copy.name = notes->notes[at].name;
        notes->notes[at] = copy;
        return STK_OK;
    }
    if (notes->count == notes->cap) {
        uint64_t cap = notes->cap ? 2 * notes->cap : 64;
        void *grown = memory_grow(notes->notes, cap * sizeof(*notes->notes));
        if (!grown)
            return fail_memory(err, cap * sizeof(*notes->notes));
        notes->notes = grown;
        notes->cap = cap;
    }
    copy.name = memory_text(note->name, strlen(note->name));
    if (!copy.name)
        return fail_memory(err, strlen(note->name));
    memmove(notes->notes + at + 1, notes->notes + at, (notes->count - at) * sizeof(*notes->notes));
    notes->notes[at] = copy;
    notes->count++;
    return STK_OK;
}

/* --- as text --------------------------------------------------------------------------------- */

static void add_hex(struct text *to, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text_format(to, "%02x", bytes[i]);
}

void upload_notes_text(const struct upload_notes *notes, struct text *to)
{
    text_format(to, "{\"stoker_pack\": 1, \"complete\": %s, \"source\": \"",
                notes->is_complete ? "true" : "false");
    add_hex(to, notes->source, sizeof(notes->source));
    text_format(to, "\", \"shards\": [");
    for (uint64_t i = 0; i < notes->count; i++) {
        const struct upload_note *note = &notes->notes[i];
        text_format(to, "%s\n{\"name\": ", i ? "," : "");
        json_add_string(to, note->name, strlen(note->name));
        text_format(to, ", \"size\": %" PRIu64 ", \"version\": \"%016" PRIx64 "\", \"hash\": \"",
                    note->size, note->version);
        add_hex(to, note->hash, sizeof(note->hash));
        text_format(to, "\"}");
    }
    text_format(to, "]}\n");
}

static int read_hex(const char *text, uint8_t *out, size_t length)
{
    if (strlen(text) != 2 * length || strspn(text, "0123456789abcdef") != 2 * length)
        return 0;
    for (size_t i = 0; i < length; i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return 1;
}

/* Not 0: a whole note. */
static int read_note(const struct json *json, struct upload_note *note)
{
    const char *name, *version, *hash;
    uint8_t bytes[8];

    if (!json_get_text(json, "name", &name) || !json_get_u64(json, "size", &note->size) ||
        !json_get_text(json, "version", &version) || !json_get_text(json, "hash", &hash) ||
        !read_hex(version, bytes, sizeof(bytes)) || !read_hex(hash, note->hash, sizeof(note->hash)))
        return 0;
    note->version = strtoull(version, NULL, 16);
    note->name = (char *)name;
    return 1;
}

static stk_status read_notes(struct upload_notes *notes, const struct json *json,
                             struct stk_error *err)
{
    const struct json *shards = json_member(json, "shards");
    const char *source;
    uint64_t version;
    stk_status status = STK_OK;

    if (!json_get_u64(json, "stoker_pack", &version) || version != 1 ||
        !json_get_text(json, "source", &source) ||
        !read_hex(source, notes->source, sizeof(notes->source)))
        return STK_OK; /* nothing that we wrote */
    (void)json_bool(json_member(json, "complete"), &notes->is_complete);
    notes->is_there = 1;
    for (size_t i = 0; i < json_count(shards) && !status; i++) {
        struct upload_note note = {0};
        if (read_note(json_item(shards, i), &note))
            status = upload_notes_add(notes, &note, err);
    }
    return status;
}

/* --- at the site ----------------------------------------------------------------------------- */

static stk_status notes_name(struct text *to, const char *prefix, struct stk_error *err)
{
    text_format(to, ".stoker/%s.pack.json", prefix);
    return to->failed ? fail_memory(err, to->len) : STK_OK;
}

stk_status upload_notes_read(struct upload_notes *notes, struct upload_place *place,
                             const char *prefix, struct stk_error *err)
{
    struct text name = {0}, text = {0};
    struct json *json = NULL;
    stk_status status = notes_name(&name, prefix, err);

    if (!status)
        status = upload_place_get(place, name.data, NOTES_MOST, &text, err);
    if (status == STK_NOT_FOUND || (!status && !text.len)) {
        status = STK_OK;
    } else if (!status && !json_parse(&json, text.data, text.len, NULL)) {
        status = read_notes(notes, json, err);
    }
    json_free(json);
    text_free(&text);
    text_free(&name);
    return status;
}

stk_status upload_notes_write(const struct upload_notes *notes, struct upload_place *place,
                              const char *prefix, enum upload_put how, struct stk_error *err)
{
    struct text name = {0}, text = {0};
    stk_status status = notes_name(&name, prefix, err);

    upload_notes_text(notes, &text);
    if (!status && text.failed)
        status = fail_memory(err, text.len);
    if (!status)
        status = upload_place_put(place, name.data, &text, how, err);
    text_free(&text);
    text_free(&name);
    return status;
}

void upload_notes_remove(struct upload_place *place, const char *prefix)
{
    struct text name = {0};

    if (!notes_name(&name, prefix, NULL))
        (void)!upload_place_remove(place, name.data, NULL);
    text_free(&name);
}
