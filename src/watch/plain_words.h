/* plain_words.h -- numbers and places as people write them: "41 %", "40,000", "51 KB", "350 ms",
 * "blur (train.py:31)".
 * Owns: nothing; a word is a value.   Threads: any.   Errors: none; what does not fit is cut.
 * Not here: JSON (json_pen.h). */
#ifndef WATCH_PLAIN_WORDS_H
#define WATCH_PLAIN_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/export.h"
#include "watch/summary.h"

struct word {
    char text[96];
};

struct word word_percent(double share);   /* "41 %", "0.3 %" */
struct word word_count(uint64_t count);   /* "40,000" */
struct word word_bytes(double bytes);     /* "51 KB", "1.2 GB": thousands */
struct word word_seconds(double seconds); /* "38 s", "1.2 s", "350 ms", "12 us" */
struct word word_gain(double gain);       /* "1.8x", "1.04x" */
/* "blur (train.py:31)"; the file's last part alone. */
struct word word_function(const struct summary_function *function);
/* "the DataLoader (train.py:40)" */
struct word word_loader(const struct summary_loader *loader);

/* As snprintf; a text that is cut ends in "...", and never within a character. */
void words_put(char *out, size_t room, const char *format, ...) STK_PRINTF(3, 4);

#endif
