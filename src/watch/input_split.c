#include "watch/input_split.h"

#define SLOW_TIMES 3.0                /* a fetch so many times the median is a slow one */
#define SLOW_LEAST UINT64_C(20000000) /* and no shorter than that */
#define STOOD_LEAST 0.08              /* a worker that stood still less than that computed */
#define THREADS_LEAST 0.3             /* of a CPU: less is our own thread, or the one that sends */
#define CONTENTION_MUCH 0.2
#define LOOK_BACK 64                    /* batches of one worker */
#define LOOK_AROUND UINT64_C(100000000) /* looks come 20 times a second: some more say more */

/* Where the batch that next() waits for was, in order of time. 0: not known. */
struct batch_way {
    const struct process_line *worker; /* NULL: nobody is known to have made it */
    const struct host_span *fetch, *send;
    uint64_t collated, sent, pinned; /* when it had left the worker, and the pin thread */
    double contention; /* of the wait: it would not have been, had other programs not run */
};

/* --- the way of a batch ------------------------------------------------------------------------*/

static const struct host_span *batch_find(const struct time_list *list,
                                          const struct host_span *next)
{
    size_t at = time_list_from(list, next->end);
    for (int i = 0; i < LOOK_BACK && at > 0; i++) {
        const struct host_span *span = time_list_at(list, --at);
        if (span->loader == next->loader && span->batch == next->batch)
            return span;
    }
    return NULL;
}

/* A stage of the batch that follows its fetch; NULL: it is not told. */
static const struct host_span *stage_find(const struct time_list *list,
                                          const struct host_span *fetch)
{
    size_t at = time_list_from(list, fetch->start);
    for (int i = 0; i < LOOK_BACK && at < list->count; i++, at++) {
        const struct host_span *span = time_list_at(list, at);
        if (span->loader == fetch->loader && span->batch == fetch->batch)
            return span;
    }
    return NULL;
}

static uint64_t stage_end(const struct host_span *stage, uint64_t after)
{
    return stage && stage->end > after ? stage->end : after;
}

static struct batch_way way_find(const struct idle_split *split, const struct host_span *next)
{
    struct batch_way way = {0};
    for (size_t i = 0; i < split->worker_count; i++) {
        const struct process_line *worker = split->workers[i];
        const struct host_span *fetch = batch_find(&worker->spans[SPAN_FETCH], next);
        if (fetch && (!way.fetch || fetch->start > way.fetch->start)) {
            way.fetch = fetch;
            way.worker = worker;
        }
    }
    if (!way.fetch)
        return way;
    way.collated =
        stage_end(stage_find(&way.worker->spans[SPAN_COLLATE], way.fetch), way.fetch->end);
    way.send = stage_find(&way.worker->spans[SPAN_SEND], way.fetch);
    way.sent = stage_end(way.send, way.collated);
    way.pinned = stage_end(stage_find(&split->main->spans[SPAN_PIN], way.fetch), way.sent);
    return way;
}

/* Whether a later batch was ready while this one was still being fetched. */
static int others_ready(const struct idle_split *split, const struct host_span *next,
                        const struct batch_way *way)
{
    const struct time_list *queues = &split->main->rank->queues;
    for (size_t i = time_list_from(queues, next->start > 1000000 ? next->start - 1000000 : 0);
         i < queues->count; i++) {
        const struct host_queue *queue = time_list_at(queues, i);
        if (queue->start > next->end)
            break;
        if (queue->loader == next->loader && queue->early > 0)
            return 1;
    }
    for (size_t i = 0; i < split->worker_count; i++) {
        const struct time_list *list = &split->workers[i]->spans[SPAN_FETCH];
        for (size_t at = time_list_from(list, way->fetch->start); at < list->count; at++) {
            const struct host_span *span = time_list_at(list, at);
            if (span->end < way->fetch->end && span->loader == next->loader &&
                span->batch > next->batch)
                return 1;
            if (span->start > way->fetch->end)
                break;
        }
    }
    return 0;
}

static int fetch_is_slow(const struct idle_split *split, const struct host_span *next,
                         const struct batch_way *way)
{
    const struct loader_facts *loader = split_loader(split, next->loader);
    if (!loader || loader->fetch_lengths.count < 8 || !loader->summary.in_order)
        return 0;
    uint64_t length = way->fetch->end - way->fetch->start;
    double median = (double)durations_at(&loader->fetch_lengths, 0.5);
    return length >= SLOW_LEAST && (double)length > SLOW_TIMES * median &&
           others_ready(split, next, way);
}

