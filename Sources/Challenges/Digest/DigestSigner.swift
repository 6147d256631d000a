// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Computes the `Authorization` field of each request in a realm (RFC 7616 §3.4). All requests share one nonce, and each
/// has a count of its own.
final class DigestSigner: RequestSigner {
    private struct Session {
        var nonce: [UInt8]
        var count: UInt32 = 0
        /// For an algorithm per session, the client's nonce in its secret. It belongs to the server's nonce.
        var clientNonce: [UInt8]?
    }

    /// 128 bits.
    private static let clientNonceBytes = 16

    let challenge: DigestChallenge
    let secret: DigestSecret
    private let session: Mutex<Session>
    /// The parameters that are the same for every request.
    private let first: [UInt8]
    private let last: [UInt8]

    init(_ challenge: DigestChallenge, _ secret: DigestSecret) {
        self.challenge = challenge
        self.secret = secret
        session = Mutex(Session(nonce: Array(challenge.nonce.utf8)))
        var first = secret.userParameters + Array(", realm=".utf8)
        first.appendQuoted(challenge.realm.utf8)
        self.first = first + Array(", nonce=".utf8)
        var last: [UInt8] = []
        if let name = challenge.algorithmName { last += Array(", algorithm=\(name)".utf8) }
        if let opaque = challenge.opaque {
            last += Array(", opaque=".utf8)
            last.appendQuoted(opaque.utf8)
        }
        self.last = last
    }

    var needsContent: Bool { challenge.protection == .content }

    /// Uses `nonce` from now on (`nextnonce`, §3.5). An algorithm per session keeps its nonce: RFC 7616 does not say
    /// whether the session's secret changes with it, and a server that wants a new one says that the old one is stale.
    func use(_ nonce: String) {
        guard !challenge.algorithm.isSession else { return }
        session.withLock { session in
            let nonce = Array(nonce.utf8)
            if session.nonce != nonce { session = Session(nonce: nonce) }
        }
    }

    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField? {
        field(
            for: request,
            clientNonce: challenge.protection == nil ? [] : Hex.digits(inputs.random(Self.clientNonceBytes)))
    }

    /// `clientNonce` is the `cnonce`, unless a session has one.
    func field(for request: some RequestDescription, clientNonce: [UInt8]) -> AuthorizationField? {
        guard let requestHash = hash(of: request) else { return nil }
        let isSession = challenge.algorithm.isSession
        let proof = session.withLock { session in
            session.count &+= 1
            if isSession, session.clientNonce == nil { session.clientNonce = clientNonce }
            return Proof(
                nonce: session.nonce, count: Self.digits(session.count),
                clientNonce: session.clientNonce ?? clientNonce)
        }
        return field(uri: Array(request.target.utf8), proof, digest: digest(proof, of: requestHash))
    }

    private func field(uri: [UInt8], _ proof: Proof, digest: [UInt8]) -> AuthorizationField {
        var text: [UInt8] = []
        text.reserveCapacity(first.count + last.count + uri.count + 2 * digest.count + 160)
        text += first
        text.appendQuoted(proof.nonce)
        text += Array(", uri=".utf8)
        text.appendQuoted(uri)
        text += Array(", response=".utf8)
        text.appendQuoted(digest)
        if let protection = challenge.protection {
            text += Array(", qop=\(protection.rawValue), nc=".utf8)
            text += proof.count
            text += Array(", cnonce=".utf8)
            text.appendQuoted(proof.clientNonce)
        }
        text += last
        return AuthorizationField(scheme: DigestAuthenticator.word, parameters: text)
    }

    // MARK: Digests

    /// What is hashed besides the secret and the request.
    private struct Proof {
        let nonce: [UInt8]
        /// `nc`: eight hexadecimal digits.
        let count: [UInt8]
        let clientNonce: [UInt8]
    }

    /// H(A2) (§3.4.3). Nil if the content is needed and not all of it is available.
    private func hash(of request: some RequestDescription) -> [UInt8]? {
        let algorithm = challenge.algorithm
        var text = Array(request.method.utf8)
        text.append(UInt8(ascii: ":"))
        text.append(contentsOf: request.target.utf8)
        guard challenge.protection == .content else { return algorithm.hash(text) }
        let content = algorithm.contentDigest()
        guard request.readContent({ content.update($0) }) else { return nil }
        text.append(UInt8(ascii: ":"))
        text.append(contentsOf: Hex.digits(content.finish()))
        return algorithm.hash(text)
    }

    /// The `response` (§3.4.1) or, with H(A2) of a response, its `rspauth` (§3.5).
    private func digest(_ proof: Proof, of hash: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(proof.nonce.count + proof.clientNonce.count + hash.count + 24)
        let colon = UInt8(ascii: ":")
        text += proof.nonce
        text.append(colon)
        if let protection = challenge.protection {
            text += proof.count
            text.append(colon)
            text += proof.clientNonce
            text.append(colon)
            text.append(contentsOf: protection.rawValue.utf8)
            text.append(colon)
        }
        text += hash
        let algorithm = challenge.algorithm
        guard algorithm.isSession else { return algorithm.hash(secret.digits, text) }
        var session = algorithm.hash(secret.digits, proof.nonce + [colon] + proof.clientNonce)
        return algorithm.hash(Secret(wiping: &session), text)
    }

    /// Whether `digest` is the `rspauth` for the request with the field `sent`. With `auth-int` it covers the response's
    /// content, which has not arrived, so that nothing can be said.
    func verifies(_ digest: String, of sent: AuthorizationField) -> Bool {
        guard challenge.protection != .content, let sent = sent.parsed, let nonce = sent.parameter("nonce"),
            let uri = sent.parameter("uri")
        else { return challenge.protection == .content }
        let proof = Proof(
            nonce: Array(nonce.utf8), count: Array((sent.parameter("nc") ?? "").utf8),
            clientNonce: Array((sent.parameter("cnonce") ?? "").utf8))
        let hash = challenge.algorithm.hash([UInt8(ascii: ":")] + Array(uri.utf8))
        return self.digest(proof, of: hash).elementsEqual(digest.lowercased().utf8)
    }

    /// Eight hexadecimal digits.
    private static func digits(_ count: UInt32) -> [UInt8] {
        withUnsafeBytes(of: count.bigEndian) { Hex.digits($0) }
    }
}
