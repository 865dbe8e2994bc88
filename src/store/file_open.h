/* file_open.h -- opens a plain file for reading, and says which version of it was opened.
 * Owns: nothing; the descriptor is the caller's.   Threads: any.   Errors: minus errno.
 * Not here: keeping files open (file_cache.h). */
#ifndef STORE_FILE_OPEN_H
#define STORE_FILE_OPEN_H

#include <stdint.h>
#include <sys/stat.h>

struct file_facts {
    uint64_t size, version; /* as struct object's */
    int linked;             /* 0: its last name is gone; it was removed or replaced */
};

/* name: relative to folder (an open one, or AT_FDCWD), or absolute. Never hangs on a pipe. Returns
 * the descriptor or minus errno: -EISDIR for a folder, -EINVAL for what is no plain file. */
int file_open(int folder, const char *name, struct file_facts *facts);
/* 0 or minus errno. */
int file_facts(int fd, struct file_facts *facts);
void file_facts_of(const struct stat *found, struct file_facts *facts);

/* Not 0: it begins with a scheme and "://". */
int file_is_uri(const char *name);

/* root + "/" + name; name alone when it is absolute, a URI or there is no root. Too long a path
 * keeps its end. Below a URI no name is absolute: a key may begin with a slash. */
#define FILE_PATH_CAP 4352
const char *file_path(const char *root, const char *name, char buf[FILE_PATH_CAP]);

#endif
