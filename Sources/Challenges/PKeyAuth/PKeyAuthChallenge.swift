// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The parameters of a PKeyAuth challenge, in a field or in the query of a URN.
package struct PKeyAuthChallenge: Sendable, Equatable {
    package let nonce: String
    /// Returned unchanged.
    package let context: String
    /// Returned unchanged: `1.0`.
    package let version: String
    /// The names of the issuers that the server accepts; empty if it accepts any.
    let authorities: [String]
    /// SHA-1 of the one certificate that the server accepts, in hexadecimal; nil if it names issuers, or accepts any.
    let thumbprint: String?
    /// Names of RFC 7518 §3.1.
    let algorithms: [String]

    /// If the server does not say which algorithms it knows.
    private static let usualAlgorithms = ["RS256"]

    /// Nil without a nonce, a context and a version.
    package init?(_ parameter: (String) -> String?) {
        guard let nonce = parameter("nonce"), let context = parameter("Context"), let version = parameter("Version"),
            !nonce.isEmpty
        else { return nil }
        self.nonce = nonce
        self.context = context
        self.version = version
        authorities = (parameter("CertAuthorities").map(Self.decoded) ?? "").split(separator: ";").map(String.init)
        // Clients read it if there are no issuers.
        thumbprint = authorities.isEmpty ? parameter("CertThumbprint").flatMap { $0.isEmpty ? nil : $0 } : nil
        let algorithms = (parameter("SupportedAlgs") ?? "").split { " ,;".contains($0) }.map(String.init)
        self.algorithms = algorithms.isEmpty ? Self.usualAlgorithms : algorithms
    }

    package init?(_ challenge: Challenge) {
        guard challenge.token68 == nil else { return nil }
        self.init { challenge.parameter($0) }
    }

    package func permits(algorithm: String) -> Bool { algorithms.contains(algorithm) }

    /// Whether the server accepts this certificate, in DER; true if it names none.
    package func accepts(certificate der: [UInt8]) -> Bool {
        thumbprint.map { $0.lowercased() == Hex.encode(Digest.sha1.hash(der)) } ?? true
    }

    /// Whether the server accepts certificates of this issuer. The organisational unit of an issuer that registers
    /// devices is a UUID of its own, so that it decides; without one, all attributes must be the same, in any order.
    package func accepts(issuer: String) -> Bool {
        guard !authorities.isEmpty else { return true }
        let own = Self.attributes(issuer)
        let units = own.filter(Self.isRegistration)
        return authorities.contains { authority in
            let attributes = Self.attributes(authority)
            let wanted = attributes.filter(Self.isRegistration)
            return wanted.isEmpty ? attributes == own : !wanted.isDisjoint(with: units)
        }
    }

    /// `OU=82DBACA4-3E81-46CA-9C73-0950C1EACA97`, in upper case.
    private static func isRegistration(_ attribute: String) -> Bool {
        guard attribute.hasPrefix("OU=") else { return false }
        let groups = attribute.dropFirst(3).split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.utf8.count) == [8, 4, 4, 4, 12] && groups.allSatisfy { $0.allSatisfy(\.isHexDigit) }
    }

    /// The attributes of a name in upper case and without spaces around them.
    private static func attributes(_ name: String) -> Set<String> {
        func trimmed(_ text: Substring) -> String {
            let inner = text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            return String(inner).uppercased()
        }
        return Set(
            name.split(separator: ",").map { attribute in
                attribute.split(separator: "=", maxSplits: 1).map(trimmed).joined(separator: "=")
            })
    }

    /// Removes percent-encoding; the rest stays unchanged.
    static func decoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let value = UInt8(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                decoded.append(value)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }
}
