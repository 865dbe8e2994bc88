#include "watch/idle_split.h"

#include <assert.h>
#include <string.h>

#include "watch/input_split.h"
#include "watch/stack_share.h"

#define SYNC_AFTER UINT64_C(50000) /* a gap that begins so soon after one is its gap */
#define LONG_GAP UINT64_C(1000000) /* shorter ones are not the user's own code */
#define COPY_WORTH UINT64_C(4096)  /* a synchronisation that waits for so large a copy is its */
#define OWN_LEAST 0.25     /* of one CPU: processes of the run that need no more stand in no way */
#define FOREIGN_LEAST 0.15 /* of one CPU: less is noise */
#define LOOK_AROUND UINT64_C(50000000) /* a look or a sample is longer than a step */

/* --- finding what goes on ----------------------------------------------------------------------*/

void idle_split_begin(struct idle_split *split)
{
    const struct rank_line *rank = split->main->rank;
    const struct time_list *devices[SPLIT_DEVICES] = {
        [SPLIT_COPY] = &rank->copies_in,     [SPLIT_TALK] = &rank->talks,
        [SPLIT_COST] = &rank->costs,         [SPLIT_YIELD] = &rank->yields,
        [SPLIT_AHEAD] = &split->main->ahead,
    };
    for (int i = 0; i < SPAN_KINDS; i++)
        split->spans[i] = (struct split_cursor){&split->main->spans[i], 0};
    for (int i = 0; i < SPLIT_DEVICES; i++)
        split->devices[i] = (struct split_cursor){devices[i], 0};
    split->status = STK_OK;
}

/* What goes on at a moment, or NULL; *until moves to where that changes. */
static const void *cursor_find(struct split_cursor *cursor, uint64_t moment, uint64_t *until)
{
    const struct time_list *list = cursor->list;
    while (cursor->at < list->count && time_list_stretch(list, cursor->at)->end <= moment)
        cursor->at++;
    if (cursor->at == list->count)
        return NULL;
    const struct stretch *item = time_list_stretch(list, cursor->at);
    uint64_t change = item->start <= moment ? item->end : item->start;
    if (change < *until)
        *until = change;
    return item->start <= moment ? item : NULL;
}

/* Spans of the loop's thread that matter here. The others are looked up where they do. */
static const uint8_t kinds_looked_at[] = {
    SPAN_ITER,       SPAN_NEXT,     SPAN_FETCH,     SPAN_COLLATE,  SPAN_CHECKPOINT, SPAN_VALIDATION,
    SPAN_COLLECTIVE, SPAN_BACKWARD, SPAN_OPTIMIZER, SPAN_PROFILER, SPAN_FORWARD,    SPAN_COMPILE};

static void moment_find(struct idle_split *split, struct split_moment *moment, uint64_t start,
                        uint64_t end)
{
    *moment = (struct split_moment){.start = start, .end = end};
    for (size_t i = 0; i < sizeof kinds_looked_at; i++) {
        int kind = kinds_looked_at[i];
        moment->spans[kind] = cursor_find(&split->spans[kind], start, &moment->end);
    }
    for (int i = 0; i < SPLIT_DEVICES; i++)
        moment->devices[i] = cursor_find(&split->devices[i], start, &moment->end);
}

struct loader_facts *split_loader(const struct idle_split *split, uint32_t id)
{
    for (size_t i = 0; i < split->loader_count; i++)
        if (split->loaders[i].main == split->main->facts.pid && split->loaders[i].summary.id == id)
            return &split->loaders[i];
    return NULL;
}

/* A loader that no step follows, in a run that has steps. */
static int loader_validates(const struct idle_split *split, uint32_t id)
{
    const struct loader_facts *loader = split_loader(split, id);
    return loader && !loader->steps && split->main->rank->steps;
}

/* The last span of a kind that began before a moment, or had been forgotten; NULL: there was none.
 */
static const struct host_span *span_before(const struct time_list *list, uint64_t moment,
                                           const struct host_span *dropped)
{
    size_t at = time_list_from(list, moment + 1);
    if (at)
        return time_list_at(list, at - 1);
    return dropped->end ? dropped : NULL;
}

