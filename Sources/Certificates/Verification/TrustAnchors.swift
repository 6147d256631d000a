// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The certificates that a chain may end in. Ignores revocation lists in the same places, because a ``ChainVerifier``
/// has its own.
///
/// Unchecked because of the pointer: only the initialiser and the store's look-ups modify the X509_STORE, and OpenSSL
/// locks those.
package final class TrustAnchors: @unchecked Sendable {
    private let store: OpaquePointer
    /// The anchors in addition to the system's.
    package let additional: [Certificate]

    /// `system` adds OpenSSL's default file and folder, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`. They are
    /// searched by subject during verification. Throws `unavailable` if OpenSSL does not accept them.
    package convenience init(system: Bool, additional: [Certificate] = []) throws(CertificateError) {
        try self.init(file: system ? Self.systemFile : nil, folder: system, additional: additional)
    }

    /// `file` is a PEM file; `folder` replaces OpenSSL's default folder.
    init(file: String?, folder: Bool, additional: [Certificate]) throws(CertificateError) {
        ERR_clear_error()
        guard let store = X509_STORE_new() else { throw .openSSL(.unavailable, "trust anchors") }
        self.store = store
        self.additional = additional
        X509_STORE_set_lookup_crls(store) { _, _ in nil }
        if let file {
            // One look-up for both, because the store does not look up a name again that it already contains.
            guard AnchorLookup.add(to: store, certificates: additional, file: file) else {
                throw .openSSL(.unavailable, "the system's trust anchors cannot be read")
            }
        } else {
            for anchor in additional where anchor.withX509({ X509_STORE_add_cert(store, $0) }) != 1 {
                throw .openSSL(.unavailable, "trust anchor \"\(anchor)\" was not accepted by OpenSSL")
            }
        }
        guard !folder || Self.addFolder(to: store) else {
            throw .openSSL(.unavailable, "the system's trust anchors cannot be read")
        }
    }

    deinit { X509_STORE_free(store) }

    /// Calls `body` with the X509_STORE, which must not be modified.
    package func withStore<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(store)
    }

    /// The certificates in the store whose subject is the issuer of `certificate`.
    func issuers(of certificate: Certificate) -> [Certificate] {
        certificate.withX509 { x509 in
            guard let context = X509_STORE_CTX_new() else { return [] }
            defer { X509_STORE_CTX_free(context) }
            guard X509_STORE_CTX_init(context, store, x509, nil) == 1,
                let found = X509_STORE_CTX_get1_certs(context, X509_get_issuer_name(x509))
            else { return [] }
            defer { OPENSSL_sk_free(found) }
            return (0..<max(0, OPENSSL_sk_num(found))).compactMap { index in
                OPENSSL_sk_value(found, index).map { pointer in
                    defer { X509_free(OpaquePointer(pointer)) }
                    return Certificate(retaining: OpaquePointer(pointer))
                }
            }
        }
    }

    // MARK: X509_STORE_set_default_paths, but without reading the file at once

    private static var systemFile: String {
        let chosen = csn_secure_getenv(X509_get_default_cert_file_env()) ?? X509_get_default_cert_file()
        return chosen.map { String(cString: $0) } ?? ""
    }

    /// Searched for subjects that earlier look-ups do not find.
    private static func addFolder(to store: OpaquePointer) -> Bool {
        guard let folder = X509_STORE_add_lookup(store, X509_LOOKUP_hash_dir()),
            let source = X509_STORE_add_lookup(store, X509_LOOKUP_store())
        else { return false }
        X509_LOOKUP_ctrl(folder, X509_L_ADD_DIR, nil, Int(X509_FILETYPE_DEFAULT), nil)
        X509_LOOKUP_ctrl(source, X509_L_ADD_STORE, nil, 0, nil)
        // A missing folder leaves an entry in the error queue, but is not an error.
        ERR_clear_error()
        return true
    }
}
