// Loads MIT's GSS-API at the first call. The functions named csn_gss_... call one function of it, or a few where C is
// the better place: object identifiers, variadic functions, structures with pointers.
#ifndef COUNTERSIGN_CGSSAPI_SHIM_H
#define COUNTERSIGN_CGSSAPI_SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <krb5.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MARK: Loading

#define CSN_LIBGSSAPI "libgssapi_krb5.so.2"

// A function of the library or of libkrb5, which it needs; NULL if it cannot be loaded.
static inline void *csn_gss_function(const char *name) {
    static void *loaded;
    void *library = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (library == NULL) {
        library = dlopen(CSN_LIBGSSAPI, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) return NULL;
        __atomic_store_n(&loaded, library, __ATOMIC_RELEASE);
    }
    return dlsym(library, name);
}

// The other functions may be called only if this returns 1.
static inline int csn_gss_is_available(void) { return csn_gss_function("gss_init_sec_context") != NULL; }

// Declared as in the headers.
#define CSN_GSS(function) ((__typeof__(&function))csn_gss_function(#function))

// MARK: Object identifiers

// 1.2.840.113554.1.2.2 (RFC 4121 §4.1).
#define CSN_KRB5_MECHANISM {9, (void *)"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"}
// 1.2.840.113554.1.2.2.2: the name is a krb5_principal.
#define CSN_KRB5_PRINCIPAL_NAME {10, (void *)"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x02"}

// MARK: Names

// The name of a service at a host, exactly as given. GSS_C_NT_HOSTBASED_SERVICE would resolve the host and replace it
// by its canonical name, unless krb5.conf says otherwise. The realm is the one that krb5.conf assigns to the host, or
// empty, so that the KDC is asked for a referral (RFC 6806 §8). NT-SRV-INST is the type that Windows uses, too.
static inline OM_uint32 csn_gss_import_service(
    OM_uint32 *minor, const char *service, const char *host, gss_name_t *name) {
    krb5_context context = NULL;
    krb5_principal principal = NULL;
    char **realms = NULL;
    gss_OID_desc mechanism = CSN_KRB5_MECHANISM, type = CSN_KRB5_PRINCIPAL_NAME;
    krb5_error_code code = CSN_GSS(krb5_init_context)(&context);
    if (code != 0) {
        *minor = (OM_uint32)code;
        return GSS_S_FAILURE;
    }
    code = CSN_GSS(krb5_get_host_realm)(context, host, &realms);
    if (code == 0) {
        code = CSN_GSS(krb5_build_principal)(
            context, &principal, (unsigned int)strlen(realms[0]), realms[0], service, host, (char *)NULL);
    }
    OM_uint32 major = GSS_S_FAILURE;
    *minor = (OM_uint32)code;
    if (code == 0) {
        principal->type = KRB5_NT_SRV_INST;
        gss_buffer_desc pointer = {sizeof principal, &principal};
        gss_name_t imported = GSS_C_NO_NAME;
        major = CSN_GSS(gss_import_name)(minor, &pointer, &type, &imported);
        if (!GSS_ERROR(major)) {
            // Copies the principal.
            major = CSN_GSS(gss_canonicalize_name)(minor, imported, &mechanism, name);
            OM_uint32 ignored;
            CSN_GSS(gss_release_name)(&ignored, &imported);
        }
    }
    if (principal != NULL) CSN_GSS(krb5_free_principal)(context, principal);
    if (realms != NULL) CSN_GSS(krb5_free_host_realm)(context, realms);
    CSN_GSS(krb5_free_context)(context);
    return major;
}

// The caller releases `text`.
static inline OM_uint32 csn_gss_display_name(OM_uint32 *minor, gss_name_t name, gss_buffer_t text) {
    return CSN_GSS(gss_display_name)(minor, name, text, NULL);
}

static inline void csn_gss_release_name(gss_name_t *name) {
    OM_uint32 minor;
    if (*name != GSS_C_NO_NAME) CSN_GSS(gss_release_name)(&minor, name);
}

// MARK: Contexts

