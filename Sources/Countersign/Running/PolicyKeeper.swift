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
    package let inForce: PolicyInForce
    /// Why the vault was shut from the beginning, if it was.
    package let shutAtStart: VaultError?
    private let authorityNeed: NIOLockedValueBox<AuthorityNeed>
    private let environment: [String: String]
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private let reading: NIOLockedValueBox<Reading>

    /// What was last read, part by part.
    private struct Reading: Sendable {
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

        var decisive: Decisive {
            Decisive(
                rules: sites.rules, anchors: anchors, root: root, credentials: vault?.contents.credentials,
                identities: identities,
                issuing: authority?.issuing, lock: lock, standing: standing)
        }
    }

    /// What of a reading makes a policy another one.
    private struct Decisive: Equatable {
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
    package enum AuthorityNeed: Equatable, Sendable {
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
        home: Home, authority need: AuthorityNeed, environment: [String: String], logger: Logger,
        now: @escaping @Sendable () -> Int64, passphrase: () throws -> Secret
    ) throws {
        self.home = home
        authorityNeed = NIOLockedValueBox(need)
        self.environment = environment
        self.now = now
        self.logger = logger
        let sites = try home.sites()
        let anchors = try home.anchorFiles()
        let root = try InterceptionStore(home: home).root()
        var reading = Reading(
            stamp: HomeStamp(home), sites: sites, anchors: anchors, root: root,
            originTLS: try Self.originTLS(anchors: anchors, root: root, now: now))
        do {
            reading.vault = try Self.openVault(of: home, makingOne: need.isMet(by: sites), passphrase: passphrase)
            shutAtStart = nil
        } catch let error as VaultError where error.code == .passphraseNeeded {
            reading.lock = Self.lockedReason
            shutAtStart = error
        }
        try Self.readIdentities(home, into: &reading)
        for fault in reading.faults { Self.report(fault, to: logger) }
        try Self.renewAuthority(home, need, into: &reading, environment, logger, now)
        reading.standing = Self.standing(in: reading, now())
        inForce = PolicyInForce(Self.policy(of: &reading))
        self.reading = NIOLockedValueBox(reading)
    }

    // MARK: Verbs

    /// Reads the home again if a file of it was changed, or the authority nears its end; in any case with `force`.
    package func refresh(force: Bool = false) {
        reading.withLockedValue { reading in
            let stamp = HomeStamp(home)
            let hasEnded = reading.standing.contains { !$0.counts(at: now()) }
            guard force || stamp != reading.stamp || hasEnded || shallRenew(&reading) else { return }
            reading.stamp = stamp
            let before = reading.decisive
            reread(&reading)
            reading.standing = Self.standing(in: reading, now())
            guard force || reading.decisive != before else { return }
            inForce.replace(with: Self.policy(of: &reading))
            logger.info("read \(home.path) again: \(Self.summary(of: reading))")
        }
    }

    /// From now on an interception CA is made as `need` says; what there is to make is made at once, or reported as faulty.
    package func require(_ need: AuthorityNeed) {
        authorityNeed.withLockedValue { $0 = need }
        refresh(force: true)
    }

    /// Shuts the vault: nothing is answered or intercepted until ``unlock(passphrase:)``. Exchanges on their way go on.
    package func lock() {
        reading.withLockedValue { reading in
            reading.vault = nil
            reading.identities = []
            reading.authority = nil
            reading.standing = []
            reading.lock = Self.lockedReason
            inForce.replace(with: Self.policy(of: &reading))
            logger.info("the vault was locked")
        }
    }

    /// Opens the vault again. `passphrase` may be nil where a key file opens it. Throws ``VaultError`` and leaves it shut.
    package func unlock(passphrase: Secret?) throws {
        try reading.withLockedValue { reading in
            let vault = try VaultFile(home: home.path).open { () throws in
                guard let passphrase else {
                    throw VaultError(.passphraseNeeded, "the vault is opened by a passphrase, and none was given")
                }
                return passphrase
            }
            reading.vault = vault
            reading.lock = nil
            reading.stamp = HomeStamp(home)
            reread(&reading)
            reading.standing = Self.standing(in: reading, now())
            inForce.replace(with: Self.policy(of: &reading))
            logger.info("the vault was unlocked: \(Self.summary(of: reading))")
        }
    }

    /// Whether the list counts. While it does not, every site is one that is not listed; exchanges on their way go on.
    /// `isAnswering` is asked once it is this call's turn, so that of several the last word is in force.
    package func answer(_ isAnswering: () -> Bool) {
        reading.withLockedValue { reading in
            let isAnswering = isAnswering()
            guard reading.isAnswering != isAnswering else { return }
            reading.isAnswering = isAnswering
            inForce.replace(with: Self.policy(of: &reading))
        }
    }

    package var isLocked: Bool { reading.withLockedValue { $0.lock != nil } }

    /// The opened vault; nil while it is shut, or where there is none.
    package var vault: OpenVault? { reading.withLockedValue { $0.vault } }

    // MARK: Reading

    /// Part by part, so that a fault in one keeps only that part as it was.
    private func reread(_ reading: inout Reading) {
        let need = authorityNeed.withLockedValue { $0 }
        attempt("the list that was in force stays") { reading.sites = try home.sites() }
        attempt("the anchors that were in force stay") { reading.anchors = try home.anchorFiles() }
        if reading.lock == nil {
            attempt("the credentials that were in force stay") {
                if let vault = reading.vault {
                    try vault.reload()
                } else {
                    reading.vault = try Self.openVault(of: home, makingOne: need.isMet(by: reading.sites)) {
                        () throws in
                        throw VaultError(.passphraseNeeded, "the vault is opened by a passphrase")
                    }
                }
            }
            let before = reading.faults
            attempt("the identities that were in force stay") { try Self.readIdentities(home, into: &reading) }
            for fault in reading.faults where !before.contains(fault) { Self.report(fault, to: logger) }
            attempt("the interception CA that was in force stays") {
                try Self.renewAuthority(home, need, into: &reading, environment, logger, now)
            }
        }
        attempt("the anchors that were in force stay") {
            reading.root = try InterceptionStore(home: home).root()
            reading.originTLS = try Self.originTLS(anchors: reading.anchors, root: reading.root, now: now)
        }
    }

    private func attempt(_ consequence: Logger.Message, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            for complaint in Complaint.all(in: error) {
                logger.error("\(complaint.message)", metadata: complaint.hint.map { ["hint": "\($0)"] })
            }
            logger.warning(consequence)
        }
    }

    /// Whether the authority nears its end; asked once a minute, for a renewal that fails to be tried again.
    private func shallRenew(_ reading: inout Reading) -> Bool {
        guard let authority = reading.authority, now() - reading.renewalTried >= 60 else { return false }
        reading.renewalTried = now()
        return !InterceptionStore.isFit(authority, for: InterceptionStore.hosts(of: reading.sites), at: now())
    }

    private static func openVault(
        of home: Home, makingOne: Bool, passphrase: () throws -> Secret
    ) throws -> OpenVault? {
        let file = VaultFile(home: home.path)
        if makingOne { return try file.openOrCreate(passphrase: passphrase) }
        return try file.exists() ? try file.open(passphrase: passphrase) : nil
    }

    private static func readIdentities(_ home: Home, into reading: inout Reading) throws {
        guard let vault = reading.vault else { return }
        let enrolled = try EnrolledIdentities(vault.contents, home: home)
        reading.identities = enrolled.identities
        reading.faults = enrolled.faults
        guard !enrolled.refusedPINs.isEmpty else { return }
        // Where that cannot be kept, this process knows it all the same.
        try? vault.update { contents in enrolled.refusedPINs.forEach { contents.refusePIN(of: $0) } }
    }

    private static func renewAuthority(
        _ home: Home, _ need: AuthorityNeed, into reading: inout Reading, _ environment: [String: String],
        _ logger: Logger, _ now: @escaping @Sendable () -> Int64
    ) throws {
        guard let vault = reading.vault, need.isMet(by: reading.sites) else {
            reading.authority = nil
            return
        }
        let hosts = InterceptionStore.hosts(of: reading.sites)
        let kept = try InterceptionStore(home: home).authority(for: hosts, in: vault, at: now())
        if kept.hasNewRoot {
            logger.notice(
                "a new interception CA was made: clients are to trust \(home.rootCertificate.path)",
                metadata: [
                    "hint": "`countersign exec` and `countersign env` see to it; `countersign ca export` shows it"
                ])
        }
        reading.authority = kept.authority
        if reading.root != kept.authority.root {
            reading.root = kept.authority.root
            reading.originTLS = try originTLS(anchors: reading.anchors, root: reading.root, now: now)
        }
        try TrustBundle(home: home, environment: environment).write(
            root: kept.authority.root, anchors: reading.anchors.certificates)
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

    private static func policy(of reading: inout Reading) -> Policy {
        reading.generation += 1
        let enrollment: Policy.Enrollment =
            if let reason = reading.lock {
                .closed(reason: reason)
            } else {
                .open(credentials: reading.vault?.contents.credentials ?? [:], identities: reading.identities)
            }
        return Policy(
            sites: reading.isAnswering ? reading.sites : .empty, enrollment: enrollment, originTLS: reading.originTLS,
            authority: reading.authority,
            standingTrust: standingTrust(reading.standing), generation: reading.generation)
    }

    /// The decisions of the vault that count now.
    private static func standing(in reading: Reading, _ now: Int64) -> [TrustDecision] {
        (reading.vault?.contents.trustDecisions ?? []).filter { $0.counts(at: now) }
    }

    private static func standingTrust(_ decisions: [TrustDecision]) -> [Origin: [StandingTrust]] {
        Dictionary(grouping: decisions) { Origin(scheme: .https, host: $0.host, port: $0.port) }
            .mapValues { $0.map { StandingTrust(leaf: $0.leafSHA256, until: $0.until, answers: $0.answers) } }
    }

    private static func report(_ fault: EnrolledIdentities.Fault, to logger: Logger) {
        logger.warning("identity \"\(fault.name)\" is left out: \(fault.reason)")
    }

    private static func summary(of reading: Reading) -> String {
        func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }
        let sites = count(reading.sites.rules.count, "site", "sites")
        guard reading.lock == nil else { return "\(sites), the vault is locked" }
        let credentials = count(reading.vault?.contents.credentials.count ?? 0, "credential", "credentials")
        return "\(sites), \(credentials), \(count(reading.identities.count, "identity", "identities"))"
    }
}
