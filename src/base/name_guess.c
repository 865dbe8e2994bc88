#include "base/name_guess.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

#define GUESS_NEAR 2   /* letters that a slip may change */
#define GUESS_TEXT 400 /* of names that are there: an error holds no more */

/* Letters to change, add or take away, looking at the first 32. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[33];
    size_t a_len = strnlen(a, 32), b_len = strnlen(b, 32);
    for (uint32_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= a_len; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b_len; j++) {
            uint32_t change = diagonal + (a[i - 1] != b[j - 1]);
            uint32_t add = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < add ? change : add;
        }
    }
    return row[b_len];
}

void name_guess_add(struct name_guess *guess, const char *own)
{
    uint32_t far = strcasecmp(guess->wanted, own) ? distance(guess->wanted, own) : 0;
    if (guess->there.len < GUESS_TEXT)
        text_format(&guess->there, "%s%s", guess->there.len ? ", " : "", own);
    if (far <= GUESS_NEAR && (!guess->nearest || far < guess->least)) {
        guess->least = far;
        guess->nearest = own;
    }
}

stk_status name_guess_fail(struct name_guess *guess, const char *what, struct stk_error *err)
{
    stk_status status = fail(err, STK_NOT_FOUND, "there is no %s \"%s\"", what, guess->wanted);
    const char *list = guess->there.data ? guess->there.data : "none";
    if (guess->nearest)
        fail_remedy(err, "did you mean \"%s\"? %ss: %s", guess->nearest, what, list);
    else
        fail_remedy(err, "%ss: %s", what, list);
    text_free(&guess->there);
    return status;
}
