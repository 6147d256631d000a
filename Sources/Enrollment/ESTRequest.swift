// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// What a certificate is asked for with: a key, and how to make its certification request.
package struct ESTRequest: Sendable {
    /// The key that the certificate is to be for; it stays here.
    package let key: PrivateKey
    /// The server demands proof of possession linked to the TLS connection (RFC 7030 §3.5).
    package let isLinked: Bool
    /// The request that the server has answered with "later", in DER: sent again as it was (RFC 7030 §4.2.3). Not used
    /// when ``isLinked``, as the link is to another connection now.
    package let previous: [UInt8]?
    /// Makes the PKCS#10 in DER. The argument is the challengePassword (RFC 2985 §5.4.1) that it must carry, nil for
    /// none; called several times, on another thread.
    let make: @Sendable (_ challengePassword: String?) throws(CertificateError) -> [UInt8]

    /// A request for a first certificate, with what the server asked for in `attributes`.
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

    /// A request for one more certificate of the same subject and alternative names (RFC 7030 §4.2.2), for the same key
    /// or a new one.
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

/// What an EST server did with a request.
package enum ESTOutcome: Equatable, Sendable {
    /// The new certificate first, then its issuers without the anchor: what ``Identity`` takes as its chain. Checked
    /// against the key and the authorities.
    case issued([Certificate])
    /// The server will decide later (202, RFC 7030 §4.2.3): send `request` (DER) again after that many seconds, at most
    /// ``ESTClient/longestRetryAfter``.
    case pending(retryAfter: Int64, request: [UInt8])
}
