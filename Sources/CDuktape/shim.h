// SPDX-License-Identifier: Apache-2.0

// Loads libduktape, a JavaScript engine, and runs scripts in it. Its few declarations are repeated here, so that no
// header is needed to build. Duktape reports an error with longjmp, which must not cross a Swift frame: so every call
// that can fail is made here, below duk_safe_call.

#ifndef COUNTERSIGN_CDUKTAPE_SHIM_H
#define COUNTERSIGN_CDUKTAPE_SHIM_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct csn_duk_context csn_duk_context;

// The exit status after an error outside of every protected call, which only a lack of memory can cause.
#define CSN_DUK_FATAL 13

enum csn_duk_outcome {
    CSN_DUK_DONE = 0,
    // The script does not match the grammar.
    CSN_DUK_SYNTAX = 1,
    // The script threw something.
    CSN_DUK_THROWN = 2,
};

typedef struct {
    csn_duk_context *context;
    // In bytes, without malloc's own.
    size_t used;
    size_t limit;
    // Since the last call began, an allocation was refused.
    int is_exhausted;
    // What the last call is about.
    const char *source;
    size_t source_count;
    int is_compiled;
    // The result of the last call or the text of its error, cut to `text`, and the error's line; 0 if unknown.
    int line;
    size_t text_count;
    char text[16384];
} csn_duk_engine;

// A function of the library; NULL if it cannot be loaded. Debian's version 2.7, and 2.6, whose functions are the same.
static inline void *csn_duk_function(const char *name) {
    static void *loaded;
    if (loaded == NULL) loaded = dlopen("libduktape.so.207", RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL) loaded = dlopen("libduktape.so.206", RTLD_NOW | RTLD_LOCAL);
    return loaded == NULL ? NULL : dlsym(loaded, name);
}

#define CSN_DUK(type, function, ...) ((type(*)(__VA_ARGS__))csn_duk_function(#function))

// MARK: Memory

// Every block begins with its size, in as many bytes as malloc aligns to.
#define CSN_DUK_HEADER 16

static inline void *csn_duk_resize(void *data, void *pointer, size_t size) {
    csn_duk_engine *engine = (csn_duk_engine *)data;
    char *block = pointer == NULL ? NULL : (char *)pointer - CSN_DUK_HEADER;
    size_t old = 0;
    if (block != NULL) memcpy(&old, block, sizeof old);
    if (size == 0) {
        engine->used -= old;
        free(block);
        return NULL;
    }
    if (size > engine->limit || engine->used - old > engine->limit - size) {
        engine->is_exhausted = 1;
        return NULL;
    }
    char *moved = (char *)realloc(block, CSN_DUK_HEADER + size);
    if (moved == NULL) {
        engine->is_exhausted = 1;
        return NULL;
    }
    memcpy(moved, &size, sizeof size);
    engine->used = engine->used - old + size;
    return moved + CSN_DUK_HEADER;
}

static inline void *csn_duk_allocate(void *data, size_t size) { return csn_duk_resize(data, NULL, size); }

static inline void csn_duk_release(void *data, void *pointer) { csn_duk_resize(data, pointer, 0); }

static inline void csn_duk_fatal(void *data, const char *message) {
    (void)data;
    (void)message;
    _exit(CSN_DUK_FATAL);
}

// MARK: Engines

// An engine that allocates at most `limit` bytes; NULL if the library cannot be loaded or there is no memory.
static inline csn_duk_engine *csn_duk_open(size_t limit) {
    if (csn_duk_function("duk_create_heap") == NULL) return NULL;
    csn_duk_engine *engine = (csn_duk_engine *)calloc(1, sizeof *engine);
    if (engine == NULL) return NULL;
    engine->limit = limit;
    engine->context = CSN_DUK(
        csn_duk_context *, duk_create_heap, void *(*)(void *, size_t), void *(*)(void *, void *, size_t),
        void (*)(void *, void *), void *, void (*)(void *, const char *))(
        csn_duk_allocate, csn_duk_resize, csn_duk_release, engine, csn_duk_fatal);
    if (engine->context == NULL) {
        free(engine);
        return NULL;
    }
    return engine;
}

static inline void csn_duk_close(csn_duk_engine *engine) {
    CSN_DUK(void, duk_destroy_heap, csn_duk_context *)(engine->context);
    free(engine);
}

// MARK: Calls

// Converts the topmost value, the result of a call, into the engine's text.
static inline void csn_duk_keep_top(csn_duk_engine *engine) {
    size_t count = 0;
    const char *text =
        CSN_DUK(const char *, duk_safe_to_lstring, csn_duk_context *, int, size_t *)(engine->context, -1, &count);
    engine->text_count = count < sizeof engine->text ? count : sizeof engine->text;
    memcpy(engine->text, text, engine->text_count);
}

// duk_compile_raw: DUK_COMPILE_NOSOURCE | DUK_COMPILE_NOFILENAME, without DUK_COMPILE_SAFE and DUK_COMPILE_EVAL.
static inline void csn_duk_compile(csn_duk_engine *engine) {
    CSN_DUK(int, duk_compile_raw, csn_duk_context *, const char *, size_t, unsigned int)(
        engine->context, engine->source, engine->source_count, 1U << 9 | 1U << 11);
    engine->is_compiled = 1;
}

