/* folder_format.h -- the folder's build, for formats whose files may lie in one (npy).
 * Owns, Threads, Errors: see format.h.   Not here: the rule (folder_format.c). */
#ifndef FORMAT_FOLDER_FORMAT_H
#define FORMAT_FOLDER_FORMAT_H

#include "format/format.h"

STK_CHECK stk_status folder_build(const struct format_input *input, struct index_builder *builder,
                                  struct stk_error *err);

#endif
