/* A verdict for a terminal of 80 columns: the answer first, then the evidence. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "watch/findings.h"
#include "watch/plain_words.h"
#include "watch/verdict.h"

#define GAIN_WORTH 1.02 /* a measured gain that is less is none */
#define COLUMNS 80
#define BAR 24
#define SMALL 0.005 /* of the time: rows below are told together */

static const char *const labels[CAUSE_COUNT] = {
    [CAUSE_FETCH] = "reading",
    [CAUSE_TRANSFORM] = "decode, transform",
    [CAUSE_COLLATE] = "collate, hand over",
    [CAUSE_WORKERS] = "too few workers",
    [CAUSE_SLOW_SAMPLE] = "one slow sample",
    [CAUSE_START] = "epoch start",
    [CAUSE_COPY] = "copy to device",
    [CAUSE_LAUNCH] = "Python launches",
    [CAUSE_GIL] = "GIL, pin thread",
    [CAUSE_CONTENTION] = "other programs",
    [CAUSE_SYNC] = "sync, logging",
    [CAUSE_CHECKPOINT] = "checkpoints",
    [CAUSE_VALIDATION] = "validation",
    [CAUSE_RANK] = "another rank",
    [CAUSE_OVERHEAD] = "being watched",
    [CAUSE_OTHER] = "something else",
};

/* Bytes that would move a terminal's cursor or change its colours are not let through. */
static void add_safe(struct text *text, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)data[i];
        text_add(text, byte < 0x20 || byte == 0x7f ? "?" : data + i, 1);
    }
}

static size_t characters(const char *data, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)data[i] & 0xc0) != 0x80;
    return count;
}

/* Words in lines of 80 columns; the first line goes on at column `column`, the others begin at
 * `indent`. */
static void add_wrapped(struct text *text, const char *words, size_t column, size_t indent)
{
    size_t begin = column;
    while (*words) {
        size_t len = strcspn(words, " "), wide = characters(words, len);
        if (column > begin && column + wide + 1 > COLUMNS) {
            text_format(text, "\n%*s", (int)indent, "");
            column = begin = indent;
        } else if (column > begin) {
            text_add(text, " ", 1);
            column++;
        }
        add_safe(text, words, len);
        column += wide;
        words += len;
        words += strspn(words, " ");
    }
    text_add(text, "\n", 1);
}

/* --- the chart ----------------------------------------------------------------------------- */

static void add_bar(struct text *text, const char *label, double share, const char *remark)
{
    static const char full[BAR + 1] = "########################";
    int wide = (int)(share * BAR + 0.5);
    wide = wide < 0 ? 0 : wide > BAR ? BAR : wide;
    text_format(text, "  %-18s %-*.*s %6s", label, BAR, wide, full, word_percent(share).text);
    if (remark[0])
        text_add(text, "  ", 2);
    size_t len = strlen(remark), room = COLUMNS - 54;
    if (characters(remark, len) > room)
        len = strcspn(remark, " "); /* the function alone */
    while (characters(remark, len) > room)
        len--;
    add_safe(text, remark, len);
    text_add(text, "\n", 1);
}

static void add_chart_head(struct text *text, const struct findings *findings)
{
    const struct summary *summary = findings->summary;
    double samples = 0;
    for (size_t i = 0; i < summary->rank_count; i++)
        samples += (double)summary->ranks[i].samples;
    text_format(text, "\n  Where the time went (%s",
                word_seconds(findings->judged / findings->ranks).text);
    if (findings->steps > 0)
        text_format(text, ", %s steps", word_count((uint64_t)(findings->steps)).text);
    if (samples > 0)
        text_format(
            text, ", %s samples/s",
            word_count((uint64_t)(samples * findings->ranks / findings->judged + 0.5)).text);
    text_format(text, ")\n");
}

static void add_chart(struct text *text, const struct findings *findings)
{
    int told[CAUSE_COUNT] = {0};
    double rest = 0;
    add_chart_head(text, findings);
    add_bar(text,
            findings->summary->mode == WATCH_SAMPLED ? "GPU busy (sampled)"
            : findings->gpu                          ? "GPU computes"
                                                     : "compute",
            findings->compute / findings->judged, "");
    for (;;) {
        int most = -1;
        struct summary_cause cause;
        for (int i = 0; i < CAUSE_COUNT; i++)
            if (!told[i] && findings->seconds[i] > 0 &&
                (most < 0 || findings->seconds[i] > findings->seconds[most]))
                most = i;
        if (most < 0)
            break;
        told[most] = 1;
        if (findings->seconds[most] < SMALL * findings->judged) {
            rest += findings->seconds[most];
            continue;
        }
        findings_cause(&cause, findings->summary, (enum cause)most);
        const struct summary_function *function = findings_function(&cause, (enum cause)most);
        add_bar(text, labels[most], findings->seconds[most] / findings->judged,
                function ? word_function(function).text : "");
    }
    if (rest > 0)
        add_bar(text, "the rest", rest / findings->judged, "");
}

