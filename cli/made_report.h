/* made_report.h -- what a command prints once data were written: counts, bytes and where they are,
 * as one line of words or of JSON.
 * Owns: nothing.   Threads: one.   Errors: those of standard output.   Not here: packing
 * (stoker/pack.h, stoker/series.h). */
#ifndef CLI_MADE_REPORT_H
#define CLI_MADE_REPORT_H

#include "stoker/pack.h"
#include "stoker/series.h"

enum made_style { MADE_WORDS, MADE_JSON };

void made_report_shards(enum made_style style, const char *out,
                        const struct stk_pack_result *result);
void made_report_tables(enum made_style style, const char *out,
                        const struct stk_gen_series_result *result);

#endif
