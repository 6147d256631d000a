// SPDX-License-Identifier: Apache-2.0

extension StringProtocol {
    /// Whether both texts have the same bytes. `==` finds canonically equivalent texts equal, which protocols do not
    /// (RFC 8259 §8.3), and normalising a hostile text takes quadratic time.
    package func isExactly(_ other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension Sequence where Element: StringProtocol {
    /// Whether one of the texts has the same bytes as `text`.
    package func containsExactly(_ text: some StringProtocol) -> Bool { contains { $0.isExactly(text) } }
}
