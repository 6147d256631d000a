// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import Logging
import NIOConcurrencyHelpers
import CountersignProxy
import CountersignSitePolicy
import CountersignTLS
import CountersignVault

/// Reads a home into a ``Policy`` and keeps that up to date: what is changed in the home is in force a moment later, and what is
/// faulty leaves in force what was.
///
/// Every verb reads files and may block for about a second: call them off the event loops. Any thread may.
package final class PolicyKeeper: Sendable {
    package let home: Home
    package let policy: CurrentPolicy
    /// Why the vault was shut from the beginning, if it was.
    package let vaultErrorAtStart: VaultError?
    private let interceptionNeed: NIOLockedValueBox<InterceptionNeed>
    private let environment: [String: String]
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private let snapshot: NIOLockedValueBox<HomeSnapshot>

    /// What was last read, part by part.
    private struct HomeSnapshot: Sendable {
        var stamp: HomeStamp
        var vault: OpenVault?
        /// The vault is shut, for this reason.
        var lock: String?
        var sites: SiteList
        /// Otherwise no site counts as listed.
        var isAnswering = true
        var anchors: AnchorFiles
        var root: Certificate?
        var originTLS: TLSClientContext
        var identities: [Identity] = []
        var faults: [EnrolledIdentities.Fault] = []
        var authority: InterceptionAuthority?
        var generation: UInt64 = 0
        /// The trust decisions that counted when the policy was made.
        var standing: [TrustDecision] = []
        /// When it was last tried to renew the authority before its end.
        var renewalTried: Int64 = 0

        var policyInputs: PolicyInputs {
            PolicyInputs(
                rules: sites.rules, anchors: anchors, root: root, credentials: vault?.contents.credentials,
                identities: identities,
                issuing: authority?.issuing, lock: lock, standing: standing)
        }
    }

    /// What of a snapshot makes a policy another one.
    private struct PolicyInputs: Equatable {
        let rules: [SiteRule]
        let anchors: AnchorFiles
        let root: Certificate?
        let credentials: [String: PasswordCredential]?
        let identities: [Identity]
        let issuing: [Certificate]?
        let lock: String?
        /// The trust decisions that count.
        let standing: [TrustDecision]
    }

    /// When an interception CA is made, and a vault for its keys where there is none.
    package enum InterceptionNeed: Equatable, Sendable {
        /// Never: nothing is written into the home, and nothing can be intercepted.
        case never
        /// Once the list has a site that is intercepted.
        case whenNeeded
        /// At once, for clients that are to trust it beforehand.
        case always

        func isMet(by sites: SiteList) -> Bool {
            switch self {
            case .never: false
            case .whenNeeded: !InterceptionStore.hosts(of: sites).isEmpty
            case .always: true
            }
        }
    }

    /// Why a vault is shut that was locked by its owner.
    package static let lockedReason = "the vault is locked"

    /// Reads the home for the first time, and throws for whatever is faulty in it. Where the vault wants a passphrase and
    /// `passphrase` throws, the policy begins with a locked vault. `now` gives seconds since 1970.
    package init(
        home: Home, authority need: InterceptionNeed, environment: [String: String], logger: Logger,
        now: @escaping @Sendable () -> Int64, passphrase: () throws -> Secret
    ) throws {
        self.home = home
        interceptionNeed = NIOLockedValueBox(need)
        self.environment = environment
        self.now = now
        self.logger = logger
        let sites = try home.sites()
        let anchors = try home.anchorFiles()
        let root = try InterceptionStore(home: home).root()
        var snapshot = HomeSnapshot(
            stamp: HomeStamp(home), sites: sites, anchors: anchors, root: root,
            originTLS: try Self.originTLS(anchors: anchors, root: root, now: now))
        do {
            snapshot.vault = try Self.openVault(of: home, makingOne: need.isMet(by: sites), passphrase: passphrase)
            vaultErrorAtStart = nil
        } catch let error as VaultError where error.code == .passphraseNeeded {
            snapshot.lock = Self.lockedReason
            vaultErrorAtStart = error
        }
        try Self.readIdentities(home, into: &snapshot)
        for fault in snapshot.faults { Self.report(fault, to: logger) }
        try Self.renewAuthority(home, need, into: &snapshot, environment, logger, now)
        snapshot.standing = Self.standing(in: snapshot, now())
        policy = CurrentPolicy(Self.policy(of: &snapshot))
        self.snapshot = NIOLockedValueBox(snapshot)
    }

    // MARK: Verbs

    /// Reads the home again if a file of it was changed, or the authority nears its end; in any case with `force`.
    package func refresh(force: Bool = false) {
        snapshot.withLockedValue { snapshot in
            let stamp = HomeStamp(home)
            let hasEnded = snapshot.standing.contains { !$0.counts(at: now()) }
            guard force || stamp != snapshot.stamp || hasEnded || shallRenew(&snapshot) else { return }
            snapshot.stamp = stamp
            let before = snapshot.policyInputs
            reread(&snapshot)
            snapshot.standing = Self.standing(in: snapshot, now())
            guard force || snapshot.policyInputs != before else { return }
            policy.replace(with: Self.policy(of: &snapshot))
            logger.info("read \(home.path) again: \(Self.summary(of: snapshot))")
        }
    }

    /// From now on an interception CA is made as `need` says; what there is to make is made at once, or reported as faulty.
    package func require(_ need: InterceptionNeed) {
        interceptionNeed.withLockedValue { $0 = need }
        refresh(force: true)
    }

    /// Shuts the vault: nothing is answered or intercepted until ``unlock(passphrase:)``. Exchanges on their way go on.
    package func lock() {
        snapshot.withLockedValue { snapshot in
            snapshot.vault = nil
            snapshot.identities = []
            snapshot.authority = nil
            snapshot.standing = []
            snapshot.lock = Self.lockedReason
            policy.replace(with: Self.policy(of: &snapshot))
            logger.info("the vault was locked")
        }
    }

    /// Opens the vault again. `passphrase` may be nil where a key file opens it. Throws ``VaultError`` and leaves it shut.
    package func unlock(passphrase: Secret?) throws {
        try snapshot.withLockedValue { snapshot in
            let vault = try VaultFile(home: home.path).open { () throws in
                guard let passphrase else {
                    throw VaultError(.passphraseNeeded, "the vault is opened by a passphrase, and none was given")
                }
                return passphrase
            }
            snapshot.vault = vault
            snapshot.lock = nil
            snapshot.stamp = HomeStamp(home)
            reread(&snapshot)
            snapshot.standing = Self.standing(in: snapshot, now())
            policy.replace(with: Self.policy(of: &snapshot))
            logger.info("the vault was unlocked: \(Self.summary(of: snapshot))")
        }
    }

    /// Whether the list counts. While it does not, every site is one that is not listed; exchanges on their way go on.
    /// `isAnswering` is asked once it is this call's turn, so that of several the last word is in force.
    package func answer(_ isAnswering: () -> Bool) {
        snapshot.withLockedValue { snapshot in
            let isAnswering = isAnswering()
            guard snapshot.isAnswering != isAnswering else { return }
            snapshot.isAnswering = isAnswering
            policy.replace(with: Self.policy(of: &snapshot))
        }
    }

    package var isLocked: Bool { snapshot.withLockedValue { $0.lock != nil } }

    /// The opened vault; nil while it is shut, or where there is none.
    package var vault: OpenVault? { snapshot.withLockedValue { $0.vault } }

    // MARK: Reading

    /// Part by part, so that a fault in one keeps only that part as it was.
    private func reread(_ snapshot: inout HomeSnapshot) {
        let need = interceptionNeed.withLockedValue { $0 }
        attempt("the list that was in force stays") { snapshot.sites = try home.sites() }
        attempt("the anchors that were in force stay") { snapshot.anchors = try home.anchorFiles() }
        if snapshot.lock == nil {
            attempt("the credentials that were in force stay") {
                if let vault = snapshot.vault {
                    try vault.reload()
                } else {
                    snapshot.vault = try Self.openVault(of: home, makingOne: need.isMet(by: snapshot.sites)) {
                        () throws in
                        throw VaultError(.passphraseNeeded, "the vault is opened by a passphrase")
                    }
                }
            }
            let before = snapshot.faults
            attempt("the identities that were in force stay") { try Self.readIdentities(home, into: &snapshot) }
            for fault in snapshot.faults where !before.contains(fault) { Self.report(fault, to: logger) }
            attempt("the interception CA that was in force stays") {
                try Self.renewAuthority(home, need, into: &snapshot, environment, logger, now)
            }
        }
        attempt("the anchors that were in force stay") {
            snapshot.root = try InterceptionStore(home: home).root()
            snapshot.originTLS = try Self.originTLS(anchors: snapshot.anchors, root: snapshot.root, now: now)
        }
    }

    private func attempt(_ consequence: Logger.Message, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            for diagnostic in Diagnostic.all(in: error) {
                logger.error("\(diagnostic.message)", metadata: diagnostic.hint.map { ["hint": "\($0)"] })
            }
            logger.warning(consequence)
        }
    }

    /// Whether the authority nears its end; asked once a minute, for a renewal that fails to be tried again.
    private func shallRenew(_ snapshot: inout HomeSnapshot) -> Bool {
        guard let authority = snapshot.authority, now() - snapshot.renewalTried >= 60 else { return false }
        snapshot.renewalTried = now()
        return !InterceptionStore.isFit(authority, for: InterceptionStore.hosts(of: snapshot.sites), at: now())
    }

    private static func openVault(
        of home: Home, makingOne: Bool, passphrase: () throws -> Secret
    ) throws -> OpenVault? {
        let file = VaultFile(home: home.path)
        if makingOne { return try file.openOrCreate(passphrase: passphrase) }
        return try file.exists() ? try file.open(passphrase: passphrase) : nil
    }

    private static func readIdentities(_ home: Home, into snapshot: inout HomeSnapshot) throws {
        guard let vault = snapshot.vault else { return }
        let enrolled = try EnrolledIdentities(vault.contents, home: home)
        snapshot.identities = enrolled.identities
        snapshot.faults = enrolled.faults
        guard !enrolled.refusedPINs.isEmpty else { return }
        // Where that cannot be kept, this process knows it all the same.
        try? vault.update { contents in enrolled.refusedPINs.forEach { contents.refusePIN(of: $0) } }
    }

    private static func renewAuthority(
        _ home: Home, _ need: InterceptionNeed, into snapshot: inout HomeSnapshot, _ environment: [String: String],
        _ logger: Logger, _ now: @escaping @Sendable () -> Int64
    ) throws {
        guard let vault = snapshot.vault, need.isMet(by: snapshot.sites) else {
            snapshot.authority = nil
            return
        }
        let hosts = InterceptionStore.hosts(of: snapshot.sites)
        let kept = try InterceptionStore(home: home).authority(for: hosts, in: vault, at: now())
        if kept.hasNewRoot {
            logger.notice(
                "a new interception CA was made: clients are to trust \(home.rootCertificate.path)",
                metadata: [
                    "hint": "`countersign exec` and `countersign env` see to it; `countersign ca export` shows it"
                ])
        }
        snapshot.authority = kept.authority
        if snapshot.root != kept.authority.root {
            snapshot.root = kept.authority.root
            snapshot.originTLS = try originTLS(anchors: snapshot.anchors, root: snapshot.root, now: now)
        }
        try TrustBundle(home: home, environment: environment).write(
            root: kept.authority.root, anchors: snapshot.anchors.certificates)
    }

    // MARK: Making

    private static func originTLS(
        anchors: AnchorFiles, root: Certificate?, now: @escaping @Sendable () -> Int64
    ) throws -> TLSClientContext {
        let verifier = ChainVerifier(
            anchors: try TrustAnchors(system: true, additional: anchors.certificates),
            refusing: root.map { [$0] } ?? [], revocationLists: anchors.revocationLists,
            isPublicSuffix: { name in
                guard let host = try? HostName(canonicalizing: name, for: .forwarded) else { return true }
                return Home.publicSuffixes.isPublicSuffix(host)
            })
        return try TLSClientContext(verifier: verifier, now: now)
    }

    private static func policy(of snapshot: inout HomeSnapshot) -> Policy {
        snapshot.generation += 1
        let enrollment: Policy.Enrollment =
            if let reason = snapshot.lock {
                .closed(reason: reason)
            } else {
                .open(credentials: snapshot.vault?.contents.credentials ?? [:], identities: snapshot.identities)
            }
        return Policy(
            sites: snapshot.isAnswering ? snapshot.sites : .empty, enrollment: enrollment,
            originTLS: snapshot.originTLS,
            authority: snapshot.authority,
            standingTrust: standingTrust(snapshot.standing), generation: snapshot.generation)
    }

    /// The decisions of the vault that count now.
    private static func standing(in snapshot: HomeSnapshot, _ now: Int64) -> [TrustDecision] {
        (snapshot.vault?.contents.trustDecisions ?? []).filter { $0.counts(at: now) }
    }

    private static func standingTrust(_ decisions: [TrustDecision]) -> [Origin: [StandingTrust]] {
        Dictionary(grouping: decisions) { Origin(scheme: .https, host: $0.host, port: $0.port) }
            .mapValues { $0.map { StandingTrust(leaf: $0.leafSHA256, until: $0.until, answers: $0.answers) } }
    }

    private static func report(_ fault: EnrolledIdentities.Fault, to logger: Logger) {
        logger.warning("identity \"\(fault.name)\" is left out: \(fault.reason)")
    }

    private static func summary(of snapshot: HomeSnapshot) -> String {
        func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }
        let sites = count(snapshot.sites.rules.count, "site", "sites")
        guard snapshot.lock == nil else { return "\(sites), the vault is locked" }
        let credentials = count(snapshot.vault?.contents.credentials.count ?? 0, "credential", "credentials")
        return "\(sites), \(credentials), \(count(snapshot.identities.count, "identity", "identities"))"
    }
}
