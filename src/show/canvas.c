#include "show/canvas.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "show/bitmap_font.h"

#define LETTER_STEP (FONT_WIDTH + 1)
#define LINE_STEP (FONT_HEIGHT + 1)

stk_status canvas_init(struct canvas *canvas, int32_t width, int32_t height, struct stk_error *err)
{
    *canvas = (struct canvas){.width = width, .height = height};
    canvas->pixels = memory_zero((size_t)width * (size_t)height, 3);
    return canvas->pixels ? STK_OK : fail_memory(err, (uint64_t)width * (uint64_t)height * 3);
}

void canvas_reset(struct canvas *canvas)
{
    memory_free(canvas->pixels);
    *canvas = (struct canvas){0};
}

/* --- areas ------------------------------------------------------------------------------------ */

static void put(uint8_t *pixel, color color)
{
    pixel[0] = (uint8_t)(color >> 16);
    pixel[1] = (uint8_t)(color >> 8);
    pixel[2] = (uint8_t)color;
}

static uint8_t *pixel_at(struct canvas *canvas, int32_t x, int32_t y)
{
    return canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;
}

/* The part of a box that is on the canvas. */
static struct box clip(const struct canvas *canvas, struct box box)
{
    int32_t left = box.x > 0 ? box.x : 0, top = box.y > 0 ? box.y : 0;
    int32_t right = box.x + box.width, bottom = box.y + box.height;
    right = right < canvas->width ? right : canvas->width;
    bottom = bottom < canvas->height ? bottom : canvas->height;
    return (struct box){left, top, right > left ? right - left : 0,
                        bottom > top ? bottom - top : 0};
}

void canvas_fill(struct canvas *canvas, struct box box, color color)
{
    struct box part = clip(canvas, box);
    for (int32_t y = part.y; y < part.y + part.height; y++)
        for (int32_t x = part.x; x < part.x + part.width; x++)
            put(pixel_at(canvas, x, y), color);
}

void canvas_frame(struct canvas *canvas, struct box box, int32_t thick, color color)
{
    int32_t right = box.x + box.width - thick, bottom = box.y + box.height - thick;
    canvas_fill(canvas, (struct box){box.x, box.y, box.width, thick}, color);
    canvas_fill(canvas, (struct box){box.x, bottom, box.width, thick}, color);
    canvas_fill(canvas, (struct box){box.x, box.y, thick, box.height}, color);
    canvas_fill(canvas, (struct box){right, box.y, thick, box.height}, color);
}

void canvas_copy(struct canvas *canvas, int32_t x, int32_t y, const uint8_t *rgb, int32_t width,
                 int32_t height)
{
    struct box part = clip(canvas, (struct box){x, y, width, height});
    for (int32_t row = part.y; row < part.y + part.height && part.width; row++)
        memcpy(pixel_at(canvas, part.x, row),
               rgb + ((size_t)(row - y) * (size_t)width + (size_t)(part.x - x)) * 3,
               (size_t)part.width * 3);
}

/* --- lines ------------------------------------------------------------------------------------ */

void canvas_blend(struct canvas *canvas, int32_t x, int32_t y, color color, double share)
{
    if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height)
        return;
    uint8_t *pixel = pixel_at(canvas, x, y);
    for (int c = 0; c < 3; c++) {
        double to = (double)(color >> (16 - 8 * c) & 0xff);
        pixel[c] = (uint8_t)lrint(pixel[c] + (to - pixel[c]) * share);
    }
}

static int inside(struct box box, int32_t x, int32_t y)
{
    return x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height;
}

