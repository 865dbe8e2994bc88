#include <string.h>

#include "base/fail.h"
#include "net/aws_chain.h"
#include "net/flat_json.h"
#include "net/program.h"

#define MAX_WORDS 64
#define TIME_LIMIT_NS 60000000000LL

/* Copies one word over itself without its quotes. Returns behind it; NULL: a quote does not end. */
static char *cut_word(char *from)
{
    char *to = from, quote = 0;
    for (; *from && (quote || !strchr(" \t\r\n", *from)); from++) {
        if (quote && *from == quote)
            quote = 0;
        else if (!quote && (*from == '"' || *from == '\''))
            quote = *from;
        else if (*from == '\\' && quote != '\'' && from[1])
            *to++ = *++from;
        else
            *to++ = *from;
    }
    if (quote)
        return NULL;
    char *next = *from ? from + 1 : from;
    *to = '\0';
    return next;
}

int aws_process_split(char *command, char **words, int cap)
{
    int count = 0;
    for (;;) {
        while (*command && strchr(" \t\r\n", *command))
            command++;
        if (!*command)
            break;
        if (count + 1 >= cap)
            return -1;
        words[count++] = command;
        command = cut_word(command);
        if (!command)
            return -1;
    }
    words[count] = NULL;
    return count;
}

static stk_status run(char **words, struct text *out, struct stk_error *err)
{
    struct program_result result = program_run(words, TIME_LIMIT_NS, out);
    if (result.end == PROGRAM_NO_MEMORY)
        return fail_memory(err, 0);
    if (result.end == PROGRAM_NOT_RUN)
        return fail_errno(err, result.number, "credential_process cannot be started: %.120s",
                          words[0]);
    if (result.end == PROGRAM_ENDED && !result.number)
        return STK_OK;
    if (result.end == PROGRAM_LATE)
        fail(err, STK_DENIED,
             "credential_process %.120s took longer than 60 s, or printed too much", words[0]);
    else
        fail(err, STK_DENIED, "credential_process %.120s ended with status %d", words[0],
             result.number);
    fail_remedy(err, "run the profile's credential_process by hand");
    return STK_DENIED;
}

stk_status aws_process_find(const char *command, const char *profile, struct secret *out,
                            struct stk_error *err)
{
    char copy[4096], *words[MAX_WORDS], version[16];
    struct text printed = {0};
    if (!secret_set(copy, sizeof(copy), command, strlen(command)) ||
        aws_process_split(copy, words, MAX_WORDS) < 1)
        return fail(err, STK_DENIED, "credential_process of profile %.100s is no command line",
                    profile);
    stk_status status = run(words, &printed, err);
    if (!status &&
        (!flat_json_get(printed.data, printed.len, "Version", version, sizeof(version)) ||
         strcmp(version, "1") ||
         !aws_secret_from_json(printed.data, printed.len, "SessionToken", out)))
        status = fail(err, STK_DENIED,
                      "credential_process of profile %.100s printed no credentials of version 1",
                      profile);
    secret_text_free(&printed);
    secret_wipe(copy, sizeof(copy)); /* a command line may hold one */
    return aws_denied(status, err);
}
