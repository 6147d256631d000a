// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The certificates that a chain may end in. Revocation lists that lie in the same places are not looked for: those
/// that count are a ``ChainVerifier``'s own.
///
/// Unchecked because of the pointer: the X509_STORE is filled by the initialiser only, and OpenSSL locks its look-ups.
package final class TrustAnchors: @unchecked Sendable {
    private let store: OpaquePointer
    /// The anchors beside the system's.
    package let additional: [Certificate]

    /// `system` adds OpenSSL's default file and folder, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`; the folder is
    /// looked into during verification, by subject hash. `unavailable` when OpenSSL cannot take them.
    package init(system: Bool, additional: [Certificate] = []) throws(CertificateError) {
        ERR_clear_error()
        guard let store = X509_STORE_new() else { throw .openSSL(.unavailable, "trust anchors") }
        self.store = store
        self.additional = additional
        if system, X509_STORE_set_default_paths(store) != 1 {
            throw .openSSL(.unavailable, "the system's trust anchors cannot be read")
        }
        X509_STORE_set_lookup_crls(store) { _, _ in nil }
        // A default file that is missing leaves an error behind, and is no error: the folder may do.
        ERR_clear_error()
        for anchor in additional where anchor.withX509({ X509_STORE_add_cert(store, $0) }) != 1 {
            throw .openSSL(.unavailable, "trust anchor \"\(anchor)\" was not taken")
        }
    }

    deinit { X509_STORE_free(store) }

    /// The X509_STORE, for as long as `body` runs; it is not to be written.
    package func withStore<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(store)
    }
}