static inline int csn_duk_compile_only(csn_duk_context *context, void *data) {
    (void)context;
    csn_duk_compile((csn_duk_engine *)data);
    return 0;
}

static inline int csn_duk_run_program(csn_duk_context *context, void *data) {
    csn_duk_compile((csn_duk_engine *)data);
    CSN_DUK(void, duk_call, csn_duk_context *, int)(context, 0);
    return 0;
}

// The program's result is a function; keeps it where scripts cannot reach it.
static inline int csn_duk_run_prelude(csn_duk_context *context, void *data) {
    CSN_DUK(void, duk_push_global_stash, csn_duk_context *)(context);
    csn_duk_engine *engine = (csn_duk_engine *)data;
    // As eval code, which has a result: DUK_COMPILE_EVAL.
    CSN_DUK(int, duk_compile_raw, csn_duk_context *, const char *, size_t, unsigned int)(
        context, engine->source, engine->source_count, 1U << 3 | 1U << 9 | 1U << 11);
    CSN_DUK(void, duk_call, csn_duk_context *, int)(context, 0);
    CSN_DUK(unsigned int, duk_put_prop_lstring, csn_duk_context *, int, const char *, size_t)(context, -2, "f", 1);
    return 0;
}

// Calls the prelude's function with the source as a string.
static inline int csn_duk_call_prelude(csn_duk_context *context, void *data) {
    csn_duk_engine *engine = (csn_duk_engine *)data;
    engine->is_compiled = 1;
    CSN_DUK(void, duk_push_global_stash, csn_duk_context *)(context);
    CSN_DUK(unsigned int, duk_get_prop_lstring, csn_duk_context *, int, const char *, size_t)(context, -1, "f", 1);
    CSN_DUK(const char *, duk_push_lstring, csn_duk_context *, const char *, size_t)(
        context, engine->source, engine->source_count);
    CSN_DUK(void, duk_call, csn_duk_context *, int)(context, 1);
    return 1;
}

// Replaces an error object by its text, after noting its line.
static inline int csn_duk_read_error(csn_duk_context *context, void *data) {
    csn_duk_engine *engine = (csn_duk_engine *)data;
    if (CSN_DUK(unsigned int, duk_get_error_code, csn_duk_context *, int)(context, -1) != 0) {
        CSN_DUK(unsigned int, duk_get_prop_lstring, csn_duk_context *, int, const char *, size_t)(
            context, -1, "lineNumber", 10);
        int line = CSN_DUK(int, duk_get_int, csn_duk_context *, int)(context, -1);
        engine->line = line > 0 ? line : 0;
        CSN_DUK(void, duk_pop, csn_duk_context *)(context);
    }
    return 1;
}

static inline enum csn_duk_outcome csn_duk_protect(
    csn_duk_engine *engine, int (*body)(csn_duk_context *, void *), const char *source, size_t count) {
    engine->source = source;
    engine->source_count = count;
    engine->is_compiled = 0;
    engine->is_exhausted = 0;
    engine->line = 0;
    engine->text_count = 0;
    int (*protect)(csn_duk_context *, int (*)(csn_duk_context *, void *), void *, int, int) =
        (int (*)(csn_duk_context *, int (*)(csn_duk_context *, void *), void *, int, int))csn_duk_function(
            "duk_safe_call");
    int is_failed = protect(engine->context, body, engine, 0, 1);
    if (is_failed) protect(engine->context, csn_duk_read_error, engine, 1, 1);
    csn_duk_keep_top(engine);
    CSN_DUK(void, duk_pop, csn_duk_context *)(engine->context);
    if (!is_failed) return CSN_DUK_DONE;
    return engine->is_compiled ? CSN_DUK_THROWN : CSN_DUK_SYNTAX;
}

// Runs the program whose result is the function for csn_duk_call.
static inline enum csn_duk_outcome csn_duk_prepare(csn_duk_engine *engine, const char *source, size_t count) {
    return csn_duk_protect(engine, csn_duk_run_prelude, source, count);
}

// Runs a program.
static inline enum csn_duk_outcome csn_duk_load(csn_duk_engine *engine, const char *source, size_t count) {
    return csn_duk_protect(engine, csn_duk_run_program, source, count);
}

// Only checks the grammar of a program.
static inline enum csn_duk_outcome csn_duk_check(csn_duk_engine *engine, const char *source, size_t count) {
    return csn_duk_protect(engine, csn_duk_compile_only, source, count);
}

// Calls the prelude's function.
static inline enum csn_duk_outcome csn_duk_call(csn_duk_engine *engine, const char *argument, size_t count) {
    return csn_duk_protect(engine, csn_duk_call_prelude, argument, count);
}

// A copy of the text, which Swift imports as a tuple.
static inline void csn_duk_copy_text(const csn_duk_engine *engine, char *place) {
    memcpy(place, engine->text, engine->text_count);
}

#endif
