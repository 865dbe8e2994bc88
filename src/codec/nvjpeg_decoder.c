#include "codec/nvjpeg_decoder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/jpeg_header.h"
#include "codec/nvjpeg_api.h"

#define TURNS 3 /* one being decoded, one behind it, one being prepared */
#define KINDS 16
#define SIDE_LEAST 64 /* images beyond these sides are asked for one by one */
#define SIDE_MOST 8192
#define HALVINGS 33 /* halves of a batch of 2^32 images that are still to be tried */

/* What one batch needs from its call until the device is through with it. */
struct turn {
    struct nvjpeg_state *state;
    struct gpu_event *over; /* recorded behind its last batch */
    int used;
    struct nvjpeg_params **params;           /* [most] */
    const uint8_t **data;                    /* [most] */
    size_t *lengths;                         /* [most] */
    struct nvjpeg_destination *destinations; /* [most] */
};

struct kind {
    uint32_t number;
    enum nvjpeg_part part;
};

struct nvjpeg_decoder {
    struct nvjpeg_api api;
    struct gpu *gpu;
    struct nvjpeg_allocator allocator, pinned; /* of device memory, and of the CPU's */
    _Atomic uint64_t bytes; /* of device memory: added by whoever allocates, loaded anywhere */
    struct nvjpeg_handle *handle;
    int interpolates;
    char name[64];
    uint32_t most, next; /* the turn to be used next */
    struct turn turns[TURNS];
    struct nvjpeg_image **list; /* [most] of one call */

    pthread_mutex_t lock;
    struct nvjpeg_stream *header; /* under lock */
    struct nvjpeg_params *asked;  /* under lock */
    struct kind kinds[KINDS];     /* under lock */
    uint32_t kind_count;          /* under lock */
};

/* --- making ----------------------------------------------------------------------------------- */

/* nvJPEG asks for memory seldom: its buffers grow with the images and stay. */
static int device_take(void *user, void **address, size_t size, struct gpu_stream *stream)
{
    struct nvjpeg_decoder *decoder = user;
    gpu_address taken = 0;
    (void)stream;
    if (gpu_enter(decoder->gpu, NULL))
        return 1;
    stk_status status = gpu_alloc(decoder->gpu, size, &taken, NULL);
    gpu_leave(decoder->gpu);
    *address = (void *)(uintptr_t)taken;
    if (!status)
        atomic_fetch_add_explicit(&decoder->bytes, size, memory_order_relaxed);
    return status != STK_OK;
}

static int device_give(void *user, void *address, size_t size, struct gpu_stream *stream)
{
    struct nvjpeg_decoder *decoder = user;
    (void)stream;
    if (!address)
        return 0;
    if (gpu_enter(decoder->gpu, NULL))
        return 1;
    gpu_free(decoder->gpu, (uintptr_t)address);
    gpu_leave(decoder->gpu);
    atomic_fetch_sub_explicit(&decoder->bytes, size, memory_order_relaxed);
    return 0;
}

/* Locked memory; where none can be had it is used as it is, and copies are slower. */
static int pinned_take(void *user, void **address, size_t size, struct gpu_stream *stream)
{
    struct nvjpeg_decoder *decoder = user;
    (void)stream;
    *address = memory_map(size);
    if (!*address)
        return 1;
    if (!gpu_enter(decoder->gpu, NULL)) {
        stk_status status = gpu_pin(decoder->gpu, *address, size, NULL);
        gpu_leave(decoder->gpu);
        (void)status;
    }
    return 0;
}

static int pinned_give(void *user, void *address, size_t size, struct gpu_stream *stream)
{
    struct nvjpeg_decoder *decoder = user;
    (void)stream;
    if (!address)
        return 0;
    if (!gpu_enter(decoder->gpu, NULL)) {
        gpu_unpin(decoder->gpu, address); /* refused where it was not locked: no harm */
        gpu_leave(decoder->gpu);
    }
    memory_unmap(address, size);
    return 0;
}

