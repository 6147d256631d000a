// Loads libcurl at the first call, and wraps its variadic functions, which Swift cannot import, in static inline
// functions named csn_<the option they set>.
#ifndef COUNTERSIGN_CCURL_SHIM_H
#define COUNTERSIGN_CCURL_SHIM_H

#include <curl/curl.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __APPLE__
#include <malloc/malloc.h>
#define csn_allocated_size malloc_size
#else
#include <malloc.h>
#define csn_allocated_size malloc_usable_size
#endif

// MARK: Loading

// If libcurl were linked, every command would load it and its thirty dependencies at start, which takes as long as the
// rest of the command.
#ifdef __APPLE__
#define CSN_LIBCURL "/usr/lib/libcurl.4.dylib"
#else
#define CSN_LIBCURL "libcurl.so.4"
#endif

// A function of libcurl; NULL if libcurl cannot be loaded.
static inline void *csn_curl_function(const char *name) {
    static void *loaded;
    void *library = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (library == NULL) {
        library = dlopen(CSN_LIBCURL, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) return NULL;
        __atomic_store_n(&loaded, library, __ATOMIC_RELEASE);
    }
    return dlsym(library, name);
}

// Declared as in curl.h. Every function called through this macro has existed since the first libcurl.so.4.
#define CSN_CURL(function) ((__typeof__(&function))csn_curl_function(#function))

// Also NULL if libcurl cannot be loaded, so functions that take a handle need not check again.
static inline CURL *csn_curl_easy_init(void) {
    __typeof__(&curl_easy_init) function = CSN_CURL(curl_easy_init);
    return function == NULL ? NULL : function();
}

static inline void csn_curl_easy_cleanup(CURL *handle) { CSN_CURL(curl_easy_cleanup)(handle); }

static inline void csn_curl_easy_reset(CURL *handle) { CSN_CURL(curl_easy_reset)(handle); }

static inline CURLcode csn_curl_easy_perform(CURL *handle) { return CSN_CURL(curl_easy_perform)(handle); }

static inline const char *csn_curl_easy_strerror(CURLcode code) {
    __typeof__(&curl_easy_strerror) function = CSN_CURL(curl_easy_strerror);
    return function == NULL ? "libcurl cannot be loaded" : function(code);
}

static inline struct curl_slist *csn_curl_slist_append(struct curl_slist *list, const char *text) {
    __typeof__(&curl_slist_append) function = CSN_CURL(curl_slist_append);
    return function == NULL ? NULL : function(list, text);
}

static inline void csn_curl_slist_free_all(struct curl_slist *list) {
    if (list != NULL) CSN_CURL(curl_slist_free_all)(list);
}

// -1 if the text is not a date.
static inline time_t csn_curl_getdate(const char *text) {
    __typeof__(&curl_getdate) function = CSN_CURL(curl_getdate);
    return function == NULL ? -1 : function(text, NULL);
}

// MARK: Memory

// libcurl frees copies of passwords and fields without clearing them. These allocators wipe memory before freeing it.

static inline void csn_wiping_free(void *memory) {
    if (memory == NULL) return;
    volatile unsigned char *bytes = memory;
    for (size_t count = csn_allocated_size(memory); count > 0; count--) *bytes++ = 0;
    free(memory);
}

static inline void *csn_wiping_realloc(void *memory, size_t count) {
    if (memory == NULL) return malloc(count);
    size_t held = csn_allocated_size(memory);
    if (count > 0 && count <= held) return memory;
    void *larger = malloc(count);
    if (larger == NULL) return NULL;
    memcpy(larger, memory, held < count ? held : count);
    csn_wiping_free(memory);
    return larger;
}

// Takes effect only if libcurl has not been initialised before.
static inline CURLcode csn_curl_global_init_wiping(void) {
    __typeof__(&curl_global_init_mem) function = CSN_CURL(curl_global_init_mem);
    if (function == NULL) return CURLE_FAILED_INIT;
    return function(CURL_GLOBAL_DEFAULT, malloc, csn_wiping_free, csn_wiping_realloc, strdup, calloc);
}

// MARK: Settings

static const long csn_CURLAUTH_BASIC_OR_DIGEST = (long)(CURLAUTH_BASIC | CURLAUTH_DIGEST);

