// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// A certificate to request: its key, and a closure that creates the certification request.
package struct ESTRequest: Sendable {
    /// The key of the certificate. It is not sent.
    package let key: PrivateKey
    /// Whether the server requires proof of possession that is linked to the TLS connection (RFC 7030 §3.5).
    package let isLinked: Bool
    /// The DER of the request that the server answered with 202, to be repeated unchanged (RFC 7030 §4.2.3). Not used
    /// if ``isLinked``, because it is linked to an earlier connection.
    package let previous: [UInt8]?
    /// Creates the PKCS#10 request in DER. The argument is its challengePassword (RFC 2985 §5.4.1), nil for none.
    /// Called several times, on another thread.
    let make: @Sendable (_ challengePassword: String?) throws(CertificateError) -> [UInt8]

    /// A request for a first certificate, with the `attributes` that the server wants.
    package init(
        subject: SubjectName, alternativeNames: [SubjectAlternativeName] = [], attributes: CSRAttributes?,
        key: PrivateKey, previous: [UInt8]? = nil
    ) {
        self.key = key
        self.previous = previous
        isLinked = attributes?.wantsLinking ?? false
        make = { challenge throws(CertificateError) in
            try CertificationRequest.make(
                subject: subject, alternativeNames: alternativeNames, attributes: attributes,
                challengePassword: challenge, key: key
            ).der
        }
    }

    /// A request for a renewal with the same subject and alternative names (RFC 7030 §4.2.2), for the same key or a new
    /// one.
    package init(
        renewing certificate: Certificate, attributes: CSRAttributes?, key: PrivateKey, previous: [UInt8]? = nil
    ) {
        self.key = key
        self.previous = previous
        isLinked = attributes?.wantsLinking ?? false
        make = { challenge throws(CertificateError) in
            try CertificationRequest.make(
                renewing: certificate, attributes: attributes, challengePassword: challenge, key: key
            ).der
        }
    }
}

/// An EST server's answer to a request.
package enum ESTOutcome: Equatable, Sendable {
    /// The new certificate, followed by its issuers without the anchor, as the chain of an ``Identity``. Verified
    /// against the key and the CA certificates.
    case issued([Certificate])
    /// The server decides later (202, RFC 7030 §4.2.3): repeat `request` (DER) after that many seconds, at most
    /// ``ESTClient/longestRetryAfter``.
    case pending(retryAfter: Int64, request: [UInt8])
}
