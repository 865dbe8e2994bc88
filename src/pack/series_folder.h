/* series_folder.h -- the folder of a series on its way: files are made in .NAME.part beside it and
 * take its place all at once.
 * Owns: the hidden folder, locked, until series_folder_close; it is then gone.   Threads: one.
 * Errors: STK_USAGE for a folder that must not be replaced; STK_BUSY; STK_IO.   Not here: what the
 * files hold.
 *
 * A crash at any point leaves the old series, or the new one, or none where there was none:
 * - Commit syncs every file and the hidden folder, exchanges the two names (one system call), and
 *   syncs the parent. Before the exchange the old folder was not touched; after it the new one is
 *   whole. What lies in the hidden folder then is removed, by the next writer if need be.
 * - An append makes the array longer in place. First append.json, synced, says in the old folder
 * how many rows there were; then rows are written behind them, through links in the hidden folder;
 *   metadata, hashes and the rest are new files there; then commit. Before the exchange the old
 *   metadata.json names only rows of which no byte was touched, and append.json says why the array
 *   is longer: the next append cuts it. After it all is new, and there is no append.json.
 * File systems that cannot exchange names get two renames: between them a crash leaves the old
 * series under .NAME.old, and the next series_folder_open puts it back. */
#ifndef PACK_SERIES_FOLDER_H
#define PACK_SERIES_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

#define SERIES_JOBLIB "scaler.joblib" /* made by the Python package from scaler.json */

enum series_folder_mode {
    SERIES_FOLDER_NEW,     /* nothing may be there but an empty folder */
    SERIES_FOLDER_REPLACE, /* a series may be there, and nothing else */
    SERIES_FOLDER_CHANGE   /* a series must be there */
};

struct series_folder;

STK_CHECK stk_status series_folder_open(struct series_folder **out, const char *path,
                                        enum series_folder_mode mode, struct stk_error *err);
const char *series_folder_path(const struct series_folder *folder);   /* of the series */
const char *series_folder_hidden(const struct series_folder *folder); /* for messages */
int series_folder_fd(const struct series_folder *folder);             /* of the hidden one */

/* A whole file into the hidden folder. */
STK_CHECK stk_status series_folder_write(const struct series_folder *folder, const char *name,
                                         const void *data, size_t len, struct stk_error *err);
/* CHANGE: a file of the series is replaced, synced, at once (write beside, rename). */
STK_CHECK stk_status series_folder_rewrite(const struct series_folder *folder, const char *name,
                                           const void *data, size_t len, struct stk_error *err);
/* CHANGE: removes a file of the series, if it is there. */
void series_folder_remove(const struct series_folder *folder, const char *name);
/* CHANGE: an open file of the series; -1 with words in *err when there is none. */
int series_folder_open_file(const struct series_folder *folder, const char *name, int flags,
                            struct stk_error *err);

/* CHANGE: links `name` into the hidden folder. STK_UNSUPPORTED: this file system has no links. */
STK_CHECK stk_status series_folder_link(const struct series_folder *folder, const char *name,
                                        struct stk_error *err);
/* CHANGE: every file that the series has and the hidden folder has not, but the journal, goes
 * along. STK_USAGE: there is a folder among them. */
STK_CHECK stk_status series_folder_inherit(const struct series_folder *folder,
                                           struct stk_error *err);

/* The hidden folder takes the place of the series. After STK_OK only close is left. */
STK_CHECK stk_status series_folder_commit(struct series_folder *folder, struct stk_error *err);
/* Not 0 from the exchange on: also when commit failed after it, and must not be undone. */
int series_folder_is_committed(const struct series_folder *folder);
void series_folder_close(struct series_folder *folder); /* NULL is fine */

#endif
