// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// How an identity was enrolled by EST (RFC 7030), and so how its certificate is renewed, with the state of the
/// renewal.
package struct EnrollmentRecord: Equatable, Sendable {
    /// The identity's name.
    package let name: String
    /// `https://host[:port][/label]`.
    package var server: String
    /// The requested subject, in the text form of RFC 4514.
    package var subject: String
    /// The requested subject alternative names, as the user wrote them.
    package var alternativeNames: [String]
    /// The kind of new keys, such as `ec-p256`, or ``tokenKey``.
    package var keySpecification: String
    /// The explicit trust anchors of the certificates that the server issues, DER (RFC 7030 §4.1.3). Empty until they
    /// are known.
    package var anchors: [[UInt8]]
    /// The anchors that verify the server.
    package var serverAnchors = ServerAnchors.same
    /// The name of the credential to use if the server does not accept the identity.
    package var credential: String?
    /// The name of another identity that authenticates the first enrolment.
    package var identity: String?
    /// The chain of the identity's key, leaf first, DER; `Certs/identities` has a public copy. Empty until the first
    /// certificate is issued.
    package var chain: [[UInt8]] = []
    /// The identity that the current one replaced, kept until a server has accepted the current one.
    package var previous: PreviousIdentity?
    /// The generation of the credential that the server refused; 0 if it refused none.
    package var refusedCredential: UInt64 = 0
    /// The sign-in that the certificate belongs to; nil if it belongs to none.
    package var owner: Owner?
    /// Failed attempts since the last success.
    package var failures: UInt32 = 0
    /// When the last one failed, in seconds since 1970; 0 if none did.
    package var lastFailure: Int64 = 0

    /// A sign-in whose access token of the same name enrols the identity, and with which it is removed.
    package struct Owner: Equatable, Sendable {
        /// ``SignInRecord/identifier``, which distinguishes it from other sign-ins of that name. Not empty.
        package var signIn: String
        /// The generation of the access token that the server refused; 0 if it refused none.
        package var refusedToken: UInt64 = 0

        package init(signIn: String) { self.signIn = signIn }
    }

    /// The ``keySpecification`` of an identity whose key stays in a token. Each certificate is for the same key.
    package static let tokenKey = "token"

    /// The trust anchors of an EST server (RFC 7030 §3.6).
    package enum ServerAnchors: Equatable, Sendable {
        /// Those of the certificates that it issues.
        case same
        /// Other explicit ones, DER.
        case own([[UInt8]])
        /// The system's, and those in `Certs/anchors`.
        case implicit
    }

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

/// The private key and chain of a replaced certificate.
package struct PreviousIdentity: Equatable, Sendable {
    /// PKCS#8 `PrivateKeyInfo`, DER, or ``PendingEnrollment/keyInToken`` for the identity's key in a token.
    package let privateKey: Secret
    /// Leaf first, DER.
    package let chain: [[UInt8]]

    package init(privateKey: Secret, chain: [[UInt8]]) {
        self.privateKey = privateKey
        self.chain = chain
    }
}

/// A certificate that was requested and is not in use yet.
package struct PendingEnrollment: Equatable, Sendable {
    package enum State: Equatable, Sendable {
        /// Requested, or about to be.
        case requested
        /// Issued, but not yet tried in a handshake. Leaf first, DER.
        case issued(chain: [[UInt8]])
    }

    /// The identity's name.
    package let name: String
    /// The certificate's key, PKCS#8 `PrivateKeyInfo`, DER, or ``keyInToken``.
    package let privateKey: Secret
    /// Seconds since 1970.
    package let created: Int64
    package var state = State.requested
    /// The enrolment that the certificate is requested with, if it is the first one or replaces the identity's present
    /// enrolment. It becomes the identity's enrolment together with the certificate.
    package var plan: EnrollmentRecord?
    /// The earliest time of the next request, in seconds since 1970; 0: any time.
    package var retryAt: Int64 = 0
    /// The number of requests so far.
    package var attempts: UInt32 = 0
    /// The certification request that the server answered with 202, DER, which has to be repeated unchanged (RFC 7030
    /// §4.2.3); otherwise empty.
    package var request: [UInt8] = []

    /// How to reach the key if it stays in a token; its leaf has no meaning.
    package private(set) var token: TokenKey?

    /// In place of a key that stays in a token: one zero byte, which no PKCS#8 is.
    package static let keyInToken = Secret([0])

    package init(name: String, privateKey: Secret, created: Int64) {
        self.name = name
        self.privateKey = privateKey
        self.created = created
    }

    /// A request for a key in a token.
    package init(token: TokenKey, created: Int64) {
        self.init(name: token.name, privateKey: Self.keyInToken, created: created)
        self.token = token
    }

    /// Sets the token, for the codec, and after the user has entered another PIN.
    package mutating func set(token: TokenKey) { self.token = token }

    /// The server has accepted the request: it answered 202, or has issued the certificate.
    package var isUnderway: Bool { state != .requested || !request.isEmpty }
}