// A step of the initiator. `credential` is GSS_C_NO_CREDENTIAL for the user's own. `binding` may be NULL, and so may
// `input` in the first step. The caller releases `output`.
static inline OM_uint32 csn_gss_initiate(
    OM_uint32 *minor, gss_cred_id_t credential, gss_ctx_id_t *context, gss_name_t target, OM_uint32 flags,
    const void *binding,
    size_t bindingLength, const void *input, size_t inputLength, gss_buffer_t output) {
    gss_OID_desc mechanism = CSN_KRB5_MECHANISM;
    struct gss_channel_bindings_struct bindings;
    memset(&bindings, 0, sizeof bindings);
    bindings.application_data.length = bindingLength;
    bindings.application_data.value = (void *)binding;
    gss_buffer_desc token = {inputLength, (void *)input};
    return CSN_GSS(gss_init_sec_context)(
        minor, credential, context, target, &mechanism, flags, 0,
        binding == NULL ? GSS_C_NO_CHANNEL_BINDINGS : &bindings, input == NULL ? GSS_C_NO_BUFFER : &token, NULL, output,
        NULL, NULL);
}

static inline void csn_gss_delete(gss_ctx_id_t *context) {
    OM_uint32 minor;
    if (*context != GSS_C_NO_CONTEXT) CSN_GSS(gss_delete_sec_context)(&minor, context, GSS_C_NO_BUFFER);
}

// The caller releases `mic`.
static inline OM_uint32 csn_gss_get_mic(
    OM_uint32 *minor, gss_ctx_id_t context, const void *message, size_t length, gss_buffer_t mic) {
    gss_buffer_desc text = {length, (void *)message};
    return CSN_GSS(gss_get_mic)(minor, context, GSS_C_QOP_DEFAULT, &text, mic);
}

static inline OM_uint32 csn_gss_verify_mic(
    OM_uint32 *minor, gss_ctx_id_t context, const void *message, size_t length, const void *mic, size_t micLength) {
    gss_buffer_desc text = {length, (void *)message}, code = {micLength, (void *)mic};
    return CSN_GSS(gss_verify_mic)(minor, context, &text, &code, NULL);
}

// MARK: Credentials

// The owner of the user's default ticket, and its remaining seconds. The caller releases `name`.
static inline OM_uint32 csn_gss_inquire_user(OM_uint32 *minor, gss_name_t *name, OM_uint32 *seconds) {
    gss_OID_desc mechanism = CSN_KRB5_MECHANISM;
    gss_OID_set_desc mechanisms = {1, &mechanism};
    gss_cred_id_t credential = GSS_C_NO_CREDENTIAL;
    // Asking for the seconds makes this call obtain the ticket. Otherwise gss_inquire_cred does, and loses the status.
    OM_uint32 major = CSN_GSS(gss_acquire_cred)(
        minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &mechanisms, GSS_C_INITIATE, &credential, NULL, seconds);
    if (GSS_ERROR(major)) return major;
    major = CSN_GSS(gss_inquire_cred)(minor, credential, name, seconds, NULL, NULL);
    OM_uint32 ignored;
    CSN_GSS(gss_release_cred)(&ignored, &credential);
    return major;
}

// Looks for the first of the user's ticket caches. Returns 0 if it can be read, KRB5_CC_NOTFOUND if there is none, and
// otherwise the library's status, with its sentence, which the caller frees with free(). GSS-API reports every one of
// these states as a missing ticket, and libkrb5 before 1.21 frees an uninitialised pointer if a cache cannot be read.
static inline krb5_error_code csn_krb5_check_user_caches(char **sentence) {
    krb5_context context = NULL;
    *sentence = NULL;
    krb5_error_code code = CSN_GSS(krb5_init_context)(&context);
    if (code != 0) return code;
    krb5_ccache cache = NULL;
    krb5_cccol_cursor cursor = NULL;
    int isFound = 0;
    // A name of an unknown type has no collection.
    code = CSN_GSS(krb5_cc_default)(context, &cache);
    if (code == 0) CSN_GSS(krb5_cc_close)(context, cache);
    if (code == 0) code = CSN_GSS(krb5_cccol_cursor_new)(context, &cursor);
    while (code == 0 && !isFound) {
        code = CSN_GSS(krb5_cccol_cursor_next)(context, cursor, &cache);
        if (code != 0 || cache == NULL) break;
        krb5_principal principal = NULL;
        code = CSN_GSS(krb5_cc_get_principal)(context, cache, &principal);
        isFound = code == 0;
        if (isFound) CSN_GSS(krb5_free_principal)(context, principal);
        CSN_GSS(krb5_cc_close)(context, cache);
    }
    if (code != 0) {
        const char *message = CSN_GSS(krb5_get_error_message)(context, code);
        *sentence = strdup(message);
        CSN_GSS(krb5_free_error_message)(context, message);
    } else if (!isFound) {
        code = KRB5_CC_NOTFOUND;
    }
    if (cursor != NULL) CSN_GSS(krb5_cccol_cursor_free)(context, &cursor);
    CSN_GSS(krb5_free_context)(context);
    return code;
}

