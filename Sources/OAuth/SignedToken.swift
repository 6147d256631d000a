// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A JWS in compact serialization (RFC 7515 §3.1), parsed but not verified.
package struct SignedToken: Sendable {
    package let algorithm: SignatureAlgorithm
    /// `kid` (RFC 7515 §4.1.4).
    package let keyIdentifier: String?
    let payload: [UInt8]
    private let signedBytes: [UInt8]
    private let signature: [UInt8]

    /// The longest token, in bytes.
    package static let maximumBytes = TokenResponse.maximumTokenBytes

    /// Throws `invalidIDToken` for anything but a token that is signed with one of `algorithms`. `crit` (RFC 7515
    /// §4.1.11) is an error because no extension is implemented, and so is `b64` (RFC 7797). A `typ` of another kind of
    /// token, such as `at+jwt`, is refused (RFC 8725 §3.11).
    package init(
        parsing text: Secret, algorithms: Set<SignatureAlgorithm> = Set(SignatureAlgorithm.allCases)
    ) throws(OAuthError) {
        guard text.count <= Self.maximumBytes else {
            throw Self.invalid("it is longer than \(Self.maximumBytes) bytes")
        }
        let bytes = text.withBytes { Array($0) }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw Self.invalid(parts.count == 5 ? "it is encrypted" : "it does not have three parts")
        }
        func decoded(_ part: ArraySlice<UInt8>) throws(OAuthError) -> [UInt8] {
            guard let bytes = Base64URL.decode(String(decoding: part, as: UTF8.self)) else {
                throw Self.invalid("a part of it is not base64url")
            }
            return bytes
        }
        let header = try Header(try decoded(parts[0]))
        guard let algorithm = SignatureAlgorithm(named: header.algorithm), algorithms.contains(algorithm) else {
            throw Self.invalid("the algorithm \(PrintableText.quote(header.algorithm)) is not permitted")
        }
        self.algorithm = algorithm
        keyIdentifier = header.keyIdentifier
        payload = try decoded(parts[1])
        signature = try decoded(parts[2])
        signedBytes = Array(bytes[..<parts[1].endIndex])
    }

    package enum Verification: Equatable, Sendable {
        case verified
        /// No key fits; newer keys may.
        case unknownKey
        /// A key fits and the signature is not its. If the keys are old ones, the provider may have replaced the key
        /// under the same name.
        case forged
    }

    /// Verifies the signature (RFC 7515 §5.2). The key's type must fit the algorithm, and its `alg`, if there is one,
    /// must be the same. A token without `kid` needs a set with exactly one key that fits (OpenID Connect Core §10.1).
    package func verification(with keys: KeySet) -> Verification {
        let fitting = keys.keys.filter { key in
            (keyIdentifier.map { key.identifier?.isExactly($0) == true } ?? true)
                && (key.algorithm?.isExactly(algorithm.rawValue) ?? true) && algorithm.fits(key.key.kind)
        }
        guard !fitting.isEmpty, keyIdentifier != nil || fitting.count == 1 else { return .unknownKey }
        let isVerified = fitting.contains { $0.key.verifies(signature, of: signedBytes, algorithm.scheme) }
        return isVerified ? .verified : .forged
    }

    static func invalid(_ reason: String) -> OAuthError {
        OAuthError(
            .invalidIDToken, .provider, "the ID token is not accepted: \(reason)",
            hint: "do not sign in there again before the provider's operator has looked at it")
    }

    /// RFC 7515 §4.1.
    private struct Header {
        let algorithm: String
        let keyIdentifier: String?

        init(_ bytes: [UInt8]) throws(OAuthError) {
            do throws(JSONError) {
                let value = try JSONParser.parse(bytes, limits: JSONLimits(bytes: 16 * 1024, depth: 8))
                var reader = try JSONReader(value, "the header", .lenient)
                algorithm = try reader.string("alg")
                keyIdentifier = try reader.stringIfPresent("kid")
                if value["crit"] != nil { throw reader.invalid("crit", "names an extension that is not implemented") }
                if value["b64"] != nil { throw reader.invalid("b64", "is not implemented") }
                if let type = try reader.stringIfPresent("typ")?.lowercased(),
                    type.utf8.reversed().starts(with: "+jwt".utf8.reversed())
                {
                    throw reader.invalid("typ", "is that of another kind of token")
                }
            } catch {
                throw SignedToken.invalid("its header cannot be used: \(error.detail)")
            }
        }
    }
}
