// SPDX-License-Identifier: Apache-2.0

/// The next hops of a request, in the order in which they are tried, and why. Never empty.
package struct Route: Hashable, Sendable {
    /// The setting that decided.
    package enum Reason: Hashable, Sendable, CustomStringConvertible {
        /// No setting names a parent.
        case noParent
        /// `--parent`.
        case setting
        /// A variable of the environment.
        case variable(String)
        /// An element of `--no-proxy` or of the variable.
        case exception(setting: String, element: String)
        /// A loopback name or address, which never leaves the machine (RFC 6761 §6.3).
        case thisMachine
        /// The result of a script.
        case script(ScriptSource)

        package var description: String {
            switch self {
            case .noParent: "no parent is set"
            case .setting: "--parent"
            case .variable(let name): name
            case .exception(let setting, let element): "\(setting) contains \(element)"
            case .thisMachine: "it is this machine"
            case .script(let source): "script \(source)"
            }
        }
    }

    /// A hop with its reason.
    package struct Candidate: Hashable, Sendable {
        package let hop: NextHop
        package let reason: Reason

        package init(_ hop: NextHop, _ reason: Reason) {
            self.hop = hop
            self.reason = reason
        }
    }

    package let candidates: [Candidate]

    /// Leaves out a hop that occurs before. Nil without candidates.
    package init?(_ candidates: [Candidate]) {
        guard !candidates.isEmpty else { return nil }
        var seen: Set<NextHop> = []
        self.candidates = candidates.filter { seen.insert($0.hop).inserted }
    }

    private init(_ candidate: Candidate) { candidates = [candidate] }

    /// Directly to the origin.
    package static func direct(_ reason: Reason) -> Route { Route(Candidate(.direct, reason)) }

    package var hops: [NextHop] { candidates.map(\.hop) }
}

/// The source of a script.
package enum ScriptSource: Hashable, Sendable, CustomStringConvertible {
    /// An http or https URL.
    case url(String)
    case file(String)
    /// The host `wpad` of the own domain.
    case wpad

    package var description: String {
        switch self {
        case .url(let url): url
        case .file(let path): path
        case .wpad: "wpad"
        }
    }
}
