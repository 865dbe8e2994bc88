/* index_file.h -- the bytes of an index file: a fixed header and sections, little-endian.
 * Owns: nothing; these are the structs that lie in the map.   Threads: any.   Errors: none.
 * Not here: opening (index.c), writing (index_writer.h).
 *
 * Layout: header (512 bytes), then the sections, each aligned to 64 bytes. Every section but the
 * last is cut into blocks of 64 KiB from its own beginning; the last one, CHECKS, holds a hash of
 * each block, section after section. A reader checks a block when it first touches it. */
#ifndef INDEX_INDEX_FILE_H
#define INDEX_INDEX_FILE_H

#include <assert.h>
#include <stdint.h>

#define INDEX_MAGIC "STKINDEX"
#define INDEX_VERSION 1u
#define INDEX_BLOCK_SHIFT 16u
#define INDEX_BLOCK (1u << INDEX_BLOCK_SHIFT)
#define INDEX_ALIGN 64u
#define INDEX_MAX_FIELDS 1024u
#define INDEX_LONG UINT32_MAX /* as a row's length: look in OVERFLOW */

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "index files are mapped as they are");

/* Numbers are kept in files: never change them. */
enum index_kind { INDEX_TABLE = 1, INDEX_GRID = 2 };
enum index_key_source {
    INDEX_KEYS_STORED = 0, /* KEYS and KEY_BYTES */
    INDEX_KEYS_NAMES = 1, /* the name of the object of the sample's first field, up to the first dot
                             of its base name (sample_name.h) */
    INDEX_KEYS_NUMBERS = 2 /* the row's number (grid) */
};

enum index_section_number {
    INDEX_STRINGS,   /* NUL-ended: root, format, names of fields and classes */
    INDEX_NAMES,     /* NUL-ended: names of objects */
    INDEX_OBJECTS,   /* struct index_file_object */
    INDEX_FIELDS,    /* struct index_file_field */
    INDEX_CHUNKS,    /* struct index_file_chunk */
    INDEX_CLASSES,   /* uint64_t: offset in STRINGS */
    INDEX_ROWS,      /* table: struct index_file_row [sample][field] */
    INDEX_OVERFLOW,  /* table: struct index_file_overflow, sorted by row */
    INDEX_KEYS,      /* table: uint64_t [samples + 1]: offset in KEY_BYTES */
    INDEX_KEY_BYTES, /* table */
    INDEX_RUNS,      /* grid: struct index_file_run, by field, then by first */
    INDEX_CHECKS,    /* uint64_t: hash_bytes(block, its length, its number) */
    INDEX_SECTION_COUNT
};

struct index_section {
    uint64_t offset, length; /* in bytes, in the file */
    uint64_t first_check;    /* number in CHECKS of its first block */
};

struct index_header {
    char magic[8];
    uint32_t version, kind;
    uint64_t checksum; /* hash_bytes of the header with this field 0 */
    uint64_t file_size, samples, skipped;
    uint32_t field_count, object_count, chunk_count, class_count;
    uint32_t key_source, unused;
    uint64_t root, format; /* offsets in STRINGS */
    uint8_t fingerprint[16];
    struct index_section sections[INDEX_SECTION_COUNT];
    /* Behind CHECKS, where there are any: what the first values of the fields are, so that opening
     * data on the network need not read them. A struct index_file_head each. */
    uint64_t heads_offset, heads_count;
    uint64_t heads_hash; /* hash_bytes of them */
    uint8_t padding[96];
};
static_assert(sizeof(struct index_header) == 512, "a fixed header");

struct index_file_object {
    uint64_t size, version, name; /* name: offset in NAMES */
};
static_assert(sizeof(struct index_file_object) == 24, "no padding");

/* object: a stored object's number, INDEX_PART_CHUNK | a chunk's, EXTENT_NONE or EXTENT_VALUE. */
struct index_file_row {
    uint64_t offset;
    uint32_t length, object;
};
static_assert(sizeof(struct index_file_row) == 16, "no padding");

struct index_file_overflow {
    uint64_t row; /* sample * field_count + field */
    uint64_t length;
};

struct index_file_tensor {
    int32_t rank; /* -1: none */
    uint32_t dtype;
    int64_t shape[8];
};

struct index_file_field {
    uint64_t name; /* offset in STRINGS */
    uint64_t min_length, max_length, missing;
    uint64_t first_run, run_count; /* grid: its part of RUNS */
    uint32_t byteswap, unused;
    struct index_file_tensor row;
};
static_assert(sizeof(struct index_file_field) == 128, "no padding");

/* What a look at the first value of a field found (codec/codec.h). */
struct index_file_head {
    uint32_t field;  /* number */
    uint32_t length; /* bytes before the payload */
    uint64_t sample; /* the one that was looked at */
    uint32_t plain, unused;
    char codec[32]; /* its name, ended by NUL */
    struct index_file_tensor shape;
    uint8_t bytes[256]; /* the first of those before the payload */
};
static_assert(sizeof(struct index_file_head) == 384, "no padding");

struct index_file_chunk {
    uint64_t offset, length, decoded, first, count;
    uint32_t object, filter;
    struct index_file_tensor shape;
    uint32_t check, unused;
};
static_assert(sizeof(struct index_file_chunk) == 128, "no padding");

/* Rows first .. first + rows of a field lie one after the other from offset on. */
struct index_file_run {
    uint64_t first, rows, offset;
    uint32_t object; /* as a row's */
    uint32_t unused;
};
static_assert(sizeof(struct index_file_run) == 32, "no padding");

#endif
