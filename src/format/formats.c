#include <string.h>
#include <strings.h>

#include "format/format.h"

extern const struct format_ops folder_format, npy_format, npz_format, raw_format, tar_format;

static const struct format_ops *const formats[] = {&folder_format, &npy_format, &npz_format,
                                                   &raw_format, &tar_format};
#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

const struct format_ops *format_at(uint32_t row)
{
    return row < FORMAT_COUNT ? formats[row] : NULL;
}

const struct format_ops *format_find(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (!strcmp(formats[i]->name, name))
            return formats[i];
    }
    return NULL;
}

static int ends_with(const char *name, const char *suffix)
{
    size_t len = strlen(name), suffix_len = strlen(suffix);
    return len > suffix_len && !strcasecmp(name + len - suffix_len, suffix);
}

const struct format_ops *format_by_suffix(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        for (const char *const *suffix = formats[i]->suffixes; *suffix; suffix++) {
            if (ends_with(name, *suffix))
                return formats[i];
        }
    }
    return NULL;
}

const struct format_ops *format_by_content(const struct stk_bytes *head)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (formats[i]->sniff && formats[i]->sniff(head))
            return formats[i];
    }
    return NULL;
}
