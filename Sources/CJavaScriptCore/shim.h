// SPDX-License-Identifier: Apache-2.0

// Loads JavaScriptCore of WebKitGTK, a JavaScript engine, and runs scripts in it, in one thread and without a compiler
// for machine code. Its few declarations are repeated here, so that no header is needed to build.

#ifndef COUNTERSIGN_CJAVASCRIPTCORE_SHIM_H
#define COUNTERSIGN_CJAVASCRIPTCORE_SHIM_H

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// The exit status when the engine has no memory left, which it can report at few places only.
#define CSN_JSC_FATAL 13
// The exit status after any other fault of the engine.
#define CSN_JSC_FAULT 15

enum csn_jsc_outcome {
    CSN_JSC_DONE = 0,
    // The script does not match the grammar.
    CSN_JSC_SYNTAX = 1,
    // The script threw something.
    CSN_JSC_THROWN = 2,
};

typedef struct {
    void *context;
    // The prelude's function.
    void *answer;
    // The result of the last call or the text of its error, cut to `text`, and the error's line; 0 if unknown.
    int line;
    size_t text_count;
    char text[16384];
} csn_jsc_engine;

// A function of the library; NULL if it cannot be loaded.
static inline void *csn_jsc_function(const char *name) {
    static void *loaded;
    if (loaded == NULL) loaded = dlopen("libjavascriptcoregtk-6.0.so.1", RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL) loaded = dlopen("libjavascriptcoregtk-4.1.so.0", RTLD_NOW | RTLD_LOCAL);
    return loaded == NULL ? NULL : dlsym(loaded, name);
}

#define CSN_JSC(type, function, ...) ((type(*)(__VA_ARGS__))csn_jsc_function(#function))

// MARK: Start

// What the library reads when it is loaded and when it starts: no machine code, no threads, no timers, and the C
// library's malloc, which obeys the limit of the address space.
static inline void csn_jsc_set_options(void) {
    setenv("Malloc", "1", 1);
    setenv("JSC_useJIT", "0", 1);
    setenv("JSC_useWasm", "0", 1);
    setenv("JSC_useSharedArrayBuffer", "0", 1);
    setenv("JSC_useConcurrentJIT", "0", 1);
    setenv("JSC_useConcurrentGC", "0", 1);
    setenv("JSC_numberOfGCMarkers", "1", 1);
    setenv("JSC_sweepSynchronously", "1", 1);
}

// Whether the library is installed. Loads it.
static inline int csn_jsc_is_installed(void) {
    csn_jsc_set_options();
    return csn_jsc_function("JSContextGroupCreate") != NULL;
}

// The threads of the process; 0 if they cannot be counted.
static inline int csn_jsc_count_threads(void) {
    DIR *folder = opendir("/proc/self/task");
    if (folder == NULL) return 0;
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') count++;
    }
    closedir(folder);
    return count;
}

// The start and the end of the part of the address space that the engine may not use.
static inline uintptr_t *csn_jsc_closed(void) {
    static uintptr_t places[2];
    return places;
}

// The engine reserves 4 GiB for the shapes of objects when it starts, or half of that and so on if it gets no more, at
// a multiple of 4 GiB. No later limit of the address space concerns them. Leaves it the first `bytes`. Returns -1 if
// that is not possible. Smaller parts, such as the 128 MiB for the lists of an allocator that is not in use, stay.
static inline int csn_jsc_close_reserve(size_t bytes) {
    const uintptr_t alignment = 1UL << 32;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) return -1;
    int result = 0;
    char line[512];
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start = 0;
        unsigned long end = 0;
        char rights[5] = "";
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3) continue;
        if (rights[1] != 'w' || end - start < (1UL << 28)) continue;
        // The kernel shows what is next to it as one part with it.
        uintptr_t base = (start + alignment - 1) & ~(alignment - 1);
        uintptr_t size = alignment;
        while (base + size > end && size > bytes) size /= 2;
        if (size <= bytes || csn_jsc_closed()[1] != 0 ||
            mprotect((void *)(base + bytes), size - bytes, PROT_NONE) != 0) {
            result = -1;
            break;
        }
        csn_jsc_closed()[0] = base + bytes;
        csn_jsc_closed()[1] = base + size;
    }
    fclose(maps);
    return result;
}