/* --- fetching ----------------------------------------------------------------------------------*/

struct process_use process_use(const struct process_line *line, uint64_t start, uint64_t end)
{
    struct process_use sum = {0};
    double looked = 0;
    for (size_t i = time_list_after(&line->uses, start); i < line->uses.count; i++) {
        const struct host_look *use = time_list_at(&line->uses, i);
        if (use->start >= end)
            break;
        double part = (double)stretch_overlap(use->start, use->end, start, end);
        looked += part;
        sum.ran += part * (double)use->cpu / (double)(use->end - use->start);
        sum.delay += part * (double)use->delay / (double)(use->end - use->start);
    }
    if (looked > 0) {
        sum.ran /= looked;
        sum.delay /= looked;
    }
    return sum;
}

/* How a fetch was spent: it ran, it wanted to run and others did, it stood still. */
struct fetch_use {
    double ran, contention, stood;
};

/* around: what is looked at before and after it, too. */
static struct fetch_use fetch_use(const struct idle_split *split, const struct process_line *line,
                                  const struct host_span *fetch, uint64_t around)
{
    uint64_t from = fetch->start > around ? fetch->start - around : 0, upto = fetch->end + around;
    struct host_use use = process_line_use(line, from, upto);
    double told = host_span_cpu(fetch), ran = told < 0 ? use.known ? use.cpu : 1 : told;
    if (line != split->main) {
        double threads = process_use(line, fetch->start, fetch->end).ran;
        ran = threads > ran + THREADS_LEAST ? threads : ran;
    }
    ran = ran < 1 ? ran : 1;
    double delay = use.delay < 1 - ran ? use.delay : 1 - ran;
    double foreign = delay > 0 ? split_foreign(split, from, upto, ran) : 0;
    struct fetch_use shares = {.contention = delay * foreign, .stood = 1 - ran - delay};
    if (shares.stood < STOOD_LEAST)
        shares.stood = 0;
    shares.ran = 1 - shares.contention - shares.stood;
    return shares;
}

/* Of a wait for a fetch, the share that would not have been without other programs: what they took
 * from it, before the wait too; and all of it, where the workers would have been in time. */
static double fetch_contention(const struct idle_split *split, const struct process_line *worker,
                               const struct host_span *fetch, uint64_t wait)
{
    struct fetch_use use = fetch_use(split, worker, fetch, LOOK_AROUND);
    double length = (double)(fetch->end - fetch->start), saved = use.contention * length;
    const struct loader_facts *loader = split_loader(split, fetch->loader);
    if (loader && use.contention > CONTENTION_MUCH && loader->summary.workers > 0) {
        uint64_t period = durations_at(&loader->distances, 0.5);
        uint64_t waited = durations_at(&loader->next_lengths, 0.5);
        double step = period > waited ? (double)(period - waited) : 0;
        double busy = split->main->rank->busy * (double)period;
        if (split->main->rank->kernels && busy > step) /* a GPU computes in next() too */
            step = busy;
        if (length - saved < step * loader->summary.workers)
            return 1;
    }
    return saved < (double)wait ? saved / (double)wait : 1;
}

static double way_contention(const struct idle_split *split, const struct host_span *next,
                             const struct batch_way *way)
{
    return way->fetch->end <= next->start
               ? 0
               : fetch_contention(split, way->worker, way->fetch, next->end - next->start);
}

