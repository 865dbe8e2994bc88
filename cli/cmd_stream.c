/* `stoker stream`: runs the loader alone. */
#include <stdio.h>
#include <time.h>

#include "exit_status.h"
#include "interrupt.h"
#include "message.h"
#include "source.h"
#include "state_file.h"
#include "stream.h"

static int check_usage(const struct command *command, const struct stream_arguments *arguments)
{
    if (!arguments->batch_size == !arguments->global_batch_size)
        return message_usage(command->name,
                             "one of --batch-size and --global-batch-size is needed");
    if (arguments->resume && arguments->epoch)
        return message_usage(command->name, "--resume says the epoch: --epoch cannot be given too");
    if (arguments->rank >= arguments->world_size)
        return message_usage(command->name, "--rank must be below --world-size");
    return device_options_check(command->name, &arguments->device);
}

static stk_status open_loader(struct stk_context *context, struct stream *stream,
                              struct stk_error *err)
{
    const struct stream_arguments *arguments = stream->arguments;
    struct stk_loader_options options = {
        .batch_size = arguments->batch_size,
        .global_batch_size = arguments->global_batch_size,
        .shuffle = arguments->shuffle,
        .order = (enum stk_order)arguments->shuffle_order,
        .reach = arguments->reach,
        .seed = arguments->seed,
        .rank = arguments->rank,
        .world_size = arguments->world_size,
        .last = (enum stk_last)arguments->last,
        .bad = (enum stk_bad_policy)arguments->bad,
        .ragged = (enum stk_ragged)arguments->ragged,
        .memory = arguments->memory,
        .threads = arguments->threads,
        .depth = arguments->depth,
        .io = (enum stk_io)arguments->io,
        .trace = arguments->trace,
        .transforms = stream->chains,
        .transform_count = arguments->transforms.each.count,
        .batch_transforms = arguments->transforms.batch,
    };

    device_options_put(&arguments->device, &options);
    return stk_loader_open(context, stream->dataset, &stream->loader, &options, err);
}

/* Puts the loader where the run begins or goes on. */
static int go_to_start(struct stream *stream)
{
    const struct stream_arguments *arguments = stream->arguments;
    struct state_file state;
    struct stk_error err;

    stk_digest_init(&stream->digest);
    if (arguments->resume) {
        int status = state_file_read(arguments->resume, &state);
        if (status)
            return status;
        stream->first_epoch = state.first_epoch;
        stream->has_run_digest = state.has_digest;
        stream->run_digest = state.digest;
        return stk_loader_load(stream->loader, state.text, &err) ? message_error(&err) : 0;
    }
    stream->first_epoch = arguments->epoch;
    if (arguments->epoch && stk_loader_seek(stream->loader, arguments->epoch, 0, &err))
        return message_error(&err);
    return 0;
}

static int save_state(const struct stream *stream)
{
    const struct stream_arguments *arguments = stream->arguments;
    struct state_file state = {.first_epoch = stream->first_epoch};
    struct stk_error err;
    size_t len;

    if (stk_loader_save(stream->loader, state.text, sizeof(state.text), &len, &err))
        return message_error(&err);
    if (!arguments->order && !arguments->no_digest) {
        state.has_digest = !arguments->resume || stream->has_run_digest;
        state.digest = stream->has_run_digest ? stream->run_digest : stream->digest;
    }
    return state_file_write(arguments->save_state, &state);
}

static int stream_run(struct stream *stream)
{
    const struct stream_arguments *arguments = stream->arguments;
    int status = go_to_start(stream);

    if (status)
        return status;
    stk_loader_end_at(stream->loader, stream->first_epoch + arguments->epochs);
    status = arguments->order ? stream_order(stream) : stream_batches(stream);
    /* A run that failed or was stopped can be resumed too. */
    int saved = arguments->save_state ? save_state(stream) : EXIT_DONE;
    int listed =
        arguments->quarantine ? stream_quarantine(stream, arguments->quarantine) : EXIT_DONE;
    if (!status && !arguments->order)
        stream_report(stream);
    return status ? status : saved ? saved : listed;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct stream_arguments arguments = {.epochs = 1, .world_size = 1, .stop_after = UINT64_MAX};
    struct stream stream = {.arguments = &arguments};
    struct timespec from, to;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    status = check_usage(command, &arguments);
    if (!status)
        status = transforms_read(command->name, context, &arguments.transforms, stream.chains);
    if (status)
        return status;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (source_open(context, &arguments.base, arguments.base.words, arguments.base.word_count,
                    &stream.dataset, &err))
        return message_error(&err);
    if (open_loader(context, &stream, &err)) {
        status = message_error(&err);
    } else {
        clock_gettime(CLOCK_MONOTONIC, &to);
        stream.open_seconds =
            (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        status = stream_run(&stream);
    }
    stk_loader_close(stream.loader);
    stk_dataset_close(stream.dataset);
    return status;
}

const struct command cmd_stream = {
    .name = "stream",
    .summary =
        "Runs the loader alone: how fast it is, what it waits for, how much memory it takes,\n"
        "and a digest of all that was delivered.",
    .usage = "SRC... --batch-size N [options]",
    .examples = "  stoker stream shards/ --batch-size 32 --shuffle --json\n"
                "  stoker stream shards/ --batch-size 32 --shuffle --rank 1 --world-size 4\n"
                "  stoker stream shards/ --batch-size 32 --stop-after 10 --save-state here\n"
                "  stoker stream shards/ --batch-size 32 --resume here\n"
                "  stoker stream shards/ --batch-size 4 --shuffle --order\n"
                "  stoker stream shards/ --batch-size 64 --shuffle --transform \\\n"
                "    'jpg: RandomResizedCrop(224) | RandomHorizontalFlip | Normalize(imagenet)'\n"
                "  stoker stream shards/ --batch-size 32 --shuffle --device cuda --resident auto\n",
    .options = stream_options,
    .opens = OPENS_WINDOWS,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
