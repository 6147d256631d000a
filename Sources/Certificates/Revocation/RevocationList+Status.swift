// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The status of one certificate according to a list that was fetched from one of its distribution points.
///
/// OpenSSL checks the signature by the certificate's issuer, and that the list's scope (RFC 5280 §5.2.5) includes the
/// certificate. Indirect lists, lists for some reasons, delta lists and lists with unknown critical extensions do not
/// count.
extension RevocationList {
    /// The tolerated clock difference to the issuer, in seconds.
    package static let skew = OCSPResponse.skew

    /// Whether `time`, in seconds since 1970, is between the list's dates. A list without nextUpdate has no end.
    package func isCurrent(at time: Int64) -> Bool { dateFault(at: time) == nil }

    /// Judges the status of `certificate` of `issuer`, at `time` in seconds since 1970. A list that does not count
    /// leaves it unknown. The first call for a list sorts its entries.
    package func status(
        of certificate: Certificate, issuedBy issuer: Certificate, at time: Int64
    ) -> StatusJudgement {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let turningPoints = [thisUpdate.map { $0 - Self.skew }, nextUpdate.map { $0 + Self.skew + 1 }]
        return StatusJudgement(
            finding: finding(certificate, issuer, at: time),
            holdsUntil: turningPoints.compactMap(\.self).filter { $0 > time }.map { $0 - 1 }.min() ?? .max,
            isDated: nextUpdate != nil)
    }

    private func finding(
        _ certificate: Certificate, _ issuer: Certificate, at time: Int64
    ) -> CertificateStatus.Finding {
        guard issuer.signatureCost != nil else { return .unknown("its issuer has an unusual key") }
        guard !isDelta else { return .unknown("it is a delta list") }
        guard isStronglySigned else { return .unknown("signed with a hash weaker than SHA-256") }
        if let fault = dateFault(at: time) { return .unknown(fault) }
        let outcome = consult(certificate, issuer)
        if let fault = outcome.fault { return .unknown(fault) }
        return outcome.isRevoked ? .revoked(entry(of: certificate)) : .good
    }

    private func dateFault(at time: Int64) -> String? {
        guard let thisUpdate, !hasNextUpdate || (nextUpdate.map { $0 >= thisUpdate } ?? false) else {
            return "its dates are impossible"
        }
        if thisUpdate - Self.skew > time { return "not valid before \(CalendarDate(secondsSince1970: thisUpdate))" }
        guard let nextUpdate, nextUpdate + Self.skew < time else { return nil }
        return "expired \(CalendarDate(secondsSince1970: nextUpdate))"
    }

    /// Whether the list only has the changes since another one (RFC 5280 §5.2.4). OpenSSL would use it as a whole one:
    /// it rejects these lists only with X509_V_FLAG_EXTENDED_CRL_SUPPORT.
    var isDelta: Bool { withCRL { X509_CRL_get_ext_by_NID($0, NID_delta_crl, -1) >= 0 } }

    private var hasNextUpdate: Bool { withCRL { X509_CRL_get0_nextUpdate($0) != nil } }

    /// RSASSA-PSS has its hash in the parameters, and no weak one is in use.
    private var isStronglySigned: Bool {
        let signature = withCRL { X509_CRL_get_signature_nid($0) }
        if [NID_rsassaPss, NID_ED25519, NID_ED448].contains(signature) { return true }
        var hash: Int32 = NID_undef
        guard OBJ_find_sigid_algs(signature, &hash, nil) == 1 else { return false }
        return [NID_sha256, NID_sha384, NID_sha512].contains(hash)
    }

    /// When and why the list revokes the certificate, which it must contain.
    func entry(of certificate: Certificate) -> RevocationEntry {
        withCRL { crl in
            var entry: OpaquePointer?
            guard certificate.withX509({ X509_CRL_get0_by_cert(crl, &entry, $0) }) > 0, let entry else {
                return RevocationEntry(date: nil, reason: nil)
            }
            var reason: RevocationReason?
            if let value = X509_REVOKED_get_ext_d2i(entry, NID_crl_reason, nil, nil) {
                let number = value.assumingMemoryBound(to: ASN1_ENUMERATED.self)
                reason = RevocationReason(rawValue: Int32(clamping: ASN1_ENUMERATED_get(number)))
                ASN1_STRING_free(number)
            }
            return RevocationEntry(
                date: Certificate.seconds(of: X509_REVOKED_get0_revocationDate(entry)), reason: reason)
        }
    }

    // MARK: OpenSSL's verification

    /// The verdict of X509_verify_cert on the list.
    fileprivate final class Outcome {
        var isRevoked = false
        /// The first reason that the list does not count.
        var fault: String?
    }

    /// Verifies a path of two certificates with this list. Only errors about the list are taken into account: the path
    /// has been verified already, and the dates are checked with their tolerance.
    private func consult(_ certificate: Certificate, _ issuer: Certificate) -> Outcome {
        let outcome = Outcome()
        outcome.fault = "it cannot be checked: out of memory"
        guard let context = X509_STORE_CTX_new(), let store = X509_STORE_new(), let lists = OPENSSL_sk_new_null(),
            let trusted = OPENSSL_sk_new_null()
        else { return outcome }
        defer {
            X509_STORE_CTX_free(context)
            X509_STORE_free(store)
            OPENSSL_sk_free(lists)
            OPENSSL_sk_free(trusted)
        }
        _ = withCRL { OPENSSL_sk_push(lists, UnsafeRawPointer($0)) }
        let flags = X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_CRL_CHECK | X509_V_FLAG_NO_CHECK_TIME
        let isReady = certificate.withX509 { x509 in
            issuer.withX509 { issuer in
                OPENSSL_sk_push(trusted, UnsafeRawPointer(issuer)) > 0
                    && X509_STORE_CTX_init(context, store, x509, nil) == 1
            }
        }
        guard isReady, let parameters = X509_STORE_CTX_get0_param(context),
            X509_VERIFY_PARAM_set_flags(parameters, UInt(flags)) == 1
        else { return outcome }
        outcome.fault = nil
        X509_STORE_CTX_set0_trusted_stack(context, trusted)
        X509_STORE_CTX_set0_crls(context, lists)
        X509_STORE_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(outcome).toOpaque())
        X509_STORE_CTX_set_verify_cb(context) { passed, context in
            guard passed != 1, let context, let outcome = X509_STORE_CTX_get_ex_data(context, 0) else { return passed }
            Unmanaged<Outcome>.fromOpaque(outcome).takeUnretainedValue().record(X509_STORE_CTX_get_error(context))
            return 1
        }
        let verified = withExtendedLifetime((self, outcome)) { X509_verify_cert(context) }
        if verified != 1, outcome.fault == nil { outcome.fault = "it cannot be checked" }
        return outcome
    }
}

extension RevocationList.Outcome {
    fileprivate func record(_ error: Int32) {
        if error == X509_V_ERR_CERT_REVOKED {
            isRevoked = true
        } else if fault == nil {
            fault = Self.fault(for: error)
        }
    }

    /// Nil for errors that are not about the list.
    private static func fault(for error: Int32) -> String? {
        switch error {
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_DIFFERENT_CRL_SCOPE:
            "not for this certificate"
        case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_CRL_SIGNATURE_FAILURE:
            "not signed by the issuer"
        case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
            "its issuer may not sign lists"
        case X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
            "has an unknown critical extension"
        case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_CRL_PATH_VALIDATION_ERROR,
            X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY, X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD,
            X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            "not usable: \(String(cString: X509_verify_cert_error_string(Int(error))))"
        default:
            nil
        }
    }
}
