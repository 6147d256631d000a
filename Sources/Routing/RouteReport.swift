// SPDX-License-Identifier: Apache-2.0

package import CountersignParents

/// What a ``RouteFinder`` knows about parents and scripts, for people.
package struct RouteReport: Equatable, Sendable {
    package struct Parent: Equatable, Sendable {
        package let parent: ParentProxy
        /// For how long it is still tried last, because a connection to it has failed; nil if none has.
        package let lastFor: Duration?
    }

    package struct Script: Equatable, Sendable {
        package let source: ScriptSource
        /// A sentence; nil without a fault.
        package let fault: String?
    }

    /// Those of the setting in its order, then others that have failed.
    package let parents: [Parent]
    package let scripts: [Script]

    init(
        _ sources: [ParentSource], failed: [ParentProxy: Duration], faults: [ScriptSource: String]
    ) {
        var listed: [ParentProxy] = []
        var scripts: [Script] = []
        for source in sources {
            switch source {
            case .hop(.parent(let parent)): listed.append(parent)
            case .script(let script): scripts.append(Script(source: script, fault: faults[script]))
            case .hop(.direct), .system: break
            }
        }
        let others = failed.keys.filter { !listed.contains($0) }.sorted { $0.description < $1.description }
        parents = (listed + others).map { Parent(parent: $0, lastFor: failed[$0]) }
        self.scripts = scripts
    }
}
