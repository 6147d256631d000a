// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Computes the `Authorization` field of each request in a realm (RFC 7616 §3.4). All requests share one nonce, and
/// each has a count of its own.
final class DigestSigner: RequestSigner {
    private struct Session: ~Copyable {
        var nonce: [UInt8]
        var count: UInt32 = 0
        /// The client's nonce, which belongs to the server's: it keeps a server from choosing all that is hashed.
        var clientNonce: [UInt8]?
        /// For all requests, because OpenSSL allocates memory for each new one.
        var digest: RunningDigest

        mutating func use(_ nonce: [UInt8]) {
            self.nonce = nonce
            count = 0
            clientNonce = nil
        }
    }

    /// 128 bits.
    private static let clientNonceBytes = 16

    let challenge: DigestChallenge
    let secret: DigestSecret
    private let session: Mutex<Session>
    /// The parameters that are the same for every request: before the nonce, and at the end.
    private let first: [UInt8]
    private let last: [UInt8]

    init(_ challenge: DigestChallenge, _ secret: DigestSecret) {
        self.challenge = challenge
        self.secret = secret
        session = Mutex(
            Session(nonce: Array(challenge.nonce.utf8), digest: RunningDigest(challenge.algorithm.function.digest)))
        var first = secret.userParameters
        first.append(contentsOf: ", realm=".utf8)
        first.appendQuoted(challenge.realm.utf8)
        first.append(contentsOf: ", nonce=".utf8)
        self.first = first
        var last: [UInt8] = []
        if let name = challenge.algorithmName { last.append(contentsOf: ", algorithm=\(name)".utf8) }
        if let opaque = challenge.opaque {
            last.append(contentsOf: ", opaque=".utf8)
            last.appendQuoted(opaque.utf8)
        }
        self.last = last
    }

    var needsContent: Bool { challenge.protection == .content }

    /// Uses `nonce` from now on, if requests still use `previous`: a late response must not bring an older nonce back,
    /// with counts that were used (`nextnonce`, §3.5). An algorithm per session keeps its nonce: RFC 7616 does not say
    /// whether the session's secret changes with it, and a server that wants a new one says that the old one is stale.
    func use(_ nonce: String, after previous: String) {
        guard !challenge.algorithm.isSession, nonce != previous else { return }
        session.withLock { session in
            guard session.nonce.elementsEqual(previous.utf8) else { return }
            session.use(Array(nonce.utf8))
        }
    }

    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField? {
        field(for: request, newClientNonce: Hex.digits(inputs.random(Self.clientNonceBytes)))
    }

    /// `newClientNonce` makes a `cnonce`, if the nonce has none yet.
    func field(
        for request: some RequestDescription, newClientNonce: @autoclosure () -> [UInt8]
    ) -> AuthorizationField? {
        session.withLock { session in
            let target = request.target
            guard let requestDigest = digest(of: request, target, &session.digest) else { return nil }
            let clientNonce = session.clientNonce ?? newClientNonce()
            session.clientNonce = clientNonce
            session.count &+= 1
            let proof = Proof(nonce: session.nonce, count: Self.digits(session.count), clientNonce: clientNonce)
            var text: [UInt8] = []
            text.reserveCapacity(
                first.count + proof.nonce.count + target.utf8.count + challenge.algorithm.digitCount
                    + proof.clientNonce.count + last.count + 96)
            text.append(contentsOf: first)
            text.appendQuoted(proof.nonce)
            text.append(contentsOf: ", uri=".utf8)
            text.appendQuoted(target.utf8)
            text.append(contentsOf: ", response=\"".utf8)
            appendResponse(proof, of: requestDigest, to: &text, &session.digest)
            text.append(UInt8(ascii: "\""))
            if let protection = challenge.protection {
                text.append(contentsOf: ", qop=".utf8)
                text.append(contentsOf: protection.rawValue.utf8)
                text.append(contentsOf: ", nc=".utf8)
                text.append(contentsOf: proof.count)
                text.append(contentsOf: ", cnonce=".utf8)
                text.appendQuoted(proof.clientNonce)
            }
            text.append(contentsOf: last)
            return AuthorizationField(scheme: DigestAuthenticator.word, parameters: text)
        }
    }

