/* test_jpeg_skim.c -- what lies above a box is walked over and cut off, and nobody can tell: sums,
 * places, blocks and pixels are those that libjpeg finds, and what is damaged is left to it. */
#include "codec/image_checking.h"
#include "codec/jpeg_making.h"
#include "codec/jpeg_plain.h"

#include "codec/image_format.h"
#include "codec/jpeg_cut.h"
#include "codec/jpeg_tail.h"

#define RST0 0xd0
#define EOI 0xd9

/* ---- JPEGs, as libjpeg sees them ----------------------------------------------------------- */

struct look {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    jvirt_barray_ptr *blocks;
};

static void look_open(struct look *look, const struct stk_bytes *bytes)
{
    look->info.err = jpeg_std_error(&look->errors);
    jpeg_create_decompress(&look->info);
    jpeg_mem_src(&look->info, bytes->data, bytes->len);
    jpeg_read_header(&look->info, TRUE);
}

/* A row of a component's blocks. */
static JBLOCKROW look_row(struct look *look, int component, JDIMENSION row)
{
    if (!look->blocks)
        look->blocks = jpeg_read_coefficients(&look->info);
    return look->info.mem->access_virt_barray((j_common_ptr)&look->info, look->blocks[component],
                                              row, 1, FALSE)[0];
}

static void look_close(struct look *look)
{
    jpeg_destroy_decompress(&look->info);
}

/* The scan that a look's header tells of; before its blocks are read. */
static void scan_of(const struct look *look, struct jpeg_scan *scan)
{
    const struct jpeg_decompress_struct *info = &look->info;
    *scan = (struct jpeg_scan){.restart = info->restart_interval};
    scan->bytes = (struct stk_bytes){info->src->next_input_byte, info->src->bytes_in_buffer};
    uint32_t across = 8 * (uint32_t)info->max_h_samp_factor;
    scan->mcus = (info->image_width + across - 1) / across;
    for (int c = 0; c < info->num_components; c++) {
        const jpeg_component_info *component = &info->comp_info[c];
        JHUFF_TBL *tables[2] = {info->dc_huff_tbl_ptrs[component->dc_tbl_no],
                                info->ac_huff_tbl_ptrs[component->ac_tbl_no]};
        int numbers[2] = {component->dc_tbl_no, component->ac_tbl_no};
        for (int kind = 0; kind < 2; kind++) {
            struct jpeg_codes *codes = &scan->codes[kind][numbers[kind]];
            memcpy(codes->counts, tables[kind]->bits, sizeof codes->counts);
            memcpy(codes->symbols, tables[kind]->huffval, sizeof codes->symbols);
            scan->tables[kind][c] = (uint8_t)numbers[kind];
        }
        for (int b = 0; b < component->h_samp_factor * component->v_samp_factor; b++)
            scan->components[scan->blocks++] = (uint8_t)c;
    }
}

static const struct jpeg_recipe recipes[] = {
    {.width = 250, .height = 260, .h = 1, .v = 1},
    {.width = 401, .height = 333, .h = 2, .v = 1, .optimize = 1},
    {.width = 530, .height = 399, .h = 2, .v = 2},
    {.width = 333, .height = 430, .h = 1, .v = 2, .quality = 98},
    {.width = 333, .height = 230, .h = 4, .v = 1, .quality = 75},
    {.width = 250, .height = 260, .in = JCS_GRAYSCALE, .h = 1, .v = 1, .quality = 10},
    {.width = 450, .height = 460, .in = JCS_CMYK, .stored = JCS_YCCK, .optimize = 1},
    {.width = 530, .height = 399, .h = 2, .v = 2, .restart = 34},
    {.width = 530, .height = 399, .h = 2, .v = 2, .restart = 17, .quality = 98},
    {.width = 250, .height = 260, .h = 1, .v = 1, .restart = 1},
};
#define RECIPES (sizeof recipes / sizeof recipes[0])

static struct jpeg_skim *skim;
static struct jpeg_scan scan;

/* ---- walking ------------------------------------------------------------------------------- */

