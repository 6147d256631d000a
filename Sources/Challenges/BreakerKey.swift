// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension Breaker {
    /// A user name and password, in the breaker's distinction.
    package enum Account: Hashable, Sendable {
        case tag(CredentialTag)
        /// A version of a credential without a tag. It is known to this process only.
        case version(CredentialReference)

        /// Whether other processes know the account, too.
        package var isShared: Bool { if case .tag = self { true } else { false } }
    }

    /// An account in one protection space. The credential's name is only for messages.
    package struct Key: Hashable, Sendable {
        /// A longer realm is replaced by its beginning and its digest.
        private static let longestRealm = 200

        package let space: AuthenticationSpace
        package let credential: CredentialReference
        /// The attempt that the board has permitted; ``free`` if none was needed, and nil for the one of the same
        /// request. It is not part of the key's value.
        package var attempt: UInt64?

        /// The use of an account that needed no permission.
        package static let free: UInt64 = 0

        package init(space: AuthenticationSpace, credential: CredentialReference) {
            if let realm = space.realm, realm.utf8.count > Self.longestRealm {
                let digest = Hex.encode(Digest.sha256.hash(Array(realm.utf8)).prefix(16))
                // Bytes and not characters: a character with combining marks may have any length.
                let beginning = String(decoding: realm.utf8.prefix(32), as: UTF8.self)
                self.space = AuthenticationSpace(
                    origin: space.origin, realm: "\(beginning)… \(digest)", scheme: space.scheme)
            } else {
                self.space = space
            }
            self.credential = credential
        }

        /// The key of one use.
        package func used(by attempt: UInt64) -> Key {
            var key = self
            key.attempt = attempt
            return key
        }

        package var isShared: Bool { credential.tag != nil }

        package var account: Account { credential.tag.map { .tag($0) } ?? .version(credential) }

        /// Whether a server may lock an account because of the credential: not because of a token or a ticket.
        package var locksAccount: Bool { space.scheme != .bearer && !credential.isTicket }

        package static func == (left: Self, right: Self) -> Bool {
            left.space == right.space && left.account == right.account
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(space)
            hasher.combine(account)
        }
    }

    /// Identifies the method and target of a request, without revealing the target.
    package struct RequestTag: Hashable, Sendable {
        /// The beginning of the SHA-256 of the method and the path.
        package let path: UInt64
        /// The same with the query; without a query, ``path``.
        package let whole: UInt64

        package init(path: UInt64, whole: UInt64) {
            self.path = path
            self.whole = whole
        }

        /// `target` is in origin-form: a path, and a query if there is one.
        package init(method: String, target: String) {
            // Octets: to find the characters of a text costs 50,000 instructions.
            let target = target.utf8.prefix { $0 != UInt8(ascii: "#") }
            let path = target.prefix { $0 != UInt8(ascii: "?") }
            self.path = Self.digest(method, path)
            whole = path.endIndex == target.endIndex ? self.path : Self.digest(method, target)
        }

        private static func digest(_ method: String, _ text: Substring.UTF8View) -> UInt64 {
            let bytes = Array(method.utf8) + CollectionOfOne(UInt8(ascii: " ")) + Array(text)
            return Digest.sha256.hash(bytes).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }

        /// A request that the caller did not describe.
        package static let unknown = RequestTag(path: 0, whole: 0)
    }
}
