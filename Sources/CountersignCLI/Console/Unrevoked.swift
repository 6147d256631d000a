// SPDX-License-Identifier: Apache-2.0

/// Tokens that a provider has not revoked.
enum Unrevoked {
    /// Warns of `tokens`, with the provider's or the connection's reason.
    static func warn(of tokens: String = "the tokens", _ reason: String) {
        Console.warning(
            "the provider has not revoked \(tokens): \(reason)",
            hint: "they end by themselves; the provider's operator can end them earlier")
    }
}
