// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignJSON

/// The EST service (RFC 7030) from which a sign-in obtains a client certificate: `"est"` in the profile.
package struct CertificateService: Sendable {
    package let endpoint: ESTEndpoint
    /// Self-signed CA certificates, which verify the service and the certificates that it issues.
    package let anchors: [Certificate]
    /// The kind of the key; nil if the service chooses.
    package let key: KeySpecification?
    /// The sites that may get the certificate, as `AllowedSites` writes them, without options.
    package let sites: [String]

    static let maximumSites = 16
    private static let maximumAnchors = 8

    /// Whether a certificate of the other service can take the place of one of this.
    package func issuesTheSame(as other: CertificateService) -> Bool {
        endpoint.description == other.endpoint.description && anchors == other.anchors && key == other.key
    }

    /// Nil if the profile names no service.
    init?(_ profile: inout JSONReader) throws {
        guard var reader = try profile.objectIfPresent("est") else { return nil }
        let server = try reader.string("server")
        do throws(EnrollmentError) {
            endpoint = try ESTEndpoint(parsing: server)
        } catch {
            throw reader.invalid("server", "cannot be used: \(error.detail)")
        }
        anchors = try Self.anchors(&reader)
        key = try reader.stringIfPresent("key").map { text in
            guard let key = KeySpecification(text) else {
                let known = KeySpecification.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
                throw reader.invalid("key", "must be one of \(known)")
            }
            return key
        }
        sites = try SignInProfile.sites(&reader, upTo: Self.maximumSites)
        try reader.finish()
    }

    private static func anchors(_ reader: inout JSONReader) throws -> [Certificate] {
        let text = try reader.string("anchor")
        let anchors: [Certificate]
        do throws(CertificateError) {
            anchors = try Certificate.readPEM(Array(text.utf8))
        } catch {
            throw reader.invalid("anchor", "must be certificates in PEM: \(error.detail)")
        }
        guard anchors.count <= maximumAnchors else {
            throw reader.invalid("anchor", "has more than \(maximumAnchors) certificates")
        }
        if let other = anchors.first(where: { !$0.isCertificateAuthority || !$0.isSelfSigned }) {
            let name = PrintableText.quote("\(other)")
            throw reader.invalid("anchor", "contains \(name), which is not a self-signed CA certificate")
        }
        return anchors
    }
}
