// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The reasons met while one chain is checked, each once. Lives on one thread, for one call of X509_verify_cert.
final class ChainFindings {
    private var found: [(reason: ServerTrust.Reason, depth: Int32)] = []

    /// The reasons, those of the leaf first, else in the order in which they were met.
    var reasons: [ServerTrust.Reason] {
        found.enumerated().sorted { ($0.element.depth, $0.offset) < ($1.element.depth, $1.offset) }.map(
            \.element.reason)
    }

    func add(_ reason: ServerTrust.Reason, depth: Int32) {
        guard !found.contains(where: { $0.reason == reason }) else { return }
        found.append((reason, max(0, depth)))
    }

    /// Takes the error that the context stands at.
    func record(_ context: OpaquePointer) {
        let error = X509_STORE_CTX_get_error(context)
        let depth = X509_STORE_CTX_get_error_depth(context)
        let certificate = X509_STORE_CTX_get_current_cert(context).map { Certificate(retaining: $0) }
        // Says nothing that the missing issuer before it did not.
        let missing: [ServerTrust.Reason] = [.unknownIssuer, .incompleteChain, .selfSigned]
        if error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, found.contains(where: { missing.contains($0.reason) }) {
            return
        }
        add(Self.reason(for: error, at: certificate), depth: depth)
    }

    private static func reason(for error: Int32, at certificate: Certificate?) -> ServerTrust.Reason {
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
            certificate?.extensionValue(NID_info_access) != nil ? .incompleteChain : .unknownIssuer
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
            .other(
                "certificate not accepted: \(String(cString: X509_verify_cert_error_string(Int(error))).lowercasedFirst)"
            )
        }
    }
}

extension String {
    /// The text with a small first letter, as it stands inside a sentence.
    fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
