#include "loader/ship_stage.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "loader/batch_transform.h"
#include "loader/device_decode.h"
#include "loader/resident.h"
#include "loader/ship_impl.h"
#include "pipeline/device_half.h"
#include "work/cores.h"

#define WAIT_NS 10000000 /* a wait for the caller is looked at this often */

/* --- what is in the box ----------------------------------------------------------------------- */

/* Places of a field whose values are in the box, and must be sent: masked ones too, unless a gather
 * clears them. */
static uint32_t count_landed(const struct ship *ship, const struct slot *slot, uint32_t f)
{
    const struct stk_loader *loader = ship->loader;
    uint32_t found = atomic_load_explicit(&slot->found, memory_order_relaxed), decoded = 0;
    if (loader->layout.fields[f].keeps_encoded) {
        for (uint32_t i = 0; i < slot->share.real; i++)
            decoded +=
                device_decode_did(loader->decode, (uint32_t)(slot - loader->slots), f, i) != 0;
        return slot->share.real - decoded; /* what is masked is cleared */
    }
    if (!loader->layout.fields[f].resident || !found)
        return slot->share.count;
    return slot->share.real - found;
}

/* Places that hold no sample get some sample's parameters: kernels run over all of them, and what
 * they make there is cleared. 0: the field has no sample at all. */
static int lend_params(const struct field_layout *layout, const struct slot *slot, uint32_t f)
{
    const uint8_t *present = slot->box->fields[f].present;
    uint8_t *params = slot->box->params[f];
    uint32_t real = slot->share.real, lender = 0;
    while (lender < real && present && !present[lender])
        lender++;
    if (lender == real)
        return 0;
    for (uint32_t i = 0; i < slot->share.count; i++)
        if (i >= real || (present && !present[i]))
            memcpy(params + (uint64_t)layout->params * i,
                   params + (uint64_t)layout->params * lender, layout->params);
    return 1;
}

/* --- one batch -------------------------------------------------------------------------------- */

/* A batch on its way. */
struct load {
    struct slot *slot;
    struct device_slot *to;
    struct landing *landing;
    int computes; /* something is left to do once it is there */
};

static int is_over(const struct stk_loader *loader)
{
    return atomic_load_explicit(&loader->discard, memory_order_relaxed) ||
           atomic_load_explicit(&loader->stop, memory_order_relaxed);
}

/* Not 0: the copy is done, or never will be. wait: until it is. */
static int is_copied(struct ship *ship, const struct copying *copying, int wait)
{
    int over = gpu_event_over(ship->gpu, copying->done);
    while (!over && wait)
        over = !gpu_event_sync(ship->gpu, copying->done, NULL) ||
               gpu_event_over(ship->gpu, copying->done);
    return over;
}

/* Boxes whose copies are done go back to the workers. all: wait for them. */
static void return_boxes(struct ship *ship, int all)
{
    struct stk_loader *loader = ship->loader;
    int any = 0;
    while (ship->copying_count) {
        struct copying *oldest = &ship->copying[ship->copying_first];
        if (!is_copied(ship, oldest, all))
            break;
        box_give(oldest->box);
        oldest->box = NULL;
        ship->copying_first = (ship->copying_first + 1) % loader->depth;
        ship->copying_count--;
        any = 1;
    }
    if (!any)
        return;
    pthread_mutex_lock(&loader->lock);
    loader_wake(loader);
    pthread_mutex_unlock(&loader->lock);
}

/* Waits until the device has room for the batch. STK_CANCELLED: nobody wants it any more. */
static stk_status take_room(struct ship *ship, struct load *load, struct stk_error *err)
{
    const struct parcel *parcel = &ship->parcel;
    uint64_t size = parcel->result ? parcel->result : BOX_ALIGN;
    int first = 1;
    while (!is_over(ship->loader)) {
        struct stk_loader *loader = ship->loader;
        int alone = atomic_load_explicit(&loader->taken, memory_order_acquire) == loader->shipped;
        stk_status status = device_pool_take(ship->pool, size, parcel->host, alone, &load->to, err);
        if (status || load->to)
            return status;
        return_boxes(ship, 0);
        if (!first)
            device_pool_wait(ship->pool, ship->copying_count ? DEVICE_LOOK_NS : WAIT_NS);
        first = 0;
    }
    return STK_CANCELLED;
}