static void sums_are_those_that_libjpeg_finds_in_every_row(void **state)
{
    (void)state;
    for (size_t r = 0; r < RECIPES; r++) {
        struct stk_bytes bytes = jpeg_made(&recipes[r]);
        struct look look = {0};
        look_open(&look, &bytes);
        scan_of(&look, &scan);
        const struct jpeg_decompress_struct *info = &look.info;
        uint32_t rows = (info->image_height - 1) / (8 * (uint32_t)info->max_v_samp_factor);
        assert_true(jpeg_skim_begin(skim, &scan));
        for (uint32_t row = 1; row <= rows; row++) { /* all but the last */
            struct jpeg_place place;
            assert_true(jpeg_skim_rows(skim, 1));
            assert_true(jpeg_skim_place(skim, &place));
            for (int c = 0; c < info->num_components && !scan.restart; c++) {
                const jpeg_component_info *component = &info->comp_info[c];
                JDIMENSION last = scan.mcus * (JDIMENSION)component->h_samp_factor - 1;
                JBLOCKROW blocks =
                    look_row(&look, c, row * (JDIMENSION)component->v_samp_factor - 1);
                assert_int_equal(place.dc[c], blocks[last][0]);
            }
        }
        look_close(&look);
        free((void *)bytes.data);
    }
}

/* Every row to the end; 0: somewhere was doubt. */
static int walks(const struct stk_bytes *bytes)
{
    struct look look = {0};
    look_open(&look, bytes);
    scan_of(&look, &scan);
    uint32_t lines = 8 * (uint32_t)look.info.max_v_samp_factor;
    uint32_t rows = (look.info.image_height + lines - 1) / lines;
    int is_sound = jpeg_skim_begin(skim, &scan) && jpeg_skim_rows(skim, rows - 1);
    look_close(&look);
    return is_sound;
}

static size_t find(const struct stk_bytes *bytes, uint8_t code)
{
    for (size_t at = 2; at + 1 < bytes->len; at++)
        if (bytes->data[at] == 0xff && bytes->data[at + 1] == code)
            return at;
    assert_true(0);
    return 0;
}

static void what_is_cut_or_has_a_marker_in_it_is_doubtful(void **state)
{
    (void)state;
    for (size_t r = 0; r < RECIPES; r++) {
        struct stk_bytes bytes = jpeg_made(&recipes[r]), half = {bytes.data, bytes.len / 2};
        uint8_t *data = (uint8_t *)bytes.data;
        assert_true(walks(&bytes));
        assert_false(walks(&half));
        data[bytes.len / 2] = 0xff;
        data[bytes.len / 2 + 1] = EOI;
        assert_false(walks(&bytes));
        free(data);
    }
}

static void restart_markers_must_come_in_turn_and_at_once(void **state)
{
    (void)state;
    struct stk_bytes made = jpeg_made(&recipes[7]);
    uint8_t *data = malloc(made.len + 1);
    size_t at = find(&made, RST0 + 2);
    struct stk_bytes bytes = {data, made.len};
    memcpy(data, made.data, made.len);
    assert_true(walks(&bytes));
    data[at + 1] = RST0 + 3; /* another number */
    assert_false(walks(&bytes));
    memmove(data + at, made.data + at + 2, made.len - at - 2); /* gone */
    bytes.len = made.len - 2;
    assert_false(walks(&bytes));
    memcpy(data, made.data, at); /* behind a byte that is none of a block */
    memcpy(data + at + 1, made.data + at, made.len - at);
    bytes.len = made.len + 1;
    data[at] = 0x55;
    assert_false(walks(&bytes));
    data[at] = 0xff; /* a fill byte: allowed, but libjpeg's */
    assert_false(walks(&bytes));
    free(data);
    free((void *)made.data);
}

/* ---- blocks of few bits -------------------------------------------------------------------- */

/* Codes of 1, 2, 3 ... bits: 0, 10, 110 ... */
static struct jpeg_codes codes_of(const uint8_t *symbols, size_t count)
{
    struct jpeg_codes codes = {0};
    memset(codes.counts + 1, 1, count);
    memcpy(codes.symbols, symbols, count);
    return codes;
}

/* And all codes up to 14 bits are the last symbol's, too. */
static struct jpeg_codes many_codes_of(const uint8_t *symbols, size_t count)
{
    struct jpeg_codes codes = codes_of(symbols, count);
    memset(codes.counts + 1, 1, 14);
    memset(codes.symbols + count, symbols[count - 1], 14 - count);
    return codes;
}

