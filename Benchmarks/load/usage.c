// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "usage.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { deepest = 8 };

// Reads at most `size` - 1 bytes of the file into `text`; returns 0 if it cannot.
static int read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, size - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    return 1;
}

static long long own_ticks(int pid) {
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_text(path, text, sizeof text)) return 0;
    const char *afterName = strrchr(text, ')');
    long long user, system, childUser, childSystem;
    const char *fields = " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld";
    if (!afterName || sscanf(afterName + 1, fields, &user, &system, &childUser, &childSystem) != 4) return 0;
    return user + system + childUser + childSystem;
}

static long long tree_ticks(int pid, int depth) {
    char path[320], text[4096];
    long long ticks = own_ticks(pid);
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = depth < deepest ? opendir(path) : NULL;
    if (!threads) return ticks;
    for (struct dirent *thread; (thread = readdir(threads));) {
        if (!isdigit((unsigned char)thread->d_name[0])) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", pid, thread->d_name);
        if (!read_text(path, text, sizeof text)) continue;
        char *end;
        for (char *next = text;; next = end) {
            long child = strtol(next, &end, 10);
            if (end == next) break;
            ticks += tree_ticks((int)child, depth + 1);
        }
    }
    closedir(threads);
    return ticks;
}

double process_tree_seconds(int pid) {
    return pid > 0 ? (double)tree_ticks(pid, 0) / (double)sysconf(_SC_CLK_TCK) : 0;
}
