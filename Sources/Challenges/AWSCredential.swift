// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The keys of a user or role of Amazon Web Services, in one record. They sign requests, and answer no challenge.
package struct AWSKeys: Equatable, Sendable {
    /// Not secret: each signature names it.
    package let accessKeyID: String
    package let secret: Secret
    /// Of keys that expire; nil for those of a user.
    package let sessionToken: Secret?
    /// In seconds since 1970; nil for keys that do not expire, or do not say when.
    package let expires: Int64?

    /// Why keys cannot be used or read. `detail` has no secret.
    package struct Fault: Error, Equatable {
        package let detail: String
    }

    package static let secretBytes = 1024
    package static let sessionTokenBytes = 15 << 10

    /// Throws for an access key ID that is not 1 to 128 letters, digits or underscores, and for a secret or a session
    /// token that is empty, too long or not of printable ASCII without blanks.
    package init(
        accessKeyID: String, secret: Secret, sessionToken: Secret?, expires: Int64?
    ) throws(Fault) {
        guard (1...128).contains(accessKeyID.utf8.count), accessKeyID.utf8.allSatisfy(Self.isWord) else {
            throw Fault(detail: "the access key ID is not one: letters and digits, such as AKIA...")
        }
        guard Self.isPrintable(secret, upTo: Self.secretBytes) else {
            throw Fault(detail: "the secret access key is empty, too long or has a character that no key has")
        }
        if let sessionToken, !Self.isPrintable(sessionToken, upTo: Self.sessionTokenBytes) {
            throw Fault(detail: "the session token is empty, too long or has a character that no token has")
        }
        self.accessKeyID = accessKeyID
        self.secret = secret
        self.sessionToken = sessionToken
        self.expires = expires
    }

    /// Reads what a `credential_process` of AWS' tools writes, and `aws configure export-credentials`: JSON with
    /// `Version` 1, `AccessKeyId`, `SecretAccessKey`, and for keys that expire `SessionToken` and `Expiration` in ISO
    /// 8601. Other members are ignored.
    package init(processOutput text: Secret) throws(Fault) {
        var bytes = text.withBytes { Array($0) }
        defer { bytes.wipe() }
        do throws(JSONError) {
            let value = try JSONParser.parse(bytes, secrets: ["SecretAccessKey", "SessionToken"])
            var reader = try JSONReader(value, "the keys", .lenient)
            guard try reader.integerIfPresent("Version") == 1 else {
                throw JSONError(.wrongValue, at: reader.position(of: "Version"), "\"Version\" must be 1")
            }
            let accessKeyID = try reader.string("AccessKeyId")
            guard let secret = try reader.secretIfPresent("SecretAccessKey") else {
                throw JSONError(
                    .wrongValue, at: reader.position(of: "SecretAccessKey"), "\"SecretAccessKey\" is missing")
            }
            let sessionToken = try reader.secretIfPresent("SessionToken")
            var expires: Int64?
            if let time = try reader.stringIfPresent("Expiration") {
                guard let seconds = WallClock.seconds(rfc3339: time) else {
                    throw JSONError(
                        .wrongValue, at: reader.position(of: "Expiration"),
                        "\"Expiration\" must be a time such as 2026-01-01T00:00:00Z")
                }
                expires = seconds
            }
            self = try Self.made(accessKeyID, secret, sessionToken, expires, reader.position(of: "AccessKeyId"))
        } catch {
            throw Fault(detail: "not the JSON of AWS' credential_process: \(error.detail)")
        }
    }

    private static func made(
        _ accessKeyID: String, _ secret: Secret, _ sessionToken: Secret?, _ expires: Int64?, _ position: JSONPosition
    ) throws(JSONError) -> AWSKeys {
        do throws(Fault) {
            return try AWSKeys(accessKeyID: accessKeyID, secret: secret, sessionToken: sessionToken, expires: expires)
        } catch {
            throw JSONError(.wrongValue, at: position, error.detail)
        }
    }

    /// `now` is in seconds since 1970.
    package func haveExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }

    private static func isPrintable(_ secret: Secret, upTo limit: Int) -> Bool {
        (1...limit).contains(secret.count) && secret.withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) } }
    }

    private static func isWord(_ octet: UInt8) -> Bool {
        switch octet {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// Keys of AWS that are enrolled, or that a program has written.
package struct AWSCredential: Equatable, Sendable {
    /// The name under which they were enrolled.
    package let name: String
    package let keys: AWSKeys
    /// The vault's generation, which changes each time the credential is enrolled.
    package let generation: UInt64

    package init(name: String, keys: AWSKeys, generation: UInt64) {
        self.name = name
        self.keys = keys
        self.generation = generation
    }

    package var reference: CredentialReference {
        CredentialReference(name: name, source: .vault(generation: generation))
    }
}
