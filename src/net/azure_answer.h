/* azure_answer.h -- reads what Azure's Blob service answers: lists of blobs and blocks, errors.
 * Owns: nothing.   Threads: any.   Errors: STK_CORRUPT for XML that is none.
 * Not here: requests (azure_site.c). */
#ifndef NET_AZURE_ANSWER_H
#define NET_AZURE_ANSWER_H

#include "net/site.h"

/* A page of List Blobs. */
STK_CHECK stk_status azure_read_blobs(const char *body, size_t length, struct site_page *page,
                                      struct stk_error *err);
/* Get Block List: blocks whose ids are not of azure_block_id are left out. */
STK_CHECK stk_status azure_read_blocks(const char *body, size_t length, struct site_page *page,
                                       struct stk_error *err);
void azure_read_trouble(const struct web_answer *answer, struct site_trouble *trouble);

/* A block's id: its number and the MD5 of its bytes (32 digits), in base64. All are of one length,
 * as Azure demands, so that blocks of a run that was broken off fit to those of the next. */
#define AZURE_BLOCK_ID_CAP 64
void azure_block_id(struct text *to, uint32_t number, const char *md5);
/* 0: it is none of ours. */
int azure_block_id_read(const char *id, uint32_t *number, char md5[33]);

#endif
