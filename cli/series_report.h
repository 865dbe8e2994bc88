/* series_report.h -- what a series is made of and how it was cut, in words and as JSON.
 * Owns: nothing.   Threads: any.   Errors: those of standard output.   Not here: its samples
 * (cmd_ls.c). */
#ifndef CLI_SERIES_REPORT_H
#define CLI_SERIES_REPORT_H

#include "stoker/dataset.h"
#include "json_out.h"

/* The dataset is a series: stk_dataset_series is not NULL. */
void series_report_text(const struct stk_dataset *dataset);
/* The member "series" of the object that is being written. */
void series_report_json(const struct stk_dataset *dataset, struct json_out *json);

#endif
