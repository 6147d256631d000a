// SPDX-License-Identifier: Apache-2.0

/// How a client stands to the `for=` of a list. Clients of the same standing are treated alike.
package struct ClientStanding: Hashable, Sendable {
    /// The rules that permit the client.
    private let permitted: Set<ClientRule>
    /// The rules that exclude it with a `!` word.
    private let excluded: Set<ClientRule>
    /// A word of `for=` that would permit the client; nil if nothing about it is known.
    package let word: ClientRule.Word?

    package init(_ facts: ClientFacts, among rules: Set<ClientRule>) {
        permitted = rules.filter { $0.permits(facts) }
        excluded = rules.filter { $0.excludes(facts) }
        word = facts.word
    }

    /// `rule` must be one of those that the standing was decided among: no other permits.
    package func isPermitted(by rule: ClientRule) -> Bool { permitted.contains(rule) }

    /// The same for exclusion.
    package func isExcluded(by rule: ClientRule) -> Bool { excluded.contains(rule) }
}
