/* first_batch.c -- opens a dataset and prints its first shuffled batch.
 *
 *   cc first_batch.c $(pkg-config --cflags --libs stoker) -o first_batch
 *   ./first_batch 'shards/shard-*.tar'
 */
#include <inttypes.h>
#include <stdio.h>

#include <stoker/stoker.h>

static void print_field(const struct stk_batch_field *field)
{
    const struct stk_tensor *tensor = &field->tensor;
    printf("  %-8s", field->field->name);
    if (field->bytes) { /* text, json, bytes: one run a sample */
        printf(" %zu bytes in the first sample\n", field->bytes[0].len);
        return;
    }
    printf(" %s (", stk_dtype_name(tensor->dtype));
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        printf("%s%" PRId64, axis ? ", " : "", tensor->shape[axis]);
    printf(")\n");
}

static void print_batch(const struct stk_batch *batch)
{
    printf("samples");
    for (uint32_t i = 0; i < batch->real; i++)
        printf(" %" PRIu64, batch->samples[i]);
    printf("\n");
    for (uint32_t i = 0; i < batch->field_count; i++)
        print_field(&batch->fields[i]);
}

int main(int argc, char **argv)
{
    const struct stk_loader_options options = {.batch_size = 4, .shuffle = 1, .seed = 0};
    struct stk_context *context = NULL;
    struct stk_dataset *dataset = NULL;
    struct stk_loader *loader = NULL;
    struct stk_batch *batch = NULL;
    struct stk_error err;
    stk_status status;

    if (argc < 2) {
        fprintf(stderr, "usage: first_batch SOURCE...\n");
        return 2;
    }
    status = stk_context_new(&context, NULL, &err);
    if (!status)
        status = stk_dataset_open(context, &dataset, (const char *const *)argv + 1,
                                  (uint32_t)argc - 1, NULL, &err);
    if (!status)
        status = stk_loader_open(context, dataset, &loader, &options, &err);
    if (!status)
        status = stk_loader_next(loader, &batch, &err);
    if (!status) {
        print_batch(batch);
    } else {
        char words[1400];
        stk_error_format(&err, words, sizeof(words));
        fprintf(stderr, "first_batch: %s\n", words);
    }
    stk_batch_release(batch); /* all of these accept NULL */
    stk_loader_close(loader);
    stk_dataset_close(dataset);
    stk_context_free(context);
    return status ? 1 : 0;
}
