// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Collects the reasons against one chain without duplicates, on one thread during one call of X509_verify_cert.
///
/// An unusable revocation list is not a reason against the chain. But a list that another CA has issued, or that is for
/// other certificates, cannot revoke a certificate either.
final class ChainFindings {
    private var found: [Finding] = []
    private var unusableLists: Set<ListUse> = []
    /// Why no list determines whether a certificate is revoked, by its depth.
    private var listFaults: [Int32: String] = [:]
    /// The certificate that a list revokes, the leaf if there are several.
    private(set) var revoked: RevokedCertificate?

    private struct Finding {
        let reason: ServerTrust.Reason
        /// 0 is the leaf.
        var depth: Int32
        /// Whether another path from the same leaf may lack the reason.
        var dependsOnPath: Bool
    }

    /// The reasons, those of the leaf first, otherwise in the order of detection.
    var reasons: [ServerTrust.Reason] {
        found.enumerated().sorted { ($0.element.depth, $0.offset) < ($1.element.depth, $1.offset) }.map(
            \.element.reason)
    }

    /// Whether another path from the same leaf may have fewer reasons. A revoked leaf is revoked on every path.
    var dependOnPath: Bool {
        found.contains(where: \.dependsOnPath) && !found.contains { $0.reason == .revoked && $0.depth == 0 }
    }

    /// `isOfLeaf` says that the reason concerns the leaf alone, regardless of its issuer.
    func add(_ reason: ServerTrust.Reason, depth: Int32, isOfLeaf: Bool = false) {
        let depth = max(0, depth)
        let dependsOnPath = !isOfLeaf && (depth > 0 || Self.dependsOnPath(reason))
        if let index = found.firstIndex(where: { $0.reason == reason }) {
            found[index].depth = min(found[index].depth, depth)
            if !dependsOnPath { found[index].dependsOnPath = false }
        } else {
            found.append(Finding(reason: reason, depth: depth, dependsOnPath: dependsOnPath))
        }
    }

    /// Why no list determines whether the certificate at `depth` is revoked; nil if one does.
    func listFault(at depth: Int32) -> String? { listFaults[depth] }

    /// Whether another path may lack the reason, although it was found at the leaf.
    private static func dependsOnPath(_ reason: ServerTrust.Reason) -> Bool {
        switch reason {
        case .unknownIssuer, .incompleteChain, .nameConstraint, .pathLength, .revocationUnknown, .other: true
        case .selfSigned, .expired, .notYetValid, .hostMismatch, .revoked, .wrongPurpose, .weakKey, .weakSignature,
            .caAsLeaf:
            false
        }
    }

    /// Records the current error of the context.
    func record(_ context: OpaquePointer) {
        let error = X509_STORE_CTX_get_error(context)
        let depth = X509_STORE_CTX_get_error_depth(context)
        let certificate = X509_STORE_CTX_get_current_cert(context).map { Certificate(retaining: $0) }
        let list = X509_STORE_CTX_get0_current_crl(context)
        if let fault = Self.listFault(for: error, of: list) {
            if listFaults[depth] == nil { listFaults[depth] = fault }
            if !Self.staleness.contains(error) { unusableLists.insert(ListUse(list: list, depth: depth)) }
            return
        }
        if error == X509_V_ERR_CERT_REVOKED, unusableLists.contains(ListUse(list: list, depth: depth)) { return }
        if error == X509_V_ERR_CERT_REVOKED, let certificate, let list, revoked == nil || depth == 0 {
            revoked = RevokedCertificate(
                certificate, isLeaf: depth == 0, RevocationList(retaining: list).entry(of: certificate))
        }
        if Self.isPermitted(error, at: certificate, depth: depth, in: context) { return }
        // Redundant after a missing issuer.
        let missing: [ServerTrust.Reason] = [.unknownIssuer, .incompleteChain, .selfSigned]
        if error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, found.contains(where: { missing.contains($0.reason) }) {
            return
        }
        add(
            Self.reason(for: error, at: certificate, depth: depth), depth: depth,
            isOfLeaf: depth == 0 && Self.contentErrors.contains(error))
    }

