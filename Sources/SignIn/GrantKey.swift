// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignJSON
import CountersignOAuth

/// The private key with which a client signs its grants. People have it in a file, the vault has it as PKCS#8.
package enum GrantKey {
    /// The largest file, in bytes.
    package static let maximumBytes = 64 << 10

    /// The key in DER, from PEM, DER, or the JSON of a ``ServiceAccountKey``. Throws `configuration` for another file,
    /// and for a key that does not sign with RS256.
    package static func pkcs8(_ file: Secret) throws(OAuthError) -> Secret {
        var bytes = file.withBytes { Array($0) }
        defer { bytes.wipe() }
        if bytes.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") {
            return try pkcs8(try ServiceAccountKey(bytes).privateKey)
        }
        let key: PrivateKey
        let encoded: Secret
        do throws(CertificateError) {
            key = try IdentityFile.readKey(bytes, password: nil)
            encoded = try key.pkcs8
        } catch {
            throw .key(
                "the private key cannot be used: \(error.detail)",
                error.code == .passwordNeeded
                    ? "decrypt it with `openssl pkey -in FILE -out PLAIN`; the vault encrypts it again"
                    : "give the file exactly as the provider has handed it out")
        }
        guard case .rsa = key.kind else {
            throw .key("the private key is of the kind \(key.kind), and the provider expects RSA", "give another key")
        }
        return encoded
    }

    /// The RS256 signature with a key of ``pkcs8(_:)``; nil if it cannot be used.
    package static func signature(of message: [UInt8], with pkcs8: Secret) -> [UInt8]? {
        try? PrivateKey(pkcs8: pkcs8).rs256Signature(of: message)
    }
}

/// The file that Google hands out for a key of a service account.
package struct ServiceAccountKey: Sendable {
    /// The e-mail address of the account.
    package let account: String
    package let keyIdentifier: String
    package let tokenEndpoint: String
    /// In PEM.
    let privateKey: Secret

    private static let what = "the key file of a service account"

    /// Throws `configuration` for another file. The caller wipes the bytes.
    package init(_ document: [UInt8]) throws(OAuthError) {
        do throws(JSONError) {
            let value = try JSONParser.parse(
                document, limits: JSONLimits(bytes: GrantKey.maximumBytes), secrets: ["private_key"])
            var reader = try JSONReader(value, Self.what, .lenient)
            guard try reader.string("type") == "service_account" else {
                throw reader.invalid("type", "is not \"service_account\"")
            }
            account = try reader.string("client_email")
            keyIdentifier = try reader.string("private_key_id")
            tokenEndpoint = try reader.string("token_uri")
            privateKey = try reader.secret("private_key")
        } catch {
            throw .key(
                "\(Self.what) cannot be used: \(error.detail)",
                "create a key of the type JSON at https://console.cloud.google.com/iam-admin/serviceaccounts")
        }
    }
}

extension OAuthError {
    fileprivate static func key(_ detail: String, _ hint: String) -> OAuthError {
        OAuthError(.configuration, .person, detail, hint: hint)
    }
}