static const struct host_span *next_before(const struct idle_split *split, uint64_t moment)
{
    const struct process_line *main = split->main;
    return span_before(&main->spans[SPAN_NEXT], moment, &main->rank->next_dropped);
}

static int moment_validates(const struct idle_split *split, const struct split_moment *moment)
{
    if (moment->spans[SPAN_VALIDATION])
        return 1;
    if (moment->spans[SPAN_ITER])
        return loader_validates(split, moment->spans[SPAN_ITER]->loader);
    const struct host_span *next = next_before(split, moment->start);
    if (!next || !loader_validates(split, next->loader))
        return 0;
    return !(next->flags & SPAN_ENDED_EPOCH) || moment->start < next->end;
}

/* --- giving ------------------------------------------------------------------------------------*/

/* The time of a sample in [start, end) that counts. */
static double sample_weight(const struct host_sample *sample, uint64_t start, uint64_t end,
                            enum split_side side)
{
    double part = (double)stretch_overlap(sample->start, sample->end, start, end);
    if (side == SIDE_ALL || sample->cpu == CPU_UNKNOWN)
        return part;
    double ran = (double)sample->cpu / (double)(sample->end - sample->start);
    return part * (side == SIDE_STOOD ? 1 - ran : ran);
}

/* A stack is that of one moment, and stands for all the time since the one before: it counts whole
 * where the moment lies, and nowhere else. */
static double place_weight(const struct host_sample *sample, uint64_t start, uint64_t end,
                           enum split_side side)
{
    if (sample->flags & SAMPLE_JOINED)
        return sample_weight(sample, start, end, side);
    return sample->end > start && sample->end <= end
               ? sample_weight(sample, sample->start, sample->end, side)
               : 0;
}

/* Shares time out among the places where a process's stacks were meanwhile. */
static void places_give(struct idle_split *split, uint64_t start, uint64_t end, uint64_t ns,
                        const struct split_part *part)
{
    int others = part->side == SIDE_OTHERS;
    const struct time_list *samples = others ? &part->process->others : &part->process->samples;
    size_t first = others ? stack_others_from(samples, start) : time_list_after(samples, start);
    double total = 0, all = 0;
    for (size_t i = first; i < samples->count; i++) {
        const struct host_sample *sample = time_list_at(samples, i);
        if (sample->start >= end)
            break;
        total += place_weight(sample, start, end, part->side);
        all += place_weight(sample, start, end, SIDE_ALL);
    }
    /* Short moments hold no stack and long ones many: over the run that evens out. */
    double scale = total > 0 ? (double)ns / total * (all / (double)(end - start)) : 0;
    for (size_t i = first; total > 0 && !split->status && i < samples->count; i++) {
        const struct host_sample *sample = time_list_at(samples, i);
        if (sample->start >= end)
            break;
        double weight = place_weight(sample, start, end, part->side);
        split->status = account_place_add(split->account, part->slot, sample->place,
                                          (uint64_t)(weight * scale), split->err);
    }
}

void split_give(struct idle_split *split, const struct split_moment *moment,
                const struct split_part *parts, size_t count)
{
    double total = 0, before = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].weight;
    assert(total > 0);
    uint64_t given = 0, most = 0;
    uint32_t slot = ACCOUNT_COMPUTE;
    uint64_t idle = 0;
    for (size_t i = 0; i < count && !split->status; i++) {
        before += parts[i].weight;
        uint64_t upto =
            i + 1 == count ? moment->idle : (uint64_t)((double)moment->idle * (before / total));
        upto = upto < moment->idle ? upto : moment->idle;
        uint64_t ns = upto > given ? upto - given : 0;
        given += ns;
        split->account->ns[parts[i].slot] += ns;
        split->given[parts[i].slot] += ns;
        int judged = ACCOUNT_IDLE(parts[i].slot);
        idle += judged ? ns : 0;
        if (judged && ns > most) {
            most = ns;
            slot = parts[i].slot;
        }
        if (ns && judged && parts[i].process)
            places_give(split, moment->start, moment->end, ns, &parts[i]);
    }
    if (split->told && moment->idle)
        split->told(split->user, moment->start, moment->end, idle, slot);
}

