/* An index file. The first byte: bit 0 asks for right checksums of header and blocks, so that
 * mutations get past them. */
#include "base/hash.h"
#include "fuzz_build.h"
#include "index/index_file.h"

static int inside(const struct index_section *section, size_t size)
{
    return section->offset <= size && section->length <= size - section->offset;
}

static void sign(uint8_t *file, size_t size)
{
    struct index_header header;
    if (size < sizeof(header))
        return;
    memcpy(&header, file, sizeof(header));
    const struct index_section *checks = &header.sections[INDEX_CHECKS];
    for (int i = 0; i < INDEX_CHECKS && inside(checks, size); i++) {
        const struct index_section *section = &header.sections[i];
        if (!inside(section, size))
            continue;
        for (uint64_t at = 0; at < section->length; at += INDEX_BLOCK) {
            uint64_t number = section->first_check + at / INDEX_BLOCK;
            uint64_t left = section->length - at;
            size_t len = left < INDEX_BLOCK ? (size_t)left : INDEX_BLOCK;
            uint64_t hash = hash_bytes(file + section->offset + at, len, number);
            if (number < checks->length / 8)
                memcpy(file + checks->offset + 8 * number, &hash, 8);
        }
    }
    memcpy(&header, file, sizeof(header));
    header.checksum = 0;
    header.checksum = hash_bytes(&header, sizeof(header), 0);
    memcpy(file, &header, sizeof(header));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct index *index = NULL;
    if (size < 1)
        return 0;
    uint8_t *file = malloc(size);
    memcpy(file, data + 1, size - 1);
    if (data[0] & 1)
        sign(file, size - 1);
    int fd = fuzz_file(file, size - 1, path);
    if (!index_open(&index, path, NULL))
        fuzz_read(index);
    index_close(index);
    close(fd);
    free(file);
    return 0;
}
