// SPDX-License-Identifier: Apache-2.0

// Loads libdbus-1 at the first call. Its few declarations are repeated here, so that no header is needed to build. Only
// what one method call with strings needs: a connection of its own to a bus, a message, and the reply.

#ifndef COUNTERSIGN_CDBUS_SHIM_H
#define COUNTERSIGN_CDBUS_SHIM_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct csn_dbus_connection csn_dbus_connection;
typedef struct csn_dbus_message csn_dbus_message;
typedef struct csn_dbus_pending csn_dbus_pending;

// DBusError of dbus-errors.h, with room to spare.
typedef struct {
    const char *name;
    const char *message;
    unsigned int bits;
    void *padding[4];
} csn_dbus_error;

// The longest time limit: none.
#define CSN_DBUS_NO_LIMIT 0x7fffffff

// A function of the library; NULL if it cannot be loaded.
static inline void *csn_dbus_function(const char *name) {
    static void *loaded;
    void *library = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (library == NULL) {
        library = dlopen("libdbus-1.so.3", RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) return NULL;
        __atomic_store_n(&loaded, library, __ATOMIC_RELEASE);
    }
    return dlsym(library, name);
}

#define CSN_DBUS(type, function, ...) ((type(*)(__VA_ARGS__))csn_dbus_function(#function))

// The other functions may be called only if this returns 1. Lets several threads use the library.
static inline int csn_dbus_is_available(void) {
    return csn_dbus_function("dbus_connection_open_private") != NULL &&
           CSN_DBUS(uint32_t, dbus_threads_init_default, void)();
}

// MARK: Connections

// A connection that nobody else uses; NULL if there is none, with the reason in `reason`.
static inline csn_dbus_connection *csn_dbus_open(const char *address, char *reason, size_t capacity) {
    csn_dbus_error error;
    memset(&error, 0, sizeof error);
    CSN_DBUS(void, dbus_error_init, csn_dbus_error *)(&error);
    csn_dbus_connection *connection = CSN_DBUS(
        csn_dbus_connection *, dbus_connection_open_private, const char *, csn_dbus_error *)(address, &error);
    if (connection == NULL) {
        strncpy(reason, error.message == NULL ? "unknown" : error.message, capacity - 1);
        reason[capacity - 1] = 0;
        CSN_DBUS(void, dbus_error_free, csn_dbus_error *)(&error);
        return NULL;
    }
    // The library would end the process with the bus.
    CSN_DBUS(void, dbus_connection_set_exit_on_disconnect, csn_dbus_connection *, uint32_t)(connection, 0);
    return connection;
}

static inline void csn_dbus_close(csn_dbus_connection *connection) {
    CSN_DBUS(void, dbus_connection_close, csn_dbus_connection *)(connection);
    CSN_DBUS(void, dbus_connection_unref, csn_dbus_connection *)(connection);
}

// Reads, writes and dispatches for at most this time. Returns 0 once the connection is lost.
static inline int csn_dbus_run(csn_dbus_connection *connection, int milliseconds) {
    return (int)CSN_DBUS(uint32_t, dbus_connection_read_write_dispatch, csn_dbus_connection *, int)(
        connection, milliseconds);
}

// MARK: Calls

// Calls a method without arguments, or with three strings if `third` is not NULL. The caller releases what it returns;
// NULL if there is no memory or the connection is lost.
static inline csn_dbus_pending *csn_dbus_call(
    csn_dbus_connection *connection, const char *name, const char *path, const char *interface, const char *method,
    const char *first, const char *second, const char *third, int milliseconds) {
    csn_dbus_message *message = CSN_DBUS(
        csn_dbus_message *, dbus_message_new_method_call, const char *, const char *, const char *, const char *)(
        name, path, interface, method);
    if (message == NULL) return NULL;
    csn_dbus_pending *pending = NULL;
    // DBUS_TYPE_STRING and DBUS_TYPE_INVALID.
    uint32_t is_complete = third == NULL ||
        CSN_DBUS(uint32_t, dbus_message_append_args, csn_dbus_message *, int, ...)(
            message, 's', &first, 's', &second, 's', &third, 0);
    if (!is_complete ||
        !CSN_DBUS(
            uint32_t, dbus_connection_send_with_reply, csn_dbus_connection *, csn_dbus_message *, csn_dbus_pending **,
            int)(connection, message, &pending, milliseconds)) {
        pending = NULL;
    }
    CSN_DBUS(void, dbus_message_unref, csn_dbus_message *)(message);
    return pending;
}

// The reply, once there is one. The caller releases it.
static inline csn_dbus_message *csn_dbus_take_reply(csn_dbus_pending *pending) {
    if (!CSN_DBUS(uint32_t, dbus_pending_call_get_completed, csn_dbus_pending *)(pending)) return NULL;
    return CSN_DBUS(csn_dbus_message *, dbus_pending_call_steal_reply, csn_dbus_pending *)(pending);
}

// Ends a call, whether or not its reply has come.
static inline void csn_dbus_end_call(csn_dbus_pending *pending) {
    CSN_DBUS(void, dbus_pending_call_cancel, csn_dbus_pending *)(pending);
    CSN_DBUS(void, dbus_pending_call_unref, csn_dbus_pending *)(pending);
}

// MARK: Replies

// `org.freedesktop.DBus.Error.Failed`; NULL if the reply is not an error. Valid as long as the message.
static inline const char *csn_dbus_error_name(csn_dbus_message *message) {
    return CSN_DBUS(const char *, dbus_message_get_error_name, csn_dbus_message *)(message);
}

// The first argument of the reply, or of the error; NULL if it is not a string. Valid as long as the message.
static inline const char *csn_dbus_text(csn_dbus_message *message) {
    const char *text = NULL;
    return CSN_DBUS(uint32_t, dbus_message_get_args, csn_dbus_message *, csn_dbus_error *, int, ...)(
               message, NULL, 's', &text, 0)
        ? text
        : NULL;
}

static inline void csn_dbus_release(csn_dbus_message *message) {
    CSN_DBUS(void, dbus_message_unref, csn_dbus_message *)(message);
}

#endif