/* The best that this GPU and this nvJPEG have. nvJPEG takes both allocators or none. */
static int open_handle(struct nvjpeg_decoder *decoder)
{
    static const struct {
        int backend;
        unsigned flags;
        const char *name;
    } ways[] = {
        {NVJPEG_HARDWARE, NVJPEG_INTERPOLATE, "hardware"},
        {NVJPEG_HARDWARE, 0, "hardware"},
        {NVJPEG_GPU_HYBRID, NVJPEG_INTERPOLATE, "GPU"},
        {NVJPEG_GPU_HYBRID, 0, "GPU"},
        {NVJPEG_DEFAULT, 0, "GPU"},
    };
    int result = NVJPEG_NOT_INITIALIZED;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && result; i++) {
        result = decoder->api.nvjpegCreateExV2(ways[i].backend, &decoder->allocator,
                                               &decoder->pinned, ways[i].flags, &decoder->handle);
        decoder->interpolates = ways[i].flags != 0;
        snprintf(decoder->name, sizeof decoder->name, "nvJPEG %s, %s", decoder->api.version,
                 ways[i].name);
    }
    if (result)
        decoder->handle = NULL;
    return result;
}

static stk_status turn_init(struct nvjpeg_decoder *decoder, struct turn *turn,
                            struct stk_error *err)
{
    const struct nvjpeg_api *api = &decoder->api;
    turn->params = memory_zero(decoder->most, sizeof(struct nvjpeg_params *));
    turn->data = memory_zero(decoder->most, sizeof *turn->data);
    turn->lengths = memory_zero(decoder->most, sizeof *turn->lengths);
    turn->destinations = memory_zero(decoder->most, sizeof *turn->destinations);
    if (!turn->params || !turn->data || !turn->lengths || !turn->destinations)
        return fail_memory(err, decoder->most * sizeof *turn->destinations);
    if (api->nvjpegJpegStateCreate(decoder->handle, &turn->state))
        return fail(err, STK_MEMORY, "nvJPEG has no memory for its state");
    for (uint32_t i = 0; i < decoder->most; i++)
        if (api->nvjpegDecodeParamsCreate(decoder->handle, &turn->params[i]))
            return fail(err, STK_MEMORY, "nvJPEG has no memory for parameters");
    /* Whatever the sizes are: after this call buffers are kept from batch to batch. One that cannot
     * do it decodes all the same. */
    (void)api->nvjpegDecodeBatchedPreAllocate(decoder->handle, turn->state, 1, 1, 1,
                                              NVJPEG_SAMPLING_420, NVJPEG_RGBI);
    return gpu_event_new(decoder->gpu, &turn->over, err);
}

static stk_status decoder_init(struct nvjpeg_decoder *decoder, struct stk_error *err)
{
    stk_status status = nvjpeg_api_load(&decoder->api, err);
    if (status)
        return status;
    int result = open_handle(decoder);
    if (result) {
        status = fail(err, STK_UNSUPPORTED, "nvJPEG %s does not work with this GPU (error %d)",
                      decoder->api.version, result);
        fail_remedy(err, "install an nvJPEG that fits the driver");
        return status;
    }
    decoder->list = memory_zero(decoder->most, sizeof(struct nvjpeg_image *));
    if (!decoder->list)
        return fail_memory(err, decoder->most * sizeof(struct nvjpeg_image *));
    if (decoder->api.nvjpegJpegStreamCreate(decoder->handle, &decoder->header) ||
        decoder->api.nvjpegDecodeParamsCreate(decoder->handle, &decoder->asked))
        return fail(err, STK_MEMORY, "nvJPEG has no memory for a header");
    for (int i = 0; i < TURNS && !status; i++)
        status = turn_init(decoder, &decoder->turns[i], err);
    return status;
}

stk_status nvjpeg_decoder_new(struct nvjpeg_decoder **out, struct gpu *gpu, uint32_t most,
                              struct stk_error *err)
{
    struct nvjpeg_decoder *decoder = memory_zero(1, sizeof *decoder);
    *out = NULL;
    if (!decoder)
        return fail_memory(err, sizeof *decoder);
    pthread_mutex_init(&decoder->lock, NULL);
    decoder->gpu = gpu;
    decoder->most = most;
    decoder->allocator = (struct nvjpeg_allocator){device_take, device_give, decoder};
    decoder->pinned = (struct nvjpeg_allocator){pinned_take, pinned_give, decoder};
    stk_status status = decoder_init(decoder, err);
    if (status)
        goto done;
    *out = decoder;
    decoder = NULL;
done:
    nvjpeg_decoder_free(decoder);
    return status;
}

static void turn_reset(struct nvjpeg_decoder *decoder, struct turn *turn)
{
    if (turn->used)
        (void)!gpu_event_sync(decoder->gpu, turn->over, NULL);
    gpu_event_free(decoder->gpu, turn->over);
    for (uint32_t i = 0; turn->params && i < decoder->most && turn->params[i]; i++)
        decoder->api.nvjpegDecodeParamsDestroy(turn->params[i]);
    if (turn->state)
        decoder->api.nvjpegJpegStateDestroy(turn->state);
    memory_free(turn->params);
    memory_free(turn->data);
    memory_free(turn->lengths);
    memory_free(turn->destinations);
}

