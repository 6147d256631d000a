// SPDX-License-Identifier: Apache-2.0

/// A kind of private key that Countersign generates.
package enum KeySpecification: String, Sendable, Equatable, CaseIterable, CustomStringConvertible {
    case ecP256 = "ec-p256"
    case ecP384 = "ec-p384"
    case ecP521 = "ec-p521"
    case rsa2048 = "rsa-2048"
    case rsa3072 = "rsa-3072"
    case rsa4096 = "rsa-4096"

    /// From its name, such as `ec-p256`, in either case; nil if unknown.
    package init?(_ text: String) { self.init(rawValue: text.lowercased()) }

    /// The specification for `kind`; nil for a kind that Countersign does not generate.
    package init?(_ kind: KeyKind) {
        guard let found = Self.allCases.first(where: { $0.kind == kind }) else { return nil }
        self = found
    }

    package var kind: KeyKind {
        switch self {
        case .ecP256: .ec(curve: "P-256")
        case .ecP384: .ec(curve: "P-384")
        case .ecP521: .ec(curve: "P-521")
        case .rsa2048: .rsa(bits: 2048)
        case .rsa3072: .rsa(bits: 3072)
        case .rsa4096: .rsa(bits: 4096)
        }
    }

    package var description: String { rawValue }
}
