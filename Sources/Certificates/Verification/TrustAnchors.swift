// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The certificates that a chain may end in. Revocation lists that lie in the same places are not looked for: those
/// that count are a ``ChainVerifier``'s own.
///
/// Unchecked because of the pointer: the X509_STORE is filled by the initialiser and by its own look-ups only, and OpenSSL
/// locks those.
package final class TrustAnchors: @unchecked Sendable {
    private let store: OpaquePointer
    /// The anchors beside the system's.
    package let additional: [Certificate]

    /// `system` adds OpenSSL's default file and folder, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`; both are looked into
    /// during verification, by subject. `unavailable` when OpenSSL cannot take them.
    package convenience init(system: Bool, additional: [Certificate] = []) throws(CertificateError) {
        try self.init(file: system ? Self.systemFile : nil, folder: system, additional: additional)
    }

    /// `file` is a PEM file, `folder` stands for OpenSSL's default folder.
    init(file: String?, folder: Bool, additional: [Certificate]) throws(CertificateError) {
        ERR_clear_error()
        guard let store = X509_STORE_new() else { throw .openSSL(.unavailable, "trust anchors") }
        self.store = store
        self.additional = additional
        X509_STORE_set_lookup_crls(store) { _, _ in nil }
        if let file {
            // One look-up for both: a name that is in the store already is not looked up again.
            guard AnchorLookup.add(to: store, certificates: additional, file: file) else {
                throw .openSSL(.unavailable, "the system's trust anchors cannot be read")
            }
        } else {
            for anchor in additional where anchor.withX509({ X509_STORE_add_cert(store, $0) }) != 1 {
                throw .openSSL(.unavailable, "trust anchor \"\(anchor)\" was not taken")
            }
        }
        guard !folder || Self.addFolder(to: store) else {
            throw .openSSL(.unavailable, "the system's trust anchors cannot be read")
        }
    }

    deinit { X509_STORE_free(store) }

    /// The X509_STORE, for as long as `body` runs; it is not to be written.
    package func withStore<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(store)
    }

    // MARK: What X509_STORE_set_default_paths does, but for reading the file at once

    private static var systemFile: String {
        let chosen = csn_secure_getenv(X509_get_default_cert_file_env()) ?? X509_get_default_cert_file()
        return chosen.map { String(cString: $0) } ?? ""
    }

    /// Looked into for what the look-ups before do not find.
    private static func addFolder(to store: OpaquePointer) -> Bool {
        guard let folder = X509_STORE_add_lookup(store, X509_LOOKUP_hash_dir()),
            let source = X509_STORE_add_lookup(store, X509_LOOKUP_store())
        else { return false }
        X509_LOOKUP_ctrl(folder, X509_L_ADD_DIR, nil, Int(X509_FILETYPE_DEFAULT), nil)
        X509_LOOKUP_ctrl(source, X509_L_ADD_STORE, nil, 0, nil)
        // A folder that is missing leaves an error behind, and is no error.
        ERR_clear_error()
        return true
    }
}