void nvjpeg_decoder_free(struct nvjpeg_decoder *decoder)
{
    if (!decoder)
        return;
    for (int i = 0; i < TURNS; i++)
        turn_reset(decoder, &decoder->turns[i]);
    if (decoder->asked)
        decoder->api.nvjpegDecodeParamsDestroy(decoder->asked);
    if (decoder->header)
        decoder->api.nvjpegJpegStreamDestroy(decoder->header);
    if (decoder->handle)
        decoder->api.nvjpegDestroy(decoder->handle);
    memory_free(decoder->list);
    pthread_mutex_destroy(&decoder->lock);
    memory_free(decoder);
}

uint64_t nvjpeg_decoder_bytes(const struct nvjpeg_decoder *decoder)
{
    return atomic_load_explicit(&decoder->bytes, memory_order_relaxed);
}

const char *nvjpeg_decoder_name(const struct nvjpeg_decoder *decoder)
{
    return decoder->name;
}

/* --- kinds ------------------------------------------------------------------------------------ */

/* Under lock. */
static int is_supported(struct nvjpeg_decoder *decoder, const struct nvjpeg_image *image, int box)
{
    int refused = 1, x = 0, y = 0, width = -1, height = -1;
    if (box) { /* any will do: the answer is not one about its size */
        x = image->image_width / 4;
        y = image->image_height / 4;
        width = image->image_width / 2 + !(image->image_width / 2);
        height = image->image_height / 2 + !(image->image_height / 2);
    }
    const struct nvjpeg_api *api = &decoder->api;
    if (api->nvjpegDecodeParamsSetOutputFormat(decoder->asked,
                                               image->channels == 1 ? NVJPEG_Y : NVJPEG_RGBI) ||
        api->nvjpegDecodeParamsSetROI(decoder->asked, x, y, width, height) ||
        api->nvjpegDecodeBatchedSupportedEx(decoder->handle, decoder->header, decoder->asked,
                                            &refused))
        return 0;
    return !refused;
}

/* Under lock. 0: the header is bad, which says nothing of others of its kind. Colours are
 * interpolated across the border of a box, so that one alone would come out differently there: with
 * interpolation the image is decoded whole. The hardware reads all of it anyway. */
static int ask(struct nvjpeg_decoder *decoder, struct nvjpeg_image *image)
{
    if (gpu_enter(decoder->gpu, NULL))
        return 0;
    int good = decoder->api.nvjpegJpegStreamParseHeader(decoder->handle, image->bytes.data,
                                                        image->bytes.len, decoder->header) == 0;
    if (good && !decoder->interpolates && is_supported(decoder, image, 1))
        image->part = NVJPEG_BOX;
    else if (good && is_supported(decoder, image, 0))
        image->part = NVJPEG_WHOLE;
    gpu_leave(decoder->gpu);
    return good;
}

static int side_is_ordinary(int32_t side)
{
    return side >= SIDE_LEAST && side <= SIDE_MOST;
}

void nvjpeg_decoder_take(struct nvjpeg_decoder *decoder, struct nvjpeg_image *image)
{
    struct jpeg_header header;
    image->part = NVJPEG_NOTHING;
    if ((image->channels != 1 && image->channels != 3) ||
        jpeg_header_read(&image->bytes, &header, NULL))
        return;
    if (header.width != image->image_width || header.height != image->image_height)
        return; /* there would be no room for what comes */
    uint32_t number = (uint32_t)(header.components | header.across << 8 | header.down << 16 |
                                 image->channels << 24);
    int ordinary = side_is_ordinary(image->image_width) && side_is_ordinary(image->image_height);
    uint32_t i = 0;
    pthread_mutex_lock(&decoder->lock);
    while (i < decoder->kind_count && decoder->kinds[i].number != number)
        i++;
    if (ordinary && i < decoder->kind_count) {
        image->part = decoder->kinds[i].part;
    } else if (ask(decoder, image) && ordinary && decoder->kind_count < KINDS) {
        decoder->kinds[decoder->kind_count++] = (struct kind){number, image->part};
    }
    pthread_mutex_unlock(&decoder->lock);
}

