// SPDX-License-Identifier: Apache-2.0

// Loads libdbus-1 at the first call. Its few declarations are repeated here, so that no header is needed to build. Only
// what clients of the session bus need: a connection of their own, method calls, their replies, and signals.

#ifndef COUNTERSIGN_CDBUS_SHIM_H
#define COUNTERSIGN_CDBUS_SHIM_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct csn_dbus_connection csn_dbus_connection;
typedef struct csn_dbus_message csn_dbus_message;

// DBusError of dbus-errors.h, with room to spare.
typedef struct {
    const char *name;
    const char *message;
    unsigned int bits;
    void *padding[4];
} csn_dbus_error;

// DBusMessageIter of dbus-message.h, with room to spare.
typedef struct {
    void *padding[32];
} csn_dbus_iterator;

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

// Reads and writes for at most this time. Returns 0 once the connection is lost.
static inline int csn_dbus_run(csn_dbus_connection *connection, int milliseconds) {
    return (int)CSN_DBUS(uint32_t, dbus_connection_read_write, csn_dbus_connection *, int)(connection, milliseconds);
}

// The socket, to wait for what the bus sends; -1 if there is none.
static inline int csn_dbus_descriptor(csn_dbus_connection *connection) {
    int descriptor = -1;
    return CSN_DBUS(uint32_t, dbus_connection_get_unix_fd, csn_dbus_connection *, int *)(connection, &descriptor)
        ? descriptor
        : -1;
}

// Sends a message soon. Returns its serial number; 0 if there is no memory or the connection is lost.
static inline uint32_t csn_dbus_send(csn_dbus_connection *connection, csn_dbus_message *message) {
    uint32_t serial = 0;
    return CSN_DBUS(uint32_t, dbus_connection_send, csn_dbus_connection *, csn_dbus_message *, uint32_t *)(
               connection, message, &serial)
        ? serial
        : 0;
}

// Waits until all messages are written.
static inline void csn_dbus_flush(csn_dbus_connection *connection) {
    CSN_DBUS(void, dbus_connection_flush, csn_dbus_connection *)(connection);
}

// The next message that was read; NULL if there is none. The caller releases it.
static inline csn_dbus_message *csn_dbus_next(csn_dbus_connection *connection) {
    return CSN_DBUS(csn_dbus_message *, dbus_connection_pop_message, csn_dbus_connection *)(connection);
}

// MARK: Calls

// A call without arguments; NULL if there is no memory. The caller releases it.
static inline csn_dbus_message *csn_dbus_method_call(
    const char *name, const char *path, const char *interface, const char *method) {
    return CSN_DBUS(
        csn_dbus_message *, dbus_message_new_method_call, const char *, const char *, const char *, const char *)(
        name, path, interface, method);
}

// Adds an argument of a basic type, whose code in signatures is `type`. Text must be UTF-8.
static inline int csn_dbus_append(csn_dbus_message *message, char type, const void *value) {
    csn_dbus_iterator arguments;
    CSN_DBUS(void, dbus_message_iter_init_append, csn_dbus_message *, csn_dbus_iterator *)(message, &arguments);
    return (int)CSN_DBUS(uint32_t, dbus_message_iter_append_basic, csn_dbus_iterator *, int, const void *)(
        &arguments, type, value);
}

static inline int csn_dbus_append_string(csn_dbus_message *message, const char *text) {
    return csn_dbus_append(message, 's', &text);
}

#define CSN_DBUS_OPEN(outer, type, contents, inner) \
    CSN_DBUS(uint32_t, dbus_message_iter_open_container, csn_dbus_iterator *, int, const char *, csn_dbus_iterator *)( \
        outer, type, contents, inner)
#define CSN_DBUS_CLOSE(outer, inner) \
    CSN_DBUS(uint32_t, dbus_message_iter_close_container, csn_dbus_iterator *, csn_dbus_iterator *)(outer, inner)

// Adds an argument of type `as`.
static inline int csn_dbus_append_strings(csn_dbus_message *message, const char *const *texts, int count) {
    csn_dbus_iterator arguments, array;
    CSN_DBUS(void, dbus_message_iter_init_append, csn_dbus_message *, csn_dbus_iterator *)(message, &arguments);
    if (!CSN_DBUS_OPEN(&arguments, 'a', "s", &array)) return 0;
    for (int index = 0; index < count; index++) {
        if (!CSN_DBUS(uint32_t, dbus_message_iter_append_basic, csn_dbus_iterator *, int, const void *)(
                &array, 's', &texts[index]))
            return 0;
    }
    return (int)CSN_DBUS_CLOSE(&arguments, &array);
}

