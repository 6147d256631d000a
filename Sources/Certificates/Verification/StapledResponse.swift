// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Evaluates an OCSP response that a server sent with its certificate (RFC 6960 §4.2.1, RFC 6066 §8).
///
/// A response counts if it is about the leaf, is current, and is signed with SHA-256 or better by the leaf's issuer or
/// by a responder that this issuer has authorised (id-kp-OCSPSigning, RFC 6960 §4.2.2.2).
enum StapledResponse {
    /// The status of a leaf in a response.
    enum Finding: Equatable {
        case good
        case revoked
        /// The response does not count, with a short sentence that says why.
        case unusable(String)
    }

    /// The tolerated clock difference to the responder, in seconds.
    static let skew: Int64 = 300
    /// The validity of a good status without nextUpdate (RFC 6960 §4.2.2.1), in seconds.
    static let undatedLifetime: Int64 = 86_400

    /// The maximum number of certificates in a response. One is enough for an authorised responder.
    private static let certificateLimit = 4
    /// The approximate time for the signatures of a response and its responder, see ``VerificationBudget``.
    static let cost = 2000

    /// Evaluates `response`, in DER, for `leaf` of `issuer`, at `time` in seconds since 1970. Also returns the last
    /// second for which the result stays the same.
    static func judge(
        _ response: [UInt8], leaf: Certificate, issuer: Certificate, at time: Int64
    ) -> (finding: Finding, holdsUntil: Int64) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let basic = basicResponse(response) else { return (.unusable("malformed, or an error response"), .max) }
        defer { OCSP_BASICRESP_free(basic) }
        let entries = entries(of: basic, about: leaf, issuer: issuer)
        let dates = entries.flatMap(\.turningPoints) + certificates(of: basic).flatMap { [$0.notBefore, $0.notAfter] }
        let holdsUntil = dates.filter { $0 > time }.map { $0 - 1 }.min() ?? .max
        return (finding(of: basic, entries, issuer: issuer, at: time), holdsUntil)
    }

    private static func finding(
        of basic: OpaquePointer, _ entries: [Entry], issuer: Certificate, at time: Int64
    ) -> Finding {
        guard !entries.isEmpty else { return .unusable("about another certificate") }
        guard OCSP_BASICRESP_get_ext_by_critical(basic, 1, -1) < 0, !entries.contains(where: \.hasCriticalExtension)
        else { return .unusable("has an unknown critical extension") }
        let sent = certificates(of: basic)
        guard sent.count <= certificateLimit, sent.allSatisfy({ $0.signatureCost != nil }) else {
            return .unusable("contains too many certificates, or one with an unusual key")
        }
        guard isStronglySigned(basic), isSigned(basic, onBehalfOf: issuer, at: time) else {
            return .unusable("not signed by the issuer or a responder that it has authorised")
        }
        let current = entries.filter { $0.isInForce(at: time) }
        if current.contains(where: { $0.status == V_OCSP_CERTSTATUS_REVOKED }) { return .revoked }
        if current.contains(where: { $0.status == V_OCSP_CERTSTATUS_GOOD }) { return .good }
        if !current.isEmpty { return .unusable("the responder does not know the certificate") }
        return .unusable(entries.allSatisfy { $0.thisUpdate > time } ? "not yet valid" : "expired")
    }

    /// The basic OCSP response, which is the only defined type; nil for anything else.
    private static func basicResponse(_ response: [UInt8]) -> OpaquePointer? {
        let parsed = response.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            guard let parsed = d2i_OCSP_RESPONSE(nil, &position, buffer.count) else { return nil }
            guard position == buffer.baseAddress.map({ $0 + buffer.count }) else {
                OCSP_RESPONSE_free(parsed)
                return nil
            }
            return parsed
        }
        guard let parsed else { return nil }
        defer { OCSP_RESPONSE_free(parsed) }
        guard OCSP_response_status(parsed) == OCSP_RESPONSE_STATUS_SUCCESSFUL else { return nil }
        return OCSP_response_get1_basic(parsed)
    }

    // MARK: Signer

    /// The certificates in the response.
    private static func certificates(of basic: OpaquePointer) -> [Certificate] {
        let sent = OCSP_resp_get0_certs(basic)
        return (0..<max(0, OPENSSL_sk_num(sent))).compactMap { index in
            OPENSSL_sk_value(sent, index).map { Certificate(retaining: OpaquePointer($0)) }
        }
    }

    /// Verifies the signer's chain up to `issuer`, at `time`.
    private static func isSigned(_ basic: OpaquePointer, onBehalfOf issuer: Certificate, at time: Int64) -> Bool {
        guard let store = X509_STORE_new(), let known = OPENSSL_sk_new_null() else { return false }
        defer {
            X509_STORE_free(store)
            OPENSSL_sk_free(known)
        }
        return issuer.withX509 { issuer in
            guard X509_STORE_add_cert(store, issuer) == 1, OPENSSL_sk_push(known, UnsafeRawPointer(issuer)) > 0 else {
                return false
            }
            X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), time_t(time))
            return OCSP_basic_verify(basic, known, store, UInt(OCSP_PARTIAL_CHAIN | OCSP_NOEXPLICIT)) == 1
                && isStrong(signerOf: basic, among: known)
        }
    }

    /// Whether the signer meets the requirements for a server's issuers.
    private static func isStrong(signerOf basic: OpaquePointer, among known: OpaquePointer) -> Bool {
        var signer: OpaquePointer?
        guard OCSP_resp_get0_signer(basic, &signer, known) == 1, let signer else { return false }
        let reasons = CertificateRequirements.reasons(against: Certificate(retaining: signer), as: .issuer)
        return !reasons.contains(.weakKey) && !reasons.contains(.weakSignature)
    }

    /// RSASSA-PSS has its hash in the parameters, and no weak one is in use.
    private static func isStronglySigned(_ basic: OpaquePointer) -> Bool {
        var algorithm: OpaquePointer?
        X509_ALGOR_get0(&algorithm, nil, nil, OCSP_resp_get0_tbs_sigalg(basic))
        let signature = OBJ_obj2nid(algorithm)
        if [NID_rsassaPss, NID_ED25519, NID_ED448].contains(signature) { return true }
        var hash: Int32 = NID_undef
        guard OBJ_find_sigid_algs(signature, &hash, nil) == 1 else { return false }
        return [NID_sha256, NID_sha384, NID_sha512].contains(hash)
    }

    // MARK: Entries

    /// The status of one certificate (SingleResponse, RFC 6960 §4.2.1). Dates are in seconds since 1970.
    private struct Entry {
        let status: Int32
        let thisUpdate: Int64
        let nextUpdate: Int64?
        let hasCriticalExtension: Bool

        /// Nil: never. A revocation without nextUpdate is permanent. ASN.1 dates are too small to overflow here.
        private var end: Int64? {
            if let nextUpdate { return nextUpdate + StapledResponse.skew }
            return status == V_OCSP_CERTSTATUS_REVOKED ? nil : thisUpdate + StapledResponse.undatedLifetime
        }

        private var start: Int64 { thisUpdate - StapledResponse.skew }

        func isInForce(at time: Int64) -> Bool { start <= time && time <= end ?? .max }

        /// The first second at which the entry is current, and the first at which it no longer is.
        var turningPoints: [Int64] { [start] + (end.map { [$0 + 1] } ?? []) }
    }

    private static func entries(of basic: OpaquePointer, about leaf: Certificate, issuer: Certificate) -> [Entry] {
        (0..<max(0, OCSP_resp_count(basic))).compactMap { index in
            guard let single = OCSP_resp_get0(basic, index),
                isAbout(OCSP_SINGLERESP_get0_id(single), leaf: leaf, issuer: issuer)
            else { return nil }
            var thisUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            var nextUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            let status = OCSP_single_get0_status(single, nil, nil, &thisUpdate, &nextUpdate)
            guard let start = Certificate.seconds(of: thisUpdate) else { return nil }
            let end = Certificate.seconds(of: nextUpdate)
            guard nextUpdate == nil || (end.map { $0 >= start } ?? false) else { return nil }
            return Entry(
                status: status, thisUpdate: start, nextUpdate: end,
                hasCriticalExtension: OCSP_SINGLERESP_get_ext_by_critical(single, 1, -1) >= 0)
        }
    }

    /// Whether the identifier equals the one computed, with its hash function, from the leaf's serial number and the
    /// issuer's name and key.
    private static func isAbout(_ identifier: OpaquePointer?, leaf: Certificate, issuer: Certificate) -> Bool {
        var algorithm: OpaquePointer?
        guard let identifier, OCSP_id_get0_info(nil, &algorithm, nil, nil, identifier) == 1,
            let hash = EVP_get_digestbyname(OBJ_nid2sn(OBJ_obj2nid(algorithm)))
        else { return false }
        return leaf.withX509 { leaf in
            issuer.withX509 { issuer in
                guard let expected = OCSP_cert_to_id(hash, leaf, issuer) else { return false }
                defer { OCSP_CERTID_free(expected) }
                return OCSP_id_cmp(identifier, expected) == 0
            }
        }
    }
}

extension Certificate {
    /// Whether the TLS feature extension contains status_request: the certificate must not be accepted without a
    /// stapled response (RFC 7633 §4.2.3).
    package var demandsStapledResponse: Bool {
        guard let feature = extensionValue(NID_tlsfeature)?.bytes else { return false }
        return feature.indices.contains {
            feature[$0...].starts(with: [0x02, 0x01, UInt8(TLSEXT_TYPE_status_request)])
        }
    }
}
