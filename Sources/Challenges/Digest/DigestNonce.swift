// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A server's nonce with the client's nonce for it, and all texts that are the same for every request with them (RFC
/// 7616 §3.4). The requests differ in the target, the count and the digest.
final class DigestNonce: Sendable {
    /// Hashed before the count: the secret and the server's nonce, each with a colon. With an algorithm per session,
    /// the secret is the session's.
    private let hashedFirst: Secret
    /// Hashed after the count: the client's nonce and `qop`. Without `qop`, neither they nor the count are hashed.
    private let hashedMiddle: [UInt8]
    private let hasCount: Bool
    private let digitCount: Int

    // The field: before the target, before the digest, before the count, at the end.
    private let beforeTarget: [UInt8]
    private static let beforeDigest: StaticString = ", response=\""
    private let beforeCount: [UInt8]
    private let end: [UInt8]

    init(
        server: [UInt8], client: [UInt8], _ challenge: DigestChallenge, _ secret: DigestSecret,
        _ digest: inout RunningDigest
    ) {
        let colon = UInt8(ascii: ":")
        hasCount = challenge.protection != nil
        digitCount = challenge.algorithm.digitCount
        hashedFirst = Self.hashedFirst(server, client, challenge, secret, &digest)
        hashedMiddle = challenge.protection.map { [colon] + client + [colon] + Array($0.rawValue.utf8) + [colon] } ?? []

        var text = secret.userParameters
        text.append(contentsOf: ", realm=".utf8)
        text.appendQuoted(challenge.realm)
        text.append(contentsOf: ", nonce=".utf8)
        text.appendQuoted(server)
        text.append(contentsOf: ", uri=\"".utf8)
        beforeTarget = text

        text = [UInt8(ascii: "\"")]
        if let protection = challenge.protection { text.append(contentsOf: ", qop=\(protection.rawValue), nc=".utf8) }
        beforeCount = text

        text = []
        if hasCount {
            text.append(contentsOf: ", cnonce=".utf8)
            text.appendQuoted(client)
        }
        if let name = challenge.algorithmName { text.append(contentsOf: ", algorithm=\(name)".utf8) }
        if let opaque = challenge.opaque {
            text.append(contentsOf: ", opaque=".utf8)
            text.appendQuoted(opaque)
        }
        end = text
    }

    private static func hashedFirst(
        _ server: [UInt8], _ client: [UInt8], _ challenge: DigestChallenge, _ secret: DigestSecret,
        _ digest: inout RunningDigest
    ) -> Secret {
        let digitCount = challenge.algorithm.digitCount
        let colon = UInt8(ascii: ":")
        if challenge.algorithm.isSession {
            secret.digits.withBytes { digest.update($0) }
            digest.update([colon] + server + [colon] + client)
        }
        return Secret(count: digitCount + server.count + 2) { output in
            let digits = UnsafeMutableRawBufferPointer(rebasing: output[..<digitCount])
            if challenge.algorithm.isSession {
                digest.finish(digits: digits)
            } else {
                secret.digits.withBytes { digits.copyMemory(from: $0) }
            }
            output[digitCount] = colon
            output[(digitCount + 1)...].copyBytes(from: server)
            output[output.count - 1] = colon
        }
    }

    /// Writes the digits of the `response` (§3.4.1) or, with the digest of a response, of its `rspauth` (§3.5).
    /// - Parameters:
    ///   - count: `nc`, eight hexadecimal digits.
    ///   - message: A2, hashed, in hexadecimal digits.
    func respond(
        to message: UnsafeRawBufferPointer, count: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
        _ digest: inout RunningDigest
    ) {
        hashedFirst.withBytes { digest.update($0) }
        if hasCount {
            digest.update(count)
            digest.update(hashedMiddle)
        }
        digest.update(message)
        digest.finish(digits: output)
    }

    /// The field of the request for `target` whose A2 is `message`, as in ``respond(to:count:into:_:)``.
    func field(
        target: inout String, message: UnsafeRawBufferPointer, count: UnsafeRawBufferPointer,
        _ digest: inout RunningDigest
    ) -> AuthorizationField {
        target.withUTF8 { target in
            let escapes = target.count(where: Self.isEscaped)
            let size =
                beforeTarget.count + target.count + escapes + 1 + Self.beforeDigest.utf8CodeUnitCount + digitCount
                + beforeCount.count + (hasCount ? count.count : 0) + end.count
            return AuthorizationField(scheme: DigestAuthenticator.word, parameterBytes: size) { output in
                var output = FieldOutput(rest: output)
                output.append(beforeTarget)
                if escapes == 0 { output.append(UnsafeRawBufferPointer(target)) } else { output.appendEscaped(target) }
                output.append(UInt8(ascii: "\""))
                output.append(Self.beforeDigest)
                respond(to: message, count: count, into: output.take(digitCount), &digest)
                output.append(beforeCount)
                if hasCount { output.append(count) }
                output.append(end)
            }
        }
    }

    /// Whether a character has a backslash before it in a quoted-string (RFC 9110 §5.6.4).
    fileprivate static func isEscaped(_ octet: UInt8) -> Bool {
        octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\")
    }
}

/// Memory of the right size that is written from its beginning to its end.
private struct FieldOutput {
    var rest: UnsafeMutableRawBufferPointer

    /// The next `count` bytes, for the caller to write.
    mutating func take(_ count: Int) -> UnsafeMutableRawBufferPointer {
        defer { rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...]) }
        return UnsafeMutableRawBufferPointer(rebasing: rest[..<count])
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) { take(bytes.count).copyMemory(from: bytes) }

    mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    mutating func append(_ text: StaticString) { text.withUTF8Buffer { append(UnsafeRawBufferPointer($0)) } }

    mutating func append(_ octet: UInt8) { take(1)[0] = octet }

    mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
        for octet in text {
            if DigestNonce.isEscaped(octet) { append(UInt8(ascii: "\\")) }
            append(octet)
        }
    }
}
