// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Finds the lines of one site that no request reaches, because for each of their requests other lines come first.
///
/// What is not easy to see is not found: paths that several wildcards cover only together, and clients that are the
/// same under different words.
struct ShadowedLines {
    /// A path of a line, or the whole line if it does not depend on the path.
    private struct Part {
        let entry: PathTable.Entry
        let rule: SiteRule

        var limits: RequestLimits { entry.limits }
    }

    /// Parts with the same path.
    private struct Group {
        private var forAll: [Part] = []
        private var byClients: [ClientRule: [Part]] = [:]
        /// By each of the words that permit a client.
        private var byWord: [ClientRule.Word: [Part]] = [:]

        mutating func append(_ part: Part) {
            guard let clients = part.rule.clients else {
                forAll.append(part)
                return
            }
            byClients[clients, default: []].append(part)
            for word in clients.permitted { byWord[word, default: []].append(part) }
        }

        /// Those that may be for all clients of `rule`.
        func candidates(for rule: SiteRule) -> [Part] {
            guard let clients = rule.clients else { return forAll }
            return forAll + (clients.permitted.first.flatMap { byWord[$0] } ?? byClients[clients] ?? [])
        }
    }

    private struct Path: Hashable {
        var segments: [PathPattern.Segment]
        let ignoresCase: Bool
        let comparesPaths: Bool

        init(_ entry: PathTable.Entry) {
            segments = entry.path.segments
            ignoresCase = entry.limits.ignoresCase
            comparesPaths = entry.limits.comparesPaths
        }

        /// This one, and those with `**` in place of its end, which have all its requests.
        var covering: [Path] {
            [self]
                + segments.indices.map { index in
                    var other = self
                    other.segments = segments[..<index] + [.anything]
                    return other
                }.filter { $0 != self }
        }
    }

    private var parts: [Part] = []
    private var groups: [Path: Group] = [:]

    init(_ rules: [SiteRule]) {
        for (index, rule) in rules.enumerated() {
            let limits = rule.limits ?? RequestLimits()
            for path in limits.paths.isEmpty ? [.everything] : limits.paths {
                let part = Part(entry: PathTable.Entry(line: index, limits, path), rule: rule)
                parts.append(part)
                groups[Path(part.entry), default: Group()].append(part)
            }
        }
    }

    /// The lines that are not reached, each with the first line in its way.
    var found: [(line: SiteRule, other: SiteRule)] {
        var found: [(SiteRule, SiteRule)] = []
        var index = 0
        while index < parts.count {
            let line = parts[index].entry.line
            let end = parts[index...].firstIndex { $0.entry.line != line } ?? parts.count
            let obstacles = parts[index..<end].map(obstacle(to:))
            if !obstacles.contains(where: { $0 == nil }), let first = obstacles.first.flatMap({ $0 }) {
                found.append((parts[index].rule, first))
            }
            index = end
        }
        return found
    }

    /// A line in the way of all requests of a part; nil if the part has some of its own.
    private func obstacle(to part: Part) -> SiteRule? {
        let covering = Path(part.entry).covering.flatMap { groups[$0]?.candidates(for: part.rule) ?? [] }
        let others = covering.filter { other in
            other.entry.line != part.entry.line && other.entry < part.entry
                && other.limits.exceptions.allSatisfy(part.limits.exceptions.contains)
                && isForAllClients(of: part.rule, other.rule)
        }
        if part.limits.methods.isEmpty { return others.first { $0.limits.methods.isEmpty }?.rule }
        guard part.limits.methods.allSatisfy({ method in others.contains { $0.limits.permits(method: method) } }) else {
            return nil
        }
        return others.first?.rule
    }

    private func isForAllClients(of rule: SiteRule, _ other: SiteRule) -> Bool {
        if let clients = other.clients, rule.clients.map({ clients.covers($0) }) != true { return false }
        return other.credentialClients == nil || other.credentialClients?.clients == rule.credentialClients?.clients
    }
}