void split_give_all(struct idle_split *split, const struct split_moment *moment, uint32_t slot,
                    const struct process_line *process, enum split_side side)
{
    split_give(split, moment, &(struct split_part){slot, 1, process, side}, 1);
}

double split_foreign(const struct idle_split *split, uint64_t start, uint64_t end, double own_cpu)
{
    double looked = 0, foreign = 0, own = 0;
    const struct time_list *machine = split->machine;
    for (size_t i = time_list_after(machine, start); i < machine->count; i++) {
        const struct machine_look *look = time_list_at(machine, i);
        if (look->start >= end)
            break;
        double part = (double)stretch_overlap(look->start, look->end, start, end);
        double share = part / (double)(look->end - look->start);
        looked += part;
        foreign += look->busy > look->own ? share * (double)(look->busy - look->own) : 0;
        own += share * (double)look->own;
    }
    if (foreign < FOREIGN_LEAST * looked || looked == 0)
        return 0;
    own -= (own_cpu + OWN_LEAST) * looked;
    return foreign / (foreign + (own > 0 ? own : 0));
}

int split_cut(const struct split_moment *whole, uint64_t *from, uint64_t upto,
              struct split_moment *part)
{
    upto = upto < whole->end ? upto : whole->end;
    if (upto <= *from)
        return 0;
    *part = *whole;
    part->start = *from;
    part->end = upto;
    double length = (double)(whole->end - whole->start);
    uint64_t before = (uint64_t)((double)whole->idle * (double)(*from - whole->start) / length);
    uint64_t after = (uint64_t)((double)whole->idle * (double)(upto - whole->start) / length);
    if (whole->idle == whole->end - whole->start) { /* exact, where doubles would round */
        before = *from - whole->start;
        after = upto - whole->start;
    }
    part->idle = (upto == whole->end ? whole->idle : after) - before;
    *from = upto;
    return 1;
}

/* --- time outside next() -----------------------------------------------------------------------*/

/* The share of a moment in which the loop's thread was in such frames. */
static double loop_in(const struct idle_split *split, const struct split_moment *moment,
                      uint32_t flags, uint32_t without, double *ran)
{
    const struct stack_where where = {moment->start, moment->end, flags, without,
                                      split->mode == WATCH_GPU};
    return stack_share(split->main, &where, ran);
}

static int moment_in_model(const struct split_moment *moment)
{
    return moment->spans[SPAN_FORWARD] || moment->spans[SPAN_BACKWARD] ||
           moment->spans[SPAN_OPTIMIZER];
}

/* The share of a moment in which the loop's thread stood still. In the backward pass it does while
 * torch launches from a thread of its own, and what is known of the moment is known of more than
 * the moment: so much is taken off. */
static double main_stood(const struct idle_split *split, const struct split_moment *moment,
                         const struct host_use *use)
{
    const struct time_list *list = &split->main->spans[SPAN_BACKWARD];
    uint64_t from = moment->start > LOOK_AROUND ? moment->start - LOOK_AROUND : 0;
    uint64_t upto = moment->end + LOOK_AROUND;
    struct host_use around = process_line_use(split->main, from, upto);
    double length = (double)(upto - from), stood = (1 - around.cpu - around.delay) * length;
    double backward = 0;
    for (size_t i = time_list_after(list, from); i < list->count; i++) {
        const struct host_span *span = time_list_at(list, i);
        if (span->start >= upto)
            break;
        double share = host_span_cpu(span);
        double part = (double)stretch_overlap(span->start, span->end, from, upto);
        backward += part;
        stood -= part * (1 - (share < 0 ? 0 : share));
    }
    if (backward == 0)
        return 1 - use->cpu - use->delay;
    return stood > 0 && backward < length ? stood / (length - backward) : 0;
}

/* What the loop's own code is called that runs or stands: before the model it makes a batch ready.
 * After the model has trained on one, and before the next is asked for, it logs, or computes what
 * it will log. */
struct own_code {
    uint32_t runs, stands;
};