/* contention: of the moment; < 0: as much as the fetch had. */
static void fetch_give(struct idle_split *split, const struct split_moment *moment,
                       const struct process_line *line, const struct host_span *fetch,
                       double contention)
{
    struct fetch_use use = fetch_use(split, line, fetch, 0);
    uint32_t ran = line == split->main ? CAUSE_TRANSFORM : ACCOUNT_WORKER_CPU;
    double rest = use.ran + use.stood;
    if (contention < 0 || rest <= 0)
        contention = use.contention;
    double scale = rest > 0 ? (1 - contention) / rest : 0;
    const struct split_part parts[] = {{CAUSE_FETCH, use.stood * scale, line, SIDE_STOOD},
                                       {CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
                                       {ran, use.ran * scale, line, SIDE_RAN}};
    split_give(split, moment, parts, 3);
}

/* --- without the way of a batch ----------------------------------------------------------------*/

/* In proportion to what all workers did meanwhile. Returns 0: none did anything. */
static int workers_give(struct idle_split *split, const struct split_moment *moment)
{
    double fetch = 0, hand = 0, stood = 0, contention = 0;
    const struct process_line *most = NULL;
    double most_ns = 0;
    for (size_t w = 0; w < split->worker_count; w++) {
        const struct process_line *worker = split->workers[w];
        const struct time_list *list = &worker->spans[SPAN_FETCH];
        double ns = 0;
        for (size_t i = time_list_after(list, moment->start); i < list->count; i++) {
            const struct host_span *span = time_list_at(list, i);
            if (span->start >= moment->end)
                break;
            double part =
                (double)stretch_overlap(span->start, span->end, moment->start, moment->end);
            struct fetch_use use = fetch_use(split, worker, span, 0);
            fetch += part * use.ran;
            stood += part * use.stood;
            contention += part * use.contention;
            ns += part;
        }
        hand += (double)time_list_cover(&worker->spans[SPAN_COLLATE], moment->start, moment->end);
        hand += (double)time_list_cover(&worker->spans[SPAN_SEND], moment->start, moment->end);
        if (ns > most_ns) {
            most_ns = ns;
            most = worker;
        }
    }
    if (fetch + hand + stood + contention <= 0)
        return 0;
    const struct split_part parts[] = {{CAUSE_FETCH, stood, most, SIDE_STOOD},
                                       {CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
                                       {CAUSE_COLLATE, hand, NULL, SIDE_ALL},
                                       {ACCOUNT_WORKER_CPU, fetch, most, SIDE_RAN}};
    split_give(split, moment, parts, 4);
    return 1;
}

/* A loader that works in threads of this process: by what they ran. */
static void threads_give(struct idle_split *split, const struct split_moment *moment)
{
    double ran = process_use(split->main, moment->start, moment->end).ran;
    ran = ran > 0.5 ? 1 : ran;
    const struct split_part parts[] = {{CAUSE_FETCH, 1 - ran, split->main, SIDE_OTHERS},
                                       {CAUSE_TRANSFORM, ran, split->main, SIDE_OTHERS}};
    split_give(split, moment, parts, 2);
}

/* --- next() ------------------------------------------------------------------------------------*/

/* Who hands a batch over, and what it is called. `ran` is what the thread that does it ran itself:
 * that is its own in any case; < 0: not known. */
struct hander {
    const struct process_line *line;
    uint32_t slot;
    double ran;
};

/* Handing over, of which other programs may have held up some. */
static void hand_give(struct idle_split *split, const struct split_moment *moment,
                      const struct hander *hander, double contention)
{
    const struct process_line *line = hander->line;
    struct process_use use = process_use(line, moment->start, moment->end);
    /* A short moment of a long look: whoever hands over wants to run all the time. */
    double delay = use.delay > 0 ? use.delay / (use.delay + use.ran) : 0;
    double own = delay > 0 ? delay * split_foreign(split, moment->start, moment->end, use.ran) : 0;
    contention = own > contention ? own : contention;
    const struct split_part parts[] = {{CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
                                       {hander->slot, 1 - contention, line, SIDE_ALL}};
    split_give(split, moment, parts, 2);
}

/* The batch is on its way while its worker fetches the next one: a worker that never rests holds
 * the loop up, not the way. */
static void way_share(struct idle_split *split, const struct split_moment *moment,
                      const struct batch_way *way, const struct hander *hander)
{
    const struct time_list *fetches = &way->worker->spans[SPAN_FETCH];
    struct split_moment part;
    uint64_t from = moment->start;
    double ran = hander->ran < 0 ? 0 : hander->ran;
    for (size_t i = time_list_after(fetches, from); i < fetches->count; i++) {
        const struct host_span *fetch = time_list_at(fetches, i);
        if (fetch->start >= moment->end)
            break;
        if (split_cut(moment, &from, fetch->start, &part))
            hand_give(split, &part, hander, way->contention);
        if (!split_cut(moment, &from, fetch->end, &part))
            continue;
        struct fetch_use use = fetch_use(split, way->worker, fetch, 0);
        double rest = use.ran + use.stood;
        double contention =
            rest > 0 ? fetch_contention(split, way->worker, fetch, part.end - part.start) : 1;
        contention = contention > way->contention ? contention : way->contention;
        double left = 1 - contention;
        double scale = rest > 0 ? left * (1 - ran) / rest : 0;
        const struct split_part parts[] = {
            {hander->slot, ran * left, hander->line, SIDE_ALL},
            {CAUSE_FETCH, use.stood * scale, way->worker, SIDE_STOOD},
            {CAUSE_CONTENTION, contention, NULL, SIDE_ALL},
            {ACCOUNT_WORKER_CPU, use.ran * scale, way->worker, SIDE_RAN}};
        split_give(split, &part, parts, 4);
    }
    if (split_cut(moment, &from, moment->end, &part))
        hand_give(split, &part, hander, way->contention);
}

static void way_give(struct idle_split *split, const struct split_moment *moment,
                     const struct host_span *next, const struct batch_way *way)
{
    const struct hander worker = {way->worker, CAUSE_COLLATE,
                                  way->send ? host_span_cpu(way->send) : -1};
    const struct hander pin = {split->main, CAUSE_GIL, -1};
    const struct hander main = {split->main, CAUSE_COLLATE, host_span_cpu(next)};
    struct split_moment part;
    uint64_t from = moment->start;
    if (split_cut(moment, &from, way->fetch->start, &part) && !workers_give(split, &part))
        split_give_all(split, &part, CAUSE_OTHER, split->main, SIDE_ALL);
    if (split_cut(moment, &from, way->fetch->end, &part)) {
        if (fetch_is_slow(split, next, way))
            split_give_all(split, &part, CAUSE_SLOW_SAMPLE, way->worker, SIDE_ALL);
        else
            fetch_give(split, &part, way->worker, way->fetch, way->contention);
    }
    if (split_cut(moment, &from, way->collated, &part))
        hand_give(split, &part, &worker, way->contention);
    if (split_cut(moment, &from, way->sent, &part))
        way_share(split, &part, way, &worker);
    if (split_cut(moment, &from, way->pinned, &part))
        way_share(split, &part, way, &pin);
    if (split_cut(moment, &from, moment->end, &part))
        way_share(split, &part, way, &main);
}

static void steady_give(struct idle_split *split, const struct split_moment *moment,
                        const struct host_span *next)
{
    const struct loader_facts *loader = split_loader(split, next->loader);
    if (moment->spans[SPAN_FETCH]) {
        fetch_give(split, moment, split->main, moment->spans[SPAN_FETCH], -1);
        return;
    }
    if (moment->spans[SPAN_COLLATE]) {
        split_give_all(split, moment, CAUSE_COLLATE, split->main, SIDE_ALL);
        return;
    }
    struct batch_way way = way_find(split, next);
    if (way.fetch)
        way.contention = way_contention(split, next, &way);
    if (way.fetch && (!loader || loader->summary.in_order))
        way_give(split, moment, next, &way);
    else if (loader && loader->summary.kind[0] == 's')
        threads_give(split, moment);
    else if (!workers_give(split, moment))
        split_give_all(split, moment, CAUSE_COLLATE, split->main, SIDE_ALL);
}

void input_split(struct idle_split *split, const struct split_moment *moment)
{
    const struct host_span *next = moment->spans[SPAN_NEXT];
    if (next->flags & SPAN_ENDED_EPOCH) { /* no batch came: workers are ended, or told to go on */
        split_give_all(split, moment, CAUSE_START, split->main, SIDE_ALL);
        return;
    }
    const struct loader_facts *loader = split_loader(split, next->loader);
    int alone = moment->spans[SPAN_FETCH] || moment->spans[SPAN_COLLATE] ||
                (loader && loader->summary.workers == 0);
    if (next->batch || alone) {
        steady_give(split, moment, next);
        return;
    }
    /* The first batch of an epoch: what it takes longer than others is the start. */
    uint64_t length = next->end - next->start;
    uint64_t steady = loader ? durations_at(&loader->next_lengths, 0.5) : 0;
    uint64_t from = moment->start;
    struct split_moment part;
    if (split_cut(moment, &from, next->end - (steady < length ? steady : length), &part))
        split_give_all(split, &part, CAUSE_START, split->main, SIDE_ALL);
    if (split_cut(moment, &from, moment->end, &part))
        steady_give(split, &part, next);
}