/* One block, its bits written as text; the bytes behind it are zeros. */
static int block_is_sound(const char *bits)
{
    static const uint8_t dc[] = {0, 2}, ac[] = {0xf1, 0x00, 0xe1, 0x21, 0xf0};
    uint8_t data[24] = {0};
    for (size_t i = 0; bits[i]; i++)
        data[i / 8] |= (uint8_t)((bits[i] == '1') << (7 - i % 8));
    scan = (struct jpeg_scan){.bytes = {data, sizeof data}, .blocks = 1, .mcus = 1};
    scan.codes[JPEG_DC][0] = codes_of(dc, sizeof dc);
    scan.codes[JPEG_AC][0] = codes_of(ac, sizeof ac);
    assert_true(jpeg_skim_begin(skim, &scan));
    return jpeg_skim_rows(skim, 1);
}

static void a_block_ends_with_its_end_or_at_its_last_place(void **state)
{
    (void)state;
    assert_true(block_is_sound("0"
                               "10"));
    assert_true(block_is_sound("0"
                               "01"
                               "01"
                               "01"
                               "10")); /* 48, and the end */
    assert_true(block_is_sound("0"
                               "1101"
                               "1101"
                               "1101"
                               "1101"
                               "11101")); /* 15 * 4 + 3 */
    assert_true(block_is_sound("0"
                               "11110"
                               "11110"
                               "11110"
                               "1101"
                               "10")); /* 48 + 15 is all */
    assert_false(block_is_sound("0"
                                "01"
                                "01"
                                "01"
                                "01")); /* 64: one too many */
    assert_false(block_is_sound("0"
                                "11110"
                                "11110"
                                "11110"
                                "11110"));
    assert_false(block_is_sound("0"
                                "1101"
                                "1101"
                                "1101"
                                "1101"
                                "01"));
    assert_false(block_is_sound("0"
                                "111110")); /* no such code */
    assert_false(block_is_sound("110"));    /* nor here */
}

static void codes_that_libjpeg_refuses_are_refused(void **state)
{
    (void)state;
    static const uint8_t symbols[] = {1, 2, 3, 16};
    struct jpeg_table *table = calloc(1, sizeof *table);
    struct jpeg_codes codes = {0};
    assert_false(jpeg_table_make(table, JPEG_AC, &codes)); /* none */
    codes = codes_of(symbols, 4);
    assert_false(jpeg_table_make(table, JPEG_DC, &codes)); /* 16 bits of a difference */
    assert_true(jpeg_table_make(table, JPEG_AC, &codes));
    assert_true(jpeg_table_is(table, &codes));
    codes.counts[4] = 2; /* one is all ones */
    assert_false(jpeg_table_make(table, JPEG_AC, &codes));
    codes = (struct jpeg_codes){.counts = {[9] = 255, [10] = 255}}; /* more than there are */
    assert_false(jpeg_table_make(table, JPEG_AC, &codes));
    free(table);
}

/* ---- the row that is made ------------------------------------------------------------------ */

/* Makes a row for a place, and walks over it: the sums and the bit are those of the place. */
static int row_leads_to(const struct jpeg_place *place)
{
    static const uint8_t rest[] = {0xa5, 0xff, 0x00, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde};
    struct jpeg_tail tail;
    struct jpeg_place found;
    scan.bytes = (struct stk_bytes){rest, sizeof rest};
    assert_true(jpeg_skim_begin(skim, &scan));
    if (!jpeg_tail_make(&tail, skim, &scan, place))
        return 0;
    assert_int_equal(tail.rest, place->at + (place->bits == 0 ? 0 : place->at == 1 ? 2 : 1));
    uint8_t joined[JPEG_TAIL_ROOM + sizeof rest + 256] = {0};
    memcpy(joined, tail.bytes, tail.len);
    memcpy(joined + tail.len, rest + tail.rest, sizeof rest - tail.rest);
    scan.bytes = (struct stk_bytes){joined, sizeof joined};
    assert_true(jpeg_skim_begin(skim, &scan));
    assert_true(jpeg_skim_rows(skim, 1));
    assert_true(jpeg_skim_place(skim, &found));
    assert_memory_equal(found.dc, place->dc, sizeof found.dc);
    assert_int_equal(found.bits, place->bits);
    uint8_t mask = (uint8_t)(0xff >> place->bits);
    assert_int_equal(joined[found.at] & mask, rest[place->at] & mask);
    return 1;
}

/* Three components of one block, with these sizes of differences and these symbols. */
static void set_codes(const struct jpeg_codes *dc, const struct jpeg_codes *ac)
{
    scan = (struct jpeg_scan){.blocks = 3, .components = {0, 1, 2}, .mcus = 20};
    scan.codes[JPEG_DC][0] = *dc;
    scan.codes[JPEG_AC][0] = *ac;
}

