#include "dataset/sniff.h"

#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/text.h"
#include "filter/filter.h"
#include "store/scan.h"

#define SNIFF_BYTES 1024

struct look {
    const char *magic;
    size_t len;
    const char *words;
};

static const struct look looks[] = {
    {"\x93NUMPY", 6, "a numpy array"},
    {"PK\3\4", 4, "a zip file"},
    {"\x1f\x8b", 2, "gzip data"},
    {"\x28\xb5\x2f\xfd", 4, "zstd data"},
    {"BZh", 3, "bzip2 data"},
    {"\xfd"
     "7zXZ",
     5, "xz data"},
    {"\xff\xd8\xff", 3, "a JPEG image"},
    {"\x89PNG", 4, "a PNG image"},
    {"RIFF", 4, "a RIFF file"},
    {"\x89HDF", 4, "an HDF5 file"},
    {"PAR1", 4, "a Parquet file"},
    {"ARROW1", 6, "an Arrow file"},
    {"%PDF", 4, "a PDF document"},
    {"\x7f"
     "ELF",
     4, "a program"},
};

static int is_text(const struct stk_bytes *head)
{
    for (size_t i = 0; i < head->len; i++)
        if (head->data[i] < 0x20 && !memchr("\t\n\r\f", head->data[i], 4))
            return 0;
    return 1;
}

static const char *text_words(const struct stk_bytes *head)
{
    size_t at = 0;
    while (at < head->len && memchr(" \t\r\n", head->data[at], 4))
        at++;
    const char *text = (const char *)head->data + at;
    size_t left = head->len - at;
    if ((left >= 9 && !strncasecmp(text, "<!doctype", 9)) ||
        (left >= 5 && !strncasecmp(text, "<html", 5)))
        return "an HTML page";
    if (left >= 5 && !strncmp(text, "<?xml", 5))
        return "an XML document";
    if (left && (*text == '{' || *text == '['))
        return "JSON text";
    return "plain text";
}

const char *sniff_words(const struct stk_bytes *head)
{
    if (!head->len)
        return "an empty file";
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
        if (head->len >= looks[i].len && !memcmp(head->data, looks[i].magic, looks[i].len))
            return looks[i].words;
    return is_text(head) ? text_words(head) : "bytes of no known kind";
}

/* "folder, npy, npz, raw, tar, series, tokens" */
static stk_status unknown_format(const char *name, struct stk_error *err)
{
    struct text known = {0};
    for (uint32_t row = 0; format_at(row); row++)
        text_format(&known, "%s%s", row ? ", " : "", format_at(row)->name);
    stk_status status = fail(err, STK_USAGE, "there is no format \"%s\"", name);
    fail_remedy(err, "formats: %s, series, tokens", known.data ? known.data : "");
    text_free(&known);
    return status;
}

static stk_status sniff_option(const struct format_ops **out,
                               const struct stk_dataset_options *options, struct stk_error *err)
{
    const char *name = options->format ? options->format : "raw";
    int raw = !strcmp(name, "raw");
    *out = format_find(name);
    if (!*out)
        return unknown_format(name, err);
    if (raw && (!options->dtype || (options->rank && !options->shape)))
        return fail(err, STK_USAGE, "a raw array needs its dtype and the shape of one sample");
    if (!raw && options->dtype)
        return fail(err, STK_USAGE, "dtype and shape are for raw arrays, not for %s", name);
    return STK_OK;
}

/* A name that claims a format, and bytes that are not of it. Where the bytes may still be a damaged
 * file of that format, its own reader finds better words. */
static stk_status sniff_claim(const struct format_ops *claim, const struct format_ops **out,
                              const struct names *names, uint64_t number,
                              const struct stk_bytes *head, struct stk_error *err)
{
    int ustar = head->len >= 262 && !memcmp(head->data + 257, "ustar", 5);
    int zeros = head->len >= 512 && !head->data[0] && !memcmp(head->data, head->data + 1, 511);
    int damaged = !is_text(head) && head->len && (ustar || zeros || head->len < 512);
    if (!strcmp(claim->name, "tar") && damaged) {
        *out = claim;
        return STK_OK;
    }
    stk_status status =
        fail(err, STK_CORRUPT, "not %s: it looks like %s", claim->name, sniff_words(head));
    struct text path = {0};
    text_format(&path, "%s%s%s", names->list.root, *names->list.root ? "/" : "",
                names->list.items[number].name);
    fail_at(err, path.data, 0);
    text_free(&path);
    fail_remedy(err, "fetch the file again, or leave it out");
    return status;
}