// An access to what is closed, to the beginning of the address space, or to the address at which the engine gives up.
static inline void csn_jsc_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    uintptr_t place = (uintptr_t)info->si_addr;
    int is_exhausted = signal != SIGSEGV || place < (1UL << 20) || place == 0xBBADBEEF ||
                       (place >= csn_jsc_closed()[0] && place < csn_jsc_closed()[1]);
    _exit(is_exhausted ? CSN_JSC_FATAL : CSN_JSC_FAULT);
}

// SIGSYS is how the confinement reports abort(), and SIGTRAP and SIGILL how the engine ends itself.
static inline int csn_jsc_prepare_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = csn_jsc_fault;
    action.sa_flags = SA_SIGINFO;
    const int signals[] = {SIGSEGV, SIGSYS, SIGTRAP, SIGILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], &action, NULL) != 0) return -1;
    }
    return 0;
}

// MARK: Engines

// An engine of the group; NULL if there is no memory.
static inline csn_jsc_engine *csn_jsc_open(void *group) {
    csn_jsc_engine *engine = (csn_jsc_engine *)calloc(1, sizeof *engine);
    if (engine == NULL) return NULL;
    engine->context = CSN_JSC(void *, JSGlobalContextCreateInGroup, void *, void *)(group, NULL);
    if (engine->context == NULL) {
        free(engine);
        return NULL;
    }
    return engine;
}

static inline void csn_jsc_close(csn_jsc_engine *engine) {
    CSN_JSC(void, JSGlobalContextRelease, void *)(engine->context);
    free(engine);
}

// MARK: Calls

static inline void csn_jsc_begin(csn_jsc_engine *engine) {
    engine->line = 0;
    engine->text_count = 0;
}

// Converts a value into the engine's text; it stays empty if the value has none.
static inline void csn_jsc_keep(csn_jsc_engine *engine, void *value) {
    void *exception = NULL;
    void *string =
        CSN_JSC(void *, JSValueToStringCopy, void *, void *, void **)(engine->context, value, &exception);
    if (string == NULL) return;
    size_t count =
        CSN_JSC(size_t, JSStringGetUTF8CString, void *, char *, size_t)(string, engine->text, sizeof engine->text);
    engine->text_count = count > 0 ? count - 1 : 0;
    CSN_JSC(void, JSStringRelease, void *)(string);
}

// The line of an error; 0 if it has none.
static inline int csn_jsc_line(csn_jsc_engine *engine, void *error) {
    void *name = CSN_JSC(void *, JSStringCreateWithUTF8CString, const char *)("line");
    void *exception = NULL;
    void *value = CSN_JSC(void *, JSObjectGetProperty, void *, void *, void *, void **)(
        engine->context, error, name, &exception);
    CSN_JSC(void, JSStringRelease, void *)(name);
    if (exception != NULL || !CSN_JSC(_Bool, JSValueIsNumber, void *, void *)(engine->context, value)) return 0;
    double line = CSN_JSC(double, JSValueToNumber, void *, void *, void **)(engine->context, value, &exception);
    return line >= 1 && line < 1e9 ? (int)line : 0;
}

// Keeps the text of what was thrown, and its line.
static inline void csn_jsc_keep_error(csn_jsc_engine *engine, void *error) {
    csn_jsc_keep(engine, error);
    if (!CSN_JSC(_Bool, JSValueIsObject, void *, void *)(engine->context, error)) return;
    engine->line = csn_jsc_line(engine, error);
}

// Runs a program, which is UTF-8 text that ends with a NUL. `result` becomes its value.
static inline enum csn_jsc_outcome csn_jsc_evaluate(csn_jsc_engine *engine, const char *source, void **result) {
    csn_jsc_begin(engine);
    void *script = CSN_JSC(void *, JSStringCreateWithUTF8CString, const char *)(source);
    void *exception = NULL;
    enum csn_jsc_outcome outcome = CSN_JSC_DONE;
    *result = CSN_JSC(void *, JSEvaluateScript, void *, void *, void *, void *, int, void **)(
        engine->context, script, NULL, NULL, 1, &exception);
    if (exception != NULL) {
        void *fault = NULL;
        // A script may throw an error of the grammar itself.
        outcome = CSN_JSC(_Bool, JSCheckScriptSyntax, void *, void *, void *, int, void **)(
                      engine->context, script, NULL, 1, &fault)
                      ? CSN_JSC_THROWN
                      : CSN_JSC_SYNTAX;
        csn_jsc_keep_error(engine, outcome == CSN_JSC_SYNTAX && fault != NULL ? fault : exception);
    }
    CSN_JSC(void, JSStringRelease, void *)(script);
    return outcome;
}