static struct own_code own_code(const struct idle_split *split, const struct split_moment *moment)
{
    static const struct own_code input = {CAUSE_TRANSFORM, CAUSE_FETCH};
    const struct host_span *next = next_before(split, moment->start);
    if (split->gap_ns < LONG_GAP || moment_in_model(moment))
        return (struct own_code){CAUSE_TRANSFORM, CAUSE_OTHER};
    if (!next)
        return input;
    const struct time_list *steps = &split->main->spans[SPAN_OPTIMIZER];
    size_t step = time_list_from(steps, next->end);
    int trained = step < steps->count && time_list_stretch(steps, step)->start < moment->start;
    return trained ? (struct own_code){CAUSE_SYNC, CAUSE_SYNC} : input;
}

/* Nothing is known of the loop: another framework's, or one without the hook. Its threads may wait
 * for the device without holding anything up. */
static void unknown_split(struct idle_split *split, const struct split_moment *moment,
                          const struct host_use *use)
{
    double contention = use->delay;
    if (contention > 0)
        contention *= split_foreign(split, moment->start, moment->end, use->cpu);
    contention = contention < 1 ? contention : 1;
    const struct split_part parts[] = {{CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
                                       {CAUSE_OTHER, 1 - contention, split->main, SIDE_ALL}};
    split_give(split, moment, parts, sizeof parts / sizeof parts[0]);
}

/* With a GPU, and nothing of the loader, of a copy or of another rank goes on. */
static void launch_split(struct idle_split *split, const struct split_moment *moment)
{
    const struct process_line *main = split->main;
    struct host_use use = process_line_use(main, moment->start, moment->end);
    if (!main->loop_told) {
        unknown_split(split, moment, &use);
        return;
    }
    if (moment->start >= split->set_up.start && moment->end <= split->set_up.end) {
        split_give_all(split, moment, ACCOUNT_SET_UP, NULL, SIDE_ALL);
        return;
    }
    const struct own_code own = own_code(split, moment);
    double user = 0, gil = 0, mapped = 0, left = 1;
    if (split->gap_ns >= LONG_GAP && !moment_in_model(moment))
        user = stack_user_ran(main, moment->start, moment->end);
    user = user < 1 ? user : 1;
    left -= user;
    double contention =
        use.delay > 0 ? use.delay * split_foreign(split, moment->start, moment->end, use.cpu) : 0;
    contention = contention < left ? contention : left;
    left -= contention;
    uint32_t rest = split->in_sync ? CAUSE_SYNC : CAUSE_LAUNCH;
    double stood = use.known && !split->in_sync ? main_stood(split, moment, &use) : 0;
    stood = stood < 0.1 ? 0 : stood < left ? stood : left;
    if (stood > 0) {
        gil = stack_others_ran(main, moment->start, moment->end, &mapped);
        gil = gil > stood / 2 ? stood : gil; /* whoever runs most of the time holds it */
    }
    double block = use.block < stood - gil ? use.block : stood - gil;
    if (moment->spans[SPAN_BACKWARD]) /* torch launches from a thread of its own meanwhile */
        stood = gil + block;
    /* One that looks elsewhere now and then was there for the rest of it, too. */
    double known = loop_in(split, moment, FRAME_USER, FRAME_TORCH, NULL);
    known = known > 0.5 ? 1 : known;
    double waits = (stood - gil - block) * known;
    double logs = own.runs == CAUSE_SYNC ? (left - stood) * known : 0;
    const struct split_part parts[] = {
        {own.runs, user + logs, main, SIDE_RAN},
        {CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
        {CAUSE_GIL, gil * (1 - mapped), main, SIDE_STOOD},
        {CAUSE_TRANSFORM, gil * mapped, main, SIDE_OTHERS},
        {own.stands == CAUSE_SYNC ? CAUSE_SYNC : CAUSE_FETCH, block, main, SIDE_STOOD},
        {own.stands, waits, main, SIDE_STOOD},
        {CAUSE_OTHER, stood - gil - block - waits, main, SIDE_STOOD},
        {rest, left - stood - logs, main, SIDE_ALL}};
    split_give(split, moment, parts, sizeof parts / sizeof parts[0]);
}

static void device_split(struct idle_split *split, const struct split_moment *moment)
{
    if (moment->devices[SPLIT_COST])
        split_give_all(split, moment, CAUSE_OVERHEAD, NULL, SIDE_ALL);
    else if (moment->devices[SPLIT_COPY])
        split_give_all(split, moment, CAUSE_COPY, split->main, SIDE_ALL);
    else if (moment->devices[SPLIT_TALK] || moment->spans[SPAN_COLLECTIVE])
        split_give_all(split, moment, CAUSE_RANK, split->main, SIDE_ALL);
    else
        launch_split(split, moment);
}

/* When the loop was handed the batch of a moment, by next(); without a loader that is known, when
 * it began to make one itself, after a step. 0: never. *until: the same of the next one. */
static uint64_t batch_begun(const struct idle_split *split, uint64_t moment, uint64_t *until)
{
    const struct rank_line *rank = split->main->rank;
    int is_own = rank->steps && !rank->batches;
    const struct time_list *list = &split->main->spans[is_own ? SPAN_OPTIMIZER : SPAN_NEXT];
    const struct host_span *last =
        span_before(list, moment, is_own ? &rank->step_dropped : &rank->next_dropped);
    size_t at = time_list_from(list, moment + 1);
    *until = at < list->count ? time_list_stretch(list, at)->start : UINT64_MAX;
    return last ? last->end : 0;
}

/* Whether a moment lies between a batch and the model that is given it: before the backward pass;
 * without one, anywhere until the next batch. In a script without modules the model is functions of
 * the user's, and they compute. */
static int moment_before_model(const struct idle_split *split, const struct split_moment *moment)
{
    uint64_t until, begun = batch_begun(split, moment->start, &until);
    if (!begun || !split->main->has_model || moment_in_model(moment) || until - begun < LONG_GAP)
        return 0;
    const struct time_list *backwards = &split->main->spans[SPAN_BACKWARD];
    size_t backward = time_list_from(backwards, begun);
    if (backward == backwards->count || time_list_stretch(backwards, backward)->start >= until)
        return 1;
    return moment->start < time_list_stretch(backwards, backward)->start;
}

/* Without a GPU, and not in next(): what is not idle computes. */
static void step_split(struct idle_split *split, const struct split_moment *moment)
{
    const struct process_line *main = split->main;
    if (moment->spans[SPAN_COLLECTIVE]) {
        split_give_all(split, moment, CAUSE_RANK, main, SIDE_ALL);
        return;
    }
    double user = 0, rank = 0;
    struct host_use use = process_line_use(main, moment->start, moment->end);
    if (moment->spans[SPAN_BACKWARD] && main->facts.world > 1 && use.known) {
        double ran = host_span_cpu(moment->spans[SPAN_BACKWARD]);
        rank = 1 - use.delay - (ran < 0 ? use.cpu : ran);
        rank = rank < 0.05 ? 0 : rank;
    }
    double foreign = use.delay > 0 ? split_foreign(split, moment->start, moment->end, use.cpu) : 0;
    double contention = use.delay * foreign;
    if (moment_before_model(split, moment))
        user = stack_user_ran(main, moment->start, moment->end);
    if (user > 0 && use.cpu > 0) /* it would have run when others of the run's own did */
        user += (use.delay - contention) * (user < use.cpu ? user / use.cpu : 1);
    user = user < 1 - rank ? user : 1 - rank;
    contention = contention < 1 - rank - user ? contention : 1 - rank - user;
    const struct split_part parts[] = {{CAUSE_TRANSFORM, user, main, SIDE_RAN},
                                       {CAUSE_RANK, rank, main, SIDE_STOOD},
                                       {CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
                                       {ACCOUNT_COMPUTE, 1 - rank - user - contention, NULL, 0}};
    split_give(split, moment, parts, sizeof parts / sizeof parts[0]);
}

/* Takes a share of a moment off its beginning; *moment is what is left. 0: that is nothing. */
static int share_cut(struct split_moment *moment, double share, struct split_moment *part)
{
    struct split_moment whole = *moment;
    uint64_t from = whole.start;
    uint64_t upto = from + (uint64_t)(share * (double)(whole.end - from));
    if (!split_cut(&whole, &from, upto, part))
        return 0;
    if (!split_cut(&whole, &from, whole.end, moment))
        moment->start = moment->end;
    return 1;
}

/* Another thread reads ahead: the loop waits where it stands in a queue, for what that thread's
 * next() waits for. What is left of the moment stays in *moment. */
static void ahead_split(struct idle_split *split, struct split_moment *moment)
{
    struct split_moment part;
    if (!share_cut(moment, loop_in(split, moment, FRAME_WAITS, 0, NULL), &part))
        return;
    part.spans[SPAN_NEXT] = moment->devices[SPLIT_AHEAD];
    if (part.spans[SPAN_NEXT])
        input_split(split, &part);
    else
        split_give_all(split, &part, CAUSE_TRANSFORM, split->main, SIDE_OTHERS);
}

/* What the busiest of the script's own processes did: it ran, or other programs did instead. Where
 * they wait for a disk, none does much. */
struct helper_use {
    double ran, contention;
};

static struct helper_use helper_use(const struct idle_split *split,
                                    const struct split_moment *moment)
{
    struct process_use most = {0};
    for (size_t i = 0; i < split->worker_count; i++) {
        const struct process_line *helper = split->workers[i];
        if (helper->facts.role != PROCESS_HELPER)
            continue;
        struct process_use use = process_use(helper, moment->start, moment->end);
        most = use.ran + use.delay > most.ran + most.delay ? use : most;
    }
    double ran = most.ran < 1 ? most.ran : 1, delay = most.delay < 1 - ran ? most.delay : 1 - ran;
    double foreign = delay > 0 ? delay * split_foreign(split, moment->start, moment->end, ran) : 0;
    return (struct helper_use){ran + delay - foreign, foreign};
}

/* A loop that draws from no loader that is known makes its batches itself, in what it iterates over
 * or indexes, or takes them from a thread or a process that does. What is left of the moment stays
 * in *moment. */
static void source_split(struct idle_split *split, struct split_moment *moment)
{
    const struct process_line *main = split->main;
    struct split_moment part;
    if (moment_in_model(moment) || (split->mode == WATCH_GPU && split->gap_ns < LONG_GAP))
        return;
    double ran, mapped, waited = loop_in(split, moment, FRAME_WAITS, FRAME_TORCH, NULL);
    double made = loop_in(split, moment, FRAME_SOURCE, FRAME_WAITS, &ran);
    double others = stack_others_ran(main, moment->start, moment->end, &mapped);
    struct host_use use = process_line_use(main, moment->start, moment->end);
    double delay = use.delay < 1 - ran ? use.delay : 1 - ran, stood = 1 - ran - delay;
    double foreign = delay > 0 ? delay * split_foreign(split, moment->start, moment->end, ran) : 0;
    const struct helper_use helper = helper_use(split, moment);
    if (share_cut(moment, waited, &part)) {
        int is_thread = others > helper.ran;
        double makes = is_thread ? others < 1 ? others : 1 : helper.ran;
        double contention = is_thread ? 0 : helper.contention;
        const struct split_part parts[] = {
            {CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
            {CAUSE_TRANSFORM, makes, is_thread ? main : NULL, SIDE_OTHERS},
            {CAUSE_FETCH, 1 - makes - contention, main, SIDE_STOOD}};
        split_give(split, &part, parts, 3);
    }
    if (waited < 1 && share_cut(moment, made / (1 - waited), &part)) {
        double left = 1 - helper.ran - helper.contention;
        const struct split_part parts[] = {
            {CAUSE_CONTENTION, foreign + stood * helper.contention, NULL, SIDE_ALL},
            {CAUSE_TRANSFORM, ran + delay - foreign, main, SIDE_RAN},
            {CAUSE_TRANSFORM, stood * helper.ran, NULL, SIDE_ALL},
            {CAUSE_FETCH, stood * left, main, SIDE_STOOD}};
        split_give(split, &part, parts, 4);
    }
}

/* What the loop takes from elsewhere than its own next(). Returns 0: that is all of the moment. */
static int taken_split(struct idle_split *split, struct split_moment *moment)
{
    const struct rank_line *rank = split->main->rank;
    uint64_t end = moment->end;
    if (split->main->ahead.count)
        ahead_split(split, moment);
    else if (rank->steps && !rank->batches && !moment->spans[SPAN_COLLECTIVE])
        source_split(split, moment);
    return moment->start < end;
}

/* --- one moment --------------------------------------------------------------------------------*/

static void moment_split(struct idle_split *split, struct split_moment *moment)
{
    const struct process_line *main = split->main;
    if (moment->devices[SPLIT_YIELD])
        split_give_all(split, moment, ACCOUNT_PROFILED, NULL, SIDE_ALL);
    else if (moment->spans[SPAN_COMPILE])
        split_give_all(split, moment, ACCOUNT_COMPILED, NULL, SIDE_ALL);
    else if (moment->spans[SPAN_CHECKPOINT])
        split_give_all(split, moment, CAUSE_CHECKPOINT, main, SIDE_ALL);
    else if (moment_validates(split, moment))
        split_give_all(split, moment, CAUSE_VALIDATION, main, SIDE_ALL);
    else if (moment->spans[SPAN_ITER])
        split_give_all(split, moment, CAUSE_START, main, SIDE_ALL);
    else if (moment->spans[SPAN_NEXT])
        input_split(split, moment);
    else if (!taken_split(split, moment))
        return;
    else if (split->mode == WATCH_GPU)
        device_split(split, moment);
    else if (split->mode == WATCH_NOTHING)
        split_give_all(split, moment, ACCOUNT_RESTED, NULL, SIDE_ALL);
    else
        step_split(split, moment);
}

static void stretch_split(struct idle_split *split, uint64_t start, uint64_t end, uint64_t idle)
{
    uint64_t given = 0;
    struct split_moment moment;
    for (uint64_t at = start; at < end && !split->status; at = moment.end) {
        moment_find(split, &moment, at, end);
        /* Of several small gaps: in proportion, and all of it at the end. */
        uint64_t upto =
            moment.end == end
                ? idle
                : (uint64_t)((double)idle * (double)(moment.end - start) / (double)(end - start));
        if (idle == end - start)
            upto = moment.end - start;
        moment.idle = upto - given;
        given = upto;
        moment_split(split, &moment);
    }
}

/* --- gaps --------------------------------------------------------------------------------------*/

/* torch waits for a copy from memory that is not pinned: that wait is the copy's. */
static int sync_is_copys(const struct rank_line *rank, const struct stretch *sync)
{
    const struct time_list *copies = &rank->copies_in;
    for (size_t i = time_list_after(copies, sync->start); i < copies->count; i++) {
        const struct device_copy *copy = time_list_at(copies, i);
        if (copy->start > sync->end)
            break;
        if (copy->bytes >= COPY_WORTH)
            return 1;
    }
    return 0;
}

/* Whether a gap begins in a synchronisation or right behind it. */
static int gap_in_sync(const struct rank_line *rank, uint64_t start)
{
    const struct time_list *syncs = &rank->syncs;
    uint64_t from = start > SYNC_AFTER ? start - SYNC_AFTER : 0;
    size_t at = time_list_after(syncs, from);
    if (at == syncs->count)
        return 0;
    const struct stretch *sync = time_list_stretch(syncs, at);
    return sync->start <= start && !sync_is_copys(rank, sync);
}

stk_status idle_split_gap(struct idle_split *split, const struct busy_gap *gap,
                          struct stk_error *err)
{
    split->err = err;
    memset(split->given, 0, sizeof split->given);
    split->gap_ns = gap->count > 1 ? gap->idle / gap->count : gap->idle;
    split->in_sync = gap_in_sync(split->main->rank, gap->start);
    stretch_split(split, gap->start, gap->end, gap->idle);
    return split->status;
}

stk_status idle_split_host(struct idle_split *split, uint64_t start, uint64_t end,
                           struct stk_error *err)
{
    split->err = err;
    memset(split->given, 0, sizeof split->given);
    stretch_split(split, start, end, end - start);
    return split->status;
}
