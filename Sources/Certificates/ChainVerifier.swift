// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// Judges an origin's chain (RFC 5280 §6, RFC 9525) and names every reason against it.
///
/// OpenSSL builds and validates the path under its strict flags: server purpose, no look at the common name, no anchor but a
/// whole chain's end. ``ChainFloor`` adds what OpenSSL lets pass. Revocation is not checked.
package struct ChainVerifier: Sendable {
    /// What a chain must end in.
    package let anchors: TrustAnchors
    /// Authorities that must not be in a chain although an anchor vouches for them: this proxy's own.
    package let refused: [Certificate]
    private let isPublicSuffix: @Sendable (String) -> Bool

    /// The longest chain that is followed, anchor and leaf not counted.
    package static let maximumDepth: Int32 = 10

    /// `refusing` names authorities whose keys must not occur in a chain. `isPublicSuffix` tells of a name in lower case
    /// whether a wildcard right below it is too wide; a single label always is.
    package init(
        anchors: TrustAnchors, refusing refused: [Certificate] = [],
        isPublicSuffix: @escaping @Sendable (String) -> Bool = { _ in false }
    ) {
        self.anchors = anchors
        self.refused = refused
        self.isPublicSuffix = isPublicSuffix
    }

    /// The verdict on `chain`, leaf first and as sent, for `host`: a canonical name or an IP address' text. `time` is in
    /// seconds since 1970.
    package func evaluate(chain: [Certificate], host: String, at time: Int64) -> ServerTrust {
        guard let leaf = chain.first else {
            return ServerTrust(chain: [], reasons: [.other("no certificate was sent")])
        }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let findings = ChainFindings()
        let path = build(chain, host: host, at: time, into: findings)
        if !HostMatch(host: host, isPublicSuffix: isPublicSuffix).accepts(leaf) {
            findings.add(.hostMismatch, depth: 0)
        }
        for (depth, certificate) in path.belowAnchor.enumerated() {
            for reason in ChainFloor.reasons(against: certificate, isLeaf: depth == 0) {
                findings.add(reason, depth: Int32(depth))
            }
        }
        let refusedKeys = Set(refused.map(\.publicKeyDER))
        if !refusedKeys.isEmpty, path.whole.contains(where: { refusedKeys.contains($0.publicKeyDER) }) {
            findings.add(.other("certificate issued by an interception authority of this proxy"), depth: 0)
        }
        return ServerTrust(chain: chain, reasons: findings.reasons)
    }

    private struct Path {
        var whole: [Certificate]
        var belowAnchor: ArraySlice<Certificate>
    }

    private func build(_ chain: [Certificate], host: String, at time: Int64, into findings: ChainFindings) -> Path {
        guard let leaf = chain.first, let context = X509_STORE_CTX_new(), let untrusted = OPENSSL_sk_new_null() else {
            findings.add(.other("the chain could not be checked: out of memory"), depth: 0)
            return Path(whole: chain, belowAnchor: chain[...])
        }
        defer {
            X509_STORE_CTX_free(context)
            OPENSSL_sk_free(untrusted)
        }
        for certificate in chain.dropFirst() {
            _ = certificate.withX509 { OPENSSL_sk_push(untrusted, UnsafeRawPointer($0)) }
        }
        let started = anchors.withStore { store in
            leaf.withX509 { X509_STORE_CTX_init(context, store, $0, untrusted) }
        }
        guard started == 1, let parameters = X509_STORE_CTX_get0_param(context),
            configure(parameters, host: host, at: time)
        else {
            findings.add(.other("the chain could not be checked"), depth: 0)
            return Path(whole: chain, belowAnchor: chain[...])
        }
        X509_STORE_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(findings).toOpaque())
        X509_STORE_CTX_set_verify_cb(context) { passed, context in
            guard passed != 1, let context, let findings = X509_STORE_CTX_get_ex_data(context, 0) else { return passed }
            Unmanaged<ChainFindings>.fromOpaque(findings).takeUnretainedValue().record(context)
            return 1
        }
        let verified = withExtendedLifetime((findings, chain)) { X509_verify_cert(context) }
        if verified != 1 { findings.record(context) }
        return path(of: context, leaf: leaf)
    }

    /// False when a parameter was not taken: then nothing may be concluded.
    private func configure(_ parameters: OpaquePointer, host: String, at time: Int64) -> Bool {
        X509_VERIFY_PARAM_set_time(parameters, time_t(time))
        X509_VERIFY_PARAM_set_depth(parameters, Self.maximumDepth)
        X509_VERIFY_PARAM_set_hostflags(
            parameters,
            UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT) | UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        guard X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_X509_STRICT)) == 1,
            X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER) == 1,
            X509_VERIFY_PARAM_set_trust(parameters, X509_TRUST_SSL_SERVER) == 1
        else { return false }
        if IPAddress(text: host) != nil { return X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 }
        return !host.isEmpty && X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
    }

    /// The path that was followed. The leaf always counts as below the anchor, even where it is one.
    private func path(of context: OpaquePointer, leaf: Certificate) -> Path {
        let built = X509_STORE_CTX_get0_chain(context)
        let whole = (0..<max(0, OPENSSL_sk_num(built))).compactMap { index in
            OPENSSL_sk_value(built, index).map { Certificate(retaining: OpaquePointer($0)) }
        }
        guard !whole.isEmpty else { return Path(whole: [leaf], belowAnchor: [leaf]) }
        let untrusted = max(1, Int(X509_STORE_CTX_get_num_untrusted(context)))
        return Path(whole: whole, belowAnchor: whole.prefix(untrusted))
    }
}
