#include "watch/verdict.h"

#include <ctype.h>
#include <string.h>

#include "watch/findings.h"
#include "watch/plain_words.h"

#define HEALTHY 0.9 /* of the judged time is compute */

const char *verdict_bound_name(enum verdict_bound bound)
{
    static const char *const names[] = {
        [BOUND_UNKNOWN] = "unknown", [BOUND_COMPUTE] = "compute", [BOUND_INPUT] = "input",
        [BOUND_HOST] = "host",       [BOUND_COPY] = "copy",       [BOUND_RANK] = "rank"};
    return names[bound];
}

/* What each cause means for the one that waits. */
static const struct {
    enum verdict_bound bound;
    const char *waited; /* "It waited ..." */
    const char *why;    /* why that makes it wait; NULL: by numbers, see why_input */
} meanings[CAUSE_COUNT] = {
    [CAUSE_FETCH] = {BOUND_INPUT, "for input: reading the data", NULL},
    [CAUSE_TRANSFORM] = {BOUND_INPUT, "for input: decoding and transforming", NULL},
    [CAUSE_COLLATE] = {BOUND_INPUT, "for input: collating and handing over batches", NULL},
    [CAUSE_WORKERS] = {BOUND_INPUT, "for input: too few workers", NULL},
    [CAUSE_SLOW_SAMPLE] = {BOUND_INPUT, "for input: one slow sample that holds up the order",
                           "Batches are handed out in order. When one takes long, those behind it "
                           "are ready but may not overtake it, and next() waits for the one."},
    [CAUSE_START] = {BOUND_INPUT, "for input: starting the loader and its epochs",
                     "Each epoch begins with an empty queue: iterators and workers are made, and "
                     "the first batch is waited for from its first byte on."},
    [CAUSE_COPY] = {BOUND_COPY, "for copies to the device",
                    "Batches were copied while nothing was computed. A copy from pageable memory "
                    "keeps the CPU busy too, and none overlaps with computing unless it is "
                    "pinned and non-blocking."},
    [CAUSE_LAUNCH] = {BOUND_HOST, "for Python to launch kernels",
                      "The kernels are shorter than the time that Python takes to launch the next "
                      "one, so the GPU runs dry between them."},
    [CAUSE_GIL] = {BOUND_HOST, "for the GIL or the pin thread",
                   "One interpreter runs one thread at a time. While another thread of the process "
                   "has it, the loop cannot launch anything."},
    [CAUSE_CONTENTION] = {BOUND_HOST, "because other programs had the CPU",
                          "The run was ready to go on but had no CPU: other programs were using "
                          "it."},
    [CAUSE_SYNC] = {BOUND_HOST, "for the loop between its steps: synchronising and logging",
                    "Asking for a value (.item(), print) stops Python until the GPU has done all "
                    "that was launched, and what the loop does after a step (metrics, logs) keeps "
                    "it from launching the next. The GPU is empty until it has."},
    [CAUSE_CHECKPOINT] = {BOUND_HOST, "while checkpoints were written",
                          "Saving runs in the loop: until the file is written, no step is made."},
    [CAUSE_VALIDATION] = {BOUND_HOST, "during validation",
                          "Validation runs in the loop between training steps, and its own input "
                          "is waited for as well."},
    [CAUSE_RANK] = {BOUND_RANK, "for another rank",
                    "Ranks meet in every step to add up their gradients, so all of them go at the "
                    "pace of the slowest."},
    [CAUSE_OVERHEAD] = {BOUND_UNKNOWN, "because it was watched", "Recording took the time."},
    [CAUSE_OTHER] = {BOUND_UNKNOWN, "for something that was not seen",
                     "Nothing that is recorded explains it."},
};

static const char *subject(const struct findings *findings)
{
    return findings->gpu ? "GPU busy" : "The training step computes";
}

/* Behind its percentage. */
static const char *of_what(const struct findings *findings)
{
    if (findings->summary->mode == WATCH_SAMPLED)
        return ", by NVML's samples";
    return findings->gpu ? "" : " of the time";
}

#define LITTLE 0.1 /* of the idle time: no answer, where most of it is not known */

/* The greatest cause, of those that say something. */
static enum cause first_cause(const struct findings *findings)
{
    int most = CAUSE_OTHER;
    for (int i = 0; i < CAUSE_OVERHEAD; i++)
        if (findings->seconds[i] > 0 &&
            (most == CAUSE_OTHER || findings->seconds[i] > findings->seconds[most]))
            most = i;
    int is_little = findings->seconds[most] < LITTLE * findings->idle &&
                    findings->seconds[CAUSE_OTHER] > findings->idle / 2;
    return is_little ? CAUSE_OTHER : (enum cause)most;
}