// With CURLAUTH_ONLY, the first request has no token: it answers a challenge.
static const long csn_CURLAUTH_BEARER_WHEN_ASKED = (long)(CURLAUTH_BEARER | CURLAUTH_ONLY);

static inline CURLcode csn_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return CSN_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode csn_curl_set_long(CURL *handle, CURLoption option, long value) {
    return CSN_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode csn_curl_set_write(CURL *handle, curl_write_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_WRITEFUNCTION, callback);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_WRITEDATA, context) : code;
}

static inline CURLcode csn_curl_set_header(CURL *handle, curl_write_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_HEADERFUNCTION, callback);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_HEADERDATA, context) : code;
}

// The callback gets the head of every response, also of those to CONNECT, among other things.
static inline CURLcode csn_curl_set_debug(CURL *handle, curl_debug_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_DEBUGFUNCTION, callback);
    if (code == CURLE_OK) code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_DEBUGDATA, context);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_VERBOSE, 1L) : code;
}

static inline CURLcode csn_curl_set_progress(CURL *handle, curl_xferinfo_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_XFERINFOFUNCTION, callback);
    if (code == CURLE_OK) code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_XFERINFODATA, context);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_NOPROGRESS, 0L) : code;
}

// Called before each request, when the connection is established, TLS included.
static inline CURLcode csn_curl_set_before_request(CURL *handle, curl_prereq_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_PREREQFUNCTION, callback);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_PREREQDATA, context) : code;
}

static inline CURLcode csn_curl_set_tls_context(CURL *handle, curl_ssl_ctx_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_SSL_CTX_FUNCTION, callback);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_SSL_CTX_DATA, context) : code;
}

// Called with every new socket before it is connected.
static inline CURLcode csn_curl_set_socket_made(CURL *handle, curl_sockopt_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_SOCKOPTFUNCTION, callback);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_SOCKOPTDATA, context) : code;
}

// Does not copy the bytes: the caller keeps them valid until the transfer ends.
static inline CURLcode csn_curl_set_post(CURL *handle, const void *bytes, long count) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_POSTFIELDSIZE, count);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_POSTFIELDS, bytes) : code;
}

static inline CURLcode csn_curl_set_copied_blob(CURL *handle, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return CSN_CURL(curl_easy_setopt)(handle, option, &blob);
}

static inline CURLcode csn_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *list) {
    return CSN_CURL(curl_easy_setopt)(handle, option, list);
}

// The caller owns the buffer of at least CURL_ERROR_SIZE bytes and keeps it valid while the handle may write to it.
static inline CURLcode csn_curl_set_error_buffer(CURL *handle, char *buffer) {
    return CSN_CURL(curl_easy_setopt)(handle, CURLOPT_ERRORBUFFER, buffer);
}

// The callback opens the socket for an address that libcurl is about to connect to, or returns CURL_SOCKET_BAD.
static inline CURLcode csn_curl_set_open_socket(CURL *handle, curl_opensocket_callback callback, void *context) {
    CURLcode code = CSN_CURL(curl_easy_setopt)(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
    return code == CURLE_OK ? CSN_CURL(curl_easy_setopt)(handle, CURLOPT_OPENSOCKETDATA, context) : code;
}

// Copies the bytes of an IP address, and its port in the machine's byte order. Returns how many bytes there are: 4, 16,
// or 0 for another kind of address.
static inline int csn_curl_ip_address(const struct curl_sockaddr *address, unsigned char bytes[16], uint16_t *port) {
    if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&address->addr;
        memcpy(bytes, &four->sin_addr, 4);
        *port = ntohs(four->sin_port);
        return 4;
    }
    if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->addr;
        memcpy(bytes, &six->sin6_addr, 16);
        *port = ntohs(six->sin6_port);
        return 16;
    }
    return 0;
}

static inline CURLcode csn_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return CSN_CURL(curl_easy_getinfo)(handle, info, value);
}

// Inside a callback: the SSL object of the handle's connection; NULL if there is none or it is not OpenSSL's.
static inline void *csn_curl_get_openssl(CURL *handle) {
    struct curl_tlssessioninfo *session = NULL;
    if (CSN_CURL(curl_easy_getinfo)(handle, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

#endif
