// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "meter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The C library's functions, under the names that remain available when malloc is replaced. `free` is not replaced: the
// memory comes from the C library.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// The other TLS models may allocate at the first access.
static _Thread_local meter_tally tally __attribute__((tls_model("initial-exec")));
static _Thread_local int paused __attribute__((tls_model("initial-exec")));

static void count(size_t bytes) {
    if (paused) return;
    tally.allocations += 1;
    tally.bytes += bytes;
}

void *malloc(size_t size) {
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t items, size_t size) {
    count(items * size);
    return __libc_calloc(items, size);
}

void *realloc(void *memory, size_t size) {
    count(size);
    return __libc_realloc(memory, size);
}

void *reallocarray(void *memory, size_t items, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(items, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *made = memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *memory = made;
    return 0;
}

meter_tally meter_allocated(void) { return tally; }

void meter_pause(void) { paused = 1; }

void meter_resume(void) { paused = 0; }

uint64_t meter_processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int meter_open_instructions(void) {
    struct perf_event_attr wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

uint64_t meter_instructions(int descriptor) {
    uint64_t instructions = 0;
    return read(descriptor, &instructions, sizeof instructions) == sizeof instructions ? instructions : 0;
}

void meter_keep(const void *value) { __asm__ volatile("" : : "g"(value) : "memory"); }