/* --- why it is the bottleneck -------------------------------------------------------------- */

static void why_main_thread(const struct findings *findings, char *out, size_t room)
{
    const struct summary_function *first = &findings->transform.functions[0];
    words_put(
        out, room,
        "The loop itself runs %s between next() and the model, %s a step. The main thread "
        "cannot launch anything meanwhile, and workers that are ahead do not help.",
        first->function ? word_function(first).text : "code of the script",
        word_seconds(findings->steps > 0 ? findings->seconds[CAUSE_TRANSFORM] / findings->steps : 0)
            .text);
}

static void why_no_workers(const struct findings *findings, char *out, size_t room)
{
    words_put(out, room,
              "Batches are made in the loop itself (num_workers=0): %s each, while nothing is "
              "computed; then the step takes %s, while no batch is made. The two never overlap.",
              word_seconds(findings->batch_work).text, word_seconds(findings->step_alone).text);
}

static void why_workers(const struct findings *findings, enum cause cause, char *out, size_t room)
{
    int workers = findings->loader->workers;
    double off_cpu = findings->batch_work - findings->batch_cpu;
    char more[160] = "";
    if (cause == CAUSE_FETCH)
        words_put(more, sizeof more, " Of that time %s is waiting for data, not computing.",
                  word_percent(findings->batch_work > 0 ? off_cpu / findings->batch_work : 0).text);
    else if (cause == CAUSE_TRANSFORM && findings->transform.functions[0].function)
        words_put(more, sizeof more, " Most of it goes to %s.",
                  word_function(&findings->transform.functions[0]).text);
    words_put(
        out, room,
        "The step alone takes %s. %d worker%s need%s %s for a batch, so one comes every %s.%s "
        "The queue is empty, next() waits, and nothing is launched meanwhile.",
        word_seconds(findings->step_alone).text, workers, workers == 1 ? "" : "s",
        workers == 1 ? "s" : "", word_seconds(findings->batch_work).text,
        word_seconds(findings->batch_work / workers).text, more);
}

/* The loop iterates over something of the script's own. */
static void why_own_input(const struct findings *findings, char *out, size_t room)
{
    double input = findings->seconds[CAUSE_FETCH] + findings->seconds[CAUSE_TRANSFORM];
    words_put(out, room,
              "No loader was seen: what makes the batches is the loop's own. It takes %s a step, "
              "while nothing is computed.",
              word_seconds(findings->steps > 0 ? input / findings->steps : 0).text);
}

static void find_why(const struct findings *findings, enum cause cause, char *out, size_t room)
{
    int counted = findings->loader && findings->batch_work > 0;
    if (meanings[cause].why)
        words_put(out, room, "%s", meanings[cause].why);
    else if (!findings->loader)
        why_own_input(findings, out, room);
    else if (cause == CAUSE_TRANSFORM && findings->on_main)
        why_main_thread(findings, out, room);
    else if (counted && findings->loader->workers > 0)
        why_workers(findings, cause, out, room);
    else if (counted && findings->loader->workers == 0 &&
             strcmp(findings->loader->kind, "stoker") != 0)
        why_no_workers(findings, out, room);
    else
        words_put(out, room,
                  "The loop was in next() for %s of the time: batches are used up faster than they "
                  "are made.",
                  word_percent(findings->judged > 0 ? findings->next / findings->judged : 0).text);
}

/* --- how sure ------------------------------------------------------------------------------ */

enum sureness { SURE_HIGH, SURE_MEDIUM, SURE_LOW };

struct doubts {
    enum sureness sure;
    char *words;
    size_t room;
};

static void doubt(struct doubts *doubts, enum sureness sure, const char *words)
{
    size_t len = strlen(doubts->words);
    doubts->sure = sure > doubts->sure ? sure : doubts->sure;
    words_put(doubts->words + len, doubts->room - len, "%s%s", len ? "; " : "", words);
}

static void doubt_length(const struct findings *findings, struct doubts *doubts)
{
    char words[120];
    double wall = findings->judged / findings->ranks, steps = findings->steps / findings->ranks;
    if (steps < 50) {
        words_put(words, sizeof words, "only %.0f steps were seen", steps);
        doubt(doubts, steps < 10 ? SURE_LOW : SURE_MEDIUM, words);
    }
    if (wall < 5) {
        words_put(words, sizeof words, "only %s were judged", word_seconds(wall).text);
        doubt(doubts, wall < 1 ? SURE_LOW : SURE_MEDIUM, words);
    }
}

