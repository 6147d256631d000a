// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A user's secret in one realm: H(user:realm:password) (RFC 7616 §3.4.2). Anyone who has it can answer every challenge
/// of the realm.
final class DigestSecret: Sendable {
    /// In hexadecimal digits.
    let digits: Secret
    /// The parameters that name the user, without separators.
    let userParameters: [UInt8]

    /// Throws `unusableCredential` as ``CredentialText`` does.
    init(
        of credential: PasswordCredential, domain: String?, _ challenge: DigestChallenge, _ charset: CredentialCharset
    ) throws(AuthenticationError) {
        let user = try CredentialText.user(of: credential, domain: domain)
        let name = try CredentialText.bytes(user, charset)
        let colon = UInt8(ascii: ":")
        let prefix = name + [colon] + challenge.realm + [colon]
        let algorithm = challenge.algorithm
        digits = try CredentialText.withPassword(of: credential, after: prefix, charset) { text in
            var digest = algorithm.function.digest.hash(text)
            var digits = Hex.digits(digest)
            digest.wipe()
            return Secret(wiping: &digits)
        }
        if challenge.hashesUser {
            let hash = algorithm.hash(prefix.dropLast())
            userParameters = Self.parameter("username", hash) + Array(", userhash=true".utf8)
        } else if challenge.statesCharset, name.contains(where: { $0 >= 0x80 }) {
            userParameters = Array("username*=UTF-8''".utf8) + Self.percentEncoded(name)
        } else {
            userParameters = Self.parameter("username", name)
        }
    }

    /// `name="value"`.
    private static func parameter(_ name: String, _ value: [UInt8]) -> [UInt8] {
        var text = Array(name.utf8)
        text.append(UInt8(ascii: "="))
        text.appendQuoted(value)
        return text
    }

    /// RFC 8187 §3.2.1.
    private static func percentEncoded(_ bytes: [UInt8]) -> [UInt8] {
        PercentEncoding.encode(bytes) { octet in
            PercentEncoding.isUnreserved(octet) || "!#$&+^`|".utf8.contains(octet)
        }
    }
}
