// SPDX-License-Identifier: Apache-2.0

// Loads libdbus-1 at the first call. Its few declarations are repeated here, so that no header is needed to build. Only
// what clients of the session bus need: a connection of their own, method calls, their replies, signals, and values.

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

// The object that has sent a signal; NULL if there is none. Valid as long as the message.
static inline const char *csn_dbus_path(csn_dbus_message *message) {
    return CSN_DBUS(const char *, dbus_message_get_path, csn_dbus_message *)(message);
}

static inline int csn_dbus_is_signal(csn_dbus_message *message, const char *interface, const char *name) {
    return (int)CSN_DBUS(uint32_t, dbus_message_is_signal, csn_dbus_message *, const char *, const char *)(
        message, interface, name);
}

static inline void csn_dbus_release(csn_dbus_message *message) {
    CSN_DBUS(void, dbus_message_unref, csn_dbus_message *)(message);
}

// MARK: Values

// Before the first argument is appended.
static inline void csn_dbus_begin_writing(csn_dbus_message *message, csn_dbus_iterator *iterator) {
    CSN_DBUS(void, dbus_message_iter_init_append, csn_dbus_message *, csn_dbus_iterator *)(message, iterator);
}

// Appends a value of a basic type, whose code in signatures is `type`. The functions that append return 0 if there is
// no memory.
static inline int csn_dbus_write(csn_dbus_iterator *iterator, int type, const void *value) {
    return (int)CSN_DBUS(uint32_t, dbus_message_iter_append_basic, csn_dbus_iterator *, int, const void *)(
        iterator, type, value);
}

// Appends a string ('s'), which must be UTF-8, or an object path ('o'), which must be valid.
static inline int csn_dbus_write_text(csn_dbus_iterator *iterator, int type, const char *text) {
    return csn_dbus_write(iterator, type, &text);
}

// Begins an array ('a'), a structure ('r'), a member of a dictionary ('e') or a variant ('v').
static inline int csn_dbus_open_container(
    csn_dbus_iterator *iterator, int type, const char *signature, csn_dbus_iterator *inner) {
    return (int)CSN_DBUS(
        uint32_t, dbus_message_iter_open_container, csn_dbus_iterator *, int, const char *, csn_dbus_iterator *)(
        iterator, type, signature, inner);
}

static inline int csn_dbus_close_container(csn_dbus_iterator *iterator, csn_dbus_iterator *inner) {
    return (int)CSN_DBUS(uint32_t, dbus_message_iter_close_container, csn_dbus_iterator *, csn_dbus_iterator *)(
        iterator, inner);
}

// Appends to an open array of bytes.
static inline int csn_dbus_write_bytes(csn_dbus_iterator *iterator, const void *bytes, int count) {
    return count == 0 ||
           (int)CSN_DBUS(uint32_t, dbus_message_iter_append_fixed_array, csn_dbus_iterator *, int, const void *, int)(
               iterator, 'y', &bytes, count);
}

// Returns 0 if the message has no arguments.
static inline int csn_dbus_begin_reading(csn_dbus_message *message, csn_dbus_iterator *iterator) {
    return (int)CSN_DBUS(uint32_t, dbus_message_iter_init, csn_dbus_message *, csn_dbus_iterator *)(message, iterator);
}

// The type of the value; 0 after the last one.
static inline int csn_dbus_type(csn_dbus_iterator *iterator) {
    return CSN_DBUS(int, dbus_message_iter_get_arg_type, csn_dbus_iterator *)(iterator);
}

// The type of an array's elements.
static inline int csn_dbus_element_type(csn_dbus_iterator *iterator) {
    return CSN_DBUS(int, dbus_message_iter_get_element_type, csn_dbus_iterator *)(iterator);
}

static inline void csn_dbus_advance(csn_dbus_iterator *iterator) {
    (void)CSN_DBUS(uint32_t, dbus_message_iter_next, csn_dbus_iterator *)(iterator);
}

// Begins to read the values in a container.
static inline void csn_dbus_enter(csn_dbus_iterator *iterator, csn_dbus_iterator *inner) {
    CSN_DBUS(void, dbus_message_iter_recurse, csn_dbus_iterator *, csn_dbus_iterator *)(iterator, inner);
}

// Copies a value of a basic type.
static inline void csn_dbus_read(csn_dbus_iterator *iterator, void *value) {
    CSN_DBUS(void, dbus_message_iter_get_basic, csn_dbus_iterator *, void *)(iterator, value);
}

// Of a string or an object path. Valid as long as the message.
static inline const char *csn_dbus_read_text(csn_dbus_iterator *iterator) {
    const char *text = NULL;
    csn_dbus_read(iterator, &text);
    return text;
}

// The bytes of an array that has been entered; they are the message's own. NULL if there are none.
static inline void *csn_dbus_read_bytes(csn_dbus_iterator *inner, int *count) {
    void *bytes = NULL;
    *count = 0;
    CSN_DBUS(void, dbus_message_iter_get_fixed_array, csn_dbus_iterator *, void *, int *)(inner, &bytes, count);
    return *count > 0 ? bytes : NULL;
}

#endif