// Returns 0 if the user's client keytab can be read, or there is none; otherwise the library's status.
static inline krb5_error_code csn_krb5_check_client_keytab(void) {
    krb5_context context = NULL;
    krb5_error_code code = CSN_GSS(krb5_init_context)(&context);
    if (code != 0) return code;
    krb5_keytab keytab = NULL;
    krb5_kt_cursor cursor;
    code = CSN_GSS(krb5_kt_client_default)(context, &keytab);
    if (code == 0) {
        code = CSN_GSS(krb5_kt_start_seq_get)(context, keytab, &cursor);
        if (code == 0) CSN_GSS(krb5_kt_end_seq_get)(context, keytab, &cursor);
        CSN_GSS(krb5_kt_close)(context, keytab);
    }
    CSN_GSS(krb5_free_context)(context);
    return code == ENOENT || code == ENOTDIR || code == KRB5_KT_NOTFOUND ? 0 : code;
}

// The name and the times of the ticket-granting ticket in the user's default cache, in seconds since 1970. The caller
// frees `principal` with free().
static inline krb5_error_code csn_krb5_inquire_user(char **principal, int64_t *issued, int64_t *end) {
    krb5_context context = NULL;
    krb5_error_code code = CSN_GSS(krb5_init_context)(&context);
    if (code != 0) return code;
    krb5_ccache cache = NULL;
    krb5_creds wanted, found;
    char *name = NULL;
    memset(&wanted, 0, sizeof wanted);
    memset(&found, 0, sizeof found);
    code = CSN_GSS(krb5_cc_default)(context, &cache);
    if (code == 0) code = CSN_GSS(krb5_cc_get_principal)(context, cache, &wanted.client);
    if (code == 0) code = CSN_GSS(krb5_unparse_name)(context, wanted.client, &name);
    if (code == 0) {
        krb5_data realm = wanted.client->realm;
        code = CSN_GSS(krb5_build_principal)(
            context, &wanted.server, realm.length, realm.data, KRB5_TGS_NAME, realm.data, (char *)NULL);
    }
    if (code == 0) code = CSN_GSS(krb5_cc_retrieve_cred)(context, cache, 0, &wanted, &found);
    if (code == 0) {
        *principal = strdup(name);
        *issued = (uint32_t)found.times.authtime;
        *end = (uint32_t)found.times.endtime;
        CSN_GSS(krb5_free_cred_contents)(context, &found);
    }
    if (name != NULL) CSN_GSS(krb5_free_unparsed_name)(context, name);
    if (wanted.server != NULL) CSN_GSS(krb5_free_principal)(context, wanted.server);
    if (wanted.client != NULL) CSN_GSS(krb5_free_principal)(context, wanted.client);
    if (cache != NULL) CSN_GSS(krb5_cc_close)(context, cache);
    CSN_GSS(krb5_free_context)(context);
    return code;
}

// MARK: Tickets of enrolled principals

// A key of a principal.
typedef struct {
    int32_t encryptionType;
    uint32_t version;
    const void *bytes;
    size_t length;
} csn_krb5_key;

// A ticket-granting ticket in memory. The library's objects are NULL if there is none.
typedef struct {
    krb5_context context;
    krb5_ccache cache;
    gss_cred_id_t credential;
    // Seconds since 1970.
    int64_t end;
    // How many messages were sent to KDCs.
    unsigned messages;
} csn_krb5_ticket;

