// SPDX-License-Identifier: Apache-2.0

/// The value of one challenge field line as received: octets, because old servers write realms in ISO 8859-1, and the
/// hash of Digest covers the realm as the server wrote it.
package struct ChallengeField: Hashable, Sendable {
    package let octets: [UInt8]

    package init(octets: some Sequence<UInt8>) {
        self.octets = Array(octets)
    }

    /// A value that the caller has decoded. Its octets are those of UTF-8.
    package init(_ text: String) {
        self.init(octets: text.utf8)
    }
}

extension ChallengeField: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) {
        self.init(text)
    }
}
