// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// Puts a home's root into the trust stores of this machine and takes it out again, each store for itself.
///
/// What is taken out is the root, under whatever name, and every earlier root of this home, by its ``RootName``: roots that were
/// rotated away, or whose home is gone, need no list kept anywhere.
package struct TrustInstaller: Sendable {
    private let home: Home
    private let layout: StoreLayout

    package init(home: Home, layout: StoreLayout) {
        self.home = home
        self.layout = layout
    }

    package enum Goal: Sendable {
        /// Every store trusts the root.
        case present(Certificate)
        /// No store has the root, or an earlier one of this home.
        case absent(Certificate?)

        fileprivate var root: Certificate? {
            switch self {
            case .present(let root): root
            case .absent(let root): root
            }
        }
    }

    /// What is to be done about one store.
    package struct Step: Sendable {
        package let kind: TrustStoreKind
        /// The store's folder or file; empty where there is no store of that kind.
        package let place: String
        package let plan: Plan
        fileprivate let store: (any TrustStore)?
        fileprivate let change: StoreChange?

        fileprivate init(_ store: any TrustStore, _ plan: Plan, _ change: StoreChange? = nil) {
            (kind, place, self.plan) = (store.kind, store.place, plan)
            (self.store, self.change) = (store, change)
        }

        fileprivate init(missing kind: TrustStoreKind, _ plan: Plan) {
            (self.kind, place, self.plan, store, change) = (kind, "", plan, nil, nil)
        }
    }

    package enum Plan: Equatable, Sendable {
        /// It has to be written, in the way that the clause says.
        case write(String)
        /// It is as it should be.
        case asWanted
        /// The program that would look is not installed.
        case unknown(Diagnostic)
        /// It has to be written, or looked at, and cannot be.
        case blocked(Diagnostic)
    }

    package enum Outcome: Equatable, Sendable {
        case done
        case asWanted
        case failed(Diagnostic)
    }

    // MARK: Verbs

    /// What there is to do, store by store. `kinds`: those that are asked for; empty for every store that is found. Writes
    /// nothing; takes about a second where there is a Java.
    package func steps(to goal: Goal, in kinds: [TrustStoreKind]) -> [Step] {
        var steps: [Step] = []
        for kind in TrustStoreKind.allCases where kinds.isEmpty || kinds.contains(kind) {
            let found = stores(kind)
            steps += found.map { step(for: $0, goal) }
            guard found.isEmpty, !kinds.isEmpty else { continue }
            switch goal {
            case .present: steps.append(Step(missing: kind, .blocked(Diagnostic(Self.absence(of: kind)))))
            case .absent: steps.append(Step(missing: kind, .asWanted))
            }
        }
        return steps
    }

    /// Does what the step says, and looks whether it is in force.
    package func perform(_ step: Step, to goal: Goal) -> Outcome {
        guard let store = step.store else { return Self.outcome(of: step) }
        // An earlier step may have done it: Debian's Java follows the system's anchors.
        let now = self.step(for: store, goal)
        guard case .write = now.plan, let change = now.change else { return Self.outcome(of: now) }
        do {
            try store.make(change)
        } catch {
            return .failed(Diagnostic(error.detail, hint: error.hint))
        }
        switch self.step(for: store, goal).plan {
        case .asWanted: return .done
        case .unknown(let diagnostic), .blocked(let diagnostic): return .failed(diagnostic)
        case .write: return .failed(Diagnostic("\(store.place) was written, and is not as it should be"))
        }
    }

    /// The places that have a root of this home which is not `root`.
    package func places(withRootsBesides root: Certificate) -> [(kind: TrustStoreKind, place: String)] {
        TrustStoreKind.allCases.flatMap(stores).filter { store in
            let roots = (try? store.roots(like: root)) ?? []
            return store.obstacle == nil && roots.contains { $0.certificate != root && isOwn($0, root) }
        }.map { ($0.kind, $0.place) }
    }

    // MARK: One store

    private func step(for store: any TrustStore, _ goal: Goal) -> Step {
        if let obstacle = store.obstacle { return Step(store, .unknown(obstacle)) }
        do {
            guard let change = try change(of: store, goal) else { return Step(store, .asWanted) }
            if let barrier = store.barrier(to: change) { return Step(store, .blocked(barrier)) }
            return Step(store, .write(store.description(of: change)), change)
        } catch {
            return Step(store, .blocked(Diagnostic(error.detail, hint: error.hint)))
        }
    }

    private func change(of store: any TrustStore, _ goal: Goal) throws(CountersignError) -> StoreChange? {
        let roots = try store.roots(like: goal.root)
        switch goal {
        case .present(let root):
            guard !roots.contains(where: { $0.certificate == root && $0.isInForce }) else { return nil }
            return .add(root, name: RootName(of: root, in: home))
        case .absent(let root):
            let own = roots.filter { isOwn($0, root) }
            return own.isEmpty ? nil : .remove(own)
        }
    }

    private func isOwn(_ stored: StoredRoot, _ root: Certificate?) -> Bool {
        stored.certificate == root || RootName(parsing: stored.name)?.names(stored.certificate, of: home) == true
    }

    private static func outcome(of step: Step) -> Outcome {
        switch step.plan {
        case .write, .asWanted: .asWanted
        case .unknown(let diagnostic), .blocked(let diagnostic): .failed(diagnostic)
        }
    }

    private func stores(_ kind: TrustStoreKind) -> [any TrustStore] {
        switch kind {
        case .system: SystemStore(layout).map { [$0] } ?? []
        case .nss: NSSStore.all(layout)
        case .java: JavaStore.all(layout)
        }
    }

    private static func absence(of kind: TrustStoreKind) -> String {
        switch kind {
        case .system: "this system has no folder for an administrator's anchors that is known"
        case .nss: "this user has no database of Firefox or Chromium"
        case .java: "there is no Java runtime in JAVA_HOME, in the path or in /usr/lib/jvm"
        }
    }
}