    /// Whether the error is OpenSSL's alone: it takes a certificate's last second for the first after it (RFC 5280
    /// §4.1.2.5), and demands a key usage of anchors, too (§6.1.1).
    private static func isPermitted(
        _ error: Int32, at certificate: Certificate?, depth: Int32, in context: OpaquePointer
    ) -> Bool {
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            Int64(X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(context))) == certificate?.notAfter
        case X509_V_ERR_CA_CERT_MISSING_KEY_USAGE:
            depth > 0 && depth >= X509_STORE_CTX_get_num_untrusted(context)
        default:
            false
        }
    }

    /// Errors about one certificate's own content.
    private static let contentErrors: Set = [
        X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD, X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD,
        X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION, X509_V_ERR_INVALID_EXTENSION, X509_V_ERR_ISSUER_NAME_EMPTY,
        X509_V_ERR_SUBJECT_NAME_EMPTY, X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER,
        X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER, X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL,
        X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL, X509_V_ERR_EMPTY_SUBJECT_ALT_NAME,
        X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL, X509_V_ERR_CA_BCONS_NOT_CRITICAL,
        X509_V_ERR_CA_CERT_MISSING_KEY_USAGE, X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA,
        X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA, X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN,
        X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3, X509_V_ERR_EC_KEY_EXPLICIT_PARAMS,
        X509_V_ERR_UNSUPPORTED_SIGNATURE_ALGORITHM,
    ]

    /// The use of a list for one certificate of the path.
    private struct ListUse: Hashable {
        let list: OpaquePointer?
        let depth: Int32
    }

    private static let staleness = [X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_HAS_EXPIRED]

    /// A short sentence for an error about a revocation list; nil for other errors.
    private static func listFault(for error: Int32, of list: OpaquePointer?) -> String? {
        switch error {
        case X509_V_ERR_UNABLE_TO_GET_CRL:
            "no revocation list of the issuer"
        case X509_V_ERR_CRL_HAS_EXPIRED:
            "revocation list expired \(day(X509_CRL_get0_nextUpdate(list)))"
        case X509_V_ERR_CRL_NOT_YET_VALID:
            "revocation list not valid before \(day(X509_CRL_get0_lastUpdate(list)))"
        case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_CRL_SIGNATURE_FAILURE,
            X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD, X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD,
            X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_KEYUSAGE_NO_CRL_SIGN,
            X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION, X509_V_ERR_DIFFERENT_CRL_SCOPE,
            X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
            "revocation list not usable: \(text(of: error))"
        default:
            nil
        }
    }

    private static func day(_ time: UnsafePointer<ASN1_TIME>?) -> CalendarDate {
        CalendarDate(secondsSince1970: Certificate.seconds(of: time) ?? 0)
    }

    private static func text(of error: Int32) -> String {
        String(cString: X509_verify_cert_error_string(Int(error))).lowercasedFirst
    }

    private static func reason(
        for error: Int32, at certificate: Certificate?, depth: Int32
    ) -> ServerTrust.Reason {
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            .expired(notAfter: certificate?.notAfter ?? 0)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            .notYetValid(notBefore: certificate?.notBefore ?? 0)
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            .hostMismatch
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            .selfSigned
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
            // Servers omit the root (RFC 8446 §4.4.2), so a missing issuer above a CA is an unknown root.
            depth == 0 && certificate?.namesIssuersURL == true ? .incompleteChain : .unknownIssuer
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
            X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_REJECTED:
            .unknownIssuer
        case X509_V_ERR_CERT_REVOKED:
            .revoked
        case X509_V_ERR_INVALID_PURPOSE:
            .wrongPurpose
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL:
            .weakKey
        case X509_V_ERR_CA_MD_TOO_WEAK:
            .weakSignature
        case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION, X509_V_ERR_SUBTREE_MINMAX,
            X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE, X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX,
            X509_V_ERR_UNSUPPORTED_NAME_SYNTAX:
            .nameConstraint
        case X509_V_ERR_PATH_LENGTH_EXCEEDED, X509_V_ERR_CERT_CHAIN_TOO_LONG:
            .pathLength
        default:
            .other("certificate not accepted: \(text(of: error))")
        }
    }
}

extension Certificate {
    /// Whether the certificate names a URL of its issuer's certificate, and does not say that the issuer is a root.
    fileprivate var namesIssuersURL: Bool {
        guard let access = extensionValue(NID_info_access),
            let descriptions = try? DERItem.single(access.bytes, tag: DERItem.sequence).items()
        else { return false }
        let namesURL = descriptions.contains { description in
            guard let parts = try? description.items(), parts.count == 2 else { return false }
            return parts[0].dottedText == "1.3.6.1.5.5.7.48.2" && parts[1].tag == 0x86
        }
        return namesURL && !isIssuedByRoot
    }

    /// Whether the authority key identifier has the name of the issuer's issuer (RFC 5280 §4.2.1.1), and it is the
    /// issuer itself.
    private var isIssuedByRoot: Bool {
        withX509 { x509 in
            guard let names = X509_get0_authority_issuer(x509) else { return false }
            return (0..<max(0, OPENSSL_sk_num(names))).contains { index in
                guard let name = OPENSSL_sk_value(names, index) else { return false }
                var type: Int32 = -1
                let value = GENERAL_NAME_get0_value(name.assumingMemoryBound(to: GENERAL_NAME.self), &type)
                guard type == GEN_DIRNAME, let value else { return false }
                return X509_NAME_cmp(OpaquePointer(value), X509_get_issuer_name(x509)) == 0
            }
        }
    }
}

extension String {
    /// The text with a lower-case first letter, unless it begins with an acronym.
    fileprivate var lowercasedFirst: String {
        dropFirst().first?.isUppercase == true ? self : prefix(1).lowercased() + dropFirst()
    }
}
