/* .npy files: one alone is an array whose rows are samples (field "npy"); several are a sample
 * each, by the folder's rule. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "format/folder_format.h"
#include "format/npy_array.h"
#include "store/scan.h"

#define HEAD_CAP (64u * 1024u + 64u) /* npy_header_parse needs no more */

static stk_status npy_read_head(struct scan *scan, struct npy_header *header, struct stk_error *err)
{
    uint8_t *head = memory_alloc(HEAD_CAP);
    size_t got = 0;
    if (!head)
        return fail_memory(err, HEAD_CAP);
    stk_status status = scan_read(scan, 0, head, HEAD_CAP, &got, err);
    if (!status)
        status = npy_header_parse(header, &(struct stk_bytes){head, got}, scan_size(scan), err);
    if (status)
        fail_at(err, scan_name(scan), 0);
    memory_free(head);
    return status;
}

static stk_status npy_build(const struct format_input *input, struct index_builder *builder,
                            struct stk_error *err)
{
    if (input->object_count != 1)
        return folder_build(input, builder, err);
    const struct format_object *object = &input->objects[0];
    struct scan *scan = NULL;
    struct npy_header header;
    stk_status status = scan_open(&scan, input->root, object->name, err);
    if (!status)
        status = npy_read_head(scan, &header, err);
    struct npy_place place = {.field = "npy", .length = object->size};
    if (!status)
        status = index_builder_object(builder, object->name, object->size, object->version,
                                      &place.object, err);
    if (!status) {
        status = npy_array_add(input, builder, &place, &header, err);
        if (status)
            fail_at(err, scan_name(scan), 0);
    }
    scan_close(scan);
    return status;
}

static int npy_sniff(const struct stk_bytes *head)
{
    return head->len >= 6 && !memcmp(head->data, "\x93NUMPY", 6);
}

static const char *const npy_suffixes[] = {".npy", NULL};

const struct format_ops npy_format = {
    .name = "npy", .suffixes = npy_suffixes, .sniff = npy_sniff, .build = npy_build};