static inline krb5_error_code csn_krb5_count_message(
    krb5_context context, void *data, const krb5_data *realm, const krb5_data *message, krb5_data **newMessage,
    krb5_data **reply) {
    (void)context, (void)realm, (void)message;
    ++*(unsigned *)data;
    *newMessage = NULL;
    *reply = NULL;
    return 0;
}

static inline void csn_krb5_release(csn_krb5_ticket *ticket) {
    OM_uint32 minor;
    if (ticket->credential != GSS_C_NO_CREDENTIAL) CSN_GSS(gss_release_cred)(&minor, &ticket->credential);
    if (ticket->cache != NULL) CSN_GSS(krb5_cc_destroy)(ticket->context, ticket->cache);
    if (ticket->context != NULL) CSN_GSS(krb5_free_context)(ticket->context);
    memset(ticket, 0, sizeof *ticket);
}

// A keytab in memory with the keys of `client`. The caller closes it, which removes it.
static inline krb5_error_code csn_krb5_keytab(
    krb5_context context, krb5_principal client, const csn_krb5_key *keys, size_t count, krb5_keytab *keytab) {
    char name[64];
    snprintf(name, sizeof name, "MEMORY:countersign-%p", (void *)context);
    krb5_error_code code = CSN_GSS(krb5_kt_resolve)(context, name, keytab);
    for (size_t index = 0; code == 0 && index < count; index++) {
        krb5_keytab_entry entry;
        memset(&entry, 0, sizeof entry);
        entry.principal = client;
        entry.vno = keys[index].version;
        entry.key.enctype = keys[index].encryptionType;
        entry.key.length = (unsigned)keys[index].length;
        entry.key.contents = (krb5_octet *)keys[index].bytes;
        code = CSN_GSS(krb5_kt_add_entry)(context, *keytab, &entry);
    }
    return code;
}

// Obtains a ticket for `principal` from a KDC, with `password`, or with the keys if that is NULL. Unlike
// krb5_get_init_creds_password, it does not try again with the realm's primary KDC, so that a wrong password is sent
// once. The caller releases the ticket, also after an error. The library overwrites its copy of the password.
static inline krb5_error_code csn_krb5_obtain(
    csn_krb5_ticket *ticket, const char *principal, const char *password, const csn_krb5_key *keys, size_t count) {
    memset(ticket, 0, sizeof *ticket);
    krb5_error_code code = CSN_GSS(krb5_init_context)(&ticket->context);
    if (code != 0) return code;
    krb5_context context = ticket->context;
    krb5_principal client = NULL;
    krb5_keytab keytab = NULL;
    krb5_init_creds_context request = NULL;
    krb5_creds found;
    memset(&found, 0, sizeof found);
    CSN_GSS(krb5_set_kdc_send_hook)(context, csn_krb5_count_message, &ticket->messages);
    code = CSN_GSS(krb5_parse_name)(context, principal, &client);
    if (code == 0) code = CSN_GSS(krb5_init_creds_init)(context, client, NULL, NULL, 0, NULL, &request);
    if (code == 0 && password != NULL) code = CSN_GSS(krb5_init_creds_set_password)(context, request, password);
    if (code == 0 && password == NULL) code = csn_krb5_keytab(context, client, keys, count, &keytab);
    if (code == 0 && password == NULL) code = CSN_GSS(krb5_init_creds_set_keytab)(context, request, keytab);
    if (code == 0) code = CSN_GSS(krb5_init_creds_get)(context, request);
    if (code == 0) code = CSN_GSS(krb5_init_creds_get_creds)(context, request, &found);
    if (code == 0) code = CSN_GSS(krb5_cc_new_unique)(context, "MEMORY", NULL, &ticket->cache);
    if (code == 0) code = CSN_GSS(krb5_cc_initialize)(context, ticket->cache, found.client);
    if (code == 0) code = CSN_GSS(krb5_cc_store_cred)(context, ticket->cache, &found);
    if (code == 0) {
        OM_uint32 minor = 0;
        OM_uint32 major = CSN_GSS(gss_krb5_import_cred)(&minor, ticket->cache, NULL, NULL, &ticket->credential);
        if (GSS_ERROR(major)) code = minor != 0 ? (krb5_error_code)minor : KRB5_CC_NOTFOUND;
        ticket->end = (uint32_t)found.times.endtime;
    }
    CSN_GSS(krb5_set_kdc_send_hook)(context, NULL, NULL);
    CSN_GSS(krb5_free_cred_contents)(context, &found);
    if (request != NULL) CSN_GSS(krb5_init_creds_free)(context, request);
    if (keytab != NULL) CSN_GSS(krb5_kt_close)(context, keytab);
    if (client != NULL) CSN_GSS(krb5_free_principal)(context, client);
    return code;
}

