// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Evaluates an OCSP response (RFC 6960 §4.2.1): one that a server sent with its certificate (RFC 6066 §8), or a
/// responder's.
///
/// A response counts if it is about the certificate, is current, and is signed with SHA-256 or better by the
/// certificate's issuer or by a responder that this issuer has authorised (id-kp-OCSPSigning, RFC 6960 §4.2.2.2).
/// Whether the responder's own certificate is revoked is not checked.
package enum OCSPResponse {
    /// The longest response that is evaluated, in bytes.
    package static let maximumBytes = 64 << 10

    /// The tolerated clock difference to the responder, in seconds.
    static let skew: Int64 = 300
    /// The validity of a good status without nextUpdate (RFC 6960 §4.2.2.1), in seconds.
    static let undatedLifetime: Int64 = 86_400

    /// The maximum number of certificates in a response. One is enough for an authorised responder.
    private static let certificateLimit = 4
    /// The approximate time for the signatures of a response and its responder, see ``VerificationBudget``.
    static let cost = 2000

    /// Evaluates `response`, in DER, for `certificate` of `issuer`, at `time` in seconds since 1970. A response that
    /// does not count leaves the status unknown.
    package static func judge(
        _ response: [UInt8], about certificate: Certificate, by issuer: Certificate, at time: Int64
    ) -> StatusJudgement {
        ERR_clear_error()
        defer { ERR_clear_error() }
        func unusable(_ why: String) -> StatusJudgement {
            StatusJudgement(finding: .unknown(why), holdsUntil: .max, isDated: false)
        }
        guard response.count <= maximumBytes else { return unusable("longer than \(maximumBytes) bytes") }
        guard let parsed = parse(response) else { return unusable("malformed") }
        defer { OCSP_RESPONSE_free(parsed) }
        let status = OCSP_response_status(parsed)
        guard status == OCSP_RESPONSE_STATUS_SUCCESSFUL else {
            return unusable("the responder reports an error: \(errorText(status))")
        }
        guard let basic = OCSP_response_get1_basic(parsed) else { return unusable("malformed") }
        defer { OCSP_BASICRESP_free(basic) }
        let entries = entries(of: basic, about: certificate, issuer: issuer)
        let dates = entries.flatMap(\.turningPoints) + certificates(of: basic).flatMap { [$0.notBefore, $0.notAfter] }
        return StatusJudgement(
            finding: finding(of: basic, entries, issuer: issuer, at: time),
            holdsUntil: dates.filter { $0 > time }.map { $0 - 1 }.min() ?? .max,
            isDated: entries.allSatisfy { $0.nextUpdate != nil })
    }

    /// OCSPResponseStatus (RFC 6960 §4.2.1), under its name there.
    private static func errorText(_ status: Int32) -> String {
        switch status {
        case OCSP_RESPONSE_STATUS_MALFORMEDREQUEST: "malformedRequest"
        case OCSP_RESPONSE_STATUS_INTERNALERROR: "internalError"
        case OCSP_RESPONSE_STATUS_TRYLATER: "tryLater"
        case OCSP_RESPONSE_STATUS_SIGREQUIRED: "sigRequired"
        case OCSP_RESPONSE_STATUS_UNAUTHORIZED: "unauthorized"
        default: "\(status)"
        }
    }

    private static func finding(
        of basic: OpaquePointer, _ entries: [Entry], issuer: Certificate, at time: Int64
    ) -> CertificateStatus.Finding {
        guard !entries.isEmpty else { return .unknown("about another certificate") }
        guard OCSP_BASICRESP_get_ext_by_critical(basic, 1, -1) < 0, !entries.contains(where: \.hasCriticalExtension)
        else { return .unknown("has an unknown critical extension") }
        let sent = certificates(of: basic)
        guard sent.count <= certificateLimit, sent.allSatisfy({ $0.signatureCost != nil }) else {
            return .unknown("contains too many certificates, or one with an unusual key")
        }
        guard isStronglySigned(basic), isSigned(basic, onBehalfOf: issuer, at: time) else {
            return .unknown("not signed by the issuer or a responder that it has authorised")
        }
        let current = entries.filter { $0.isInForce(at: time) }
        if let revoked = current.first(where: { $0.status == V_OCSP_CERTSTATUS_REVOKED }) {
            return .revoked(revoked.revocation)
        }
        if current.contains(where: { $0.status == V_OCSP_CERTSTATUS_GOOD }) { return .good }
        if !current.isEmpty { return .unknown("the responder does not know the certificate") }
        if entries.allSatisfy(\.isImpossible) { return .unknown("its dates are impossible") }
        return .unknown(entries.allSatisfy { $0.thisUpdate > time } ? "not yet valid" : "expired")
    }

    /// The response, which the caller frees; nil for anything else, and if something follows it.
    private static func parse(_ response: [UInt8]) -> OpaquePointer? {
        response.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            guard let parsed = d2i_OCSP_RESPONSE(nil, &position, buffer.count) else { return nil }
            guard position == buffer.baseAddress.map({ $0 + buffer.count }) else {
                OCSP_RESPONSE_free(parsed)
                return nil
            }
            return parsed
        }
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
        let revocation: RevocationEntry
        let hasCriticalExtension: Bool
        /// A date cannot be read, or the dates are in the wrong order.
        let isImpossible: Bool

        /// Nil: never. A revocation without nextUpdate is permanent. ASN.1 dates are too small to overflow here.
        private var end: Int64? {
            if let nextUpdate { return nextUpdate + OCSPResponse.skew }
            return status == V_OCSP_CERTSTATUS_REVOKED ? nil : thisUpdate + OCSPResponse.undatedLifetime
        }

        private var start: Int64 { thisUpdate - OCSPResponse.skew }

        func isInForce(at time: Int64) -> Bool { !isImpossible && start <= time && time <= end ?? .max }

        /// The first second at which the entry is current, and the first at which it no longer is.
        var turningPoints: [Int64] { [start] + (end.map { [$0 + 1] } ?? []) }
    }

    private static func entries(of basic: OpaquePointer, about leaf: Certificate, issuer: Certificate) -> [Entry] {
        (0..<max(0, OCSP_resp_count(basic))).compactMap { index in
            guard let single = OCSP_resp_get0(basic, index),
                isAbout(OCSP_SINGLERESP_get0_id(single), leaf: leaf, issuer: issuer)
            else { return nil }
            var reason: Int32 = -1
            var revokedAt: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            var thisUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            var nextUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            let status = OCSP_single_get0_status(single, &reason, &revokedAt, &thisUpdate, &nextUpdate)
            let start = Certificate.seconds(of: thisUpdate)
            let end = Certificate.seconds(of: nextUpdate)
            let isOrdered = start.map { start in nextUpdate == nil || (end.map { $0 >= start } ?? false) } ?? false
            return Entry(
                status: status, thisUpdate: start ?? 0, nextUpdate: end,
                revocation: RevocationEntry(
                    date: Certificate.seconds(of: revokedAt), reason: RevocationReason(rawValue: reason)),
                hasCriticalExtension: OCSP_SINGLERESP_get_ext_by_critical(single, 1, -1) >= 0,
                isImpossible: !isOrdered)
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