static void add_ranks(struct text *text, const struct findings *findings)
{
    const struct summary *summary = findings->summary;
    char words[256];
    if (summary->rank_count < 2)
        return;
    int slowest = findings_slowest(summary, words, sizeof words);
    text_format(text, "\n  rank   busy  samples/s      step  waits most for\n");
    for (size_t i = 0; i < summary->rank_count; i++) {
        const struct summary_rank *rank = &summary->ranks[i];
        double judged = (double)findings_judged(rank) / 1e9 + 1e-12;
        enum cause first = findings_first_cause(rank);
        text_format(text, "  %4d %6s %10.1f %9s  %s%s\n", rank->rank,
                    word_percent((double)rank->compute_ns / 1e9 / judged).text,
                    (double)rank->samples / judged,
                    word_seconds((double)rank->step_median_ns / 1e9).text,
                    first < CAUSE_COUNT ? labels[first] : "nothing",
                    (int)i == slowest ? "  <- the slowest" : "");
    }
}

/* --- what to do ---------------------------------------------------------------------------- */

static void add_snippet(struct text *text, const char *snippet)
{
    while (*snippet) {
        size_t len = strcspn(snippet, "\n");
        text_format(text, "%*s", len ? 8 : 0, "");
        add_safe(text, snippet, len);
        text_add(text, "\n", 1);
        snippet += len + (snippet[len] == '\n');
    }
}

static void add_advice(struct text *text, const struct verdict *verdict)
{
    if (verdict->advice_count)
        text_format(text, "\n  What to do\n");
    for (size_t i = 0; i < verdict->advice_count; i++) {
        const struct advice *advice = &verdict->advice[i];
        text_format(text, "  %zu. ", i + 1);
        add_wrapped(text, advice->action, 5, 5);
        text_format(text, "     ");
        if (advice->gain > 1.005) {
            char gain[64];
            words_put(gain, sizeof gain, "At most %s faster%s. ", word_gain(advice->gain).text,
                      advice->measured ? " (measured)" : "");
            text_format(text, "%s", gain);
            add_wrapped(text, advice->why, 5 + strlen(gain), 5);
        } else {
            add_wrapped(text, advice->why, 5, 5);
        }
        if (advice->snippet[0])
            add_snippet(text, advice->snippet);
    }
}

static void add_against(struct text *text, const struct verdict *verdict)
{
    struct text words = {0};
    if (!verdict->against_count)
        return;
    for (size_t i = 0; i < verdict->against_count; i++)
        text_format(&words, "%s%s (%s)", i ? "; " : "", verdict->against[i].action,
                    verdict->against[i].why);
    text_format(text, "\n  Do not bother with: ");
    add_wrapped(text, words.data ? words.data : "", 22, 2);
    text->failed |= words.failed;
    text_free(&words);
}

static void add_bound(struct text *text, const struct verdict *verdict,
                      const struct summary *summary)
{
    const struct summary_what_if *what_if = summary->what_if;
    char words[160];
    int is_measured = what_if && what_if->measured; /* then the user asked, whatever the answer */
    if (verdict->bound != BOUND_INPUT && !is_measured)
        return;
    if (is_measured && what_if->gain < GAIN_WORTH)
        words_put(words, sizeof words,
                  "If input were free: no faster. Measured: %s steps with batches from memory.",
                  word_count(what_if->steps).text);
    else if (is_measured)
        words_put(words, sizeof words,
                  "If input were free: %s faster. Measured: %s steps with batches from memory.",
                  word_gain(what_if->gain).text, word_count(what_if->steps).text);
    else
        words_put(words, sizeof words,
                  "If input were free: at most %s faster. Estimated; --what-if measures it.",
                  word_gain(verdict->gain_bound).text);
    text_format(text, "\n  ");
    add_wrapped(text, words, 2, 2);
}

static void add_sentences(struct text *text, const char *title, char *const *sentences)
{
    for (size_t i = 0; i < SUMMARY_REASONS && sentences[i]; i++) {
        text_format(text, "  %s: ", title);
        add_wrapped(text, sentences[i], strlen(title) + 4, 4);
    }
}

char *verdict_text(const struct verdict *verdict, const struct summary *summary)
{
    struct findings findings;
    struct text text = {0};
    findings_make(&findings, summary, FINDINGS_ALL);
    add_wrapped(&text, verdict->words, 0, 0);
    if (findings.judged > 0) {
        add_chart(&text, &findings);
        add_ranks(&text, &findings);
    }
    if (verdict->why[0]) {
        text_format(&text, "\n  Why: ");
        add_wrapped(&text, verdict->why, 7, 2);
    }
    add_bound(&text, verdict, summary);
    add_advice(&text, verdict);
    add_against(&text, verdict);
    if (verdict->bound != BOUND_UNKNOWN) {
        text_format(&text, "\n  How sure: %s. ", verdict->sure);
        add_wrapped(&text, verdict->sure_why, 14 + strlen(verdict->sure), 2);
    }
    if (summary->unreliable[0] || summary->notices[0])
        text_add(&text, "\n", 1);
    add_sentences(&text, "Not reliable", summary->unreliable);
    add_sentences(&text, "Note", summary->notices);
    if (text.failed)
        text_free(&text);
    return text.data;
}
