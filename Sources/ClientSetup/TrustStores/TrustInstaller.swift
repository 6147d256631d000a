// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignHome

/// Installs a home's root into the trust stores of this machine, and removes it. Each store is handled independently.
///
/// Removal covers the root under any name, and all earlier roots of the home, which are recognised by their
/// ``RootName``. So roots that were replaced, or whose home was deleted, can be removed without a separate record of
/// them.
package struct TrustInstaller: Sendable {
    private let home: Home
    private let layout: StoreLayout

    package init(home: Home, layout: StoreLayout) {
        self.home = home
        self.layout = layout
    }

    package enum Goal: Sendable {
        /// All stores trust the root.
        case present(Certificate)
        /// No store contains the root or an earlier root of this home.
        case absent(Certificate?)

        fileprivate var root: Certificate? {
            switch self {
            case .present(let root): root
            case .absent(let root): root
            }
        }
    }

    /// The change that one store needs.
    package struct Step: Sendable {
        package let kind: TrustStoreKind
        /// The store's folder or file; empty if there is no store of that kind.
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
        /// The store must be changed, as the text describes.
        case write(String)
        /// The store needs no change.
        case unchanged
        /// The program that reads the store is not installed.
        case unknown(Diagnostic)
        /// The store must be changed or read, but cannot be.
        case blocked(Diagnostic)
    }

    package enum Outcome: Equatable, Sendable {
        case done
        case unchanged
        case failed(Diagnostic)
    }

    // MARK: Planning and performing

    /// The steps to reach the goal in stores of the given kinds, or in all stores if `kinds` is empty. Does not change
    /// anything. Takes about a second if a Java runtime is installed.
    package func steps(to goal: Goal, in kinds: [TrustStoreKind]) -> [Step] {
        var steps: [Step] = []
        for kind in TrustStoreKind.allCases where kinds.isEmpty || kinds.contains(kind) {
            let found = stores(kind)
            steps += found.map { step(for: $0, goal) }
            guard found.isEmpty, !kinds.isEmpty else { continue }
            switch goal {
            case .present: steps.append(Step(missing: kind, .blocked(Diagnostic(Self.absence(of: kind)))))
            case .absent: steps.append(Step(missing: kind, .unchanged))
            }
        }
        return steps
    }

    /// Performs the step, and verifies the result.
    package func perform(_ step: Step, to goal: Goal) -> Outcome {
        guard let store = step.store else { return Self.outcome(of: step) }
        // An earlier step may have done this already: on Debian, Java's keystore follows the system's anchors.
        let now = self.step(for: store, goal)
        guard case .write = now.plan, let change = now.change else {
            if case .absent = goal, now.plan == .unchanged { store.removeRemains() }
            return Self.outcome(of: now)
        }
        do {
            try store.make(change)
        } catch {
            return .failed(Diagnostic(error.detail, hint: error.hint))
        }
        switch self.step(for: store, goal).plan {
        case .unchanged: return .done
        case .unknown(let diagnostic), .blocked(let diagnostic): return .failed(diagnostic)
        case .write:
            return .failed(Diagnostic("\(store.place) was changed, but does not contain the expected certificates"))
        }
    }

    /// The places that contain a root of this home other than `root`.
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
            guard let change = try change(of: store, goal) else { return Step(store, .unchanged) }
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
        case .write, .unchanged: .unchanged
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
        case .system: "this system has no known folder for an administrator's anchors"
        case .nss: "this user has no database of Firefox or Chromium"
        case .java: "there is no Java runtime in JAVA_HOME, in the path or in /usr/lib/jvm"
        }
    }
}
