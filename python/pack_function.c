#include "pack_function.h"

#include "context_type.h"
#include "convert.h"
#include "table_source.h"

static const char *const scaler_kinds[] = {"standard", "minmax", "robust", "none"};

/* What the arguments said, and the lists that the options point to. */
struct series_job {
    PyObject *context, *tables;
    uint64_t rows;
    int own_names;
    struct stk_series_options options;
    const char *missing, *scaler, *scale;
    const char **features, **labels, **statics;
};

static int series_parse(struct series_job *job, struct core_state *state, PyObject *args,
                        PyObject *named)
{
    static char *names[] = {"context", "tables",   "rows",   "own_names", "out",
                            "entity",  "time",     "dtype",  "missing",   "scaler",
                            "scale",   "fit_on",   "split",  "window",    "horizon",
                            "stride",  "gap",      "memory", "threads",   "append",
                            "force",   "features", "labels", "statics",   NULL};
    struct stk_series_options *options = &job->options;
    PyObject *features = Py_None, *labels = Py_None, *statics = Py_None;
    if (!PyArg_ParseTupleAndKeywords(
            args, named, "O!OO&py|$zzzssszzO&O&O&O&O&O&ppOOO:pack_series", names, state->context,
            &job->context, &job->tables, convert_u64, &job->rows, &job->own_names, &options->out,
            &options->entity, &options->time, &options->dtype, &job->missing, &job->scaler,
            &job->scale, &options->fit_on, &options->split, convert_u64, &options->window,
            convert_u64, &options->horizon, convert_u64, &options->stride, convert_u64,
            &options->gap, convert_u64, &options->memory, convert_u32, &options->threads,
            &options->append, &options->force, &features, &labels, &statics))
        return 0;
    if (!convert_strings(features, &job->features, &options->feature_count) ||
        !convert_strings(labels, &job->labels, &options->label_count) ||
        !convert_strings(statics, &job->statics, &options->static_count))
        return 0;
    options->features = job->features;
    options->labels = job->labels;
    options->statics = job->statics;
    return 1;
}

static int series_choices(struct series_job *job)
{
    static const char *const policies[] = {"error", "drop", "ffill", "mean", "zero"};
    static const char *const scales[] = {"stored", "late"};
    int missing = convert_choice("nan", job->missing, policies, 5);
    int scaler = missing < 0 ? -1 : convert_choice("scaler", job->scaler, scaler_kinds, 4);
    int scale = scaler < 0 ? -1 : convert_choice("scale", job->scale, scales, 2);
    if (scale < 0)
        return 0;
    job->options.missing = (enum stk_missing)missing;
    job->options.scaler = (enum stk_scaler_kind)scaler;
    job->options.scale = (enum stk_scale)scale;
    return 1;
}

static PyObject *series_result(const struct stk_series_result *result)
{
    return Py_BuildValue(
        "{sKsKsKsKsKsKsO}", "rows", (unsigned long long)result->rows, "entities",
        (unsigned long long)result->entities, "added_rows", (unsigned long long)result->added_rows,
        "dropped_rows", (unsigned long long)result->dropped_rows, "missing",
        (unsigned long long)result->missing, "bytes", (unsigned long long)result->bytes, "sorted",
        result->sorted ? Py_True : Py_False);
}

static PyObject *series_run(struct series_job *job)
{
    struct table_failure failure = {0};
    struct stk_tables tables;
    if (!table_source_open(job->tables, &failure, &tables))
        return NULL;
    tables.rows = job->rows;
    tables.own_names = job->own_names;
    struct stk_series_result result;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_pack_series(context_of(job->context), &tables, &job->options, &result, &err);
    Py_END_ALLOW_THREADS;
    if (!status) {
        table_failure_clear(&failure);
        return series_result(&result);
    }
    if (!table_failure_raise(&failure))
        return context_raise(job->context, &err);
    context_forget(job->context);
    return NULL;
}

PyObject *pack_function_series(PyObject *module, PyObject *args, PyObject *named)
{
    struct series_job job = {.missing = "error", .scaler = "standard", .scale = "stored"};
    PyObject *result = NULL;
    if (series_parse(&job, PyModule_GetState(module), args, named) && series_choices(&job))
        result = series_run(&job);
    PyMem_Free(job.features);
    PyMem_Free(job.labels);
    PyMem_Free(job.statics);
    return result;
}

PyObject *pack_function_rescale(PyObject *module, PyObject *args)
{
    struct core_state *state = PyModule_GetState(module);
    PyObject *context;
    const char *folder, *scaler, *fit_on;
    if (!PyArg_ParseTuple(args, "O!ysz:rescale_series", state->context, &context, &folder, &scaler,
                          &fit_on))
        return NULL;
    int kind = convert_choice("scaler", scaler, scaler_kinds, 4);
    if (kind < 0)
        return NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status =
        stk_series_rescale(context_of(context), folder, (enum stk_scaler_kind)kind, fit_on, &err);
    Py_END_ALLOW_THREADS;
    if (status)
        return context_raise(context, &err);
    Py_RETURN_NONE;
}
