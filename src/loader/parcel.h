/* parcel.h -- what of one filled batch goes to the device, and where it lies there.
 * Owns: its list, made once.   Threads: the ship stage's.   Errors: STK_MEMORY.
 * Not here: the copies themselves (ship_stage.h). */
#ifndef LOADER_PARCEL_H
#define LOADER_PARCEL_H

#include "loader/device_pool.h"
#include "loader/slot.h"

/* Which block of device memory. */
enum parcel_block {
    PARCEL_RESULT, /* the batch's own: the caller sees it */
    PARCEL_LANDING /* what a device half makes the result of */
};

struct passage {
    const uint8_t *from;
    uint64_t to, size; /* to: from the beginning of its block */
    enum parcel_block block;
};

/* Where a field lies on the device; STK_NOWHERE: it has no such array. */
struct parcel_field {
    uint64_t values; /* in RESULT: what the caller sees */
    uint64_t landed; /* in LANDING: what was shipped for the device half; else as `values` */
    uint64_t params; /* in LANDING */
    uint64_t home;   /* in LANDING */
    uint64_t present, lengths, offsets; /* in RESULT */
};

struct parcel {
    struct parcel_field *fields;
    struct passage *passages;
    uint32_t passage_count, passage_cap;
    uint64_t mask;            /* in RESULT */
    uint64_t result, landing; /* bytes of the two blocks */
    uint64_t host;            /* bytes of the batch's own arrays in the CPU's memory */
    uint64_t shipped;         /* bytes of all passages */
};

STK_CHECK stk_status parcel_init(struct parcel *parcel, const struct layout *layout,
                                 struct stk_error *err);
void parcel_reset(struct parcel *parcel); /* zeroed is fine */

/* Lays out what the slot's box holds. landed: by field, places whose values are in the box (0: all
 * of a resident field come from the device's own copy, and its values are not sent). */
void parcel_pack(struct parcel *parcel, const struct layout *layout, const struct slot *slot,
                 const uint32_t *landed);
/* Makes the batch of the device slot, as the caller will see it. */
void parcel_label(const struct parcel *parcel, const struct layout *layout, const struct slot *slot,
                  struct device_slot *to);

#endif
