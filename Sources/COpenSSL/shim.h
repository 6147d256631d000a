// The macros and variadic functions of OpenSSL, which Swift cannot import, as static inline functions named
// csn_<the C name>.
#ifndef COUNTERSIGN_COPENSSL_SHIM_H
#define COUNTERSIGN_COPENSSL_SHIM_H

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/conf.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/engine.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ocsp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/ui.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdlib.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

// MARK: The environment

// The way OpenSSL reads SSL_CERT_FILE and OPENSSL_ENGINES: NULL in a process with more rights than its user. glibc
// declares secure_getenv only under _GNU_SOURCE.
static inline const char *csn_secure_getenv(const char *name) {
#ifdef __linux__
    extern char *secure_getenv(const char *);
    return secure_getenv(name);
#else
    return issetugid() ? NULL : getenv(name);
#endif
}

// MARK: Certificates

// RFC 2253, except that non-ASCII characters stay in UTF-8 without escapes.
static inline unsigned long csn_XN_FLAG_RFC2253_UTF8(void) { return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB; }

// MARK: Keys

// A key pair on P-256 from its scalar, in the machine's byte order, and its uncompressed point. In C because an
// OSSL_PARAM keeps pointers to its names, and the address of a Swift string is not stable.
static inline EVP_PKEY *csn_EVP_PKEY_from_P256(
    EVP_PKEY_CTX *context, const void *scalar, size_t scalar_bytes, const void *point, size_t point_bytes
) {
    OSSL_PARAM parts[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)SN_X9_62_prime256v1, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, point_bytes),
        OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, (unsigned char *)scalar, scalar_bytes),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *key = NULL;
    if (EVP_PKEY_fromdata_init(context) != 1) return NULL;
    if (EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, parts) != 1) return NULL;
    return key;
}

// OpenSSL 3 deprecates EC_KEY, but has no other key type whose public half X509_set_pubkey encodes without decoding it
// again.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// The same key as an EC_KEY; NULL if it is not an EC key. The comparison makes OpenSSL create the provider's copy of
// the key before other threads use it.
static inline EVP_PKEY *csn_EVP_PKEY_as_EC_KEY(EVP_PKEY *key) {
    EC_KEY *curve_key = EVP_PKEY_get1_EC_KEY(key);
    EVP_PKEY *made = EVP_PKEY_new();
    if (curve_key != NULL && made != NULL && EVP_PKEY_assign_EC_KEY(made, curve_key)) {
        curve_key = NULL;
        if (EVP_PKEY_eq(made, key) == 1) return made;
    }
    EC_KEY_free(curve_key);
    EVP_PKEY_free(made);
    return NULL;
}

#pragma GCC diagnostic pop

// MARK: Tokens

// OpenSSL 3 deprecates engines, but Debian 12 has no PKCS#11 provider.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// Loads an engine without adding it to OpenSSL's list. Some libraries, such as libssh2 below libcurl, register all
// listed engines, and each would then handle every key of its types in this process. The folder is the one that
// ENGINE_by_id searches.
static inline ENGINE *csn_ENGINE_by_id(const char *name) {
    OPENSSL_init_crypto(OPENSSL_INIT_ENGINE_DYNAMIC, NULL);
    ENGINE *engine = ENGINE_by_id("dynamic");
    if (engine == NULL) return NULL;
    const char *folder = csn_secure_getenv("OPENSSL_ENGINES");
    if (folder == NULL) folder = OPENSSL_info(OPENSSL_INFO_ENGINES_DIR);
    if (ENGINE_ctrl_cmd_string(engine, "ID", name, 0) && ENGINE_ctrl_cmd_string(engine, "DIR_LOAD", "2", 0) &&
        ENGINE_ctrl_cmd_string(engine, "DIR_ADD", folder, 0) && ENGINE_ctrl_cmd_string(engine, "LIST_ADD", "0", 0) &&
        ENGINE_ctrl_cmd_string(engine, "LOAD", NULL, 0))
        return engine;
    ENGINE_free(engine);
    return NULL;
}

static inline int csn_ENGINE_ctrl_cmd_string(ENGINE *engine, const char *command, const char *argument) {
    return ENGINE_ctrl_cmd_string(engine, command, argument, 0);
}

static inline int csn_ENGINE_ctrl_cmd(ENGINE *engine, const char *command, void *argument) {
    return ENGINE_ctrl_cmd(engine, command, 0, argument, NULL, 0);
}

static inline void csn_ENGINE_register_all_complete(void) { ENGINE_register_all_complete(); }

static inline int csn_ENGINE_init(ENGINE *engine) { return ENGINE_init(engine); }

static inline int csn_ENGINE_free(ENGINE *engine) { return ENGINE_free(engine); }

static inline EVP_PKEY *csn_ENGINE_load_private_key(ENGINE *engine, const char *name, UI_METHOD *user, void *data) {
    return ENGINE_load_private_key(engine, name, user, data);
}

#pragma GCC diagnostic pop

// The argument and result of the PKCS#11 engine's LOAD_CERT_CTRL command.
typedef struct {
    const char *name;
    X509 *certificate;
} csn_token_certificate;

// MARK: TLS

static const uint64_t csn_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t csn_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t csn_SSL_OP_CLEANSE_PLAINTEXT = SSL_OP_CLEANSE_PLAINTEXT;
static const uint64_t csn_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const uint64_t csn_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;

static inline int csn_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}

static inline int csn_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_max_proto_version(context, version);
}

static inline void csn_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_mode(context, mode);
}

static inline void csn_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline int csn_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_groups_list(context, list);
}

static inline int csn_SSL_CTX_set1_sigalgs_list(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_sigalgs_list(context, list);
}

static inline int csn_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline int csn_ERR_GET_REASON(unsigned long code) {
    return ERR_GET_REASON(code);
}

static inline int csn_ERR_GET_LIB(unsigned long code) {
    return ERR_GET_LIB(code);
}

// MARK: Server trust

static inline int csn_SSL_set_retry_verify(SSL *ssl) {
    return SSL_set_retry_verify(ssl);
}

static inline int csn_SSL_CTX_set_tlsext_status_type(SSL_CTX *context, int type) {
    return (int)SSL_CTX_set_tlsext_status_type(context, type);
}

static inline int csn_SSL_CTX_set_tlsext_status_cb(SSL_CTX *context, int (*callback)(SSL *, void *)) {
    return (int)SSL_CTX_set_tlsext_status_cb(context, callback);
}

// -1 if the server sent no response.
static inline long csn_SSL_get_tlsext_status_ocsp_resp(SSL *ssl, const unsigned char **response) {
    return SSL_get_tlsext_status_ocsp_resp(ssl, (unsigned char **)response);
}

// MARK: Process

// prctl is variadic. Both return -1 if the system does not support the option.
static inline int csn_prctl_set_dumpable(int dumpable) {
#ifdef __linux__
    return prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
#else
    (void)dumpable;
    return -1;
#endif
}

static inline int csn_prctl_get_dumpable(void) {
#ifdef __linux__
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
#else
    return -1;
#endif
}

#endif
