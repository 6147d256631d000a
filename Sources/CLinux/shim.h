// SPDX-License-Identifier: Apache-2.0

// Functions that <fcntl.h>, <spawn.h>, <stdio.h> and <unistd.h> declare only under _GNU_SOURCE, and those of
// <malloc.h> and <sys/xattr.h>, which the Glibc module leaves out, as static inline functions named csn_<the C name>.

#ifndef COUNTERSIGN_CLINUX_SHIM_H
#define COUNTERSIGN_CLINUX_SHIM_H

#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

extern int fallocate(int file, int mode, off_t offset, off_t size);
extern int mkostemp(char *name, int flags);
extern int renameat2(int from, const char *name, int to, const char *new_name, unsigned int flags);
extern int dup3(int from, int to, int flags);
extern int pipe2(int ends[2], int flags);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
extern ssize_t splice(int from, long *from_offset, int to, long *to_offset, size_t count, unsigned int flags);

// Reserves space for a file without changing its size: FALLOC_FL_KEEP_SIZE.
static inline int csn_reserve(int file, off_t offset, off_t size) { return fallocate(file, 1, offset, size); }

// A pipe that is non-blocking and closed by exec.
static inline int csn_pipe2(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); }

// A file without a name in a folder, for reading and writing by this process alone: O_TMPFILE | O_EXCL.
static inline int csn_open_unnamed(const char *folder) {
    return open(folder, 020000000 | O_DIRECTORY | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
}

// The same with a name, which replaces the XXXXXX at the end of `name`.
static inline int csn_open_temporary(char *name) { return mkostemp(name, O_CLOEXEC); }

// Closes `first` and all higher descriptors in the child.
static inline int csn_close_from(posix_spawn_file_actions_t *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

// Makes `to` a copy of `from` that is closed by exec, in one step. Returns -1 if that is not possible.
static inline int csn_dup3_cloexec(int from, int to) { return dup3(from, to, O_CLOEXEC); }

// Does not block: SPLICE_F_MOVE | SPLICE_F_NONBLOCK.
static inline ssize_t csn_splice(int from, int to, size_t count) { return splice(from, NULL, to, NULL, count, 1 | 2); }

// F_SETPIPE_SZ: returns the capacity in bytes, or -1.
static inline int csn_set_pipe_size(int pipe, int size) { return fcntl(pipe, 1031, size); }

// Moves an entry to a name that is free: RENAME_NOREPLACE.
static inline int csn_rename_new(int from, const char *name, int to, const char *new_name) {
    return renameat2(from, name, to, new_name, 1);
}

// Exchanges two entries in one step: RENAME_EXCHANGE.
static inline int csn_rename_exchange(int from, const char *name, int to, const char *other) {
    return renameat2(from, name, to, other, 2);
}

// The size in bytes of an extended attribute, or -1. Copies nothing if its value is longer than `size`.
static inline ssize_t csn_getxattr(const char *path, const char *name, void *value, size_t size) {
    return getxattr(path, name, value, size);
}

// M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, both in bytes: the heap is trimmed if more is unused at its end, and larger
// allocations are mapped.
static inline void csn_mallopt(int trim, int mmap) {
    mallopt(M_TRIM_THRESHOLD, trim);
    mallopt(M_MMAP_THRESHOLD, mmap);
}

#endif
