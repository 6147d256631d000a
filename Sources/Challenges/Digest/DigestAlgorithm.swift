// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The `algorithm` of a Digest challenge (RFC 7616 §3.3).
struct DigestAlgorithm: Equatable, Sendable {
    /// The hash function, named as in the registry of RFC 7616 §6.1.
    enum Function: String, CaseIterable, Sendable {
        case sha512_256 = "SHA-512-256"
        case sha256 = "SHA-256"
        case md5 = "MD5"

        var digest: Digest {
            switch self {
            case .sha512_256: .sha512_256
            case .sha256: .sha256
            case .md5: .md5
            }
        }
    }

    private static let sessionSuffix = "-sess"

    let function: Function
    /// Whether the secret is hashed with the nonces of a session.
    let isSession: Bool

    /// Nil if the challenge names another algorithm. Without a name it means MD5.
    init?(_ challenge: Challenge) {
        var name = (challenge.parameter("algorithm") ?? Function.md5.rawValue).lowercased()
        isSession = name.hasSuffix(Self.sessionSuffix)
        if isSession { name.removeLast(Self.sessionSuffix.count) }
        guard let function = Function.allCases.first(where: { $0.rawValue.lowercased() == name }) else { return nil }
        self.function = function
    }

    /// The number of digits of a hash.
    var digitCount: Int { 2 * function.digest.lengthBytes }

    /// H(`text`) in lower-case hexadecimal digits.
    func hash(_ text: [UInt8]) -> [UInt8] { Hex.digits(function.digest.hash(text)) }
}