    // MARK: Digests

    /// What is hashed besides the secret and the request.
    private struct Proof {
        let nonce: [UInt8]
        /// `nc`: eight hexadecimal digits.
        let count: [UInt8]
        let clientNonce: [UInt8]
    }

    /// A2 (§3.4.3), hashed. Nil if the content is needed and not all of it is available.
    private func digest(
        of request: some RequestDescription, _ target: String, _ digest: inout RunningDigest
    ) -> [UInt8]? {
        var text: [UInt8] = []
        text.reserveCapacity(
            request.method.utf8.count + target.utf8.count + challenge.algorithm.digitCount + 2)
        text.append(contentsOf: request.method.utf8)
        text.append(UInt8(ascii: ":"))
        text.append(contentsOf: target.utf8)
        if needsContent {
            let isComplete = request.readContent { digest.update($0) }
            let contentDigest = digest.finish()
            guard isComplete else { return nil }
            text.append(UInt8(ascii: ":"))
            Hex.appendDigits(contentDigest, to: &text)
        }
        return digest.hash(text)
    }

    /// Appends the `response` (§3.4.1) or, with the digest of a response, its `rspauth` (§3.5).
    private func appendResponse(
        _ proof: Proof, of message: [UInt8], to output: inout [UInt8], _ digest: inout RunningDigest
    ) {
        let algorithm = challenge.algorithm
        let colon = UInt8(ascii: ":")
        var text: [UInt8] = []
        text.reserveCapacity(
            2 * algorithm.digitCount + 2 * proof.nonce.count + 2 * proof.clientNonce.count + proof.count.count + 16)
        defer { text.wipe() }
        secret.digits.withBytes { text.append(contentsOf: $0) }
        text.append(colon)
        text.append(contentsOf: proof.nonce)
        text.append(colon)
        if algorithm.isSession {
            text.append(contentsOf: proof.clientNonce)
            var session = digest.hash(text)
            defer { session.wipe() }
            text.wipe()
            text.removeAll(keepingCapacity: true)
            Hex.appendDigits(session, to: &text)
            text.append(colon)
            text.append(contentsOf: proof.nonce)
            text.append(colon)
        }
        if let protection = challenge.protection {
            text.append(contentsOf: proof.count)
            text.append(colon)
            text.append(contentsOf: proof.clientNonce)
            text.append(colon)
            text.append(contentsOf: protection.rawValue.utf8)
            text.append(colon)
        }
        Hex.appendDigits(message, to: &text)
        Hex.appendDigits(digest.hash(text), to: &output)
    }

    /// Whether `digest` is the `rspauth` for the request with the field `sent`. With `auth-int` it covers the
    /// response's content, which has not arrived, so that nothing can be said.
    func verifies(_ digest: String, of sent: AuthorizationField) -> Bool {
        guard !needsContent else { return true }
        guard let sent = sent.parsed, let nonce = sent.parameter("nonce"), let uri = sent.parameter("uri") else {
            return false
        }
        let proof = Proof(
            nonce: Array(nonce.utf8), count: Array((sent.parameter("nc") ?? "").utf8),
            clientNonce: Array((sent.parameter("cnonce") ?? "").utf8))
        var expected: [UInt8] = []
        session.withLock { session in
            let target = session.digest.hash(Array(":\(uri)".utf8))
            appendResponse(proof, of: target, to: &expected, &session.digest)
        }
        return expected.elementsEqual(digest.lowercased().utf8)
    }

    /// Eight hexadecimal digits.
    private static func digits(_ count: UInt32) -> [UInt8] {
        Hex.digits([UInt8(count >> 24), UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)])
    }
}