static stk_status take_landing(struct ship *ship, struct load *load, struct stk_error *err)
{
    struct landing *landing = &ship->landings[ship->landing++ % LANDINGS];
    uint64_t size = ship->parcel.landing;
    load->landing = landing;
    if (landing->size < size) {
        budget_give(device_pool_budget(ship->pool), landing->size);
        gpu_free(ship->gpu, landing->data); /* waits for what was in it */
        landing->data = 0;
        landing->size = 0;
        stk_status status = gpu_alloc(ship->gpu, size, &landing->data, err);
        if (status)
            return status;
        landing->size = size;
        budget_force(device_pool_budget(ship->pool), size);
    }
    return gpu_event_follow(ship->gpu, ship->copy, landing->read, err);
}

static stk_status send_all(struct ship *ship, const struct load *load, struct stk_error *err)
{
    const struct parcel *parcel = &ship->parcel;
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < parcel->passage_count && !status; i++) {
        const struct passage *passage = &parcel->passages[i];
        gpu_address base = passage->block == PARCEL_RESULT ? load->to->data : load->landing->data;
        status = gpu_copy_in(ship->gpu, base + passage->to, passage->from, passage->size,
                             ship->copy, err);
    }
    return status;
}

/* What holds no sample is zeros, whatever the kernels made of it. */
static stk_status clear_places(struct ship *ship, const struct load *load, uint32_t f,
                               struct stk_error *err)
{
    const struct field_layout *layout = &ship->loader->layout.fields[f];
    const struct slot *slot = load->slot;
    const uint8_t *present = slot->box->fields[f].present;
    gpu_address values = load->to->data + ship->parcel.fields[f].values;
    uint32_t real = ship->lent[f] ? slot->share.real : 0;
    uint64_t item = layout->made_item;
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < real && present && !status; i++)
        if (!present[i])
            status = gpu_clear(ship->gpu, values + item * i, item, ship->work, err);
    if (!status && real < slot->share.count)
        status = gpu_clear(ship->gpu, values + item * real, item * (slot->share.count - real),
                           ship->work, err);
    return status;
}

/* A resident field: values that are there already come from there, new ones are kept. */
static stk_status settle_resident(struct ship *ship, const struct load *load, uint32_t f,
                                  struct stk_error *err)
{
    const struct field_layout *layout = &ship->loader->layout.fields[f];
    const struct parcel_field *where = &ship->parcel.fields[f];
    const struct slot *slot = load->slot;
    gpu_address landing = load->landing ? load->landing->data : 0;
    struct resident_batch batch = {.field = f,
                                   .count = slot->share.count,
                                   .real = slot->share.real,
                                   .samples = slot->box->samples,
                                   .stream = ship->work};
    batch.values = layout->params ? landing + where->landed : load->to->data + where->values;
    stk_status status = STK_OK;
    if (where->home != STK_NOWHERE) {
        batch.home = landing + where->home;
        batch.host_home = slot->box->home[f];
        status = resident_gather(ship->resident, &batch, err);
    }
    if (!status && ship->landed[f])
        status = resident_keep(ship->resident, &batch, err);
    return status;
}

static stk_status run_half(struct ship *ship, const struct load *load, uint32_t f,
                           struct stk_error *err)
{
    const struct field_layout *layout = &ship->loader->layout.fields[f];
    const struct parcel_field *where = &ship->parcel.fields[f];
    const struct slot *slot = load->slot;
    gpu_address landing = load->landing->data;
    struct device_half_run run = {.count = slot->share.count,
                                  .landed = landing + where->landed,
                                  .params = landing + where->params,
                                  .decoded = ship->decoded[f],
                                  .out = load->to->data + where->values,
                                  .scratch = ship->scratch,
                                  .resizes = layout->pipeline == NULL || ship->decoded[f],
                                  .stream = ship->work};
    stk_status status = ship->lent[f] ? device_half_run(ship->halves[f], &run, err) : STK_OK;
    return status ? status : clear_places(ship, load, f, err);
}

/* Where the values of a field are, for mixing. */
struct mixing {
    const struct ship *ship;
    const struct load *load;
};

static gpu_address mixing_values(void *user, uint32_t f)
{
    const struct mixing *mixing = user;
    return mixing->load->to->data + mixing->ship->parcel.fields[f].values;
}

static stk_status mix(struct ship *ship, const struct load *load, struct stk_error *err)
{
    struct mixing mixing = {ship, load};
    const struct batch_transform_device device = {
        .gpu = ship->gpu, .stream = ship->work, .values = mixing_values, .user = &mixing};
    const struct stk_loader *loader = ship->loader;
    return batch_transform_run_device(loader->mixes, load->slot, loader->plan->seed, &device, err);
}