// Calls `found` for each key in a keytab file, with its principal's name, which is `isWanted` if it is `principal`.
static inline krb5_error_code csn_krb5_read_keytab(
    const char *path, const char *principal, void *data,
    void (*found)(void *data, const char *name, int isWanted, csn_krb5_key key)) {
    krb5_context context = NULL;
    krb5_error_code code = CSN_GSS(krb5_init_context)(&context);
    if (code != 0) return code;
    krb5_principal wanted = NULL;
    krb5_keytab keytab = NULL;
    krb5_kt_cursor cursor;
    char name[4096];
    snprintf(name, sizeof name, "FILE:%s", path);
    code = CSN_GSS(krb5_parse_name)(context, principal, &wanted);
    if (code == 0) code = CSN_GSS(krb5_kt_resolve)(context, name, &keytab);
    if (code == 0) code = CSN_GSS(krb5_kt_start_seq_get)(context, keytab, &cursor);
    if (code == 0) {
        krb5_keytab_entry entry;
        while ((code = CSN_GSS(krb5_kt_next_entry)(context, keytab, &entry, &cursor)) == 0) {
            char *text = NULL;
            if (CSN_GSS(krb5_unparse_name)(context, entry.principal, &text) == 0) {
                csn_krb5_key key = {entry.key.enctype, entry.vno, entry.key.contents, entry.key.length};
                found(data, text, CSN_GSS(krb5_principal_compare)(context, entry.principal, wanted) != 0, key);
                CSN_GSS(krb5_free_unparsed_name)(context, text);
            }
            CSN_GSS(krb5_free_keytab_entry_contents)(context, &entry);
        }
        if (code == KRB5_KT_END) code = 0;
        CSN_GSS(krb5_kt_end_seq_get)(context, keytab, &cursor);
    }
    if (keytab != NULL) CSN_GSS(krb5_kt_close)(context, keytab);
    if (wanted != NULL) CSN_GSS(krb5_free_principal)(context, wanted);
    CSN_GSS(krb5_free_context)(context);
    return code;
}

// MARK: Buffers and messages

static inline void csn_gss_release(gss_buffer_t buffer) {
    OM_uint32 minor;
    CSN_GSS(gss_release_buffer)(&minor, buffer);
}

// The library's sentence about a minor status. The caller releases `text`.
static inline OM_uint32 csn_gss_describe(OM_uint32 status, gss_buffer_t text) {
    gss_OID_desc mechanism = CSN_KRB5_MECHANISM;
    OM_uint32 minor, more = 0;
    return CSN_GSS(gss_display_status)(&minor, status, GSS_C_MECH_CODE, &mechanism, &more, text);
}

// The routine error of a major status (RFC 2744 §3.9.1); 0 if there is none.
static inline OM_uint32 csn_gss_error(OM_uint32 major) { return GSS_ERROR(major); }

// The minor status of a cache without a ticket. No header declares it.
static const int32_t csn_KG_EMPTY_CCACHE = 39756044;

static const OM_uint32 csn_GSS_S_CONTINUE_NEEDED = GSS_S_CONTINUE_NEEDED;
static const OM_uint32 csn_GSS_S_NO_CRED = GSS_S_NO_CRED;
static const OM_uint32 csn_GSS_S_CREDENTIALS_EXPIRED = GSS_S_CREDENTIALS_EXPIRED;
static const OM_uint32 csn_GSS_S_BAD_BINDINGS = GSS_S_BAD_BINDINGS;
static const OM_uint32 csn_GSS_C_MUTUAL_FLAG = GSS_C_MUTUAL_FLAG;
static const OM_uint32 csn_GSS_C_INTEG_FLAG = GSS_C_INTEG_FLAG;
static const OM_uint32 csn_GSS_C_DELEG_POLICY_FLAG = GSS_C_DELEG_POLICY_FLAG;

#endif
