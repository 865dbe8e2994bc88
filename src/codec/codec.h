/* codec.h -- encoded bytes of a field -> tensor: one row a codec in codecs.c.
 * Owns: nothing; codecs here keep no state.   Threads: any.   Errors: status, words; the caller
 * adds object and sample.   Not here: when decoding happens (loader/fill_stage.c). */
#ifndef CODEC_CODEC_H
#define CODEC_CODEC_H

#include "stoker/bytes.h"
#include "stoker/dataset.h"
#include "stoker/tensor.h"

/* What a probe of the first bytes found. */
struct codec_shape {
    struct stk_tensor tensor; /* data NULL */
    uint32_t head;            /* bytes before the payload */
    int plain; /* the payload is the tensor as it is: no finish when the head is the same */
};

struct codec_ops {
    const char *name; /* "npy" */
    enum stk_kind kind;
    /* Not STK_MEDIA_TENSOR: encoded media, decoded by a pipeline (pipeline/pipeline.h); all the
     * functions below are NULL. */
    enum stk_media media;
    const char *const *suffixes; /* names of fields it takes; NULL-ended, lower case */
    /* Shape and payload start from the first bytes (all of them, or CODEC_PROBE_BYTES). NULL:
     * values of this codec are runs of bytes (text, json, bytes). */
    stk_status (*probe)(const struct stk_bytes *head, uint64_t length, struct codec_shape *shape,
                        struct stk_error *err);
    /* The payload already lies in to->data, put there by the store; head is what came before it.
     * Checks that head promises to's dtype and shape, and puts the payload in order (byte swap,
     * Fortran -> C order). scratch: as large as the tensor, used only for Fortran order; it may be
     * NULL, then STK_MEMORY says that it is needed. NULL: the payload is not stored as it is used
     * (int). */
    stk_status (*finish)(const struct stk_bytes *head, struct stk_tensor *to, void *scratch,
                         struct stk_error *err);
    /* Decodes whole bytes into to->data. STK_SHAPE when they hold another dtype or shape than to's.
     */
    stk_status (*decode)(const struct stk_bytes *bytes, struct stk_tensor *to,
                         struct stk_error *err);
    /* Runs of bytes: whether they are what their kind says (UTF-8, JSON). Allocates nothing. NULL:
     * any bytes will do. */
    stk_status (*check)(const struct stk_bytes *bytes, struct stk_error *err);
};
#define CODEC_PROBE_BYTES 4096

const struct codec_ops *codec_find(const char *name); /* NULL: no such codec */
const struct codec_ops *codec_at(uint32_t row);       /* sorted by name; NULL past the last */
/* The codec of a field by its name's last suffix ("video.npy" -> npy) or, when kind is not AUTO, by
 * kind. Never NULL. */
const struct codec_ops *codec_for(const char *field, enum stk_kind kind);
/* The codec of encoded media; not for STK_MEDIA_TENSOR. */
const struct codec_ops *codec_of_media(enum stk_media media);

#endif