static void a_row_leads_to_any_sums_and_any_bit_of_a_byte(void **state)
{
    (void)state;
    static const uint8_t sizes[][4] = {{3, 5, 9, 0}, {8, 1, 2, 0}, {7, 6, 5, 0}, {11, 4, 10, 0}};
    static const uint8_t ac[] = {0x01, 0x12, 0x02, 0x00}; /* one is odd: 3 + 2 bits */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int turn = 0; turn < 300; turn++) {
            struct jpeg_codes of_dc = many_codes_of(sizes[i], 4), of_ac = many_codes_of(ac, 4);
            struct jpeg_place place = {.at = (size_t)random_below(2),
                                       .bits = (uint32_t)random_below(8)};
            for (int c = 0; c < 3; c++)
                place.dc[c] = random_below(2047) - 1023;
            set_codes(&of_dc, &of_ac);
            assert_true(row_leads_to(&place));
        }
}

static void a_row_that_cannot_be_made_is_not(void **state)
{
    (void)state;
    static const uint8_t some[] = {1, 0}, none[] = {3, 4}, zero[] = {0};
    static const uint8_t odd[] = {0x02, 0x01, 0x00}, even[] = {0x00, 0x02}, endless[] = {0x01};
    struct jpeg_codes of_some = many_codes_of(some, 2), of_none = many_codes_of(none, 2);
    struct jpeg_codes of_zero = many_codes_of(zero, 1), of_odd = many_codes_of(odd, 3);
    struct jpeg_codes of_even = codes_of(even, 2), of_endless = many_codes_of(endless, 1);
    struct jpeg_place place = {.dc = {5, -7, 9}};
    set_codes(&of_some, &of_odd);
    assert_true(row_leads_to(&place));
    place.dc[1] = -21; /* in steps of one, and there are 20 blocks */
    assert_false(row_leads_to(&place));
    place.dc[1] = 0;
    set_codes(&of_none, &of_odd); /* every block differs */
    assert_false(row_leads_to(&place));
    set_codes(&of_zero, &of_odd); /* none does */
    assert_false(row_leads_to(&place));
    set_codes(&of_some, &of_endless); /* every block is full */
    assert_false(row_leads_to(&place));
    set_codes(&of_some, &of_even);
    for (place.bits = 0; place.bits < 8; place.bits++) /* all codes of AC are of even bits */
        if (place.bits % 2 == 1)
            assert_false(row_leads_to(&place));
    set_codes(&of_some, &of_odd);
    scan.mcus = 8 * JPEG_TAIL_ROOM; /* no room */
    assert_false(row_leads_to(&place));
}

/* ---- cutting ------------------------------------------------------------------------------- */

static struct stk_bytes joined(const struct stk_bytes *pieces)
{
    size_t len = 0;
    for (int i = 0; i < JPEG_PIECES; i++)
        len += pieces[i].len;
    uint8_t *data = malloc(len), *to = data;
    for (int i = 0; i < JPEG_PIECES; to += pieces[i++].len)
        memcpy(to, pieces[i].data, pieces[i].len);
    return (struct stk_bytes){data, len};
}

/* From the first row that the two have in common. */
static void compare_blocks(struct look *whole, struct look *part, uint32_t gone, uint32_t made)
{
    for (int c = 0; c < whole->info.num_components; c++) {
        const jpeg_component_info *component = &whole->info.comp_info[c];
        JDIMENSION high = (JDIMENSION)component->v_samp_factor;
        look_row(whole, c, 0);
        for (JDIMENSION row = (gone + made) * high; row < component->height_in_blocks; row++) {
            JBLOCKROW is = look_row(part, c, row - gone * high), ought = look_row(whole, c, row);
            assert_memory_equal(is, ought, component->width_in_blocks * sizeof *is);
        }
    }
}

static void below_a_cut_all_blocks_are_the_same(void **state)
{
    (void)state;
    struct jpeg_cut *cut = NULL;
    assert_int_equal(jpeg_cut_new(&cut, NULL), STK_OK);
    for (size_t r = 0; r < RECIPES; r++) {
        struct stk_bytes bytes = jpeg_made(&recipes[r]);
        struct image_task task = {.bytes = bytes, .limits = {.max_ns = INT64_MAX}};
        uint32_t cuts = 0;
        for (uint32_t row = 1; row < 40; row++) {
            struct look whole = {0}, part = {0};
            look_open(&whole, &bytes);
            scan_of(&whole, jpeg_cut_scan(cut));
            uint32_t lines = 8 * (uint32_t)whole.info.max_v_samp_factor;
            uint32_t below = row * lines < whole.info.image_height ? row : 0;
            uint32_t gone = below ? jpeg_cut_above(cut, &task, below, lines) : 0;
            if (gone) {
                struct stk_bytes left = joined(jpeg_cut_pieces(cut));
                look_open(&part, &left);
                assert_int_equal(part.info.image_height, whole.info.image_height - gone * lines);
                compare_blocks(&whole, &part, gone, recipes[r].restart ? 0 : 1);
                assert_int_equal(part.errors.num_warnings, 0);
                look_close(&part);
                free((void *)left.data);
            }
            cuts += gone > 0;
            look_close(&whole);
        }
        assert_true(cuts > 5);
        free((void *)bytes.data);
    }
    jpeg_cut_free(cut);
}