static stk_status compute(struct ship *ship, const struct load *load, struct stk_error *err)
{
    const struct layout *layout = &ship->loader->layout;
    stk_status status = gpu_event_record(ship->gpu, ship->copied, ship->copy, err);
    if (!status)
        status = gpu_event_follow(ship->gpu, ship->work, ship->copied, err);
    for (uint32_t f = 0; f < layout->field_count && !status; f++) {
        if (layout->fields[f].resident)
            status = settle_resident(ship, load, f, err);
        if (!status && ship->halves[f])
            status = run_half(ship, load, f, err);
    }
    if (!status && load->landing)
        status = gpu_event_record(ship->gpu, load->landing->read, ship->work, err);
    if (!status && ship->computes && ship->loader->mixes)
        status = mix(ship, load, err);
    return status;
}

/* The box may go back once its bytes are copied. */
static stk_status part_with_box(struct ship *ship, struct load *load, struct stk_error *err)
{
    struct slot *slot = load->slot;
    uint32_t last = (ship->copying_first + ship->copying_count) % ship->loader->depth;
    if (ship->copying_count == ship->loader->depth)
        return_boxes(ship, 1);
    /* nvJPEG reads encoded bytes where they lie, in the stream of the work */
    struct gpu_stream *last_reader = ship->loader->decode ? ship->work : ship->copy;
    stk_status status = gpu_event_record(ship->gpu, ship->copying[last].done, last_reader, err);
    if (status)
        return status;
    ship->copying[last].box = slot->box;
    ship->copying_count++;
    slot->box = NULL;
    return STK_OK;
}

static void tell_pageable(struct ship *ship)
{
    atomic_fetch_add_explicit(&ship->pageable, 1, memory_order_relaxed);
    if (ship->told_pageable)
        return;
    ship->told_pageable = 1;
    context_notice(ship->loader->context,
                   "memory for batches could not be locked: copies to the GPU are slow. Raise "
                   "`ulimit -l`, or give a smaller memory=");
}

/* Images that the device decodes, before their records are sent. */
static stk_status decode_images(struct ship *ship, const struct load *load, struct stk_error *err)
{
    struct stk_loader *loader = ship->loader;
    struct slot *slot = load->slot;
    stk_status status = STK_OK;
    for (uint32_t f = 0; f < loader->layout.field_count && !status; f++) {
        ship->decoded[f] = 0;
        if (loader->layout.fields[f].keeps_encoded)
            status = device_decode_run(loader->decode, slot, (uint32_t)(slot - loader->slots), f,
                                       ship->work, &ship->decoded[f], err);
    }
    return status;
}

static stk_status enqueue(struct ship *ship, struct load *load, struct stk_error *err)
{
    const struct layout *layout = &ship->loader->layout;
    struct slot *slot = load->slot;
    uint32_t kept = 0;
    load->computes = ship->computes && ship->loader->mixes;
    for (uint32_t f = 0; f < layout->field_count; f++) {
        ship->landed[f] = count_landed(ship, slot, f);
        load->computes |= layout->fields[f].params || layout->fields[f].resident;
        kept += layout->fields[f].resident && ship->landed[f];
        if (layout->fields[f].params)
            ship->lent[f] = lend_params(&layout->fields[f], slot, f);
    }
    parcel_pack(&ship->parcel, layout, slot, ship->landed);
    stk_status status = take_room(ship, load, err);
    if (!status && ship->parcel.landing)
        status = take_landing(ship, load, err);
    if (!status)
        status = send_all(ship, load, err);
    if (!status && load->computes)
        status = compute(ship, load, err);
    if (!status)
        status = gpu_event_record(ship->gpu, load->to->ready,
                                  load->computes ? ship->work : ship->copy, err);
    if (status)
        return status;
    if (ship->resident && kept)
        resident_found(ship->resident, slot->box->samples, slot->share.real);
    if (ship->resident && !kept)
        atomic_fetch_add_explicit(&ship->resident_batches, 1, memory_order_relaxed);
    return STK_OK;
}

/* The batch is an error, and its box is used again: copies and nvJPEG may still read it. When a
 * wait fails, the device is lost and reads nothing. */