// Adds an argument of type `a{sv}` with one entry, whose value is a byte.
static inline int csn_dbus_append_byte_entry(csn_dbus_message *message, const char *key, uint8_t value) {
    csn_dbus_iterator arguments, array, entry, variant;
    CSN_DBUS(void, dbus_message_iter_init_append, csn_dbus_message *, csn_dbus_iterator *)(message, &arguments);
    return CSN_DBUS_OPEN(&arguments, 'a', "{sv}", &array) && CSN_DBUS_OPEN(&array, 'e', NULL, &entry) &&
           CSN_DBUS(uint32_t, dbus_message_iter_append_basic, csn_dbus_iterator *, int, const void *)(
               &entry, 's', &key) &&
           CSN_DBUS_OPEN(&entry, 'v', "y", &variant) &&
           CSN_DBUS(uint32_t, dbus_message_iter_append_basic, csn_dbus_iterator *, int, const void *)(
               &variant, 'y', &value) &&
           CSN_DBUS_CLOSE(&entry, &variant) && CSN_DBUS_CLOSE(&array, &entry) && CSN_DBUS_CLOSE(&arguments, &array);
}

// MARK: Messages that were received

// The serial number of the call that the message replies to; 0 if it is not a reply.
static inline uint32_t csn_dbus_reply_serial(csn_dbus_message *message) {
    return CSN_DBUS(uint32_t, dbus_message_get_reply_serial, csn_dbus_message *)(message);
}

// `org.freedesktop.DBus.Error.Failed`; NULL if the message is not an error. Valid as long as the message.
static inline const char *csn_dbus_error_name(csn_dbus_message *message) {
    return CSN_DBUS(const char *, dbus_message_get_error_name, csn_dbus_message *)(message);
}

// The unique name of the sender, or that of the bus; NULL if there is none. Valid as long as the message.
static inline const char *csn_dbus_sender(csn_dbus_message *message) {
    return CSN_DBUS(const char *, dbus_message_get_sender, csn_dbus_message *)(message);
}

static inline int csn_dbus_is_signal(csn_dbus_message *message, const char *interface, const char *name) {
    return (int)CSN_DBUS(uint32_t, dbus_message_is_signal, csn_dbus_message *, const char *, const char *)(
        message, interface, name);
}

// Moves `position` to the argument with this index; returns 0 if there is none of the type.
static inline int csn_dbus_find(csn_dbus_message *message, int index, char type, csn_dbus_iterator *position) {
    if (!CSN_DBUS(uint32_t, dbus_message_iter_init, csn_dbus_message *, csn_dbus_iterator *)(message, position))
        return 0;
    for (; index > 0; index--) {
        if (!CSN_DBUS(uint32_t, dbus_message_iter_next, csn_dbus_iterator *)(position)) return 0;
    }
    return CSN_DBUS(int, dbus_message_iter_get_arg_type, csn_dbus_iterator *)(position) == type;
}

// The text with this index; NULL if that argument is not a string. Valid as long as the message.
static inline const char *csn_dbus_text(csn_dbus_message *message, int index) {
    csn_dbus_iterator position;
    const char *text = NULL;
    if (csn_dbus_find(message, index, 's', &position))
        CSN_DBUS(void, dbus_message_iter_get_basic, csn_dbus_iterator *, void *)(&position, &text);
    return text;
}

// The number with this index; returns 0 if that argument is not a UINT32.
static inline int csn_dbus_number(csn_dbus_message *message, int index, uint32_t *number) {
    csn_dbus_iterator position;
    if (!csn_dbus_find(message, index, 'u', &position)) return 0;
    CSN_DBUS(void, dbus_message_iter_get_basic, csn_dbus_iterator *, void *)(&position, number);
    return 1;
}

// Whether the first argument is an array of strings with this one.
static inline int csn_dbus_contains(csn_dbus_message *message, const char *wanted) {
    csn_dbus_iterator position, element;
    if (!csn_dbus_find(message, 0, 'a', &position)) return 0;
    CSN_DBUS(void, dbus_message_iter_recurse, csn_dbus_iterator *, csn_dbus_iterator *)(&position, &element);
    while (CSN_DBUS(int, dbus_message_iter_get_arg_type, csn_dbus_iterator *)(&element) == 's') {
        const char *text = NULL;
        CSN_DBUS(void, dbus_message_iter_get_basic, csn_dbus_iterator *, void *)(&element, &text);
        if (strcmp(text, wanted) == 0) return 1;
        CSN_DBUS(uint32_t, dbus_message_iter_next, csn_dbus_iterator *)(&element);
    }
    return 0;
}

static inline void csn_dbus_release(csn_dbus_message *message) {
    CSN_DBUS(void, dbus_message_unref, csn_dbus_message *)(message);
}

#endif