/* The same as libjpeg alone: pixels, or that there are none. */
static void compare_rows(const struct stk_bytes *bytes, const struct jpeg_recipe *recipe,
                         int relaxed)
{
    struct image_limits limits = {.relaxed = relaxed};
    struct image_want want = {.width = recipe->width};
    struct image_header header;
    struct image_view view;
    struct stk_error err = {0};
    struct plain plain;
    want.y = random_below(recipe->height);
    want.height = 1 + random_below(recipe->height - want.y);
    assert_int_equal(image_begin(decoder, bytes, &limits, &header, &err), STK_OK);
    stk_status status = image_read(decoder, &want, &view, &err);
    plain_read(&plain, bytes, !relaxed, 8, want.y, want.height);
    assert_int_equal(!status, plain.pixels != NULL);
    if (!status)
        assert_int_equal(view_error(&view, plain.pixels, recipe->width, 0, 0), 0);
    free(plain.pixels);
}

static void damage_is_seen_as_libjpeg_sees_it(void **state)
{
    (void)state;
    for (size_t r = 0; r < RECIPES; r++) {
        if (recipes[r].in == JCS_CMYK)
            continue;
        struct stk_bytes bytes = jpeg_made(&recipes[r]);
        struct look look = {0};
        look_open(&look, &bytes);
        size_t scan_len = look.info.src->bytes_in_buffer, first = bytes.len - scan_len;
        look_close(&look);
        for (int turn = 0; turn < 60; turn++) {
            uint8_t *data = malloc(bytes.len);
            struct stk_bytes damaged = {data, bytes.len};
            size_t at = first + (size_t)random_below((int)scan_len);
            memcpy(data, bytes.data, bytes.len);
            if (turn % 3 == 0)
                data[at] ^= (uint8_t)(1 << random_below(8));
            else if (turn % 3 == 1)
                data[at] = 0xff;
            else
                damaged.len = at;
            compare_rows(&damaged, &recipes[r], turn % 2);
            free(data);
        }
        free((void *)bytes.data);
    }
}

static void nothing_is_allocated_while_walking(void **state)
{
    (void)state;
    struct stk_bytes bytes = jpeg_made(&recipes[2]);
    for (int turn = 0; turn < 3; turn++) {
        struct counted counted = {0};
        struct image_want want = {.y = 300, .width = 530, .height = 40};
        begin_ok(&bytes);
        if (turn == 2) /* pools have their size by then */
            memory_set_hook(count_call, &counted);
        read_ok(&want);
        memory_set_hook(NULL, NULL);
        assert_int_equal(counted.calls, 0);
    }
    free((void *)bytes.data);
}

static int make_both(void **state)
{
    return make_decoder(state) || jpeg_skim_new(&skim, NULL);
}

static int free_both(void **state)
{
    jpeg_skim_free(skim);
    return free_decoder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_that_libjpeg_finds_in_every_row),
        cmocka_unit_test(what_is_cut_or_has_a_marker_in_it_is_doubtful),
        cmocka_unit_test(restart_markers_must_come_in_turn_and_at_once),
        cmocka_unit_test(a_block_ends_with_its_end_or_at_its_last_place),
        cmocka_unit_test(codes_that_libjpeg_refuses_are_refused),
        cmocka_unit_test(a_row_leads_to_any_sums_and_any_bit_of_a_byte),
        cmocka_unit_test(a_row_that_cannot_be_made_is_not),
        cmocka_unit_test(below_a_cut_all_blocks_are_the_same),
        cmocka_unit_test(damage_is_seen_as_libjpeg_sees_it),
        cmocka_unit_test(nothing_is_allocated_while_walking),
    };
    return cmocka_run_group_tests(tests, make_both, free_both);
}