/* *out is NULL when the object is of no format: a file. */
static stk_status sniff_object(const struct format_ops **out, const struct names *names,
                               uint64_t number, struct stk_error *err)
{
    const char *name = names->list.items[number].name;
    const struct format_ops *claim = format_by_suffix(name);
    uint8_t bytes[SNIFF_BYTES];
    struct stk_bytes head = {bytes, 0};
    struct scan *scan;
    stk_status status = scan_open(&scan, names->list.root, name, err);
    if (!status)
        status = scan_read(scan, 0, bytes, sizeof bytes, &head.len, err);
    scan_close(scan);
    if (status)
        return status;
    *out = format_by_content(&head);
    if (!*out && filter_sniff(&head) != FILTER_NONE)
        *out = format_find("tar"); /* compressed: what is inside shows when it is indexed */
    if (*out || !claim || !claim->sniff)
        return STK_OK;
    return sniff_claim(claim, out, names, number, &head, err);
}

static stk_status sniff_mixed(const struct names *names, uint64_t number, const char *first,
                              const char *other, struct stk_error *err)
{
    return fail(err, STK_USAGE, "%s is %s but %s is %s: one dataset has one format",
                names->list.items[0].name, first, names->list.items[number].name, other);
}

static int all_shards(const struct names *names)
{
    for (uint64_t i = 0; i < names->list.count; i++) {
        const struct format_ops *claim = format_by_suffix(names->list.items[i].name);
        if (!claim || (strcmp(claim->name, "tar") && strcmp(claim->name, "npz")))
            return 0;
    }
    return 1;
}

/* Tables are packed, not opened; their names tell them. */
static stk_status sniff_nothing(const char *name, struct stk_error *err)
{
    static const char *const tables[] = {".parquet", ".csv", ".tsv", ".orc", ".arrow", ".feather"};
    stk_status status =
        fail(err, STK_UNSUPPORTED, "%s is of no format that can be told by its bytes", name);
    const char *suffix = strrchr(name, '.');
    fail_remedy(err, "name the format; a raw array needs its dtype and shape too");
    for (size_t i = 0; suffix && i < sizeof tables / sizeof tables[0]; i++)
        if (!strcasecmp(suffix, tables[i]))
            fail_remedy(err, "it is a table: pack it first (`stoker pack --to series`, or "
                             "stoker.pack_series), then open the series");
    return status;
}

/* On the network a look costs a round trip: behind the first object, names are believed. NULL: the
 * name does not tell. */
static const struct format_ops *sniff_name(const char *name, const struct format_ops *before)
{
    const struct format_ops *claim = format_by_suffix(name);
    return claim || strcmp(before->name, "folder") ? claim : before;
}

stk_status sniff(const struct format_ops **out, const struct names *names,
                 const struct stk_dataset_options *options, struct stk_error *err)
{
    const struct list *list = &names->list;
    const struct format_ops *folder = format_find("folder"), *each;
    *out = NULL;
    if (options->format || options->dtype || options->rank)
        return sniff_option(out, options, err);
    if (names->from_folder && !all_shards(names)) {
        *out = folder;
        return STK_OK;
    }
    for (uint64_t i = 0; i < list->count; i++) {
        stk_status status = STK_OK;
        each = names->remote && i ? sniff_name(list->items[i].name, *out) : NULL;
        if (!each)
            status = sniff_object(&each, names, i, err);
        if (status)
            return status;
        if (list->count > 1 && (!each || !strcmp(each->name, "npy")))
            each = folder;
        if (i && each != *out)
            return sniff_mixed(names, i, *out ? (*out)->name : "a file",
                               each ? each->name : "a file", err);
        *out = each;
    }
    if (*out)
        return STK_OK;
    return sniff_nothing(list->items[0].name, err);
}
