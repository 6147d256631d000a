// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// An X509_STORE look-up that finds trust anchors by subject, in a list and in a file.
final class AnchorLookup: Sendable {
    private let certificates: [Certificate]
    private let file: AnchorFile

    private init(_ certificates: [Certificate], _ file: AnchorFile) {
        self.certificates = certificates
        self.file = file
    }

    /// Adds this look-up to the store, before any that are added later. Returns false if OpenSSL does not accept it.
    static func add(to store: OpaquePointer, certificates: [Certificate], file path: String) -> Bool {
        guard let method = method?.pointer, let lookup = X509_STORE_add_lookup(store, method) else { return false }
        let anchors = Unmanaged.passRetained(AnchorLookup(certificates, AnchorFile(path: path)))
        guard X509_LOOKUP_set_method_data(lookup, anchors.toOpaque()) == 1 else {
            anchors.release()
            return false
        }
        return true
    }

    /// Adds all anchors with this subject to the store and returns the first one from the store. The store owns it and
    /// never releases it.
    private func anchor(named subject: OpaquePointer, into store: OpaquePointer) -> OpaquePointer? {
        let known = certificates.filter { $0.withX509 { X509_NAME_cmp(X509_get_subject_name($0), subject) == 0 } }
        let found = known + file.certificates(named: subject)
        // An anchor that another thread has added meanwhile is not an error.
        guard found.filter({ $0.withX509 { X509_STORE_add_cert(store, $0) } == 1 }).count > 0 else { return nil }
        X509_STORE_lock(store)
        defer { X509_STORE_unlock(store) }
        let object = X509_OBJECT_retrieve_by_subject(X509_STORE_get0_objects(store), X509_LU_X509, subject)
        return object.flatMap { X509_OBJECT_get0_X509($0) }
    }

    // MARK: OpenSSL's hook

    /// Unchecked because of the pointer: the method is not modified after its creation.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private static let method: Method? = {
        guard let method = X509_LOOKUP_meth_new("anchors by subject") else { return nil }
        let isSet =
            X509_LOOKUP_meth_set_free(method) { lookup in
                guard let lookup, let anchors = X509_LOOKUP_get_method_data(lookup) else { return }
                Unmanaged<AnchorLookup>.fromOpaque(anchors).release()
            } == 1
            && X509_LOOKUP_meth_set_get_by_subject(method) { lookup, type, subject, result in
                guard type == X509_LU_X509, let lookup, let subject, let result,
                    let anchors = X509_LOOKUP_get_method_data(lookup), let store = X509_LOOKUP_get_store(lookup)
                else { return 0 }
                ERR_set_mark()
                defer { ERR_pop_to_mark() }
                let lookups = Unmanaged<AnchorLookup>.fromOpaque(anchors).takeUnretainedValue()
                guard let anchor = lookups.anchor(named: subject, into: store) else { return 0 }
                // The caller expects an unowned reference, so the one that X509_OBJECT_set1_X509 retains is released.
                guard X509_OBJECT_set1_X509(result, anchor) == 1 else { return 0 }
                X509_free(anchor)
                return 1
            } == 1
        return isSet ? Method(pointer: method) : nil
    }()
}
