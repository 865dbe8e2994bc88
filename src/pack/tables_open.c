/* Tables of files: who can read them stands behind a hook. */
#include "stoker/series.h"

#include "base/context.h"
#include "base/fail.h"
#include "format/series_meta.h"

stk_status stk_tables_open(struct stk_context *context, const char *const *sources,
                           uint32_t source_count, const struct stk_tables_options *options,
                           struct stk_tables *tables, struct stk_error *err)
{
    const struct stk_hooks *hooks = context ? &context->hooks : NULL;
    *tables = (struct stk_tables){0};
    if (source_count == 0)
        return fail(err, STK_USAGE, "there is no table to read");
    if (!hooks || !hooks->open_tables) {
        fail(err, STK_UNSUPPORTED,
             "this command reads no tables: Parquet, CSV, ORC and Arrow files are read by pyarrow");
        fail_at(err, sources[0], STK_NOWHERE);
        fail_remedy(err, "pip install 'stoker[arrow]', then run its stoker command or python -m "
                         "stoker");
        return STK_UNSUPPORTED;
    }
    struct stk_tables_options asked = *options;
    struct series_meta meta = {0};
    /* A series that cannot be read is packing's to refuse. */
    if (!asked.entity && asked.append_to && !series_meta_load(&meta, asked.append_to, NULL))
        asked.entity = meta.entity_column;
    stk_status status = hooks->open_tables(hooks->user, sources, source_count, &asked, tables, err);
    if (status)
        *tables = (struct stk_tables){0};
    series_meta_reset(&meta);
    return status;
}
