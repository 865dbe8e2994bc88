#include "net/azure_cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "net/program.h"

#define LIMIT_NS (INT64_C(20) * 1000000000)

/* Looks along PATH; folders that are not absolute are left out, as az itself is never in one. */
static int find_program(char path[PATH_MAX])
{
    const char *folders = getenv("PATH");

    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        if (folders[0] == '/' && length + 4 < PATH_MAX) {
            memcpy(path, folders, length);
            memcpy(path + length, "/az", 4);
            if (access(path, X_OK) == 0)
                return 1;
        }
        folders += length + (folders[length] == ':');
    }
    return 0;
}

stk_status azure_cli_token(const char *resource, struct text *answer, int *is_there,
                           struct stk_error *err)
{
    char path[PATH_MAX];
    char *const words[] = {path,   "account",    "get-access-token", "--output",
                           "json", "--resource", (char *)resource,   NULL};

    *is_there = find_program(path);
    if (!*is_there)
        return STK_OK;
    struct program_result result = program_run(words, LIMIT_NS, answer);
    if (result.end == PROGRAM_NO_MEMORY)
        return fail_memory(err, 0);
    if (result.end == PROGRAM_NOT_RUN)
        return fail_errno(err, result.number, "cannot run az");
    if (result.end == PROGRAM_ENDED && !result.number && answer->len)
        return STK_OK;
    fail(err, STK_DENIED,
         result.end == PROGRAM_LATE ? "az did not give a token in time"
                                    : "az is there and gave no token");
    fail_remedy(err, "run 'az login'; or set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or "
                     "STOKER_AZURE_ANONYMOUS=1 for public data");
    return STK_DENIED;
}