static void doubt_records(const struct findings *findings, struct doubts *doubts)
{
    const struct summary *summary = findings->summary;
    char words[120];
    double all = (double)summary->records + (double)summary->lost;
    if (summary->lost && (double)summary->lost > 0.0001 * all) {
        words_put(words, sizeof words, "%s of %s records were lost", word_count(summary->lost).text,
                  word_count((uint64_t)all).text);
        doubt(doubts, (double)summary->lost > 0.02 * all ? SURE_LOW : SURE_MEDIUM, words);
    }
    if (summary->mode == WATCH_SAMPLED)
        doubt(doubts, SURE_LOW, "how busy the GPU was is sampled, not recorded");
    if (!(summary->sampled_hz > 0)) {
        doubt(doubts, SURE_MEDIUM, "no Python stacks were seen");
    } else if (summary->sampled_hz < 20) {
        words_put(words, sizeof words, "stacks were seen only %.1f times a second",
                  summary->sampled_hz);
        doubt(doubts, SURE_MEDIUM, words);
    }
}

static void doubt_causes(const struct findings *findings, enum cause first, struct doubts *doubts)
{
    char words[120];
    double other = findings->idle > 0 ? findings->seconds[CAUSE_OTHER] / findings->idle : 0;
    if (other > 0.1) {
        words_put(words, sizeof words, "%s of the waiting is not explained",
                  word_percent(other).text);
        doubt(doubts, other > 0.3 ? SURE_LOW : SURE_MEDIUM, words);
    }
    for (int i = 0; i < CAUSE_OVERHEAD; i++)
        if (i != (int)first && first < CAUSE_COUNT &&
            findings->seconds[i] > 0.8 * findings->seconds[first]) {
            words_put(words, sizeof words, "%s takes nearly as much", cause_words((enum cause)i));
            doubt(doubts, SURE_MEDIUM, words);
        }
    if (findings->summary->foreign_cpu_share > 0.2 && first != CAUSE_CONTENTION) {
        words_put(words, sizeof words, "other programs used %s of the CPUs",
                  word_percent(findings->summary->foreign_cpu_share).text);
        doubt(doubts, SURE_MEDIUM, words);
    }
}

static void find_sure(struct verdict *out, const struct findings *findings)
{
    static const char *const names[] = {"high", "medium", "low"};
    struct doubts doubts = {SURE_HIGH, out->sure_why, sizeof out->sure_why};
    doubt_length(findings, &doubts);
    doubt_records(findings, &doubts);
    doubt_causes(findings, out->cause, &doubts);
    out->sure = names[doubts.sure];
    if (doubts.sure != SURE_HIGH) {
        size_t len = strlen(out->sure_why);
        words_put(out->sure_why + len, sizeof out->sure_why - len, ".");
        out->sure_why[0] = (char)toupper((unsigned char)out->sure_why[0]);
        return;
    }
    double other = findings->idle > 0 ? findings->seconds[CAUSE_OTHER] / findings->idle : 0;
    words_put(out->sure_why, sizeof out->sure_why,
              "%s steps in %s, nothing lost, %s of the waiting not explained, stacks %.0f times a "
              "second.",
              word_count((uint64_t)(findings->steps / findings->ranks)).text,
              word_seconds(findings->judged / findings->ranks).text, word_percent(other).text,
              findings->summary->sampled_hz);
}

/* --- the verdict --------------------------------------------------------------------------- */

static void find_nothing(struct verdict *out, const struct summary *summary)
{
    out->bound = BOUND_UNKNOWN;
    out->cause = CAUSE_COUNT;
    out->sure = "low";
    out->gain_bound = 1;
    if (summary->unreliable[0]) {
        words_put(out->words, sizeof out->words,
                  "No verdict: what was recorded of this run cannot be relied upon. %s",
                  summary->unreliable[0]);
        words_put(out->sure_why, sizeof out->sure_why, "%s", summary->unreliable[0]);
        return;
    }
    words_put(out->words, sizeof out->words,
              "No verdict: no training loop was seen, neither steps of an optimizer nor batches of "
              "a loader nor work on a GPU.");
    words_put(out->sure_why, sizeof out->sure_why, "%s",
              summary->notices[0] ? summary->notices[0] : "there was nothing to judge");
}

