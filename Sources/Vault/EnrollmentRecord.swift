// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// How an identity was enrolled, which is how a new certificate is got for it: RFC 7030's client side, and what became of it.
package struct EnrollmentRecord: Equatable, Sendable {
    /// The identity's name.
    package let name: String
    /// `https://host[:port][/label]`.
    package var server: String
    /// The subject to ask for, in the text form of RFC 4514.
    package var subject: String
    /// The subject alternative names to ask for, as they were given.
    package var alternativeNames: [String]
    /// `ec-p256` and the like: what a new key is.
    package var keySpecification: String
    /// The explicit trust anchors of the server, DER (RFC 7030 §3.3.1).
    package var anchors: [[UInt8]]
    /// The credential that speaks for an identity which the server does not take, if there is one.
    package var credential: String?
    /// Another identity that speaks for a first enrolment, if there is one.
    package var identity: String?
    /// The chain that belongs to the identity's key, leaf first, DER: `Certs/identities` is its public copy. Empty until the
    /// first certificate came.
    package var chain: [[UInt8]] = []
    /// What the present identity took the place of, until that has been accepted once.
    package var previous: KeptIdentity?
    /// The generation of the credential that the server refused; 0 when it refused none.
    package var refusedCredential: UInt64 = 0
    /// Attempts in a row that came to nothing.
    package var failures: UInt32 = 0
    /// When the last of them was, in seconds since 1970; 0 when there was none.
    package var lastFailure: Int64 = 0

    package init(
        name: String, server: String, subject: String, alternativeNames: [String] = [], keySpecification: String,
        anchors: [[UInt8]], credential: String? = nil, identity: String? = nil
    ) {
        self.name = name
        self.server = server
        self.subject = subject
        self.alternativeNames = alternativeNames
        self.keySpecification = keySpecification
        self.anchors = anchors
        self.credential = credential
        self.identity = identity
    }
}

/// A private key with its chain.
package struct KeptIdentity: Equatable, Sendable {
    /// PKCS#8 `PrivateKeyInfo`, DER.
    package let privateKey: Secret
    /// Leaf first, DER.
    package let chain: [[UInt8]]

    package init(privateKey: Secret, chain: [[UInt8]]) {
        self.privateKey = privateKey
        self.chain = chain
    }
}

/// A certificate that was asked for and is not yet in use.
package struct PendingEnrollment: Equatable, Sendable {
    package enum State: Equatable, Sendable {
        /// Asked for, or about to be.
        case requested
        /// Issued, and not yet proved by a handshake. Leaf first, DER.
        case issued(chain: [[UInt8]])
    }

    /// The identity's name.
    package let name: String
    /// The key that it is for, PKCS#8 `PrivateKeyInfo`, DER.
    package let privateKey: Secret
    /// Since when, in seconds since 1970.
    package let created: Int64
    package var state = State.requested
    /// What it is asked for by, when that is not the identity's enrolment: a first one, or one that is to take the place of
    /// what is there. It becomes the identity's enrolment together with the certificate.
    package var plan: EnrollmentRecord?
    /// Not to be asked for again before this, in seconds since 1970; 0: any time.
    package var retryAt: Int64 = 0
    /// How often it was asked for.
    package var attempts: UInt32 = 0
    /// The certification request that the server answered with "later", DER, to be sent again as it was (RFC 7030 §4.2.3);
    /// empty where there is none.
    package var request: [UInt8] = []

    package init(name: String, privateKey: Secret, created: Int64) {
        self.name = name
        self.privateKey = privateKey
        self.created = created
    }

    /// The server has it: it said "later", or has issued.
    package var isUnderway: Bool { state != .requested || !request.isEmpty }
}