uint64_t nvjpeg_image_size(const struct nvjpeg_image *image)
{
    int32_t width = image->part == NVJPEG_WHOLE ? image->image_width : image->width;
    int32_t height = image->part == NVJPEG_WHOLE ? image->image_height : image->height;
    if (image->part == NVJPEG_NOTHING)
        return 0;
    return (uint64_t)width * (uint64_t)height * (uint64_t)image->channels;
}

/* --- decoding --------------------------------------------------------------------------------- */

/* A turn whose last batch is through. */
static stk_status next_turn(struct nvjpeg_decoder *decoder, struct turn **out,
                            struct stk_error *err)
{
    struct turn *turn = &decoder->turns[decoder->next];
    decoder->next = (decoder->next + 1) % TURNS;
    *out = turn;
    return turn->used ? gpu_event_sync(decoder->gpu, turn->over, err) : STK_OK;
}

static int turn_set(struct nvjpeg_decoder *decoder, struct turn *turn, uint32_t i,
                    const struct nvjpeg_image *image)
{
    int whole = image->part == NVJPEG_WHOLE;
    int32_t width = whole ? image->image_width : image->width;
    turn->data[i] = image->bytes.data;
    turn->lengths[i] = image->bytes.len;
    turn->destinations[i] = (struct nvjpeg_destination){
        .channel = {image->out}, .pitch = {(size_t)width * (size_t)image->channels}};
    return decoder->api.nvjpegDecodeParamsSetROI(turn->params[i], whole ? 0 : image->x,
                                                 whole ? 0 : image->y, whole ? -1 : image->width,
                                                 whole ? -1 : image->height);
}

/* One call of nvJPEG. *result: its own, for all images together. */
static stk_status decode_together(struct nvjpeg_decoder *decoder, struct nvjpeg_image **images,
                                  uint32_t count, struct gpu_stream *stream, int *result,
                                  struct stk_error *err)
{
    const struct nvjpeg_api *api = &decoder->api;
    int format = images[0]->channels == 1 ? NVJPEG_Y : NVJPEG_RGBI;
    struct turn *turn;
    stk_status status = next_turn(decoder, &turn, err);
    if (status)
        return status;
    *result = NVJPEG_SUCCESS;
    for (uint32_t i = 0; i < count && !*result; i++) {
        *result = turn_set(decoder, turn, i, images[i]);
        if (!*result)
            *result = api->nvjpegDecodeParamsSetOutputFormat(turn->params[i], format);
    }
    if (!*result)
        *result =
            api->nvjpegDecodeBatchedInitialize(decoder->handle, turn->state, (int)count, 1, format);
    if (!*result)
        *result =
            api->nvjpegDecodeBatchedEx(decoder->handle, turn->state, turn->data, turn->lengths,
                                       turn->destinations, turn->params, stream);
    turn->used = 1; /* a call that failed may have left something in the stream */
    return gpu_event_record(decoder->gpu, turn->over, stream, err);
}

/* Images of one format. One that is bad spoils its whole call, so a call that failed is made again
 * for each half, until the bad ones stand alone. */
static stk_status decode_list(struct nvjpeg_decoder *decoder, uint32_t count,
                              struct gpu_stream *stream, struct stk_error *err)
{
    struct {
        uint32_t first, count;
    } left[HALVINGS] = {{0, count}};
    uint32_t n = count > 0;
    while (n > 0) {
        uint32_t first = left[--n].first, some = left[n].count;
        int result;
        stk_status status =
            decode_together(decoder, decoder->list + first, some, stream, &result, err);
        if (status)
            return status;
        if (!result)
            continue;
        if (some == 1) {
            decoder->list[first]->part = NVJPEG_NOTHING;
            continue;
        }
        left[n].first = first + some / 2;
        left[n++].count = some - some / 2;
        left[n].first = first;
        left[n++].count = some / 2;
    }
    return STK_OK;
}

stk_status nvjpeg_decoder_run(struct nvjpeg_decoder *decoder, struct nvjpeg_image *images,
                              uint32_t count, struct gpu_stream *stream, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (int32_t channels = 1; channels <= 3; channels += 2) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < count && !status; i++) {
            if (images[i].part != NVJPEG_NOTHING && images[i].channels == channels)
                decoder->list[n++] = &images[i];
            if (n == decoder->most) {
                status = decode_list(decoder, n, stream, err);
                n = 0;
            }
        }
        if (!status)
            status = decode_list(decoder, n, stream, err);
    }
    return status;
}