static void find_words(struct verdict *out, const struct findings *findings)
{
    struct summary_cause cause;
    char slowest[256], place[112] = "";
    double busy = findings->compute / findings->judged;
    double seconds = findings->seconds[out->cause];
    findings_cause(&cause, findings->summary, out->cause);
    const struct summary_function *function = findings_function(&cause, out->cause);
    if (function)
        words_put(place, sizeof place, ", %s", word_function(function).text);
    words_put(out->words, sizeof out->words,
              "%s %s%s. It waited %s%s. That is %s of the waiting "
              "and %s of the time.",
              subject(findings), word_percent(busy).text, of_what(findings),
              meanings[out->cause].waited, place,
              word_percent(findings->idle > 0 ? seconds / findings->idle : 0).text,
              word_percent(seconds / findings->judged).text);
    if (findings_slowest(findings->summary, slowest, sizeof slowest) >= 0) {
        size_t len = strlen(out->words);
        slowest[0] = 'R';
        words_put(out->words + len, sizeof out->words - len, " %s.", slowest);
    }
}

static const char unseen[] =
    "The script's loop was not seen: it is not one of PyTorch or of Stoker, or Python's hook was "
    "not loaded. How busy the GPU was and the figures of the host are all that is told.";

static void find_unseen(struct verdict *out, const struct findings *findings)
{
    out->bound = BOUND_UNKNOWN;
    out->cause = CAUSE_OTHER;
    words_put(out->words, sizeof out->words, "%s %s%s. What it waited for is not known. %s",
              subject(findings), word_percent(findings->compute / findings->judged).text,
              of_what(findings), unseen);
}

static void find_gain(struct verdict *out, const struct findings *findings)
{
    const struct summary_what_if *what_if = findings->summary->what_if;
    double removed = out->bound == BOUND_INPUT ? findings->input : findings->seconds[out->cause];
    double left = findings->judged - removed;
    out->gain_bound = left > 0.001 * findings->judged ? findings->judged / left : 1000;
    if (out->bound == BOUND_INPUT && what_if && what_if->measured)
        out->gain_bound = what_if->gain > 1 ? what_if->gain : 1;
}

static void find_compute(struct verdict *out, const struct findings *findings)
{
    double busy = findings->compute / findings->judged;
    out->bound = BOUND_COMPUTE;
    out->cause = CAUSE_COUNT;
    out->gain_bound = findings->compute > 0 ? findings->judged / findings->compute : 1;
    words_put(out->words, sizeof out->words,
              "%s %s%s. It is bound by computing, as it should be: input keeps up.",
              subject(findings), word_percent(busy).text, of_what(findings));
    if (findings->loop_unseen)
        words_put(out->why, sizeof out->why, "%s", unseen);
    else if (!findings->loader && !findings->gpu)
        words_put(out->why, sizeof out->why,
                  "No loader was seen. What the loop does to make its batches counts as computing, "
                  "unless it iterates over it, indexes it, or runs it before a module.");
    else
        words_put(out->why, sizeof out->why,
                  "Batches are ready before they are asked for: the loop waits in next() %s of the "
                  "time. Whatever is done about input gains at most %s.",
                  word_percent(findings->next / findings->judged).text,
                  word_gain(out->gain_bound).text);
}

/* What is advised is not advised against, whatever the tables say. */
static void find_advice(struct verdict *out, const struct summary *summary)
{
    struct advice against[6];
    out->advice_count = advice_find(summary, out->advice, 3);
    size_t count = advice_against(summary, against, 6);
    for (size_t i = 0; i < count && out->against_count < 3; i++) {
        int advised = 0;
        for (size_t j = 0; j < out->advice_count; j++)
            advised |= strcmp(against[i].rule, out->advice[j].rule) == 0;
        if (!advised)
            out->against[out->against_count++] = against[i];
    }
}

void verdict_find(struct verdict *out, const struct summary *summary)
{
    struct findings findings;
    *out = (struct verdict){.sure = "low", .cause = CAUSE_COUNT, .gain_bound = 1};
    findings_make(&findings, summary, FINDINGS_ALL);
    if (summary->unreliable[0] || summary->mode == WATCH_NOTHING || !(findings.judged > 0)) {
        find_nothing(out, summary);
        return;
    }
    if (findings.compute >= HEALTHY * findings.judged) {
        find_compute(out, &findings);
    } else if (findings.loop_unseen) {
        find_unseen(out, &findings);
    } else {
        out->cause = first_cause(&findings);
        out->bound = meanings[out->cause].bound;
        find_words(out, &findings);
        find_why(&findings, out->cause, out->why, sizeof out->why);
        find_gain(out, &findings);
    }
    find_sure(out, &findings);
    find_advice(out, summary);
}
