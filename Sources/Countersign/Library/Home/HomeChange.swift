// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignHome
import CountersignVault

/// A change to a home, by any process.
public struct HomeChange: Hashable, Sendable, CustomStringConvertible {
    /// The kind of change. Later versions may add kinds.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// The name of the static member, such as `sites`.
        public let description: String

        /// The list of sites. It may have become faulty: ``HomeManager/sites()`` then throws.
        public static let sites = Kind(description: "sites")
        /// The credential ``HomeChange/name`` was stored, changed or removed.
        public static let credential = Kind(description: "credential")
        /// The client identity ``HomeChange/name`` was stored, renewed or removed.
        public static let identity = Kind(description: "identity")
        /// The trust exceptions.
        public static let trustExceptions = Kind(description: "trustExceptions")
        /// The trust anchors.
        public static let trustAnchors = Kind(description: "trustAnchors")
        /// The sign-in ``HomeChange/name`` began, was renewed, or has ended.
        public static let signIn = Kind(description: "signIn")
        /// A credential was rejected, accepted or permitted again.
        public static let breaker = Kind(description: "breaker")
        /// The vault was created, locked, unlocked or protected by another key; or it has changed while it is locked,
        /// so that the kind of change is unknown.
        public static let vault = Kind(description: "vault")
        /// Integrated authentication was switched on or off for the home.
        public static let integratedAuthentication = Kind(description: "integratedAuthentication")
    }

    /// The kind of change.
    public let kind: Kind
    /// The name of the object, for the kinds that have one.
    public let name: String?

    /// Creates a value, for the tests of a program.
    public init(_ kind: Kind, name: String? = nil) {
        self.kind = kind
        self.name = name
    }

    /// `credential "work"`, or the kind alone.
    public var description: String { name.map { "\(kind) \($0.debugDescription)" } ?? kind.description }
}

/// The state of a home, for comparison with a later one.
struct HomeState: Equatable {
    var sites: [String]? = nil
    var anchors: [String] = []
    var isPaused = false
    var breaker: BreakerStorage.Records = [:]
    var vaultVersions: VaultWatch
    var isLocked = true
    var contents: VaultContents?

    init(_ home: Home, vault: OpenVault?, isLocked: Bool) {
        sites = (try? home.sites().rules.map { "\($0.location) \($0.text)" })
        anchors = ((try? AnchorStore(home: home).entries()) ?? []).map {
            "\($0.file) \($0.certificate.fingerprintText)"
        }
        isPaused = home.isPaused
        breaker = (try? BreakerFile(home: home, now: ChallengeController.now).read()) ?? [:]
        vaultVersions = VaultWatch(home.vault.storage)
        self.isLocked = isLocked
        _ = try? vault?.reload()
        contents = vault?.contents
    }

    static func == (left: Self, right: Self) -> Bool { left.changes(to: right).isEmpty }

    /// The changes from this state to a later one, in the order of ``HomeChange/Kind``.
    func changes(to new: HomeState) -> [HomeChange] {
        var changes: [HomeChange] = []
        if sites != new.sites { changes.append(HomeChange(.sites)) }
        changes += vaultChanges(to: new)
        if anchors != new.anchors { changes.append(HomeChange(.trustAnchors)) }
        if breaker != new.breaker { changes.append(HomeChange(.breaker)) }
        if isPaused != new.isPaused { changes.append(HomeChange(.integratedAuthentication)) }
        return changes
    }

    private func vaultChanges(to new: HomeState) -> [HomeChange] {
        guard let old = contents, let now = new.contents, isLocked == new.isLocked else {
            var versions = vaultVersions
            let hasChanged = isLocked != new.isLocked || (contents == nil) != (new.contents == nil)
            return hasChanged || versions.takeChange() ? [HomeChange(.vault)] : []
        }
        var changes: [HomeChange] = []
        func compare<Value: Equatable>(_ kind: HomeChange.Kind, _ old: [String: Value], _ new: [String: Value]) {
            for name in Set(old.keys).union(new.keys).sorted() where old[name] != new[name] {
                let change = HomeChange(kind, name: name)
                if !changes.contains(change) { changes.append(change) }
            }
        }
        compare(.credential, old.credentials, now.credentials)
        compare(.credential, old.principals, now.principals)
        compare(.credential, old.awsKeys, now.awsKeys)
        // The access tokens of sign-ins are listed as such.
        compare(
            .credential, old.tokens.filter { old.signIns[$0.key] == nil },
            now.tokens.filter { now.signIns[$0.key] == nil })
        compare(.identity, old.identityKeys, now.identityKeys)
        compare(.identity, old.tokenKeys, now.tokenKeys)
        compare(.identity, old.enrollments, now.enrollments)
        compare(.signIn, old.signIns, now.signIns)
        if old.trustExceptions != now.trustExceptions { changes.append(HomeChange(.trustExceptions)) }
        return changes
    }
}