static void give_up(struct ship *ship, const struct load *load)
{
    stk_status copied = gpu_stream_sync(ship->gpu, ship->copy, NULL);
    stk_status worked = gpu_stream_sync(ship->gpu, ship->work, NULL);
    (void)copied, (void)worked;
    device_pool_give(load->to);
}

static stk_status ship_batch(struct ship *ship, struct slot *slot, struct stk_error *err)
{
    struct load load = {.slot = slot};
    int pinned = slot->box->pinned;
    stk_status status = decode_images(ship, &load, err);
    if (status || !slot_is_whole(slot)) {
        give_up(ship, &load);
        return status;
    }
    status = enqueue(ship, &load, err);
    if (!status) {
        parcel_label(&ship->parcel, &ship->loader->layout, slot, load.to);
        load.to->batch.device = gpu_info(ship->gpu)->number;
        status = part_with_box(ship, &load, err);
    }
    if (status) {
        give_up(ship, &load);
        return status;
    }
    atomic_fetch_add_explicit(&ship->shipped, ship->parcel.shipped, memory_order_relaxed);
    if (!pinned)
        tell_pageable(ship);
    slot->device = load.to;
    return STK_OK;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Under lock: the next batch that was filled; NULL: there is none yet. */
static struct slot *next_filled(struct ship *ship)
{
    struct stk_loader *loader = ship->loader;
    if (loader->shipped == loader->admitted)
        return NULL;
    struct slot *slot = &loader->slots[loader->shipped % loader->depth];
    return slot->filled ? slot : NULL;
}

/* Ships one batch, outside the lock, and hands it over. */
static void pass_on(struct ship *ship, struct slot *slot)
{
    struct stk_loader *loader = ship->loader;
    struct slot_bad bad = {.substitute = STK_NOWHERE};
    stk_status status = STK_OK;
    pthread_mutex_unlock(&loader->lock);
    int64_t begin = trace_begin(ship->ring);
    if (!is_over(loader) && slot->box && slot_is_whole(slot))
        status = ship_batch(ship, slot, &bad.error);
    trace_end(ship->ring, begin, "ship", slot->position, ship->parcel.shipped);
    pthread_mutex_lock(&loader->lock);
    if (status && status != STK_CANCELLED)
        slot_add_bad(slot, &bad);
    loader->shipped++;
    atomic_store_explicit(&slot->done, 1, memory_order_release);
    pthread_cond_broadcast(&loader->ready);
}

/* Under lock: until there is something to do. */
static void wait_filled(struct ship *ship)
{
    struct stk_loader *loader = ship->loader;
    if (!ship->copying_count && !ship->feeding) {
        pthread_cond_wait(&loader->filled, &loader->lock);
        return;
    }
    int64_t until = clock_now() + DEVICE_LOOK_NS;
    struct timespec deadline = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    pthread_cond_timedwait(&loader->filled, &loader->lock, &deadline);
}

static void *ship_run(void *user)
{
    struct ship *ship = user;
    struct stk_loader *loader = ship->loader;
    struct stk_error err;
    int entered = !gpu_enter(ship->gpu, &err);
    pthread_mutex_lock(&loader->lock);
    while (!atomic_load_explicit(&loader->stop, memory_order_relaxed)) {
        struct slot *slot = next_filled(ship);
        if (slot)
            pass_on(ship, slot);
        else
            wait_filled(ship);
        pthread_mutex_unlock(&loader->lock);
        return_boxes(ship, 0);
        if (ship->feeding)
            ship->feeding = resident_feed(ship->resident, ship->copy);
        pthread_mutex_lock(&loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    return_boxes(ship, 1);
    if (entered)
        gpu_leave(ship->gpu);
    return NULL;
}

stk_status ship_start(struct ship *ship, struct stk_error *err)
{
    static const struct cores_place place = {.name = "stoker-ship"};
    stk_status status = gpu_enter(ship->gpu, err); /* refused in a forked child */
    if (status)
        return status;
    gpu_leave(ship->gpu);
    ship->ring = trace_ring(ship->loader->trace, ship->loader->worker_count + 1, "ship");
    status = cores_start(&ship->thread, ship_run, ship, &place, err);
    ship->running = !status;
    return status;
}

void ship_stop(struct ship *ship)
{
    if (!ship || !ship->running)
        return;
    pthread_mutex_lock(&ship->loader->lock);
    pthread_cond_broadcast(&ship->loader->filled);
    pthread_mutex_unlock(&ship->loader->lock);
    pthread_join(ship->thread, NULL);
    ship->running = 0;
}