/* Steps along the longer axis; on the other one the two nearest pixels share the paint. */
void canvas_line(struct canvas *canvas, struct box within, struct point from, struct point to,
                 color color)
{
    double dx = to.x - from.x, dy = to.y - from.y;
    int steep = fabs(dy) > fabs(dx);
    int32_t steps = (int32_t)ceil(steep ? fabs(dy) : fabs(dx));
    for (int32_t i = 0; i <= steps; i++) {
        double at = steps ? (double)i / steps : 0;
        double x = from.x + dx * at, y = from.y + dy * at;
        double across = steep ? x : y;
        int32_t first = (int32_t)floor(across), along = (int32_t)lrint(steep ? y : x);
        double second_share = across - first;
        for (int32_t k = 0; k < 2; k++) {
            int32_t px = steep ? first + k : along, py = steep ? along : first + k;
            if (inside(within, px, py))
                canvas_blend(canvas, px, py, color, k ? second_share : 1 - second_share);
        }
    }
}

void canvas_disc(struct canvas *canvas, struct box within, struct point at, double radius,
                 color color)
{
    for (int32_t y = (int32_t)floor(at.y - radius); y <= (int32_t)ceil(at.y + radius); y++)
        for (int32_t x = (int32_t)floor(at.x - radius); x <= (int32_t)ceil(at.x + radius); x++) {
            double share = radius + 0.5 - hypot(x - at.x, y - at.y);
            if (share > 0 && inside(within, x, y))
                canvas_blend(canvas, x, y, color, share < 1 ? share : 1);
        }
}

/* --- text ------------------------------------------------------------------------------------- */

int32_t text_width(const char *text, size_t len, int32_t scale)
{
    (void)text;
    return len ? (int32_t)len * LETTER_STEP * scale - scale : 0;
}

int32_t text_height(int32_t scale)
{
    return LINE_STEP * scale;
}

static void draw_letter(struct canvas *canvas, int32_t x, int32_t y, char letter,
                        struct text_style style)
{
    const uint8_t *rows = font_glyph(letter);
    for (int32_t row = 0; row < FONT_HEIGHT; row++)
        for (int32_t column = 0; column < FONT_WIDTH; column++)
            if (rows[row] >> (FONT_WIDTH - 1 - column) & 1)
                canvas_fill(canvas,
                            (struct box){x + column * style.scale, y + row * style.scale,
                                         style.scale, style.scale},
                            style.color);
}

static void draw_letters(struct canvas *canvas, int32_t x, int32_t y, const char *text, size_t len,
                         struct text_style style)
{
    for (size_t i = 0; i < len && canvas; i++)
        draw_letter(canvas, x + (int32_t)i * LETTER_STEP * style.scale, y, text[i], style);
}

int32_t canvas_text(struct canvas *canvas, int32_t x, int32_t y, int32_t room, const char *text,
                    struct text_style style)
{
    size_t len = strlen(text), step = (size_t)(LETTER_STEP * style.scale);
    size_t fit = room > 0 ? ((size_t)room + (size_t)style.scale) / step : 0;
    if (len <= fit) {
        draw_letters(canvas, x, y, text, len, style);
        return text_width(text, len, style.scale);
    }
    if (fit < 3)
        return 0;
    draw_letters(canvas, x, y, text, fit - 2, style);
    draw_letters(canvas, x + (int32_t)((fit - 2) * step), y, "..", 2, style);
    return text_width(text, fit, style.scale);
}

/* How much of text goes on a line of `fit` letters: up to a space, where there is one. */
static size_t line_length(const char *text, size_t fit)
{
    size_t len = strcspn(text, "\n"), cut = fit;
    if (len <= fit)
        return len;
    while (cut && text[cut] != ' ')
        cut--;
    return cut ? cut : fit;
}

int32_t canvas_wrapped(struct canvas *canvas, struct box box, const char *text,
                       struct text_style style)
{
    int32_t step = LETTER_STEP * style.scale, line = text_height(style.scale), used = 0;
    size_t fit = box.width > step ? (size_t)((box.width + style.scale) / step) : 1;
    while (*text && used + line <= box.height) {
        size_t len = line_length(text, fit);
        draw_letters(canvas, box.x, box.y + used, text, len, style);
        text += len;
        text += strspn(text, " \n");
        used += line;
    }
    return used;
}
