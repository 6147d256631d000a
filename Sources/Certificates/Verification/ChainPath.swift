// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The certification path that OpenSSL built from a leaf (RFC 5280 §6.1).
struct ChainPath {
    /// The leaf first; the last one is an anchor if one was reached.
    var whole: [Certificate]
    /// Includes the leaf even if it is an anchor itself.
    var belowAnchor: ArraySlice<Certificate>
    var reachesAnchor = false
    /// Whether the local revocation lists were consulted.
    var looksIntoLists = false

    /// The certificates from which OpenSSL builds a path.
    struct Material {
        /// The certificates that were sent; the leaf first.
        let chain: [Certificate]
        /// The only ones from the store that may be used; nil permits all.
        let trusted: [Certificate]?

        init(chain: [Certificate], trusted: [Certificate]? = nil) {
            self.chain = chain
            self.trusted = trusted
        }
    }

    /// Builds and validates a path with X509_verify_cert, which continues after each error, and adds the errors to
    /// `findings`.
    static func build(
        _ material: Material, leaf: Certificate, host: String, at time: Int64, verifier: ChainVerifier,
        into findings: ChainFindings
    ) -> ChainPath {
        let chain = material.chain
        let unknown = ChainPath(whole: chain, belowAnchor: chain[...])
        guard let context = X509_STORE_CTX_new(), let untrusted = OPENSSL_sk_new_null(),
            let trusted = OPENSSL_sk_new_null(), let lists = OPENSSL_sk_new_null()
        else {
            findings.add(.other("the chain could not be checked: out of memory"), depth: 0)
            return unknown
        }
        defer {
            X509_STORE_CTX_free(context)
            OPENSSL_sk_free(untrusted)
            OPENSSL_sk_free(trusted)
            OPENSSL_sk_free(lists)
        }
        for certificate in chain.dropFirst() {
            _ = certificate.withX509 { OPENSSL_sk_push(untrusted, UnsafeRawPointer($0)) }
        }
        for list in verifier.revocationLists { _ = list.withCRL { OPENSSL_sk_push(lists, UnsafeRawPointer($0)) } }
        let looksIntoLists = !verifier.revocationLists.isEmpty
        let started = verifier.anchors.withStore { store in
            leaf.withX509 { X509_STORE_CTX_init(context, store, $0, untrusted) }
        }
        guard started == 1, let parameters = X509_STORE_CTX_get0_param(context),
            configure(parameters, host: host, at: time, looksIntoLists: looksIntoLists)
        else {
            findings.add(.other("the chain could not be checked"), depth: 0)
            return unknown
        }
        if let only = material.trusted {
            for certificate in only { _ = certificate.withX509 { OPENSSL_sk_push(trusted, UnsafeRawPointer($0)) } }
            X509_STORE_CTX_set0_trusted_stack(context, trusted)
        }
        X509_STORE_CTX_set0_crls(context, lists)
        X509_STORE_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(findings).toOpaque())
        X509_STORE_CTX_set_verify_cb(context) { passed, context in
            guard passed != 1, let context, let findings = X509_STORE_CTX_get_ex_data(context, 0) else { return passed }
            Unmanaged<ChainFindings>.fromOpaque(findings).takeUnretainedValue().record(context)
            return 1
        }
        let verified = withExtendedLifetime((findings, material, verifier)) { X509_verify_cert(context) }
        if verified != 1 { findings.record(context) }
        return ChainPath(of: context, leaf: leaf, looksIntoLists: looksIntoLists && verified == 1)
    }

    /// Returns false if OpenSSL does not accept a parameter. The result is then meaningless.
    private static func configure(
        _ parameters: OpaquePointer, host: String, at time: Int64, looksIntoLists: Bool
    ) -> Bool {
        X509_VERIFY_PARAM_set_time(parameters, time_t(time))
        X509_VERIFY_PARAM_set_depth(parameters, ChainVerifier.maximumDepth)
        X509_VERIFY_PARAM_set_hostflags(parameters, hostFlags)
        let lists = looksIntoLists ? X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL : 0
        guard X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_X509_STRICT | lists)) == 1,
            X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER) == 1,
            X509_VERIFY_PARAM_set_trust(parameters, X509_TRUST_SSL_SERVER) == 1
        else { return false }
        if IPAddress(text: host) != nil { return X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 }
        return !host.isEmpty && X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
    }

    private static let hostFlags =
        UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT) | UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)

    /// Whether OpenSSL finds `host` among the names of `leaf`, with the flags of
    /// ``build(_:leaf:host:at:verifier:into:)``.
    static func accepts(_ host: String, in leaf: Certificate) -> Bool {
        leaf.withX509 { x509 in
            if IPAddress(text: host) != nil { return X509_check_ip_asc(x509, host, 0) == 1 }
            return !host.isEmpty && X509_check_host(x509, host, host.utf8.count, hostFlags, nil) == 1
        }
    }

    private init(of context: OpaquePointer, leaf: Certificate, looksIntoLists: Bool) {
        let built = X509_STORE_CTX_get0_chain(context)
        let whole = (0..<max(0, OPENSSL_sk_num(built))).compactMap { index in
            OPENSSL_sk_value(built, index).map { Certificate(retaining: OpaquePointer($0)) }
        }
        guard !whole.isEmpty else {
            self.init(whole: [leaf], belowAnchor: [leaf])
            return
        }
        let untrusted = Int(X509_STORE_CTX_get_num_untrusted(context))
        self.init(
            whole: whole, belowAnchor: whole.prefix(max(1, untrusted)), reachesAnchor: untrusted < whole.count,
            looksIntoLists: looksIntoLists)
    }

    private init(
        whole: [Certificate], belowAnchor: ArraySlice<Certificate>, reachesAnchor: Bool = false,
        looksIntoLists: Bool = false
    ) {
        self.whole = whole
        self.belowAnchor = belowAnchor
        self.reachesAnchor = reachesAnchor
        self.looksIntoLists = looksIntoLists
    }
}
