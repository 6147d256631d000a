// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Computes the `Authorization` field of each request in a realm (RFC 7616 §3.4). All requests share one nonce, and
/// each has a count of its own.
final class DigestSigner: RequestSigner {
    private struct Session: ~Copyable {
        var serverNonce: [UInt8]
        var count: UInt32 = 0
        /// Nil before the first request. The client's nonce in it belongs to the server's: it keeps a server from
        /// choosing all that is hashed.
        var nonce: DigestNonce?
        /// For all requests, because OpenSSL allocates memory for each new one.
        var digest: RunningDigest
    }

    /// 128 bits.
    private static let clientNonceBytes = 16

    let challenge: DigestChallenge
    let secret: DigestSecret
    private let session: Mutex<Session>
    /// Whether the server has accepted a nonce more than once.
    private let isReusable = Atomic(false)

    init(_ challenge: DigestChallenge, _ secret: DigestSecret) {
        self.challenge = challenge
        self.secret = secret
        session = Mutex(
            Session(
                serverNonce: challenge.nonce,
                digest: RunningDigest(challenge.algorithm.function.digest)))
    }

    var needsContent: Bool { challenge.protection == .content }

    var hasServed: Bool { isReusable.load(ordering: .relaxed) }

    func served() {
        if !hasServed { isReusable.store(true, ordering: .relaxed) }
    }

    /// The nonce is a `nextnonce` that no request has used yet.
    var isRenewed: Bool { session.withLock { $0.count == 0 } }

    /// A nonce that the server repeats keeps its count: no server accepts a count twice.
    func answers(_ challenge: Challenge) -> Bool {
        guard let asked = DigestChallenge(challenge), asked.isLike(self.challenge),
            asked.opaque == self.challenge.opaque,
            asked.algorithmName == self.challenge.algorithmName
        else { return false }
        return session.withLock { $0.serverNonce == asked.nonce }
    }

    /// Uses `nonce` from now on, if requests still use `previous`: a late response must not bring an older nonce back,
    /// with counts that were used (`nextnonce`, §3.5). An algorithm per session keeps its nonce: RFC 7616 does not say
    /// whether the session's secret changes with it, and a server that wants a new one says that the old one is stale.
    func use(_ nonce: String, after previous: String) {
        guard !challenge.algorithm.isSession, nonce != previous else { return }
        session.withLock { session in
            guard session.serverNonce.elementsEqual(previous.utf8) else { return }
            session.serverNonce = Array(nonce.utf8)
            session.count = 0
            session.nonce = nil
        }
    }

    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField? {
        field(for: request, newClientNonce: Hex.digits(inputs.random(Self.clientNonceBytes)))
    }

    /// `newClientNonce` makes a `cnonce`, if the nonce has none yet.
    func field(
        for request: some RequestDescription, newClientNonce: @autoclosure () -> [UInt8]
    ) -> AuthorizationField? {
        var target = request.target
        return withUnsafeTemporaryAllocation(byteCount: challenge.algorithm.digitCount, alignment: 1) { message in
            session.withLock { session in
                guard hash(request, &target, into: message, &session.digest) else { return nil }
                let nonce =
                    session.nonce
                    ?? DigestNonce(
                        server: session.serverNonce, client: newClientNonce(), challenge, secret, &session.digest)
                session.nonce = nonce
                session.count &+= 1
                return Hex.withDigits(of: session.count) { count in
                    nonce.field(
                        target: &target, message: UnsafeRawBufferPointer(message), count: count, &session.digest)
                }
            }
        }
    }

    /// Writes A2 (§3.4.3), hashed, in hexadecimal digits. False if the content is needed and not all of it is
    /// available.
    private func hash(
        _ request: some RequestDescription, _ target: inout String, into output: UnsafeMutableRawBufferPointer,
        _ digest: inout RunningDigest
    ) -> Bool {
        if needsContent {
            let isComplete = request.readContent { digest.update($0) }
            digest.finish(digits: output)
            guard isComplete else { return false }
        }
        var method = request.method
        method.withUTF8 { digest.update(UnsafeRawBufferPointer($0)) }
        withUnsafeBytes(of: Self.colon) { digest.update($0) }
        target.withUTF8 { digest.update(UnsafeRawBufferPointer($0)) }
        if needsContent {
            withUnsafeBytes(of: Self.colon) { digest.update($0) }
            digest.update(UnsafeRawBufferPointer(output))
        }
        digest.finish(digits: output)
        return true
    }

    private static let colon = UInt8(ascii: ":")

    /// Whether `proof` has the form of a digest.
    func isDigest(_ proof: String) -> Bool {
        proof.utf8.count == challenge.algorithm.digitCount && Hex.decode(proof) != nil
    }

    /// Whether `proof` is the `rspauth` for the request with the field `sent`. With `auth-int` it covers the
    /// response's content, which has not arrived, so that nothing can be said.
    func verifies(_ proof: String, of sent: AuthorizationField) -> Bool {
        guard !needsContent else { return true }
        guard let sent = sent.parsed, let nonce = sent.octets("nonce"), let uri = sent.octets("uri") else {
            return false
        }
        let count = sent.octets("nc") ?? []
        let clientNonce = sent.octets("cnonce") ?? []
        return withUnsafeTemporaryAllocation(byteCount: challenge.algorithm.digitCount, alignment: 1) { digits in
            session.withLock { session in
                let nonce = DigestNonce(
                    server: nonce, client: clientNonce, challenge, secret, &session.digest)
                session.digest.update([Self.colon] + uri)
                session.digest.finish(digits: digits)
                count.withUnsafeBytes {
                    nonce.respond(to: UnsafeRawBufferPointer(digits), count: $0, into: digits, &session.digest)
                }
            }
            return digits.elementsEqual(proof.lowercased().utf8)
        }
    }
}