// Runs the program whose result is the function for csn_jsc_call.
static inline enum csn_jsc_outcome csn_jsc_prepare(csn_jsc_engine *engine, const char *source) {
    enum csn_jsc_outcome outcome = csn_jsc_evaluate(engine, source, &engine->answer);
    if (outcome == CSN_JSC_DONE) CSN_JSC(void, JSValueProtect, void *, void *)(engine->context, engine->answer);
    return outcome;
}

// Runs a program.
static inline enum csn_jsc_outcome csn_jsc_load(csn_jsc_engine *engine, const char *source) {
    void *result = NULL;
    return csn_jsc_evaluate(engine, source, &result);
}

// Calls the prelude's function with a string.
static inline enum csn_jsc_outcome csn_jsc_call(csn_jsc_engine *engine, const char *text) {
    csn_jsc_begin(engine);
    void *string = CSN_JSC(void *, JSStringCreateWithUTF8CString, const char *)(text);
    void *argument = CSN_JSC(void *, JSValueMakeString, void *, void *)(engine->context, string);
    CSN_JSC(void, JSStringRelease, void *)(string);
    void *exception = NULL;
    void *result = CSN_JSC(void *, JSObjectCallAsFunction, void *, void *, void *, size_t, void **, void **)(
        engine->context, engine->answer, NULL, 1, &argument, &exception);
    if (exception != NULL) {
        csn_jsc_keep_error(engine, exception);
        return CSN_JSC_THROWN;
    }
    csn_jsc_keep(engine, result);
    return CSN_JSC_DONE;
}

// A copy of the text, which Swift imports as a tuple.
static inline void csn_jsc_copy_text(const csn_jsc_engine *engine, char *place) {
    memcpy(place, engine->text, engine->text_count);
}

// MARK: The group

// The library takes UTC for a zone that is a file. If it is the system's own, its link says the name.
static inline void csn_jsc_name_zone(void) {
    const char *zone = getenv("TZ");
    if (zone == NULL || strcmp(zone, ":/etc/localtime") != 0) return;
    char target[256];
    ssize_t count = readlink("/etc/localtime", target, sizeof target - 1);
    if (count < 0) return;
    target[count] = 0;
    const char *name = strstr(target, "/zoneinfo/");
    if (name == NULL) return;
    setenv("TZ", name + strlen("/zoneinfo/"), 1);
    tzset();
}

// Starts the library and makes it read every file that it ever reads. Returns the group of all engines, or NULL if the
// process has more than one thread then, or memory without a limit.
static inline void *csn_jsc_start(size_t reserve_bytes) {
    csn_jsc_set_options();
    csn_jsc_name_zone();
    void (*disable)(void) = CSN_JSC(void, JSDisableGCTimer, void);
    if (disable != NULL) disable();
    void *group = CSN_JSC(void *, JSContextGroupCreate, void)();
    csn_jsc_engine *engine = group == NULL ? NULL : csn_jsc_open(group);
    if (engine == NULL) return NULL;
    enum csn_jsc_outcome outcome = csn_jsc_load(
        engine,
        "[new Date().toString(), new Date(0).toLocaleString(), Math.random(), '\\u00e4'.normalize('NFD'),"
        " ['b', 'a'].sort(function (a, b) { return a.localeCompare(b) }), 'I'.toLocaleLowerCase(), /a+/i.test('A'),"
        " typeof Intl === 'object' && new Intl.DateTimeFormat().format(0)].join()");
    csn_jsc_close(engine);
    if (outcome != CSN_JSC_DONE || csn_jsc_count_threads() != 1) return NULL;
    if (csn_jsc_close_reserve(reserve_bytes) != 0 || csn_jsc_prepare_signals() != 0) return NULL;
    // What the library keeps open: an event descriptor, the source of random numbers, and /proc/self/statm.
    for (int number = 3; number < 64; number++) close(number);
    return group;
}

#endif
