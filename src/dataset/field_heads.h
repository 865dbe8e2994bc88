/* field_heads.h -- what the first values of fields are, from the index instead of the data: a round
 * trip less for each field of data on the network.
 * Owns: nothing.   Threads: any.   Errors: none; what cannot be kept is looked at again.
 * Not here: looking (field_probe.c), the file (index/index_heads.h). */
#ifndef DATASET_FIELD_HEADS_H
#define DATASET_FIELD_HEADS_H

#include "dataset/dataset_state.h"

/* Fills the promise of a TENSOR field from the index; 0: the index does not know it. */
int field_head_load(const struct dataset_source *source, struct dataset_field *field);

/* Keeps what was found out about the fields in the index's file, where it is not there yet. */
void field_heads_keep(const struct stk_dataset *dataset);

#endif
