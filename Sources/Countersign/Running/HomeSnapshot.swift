// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
import CountersignCookies
import CountersignHome
import CountersignSignIn
import CountersignSitePolicy
import CountersignTLS
import CountersignVault

/// The contents of a home as last read, from which a ``Policy`` is made.
package struct HomeSnapshot: Sendable {
    var stamp: HomeStamp
    var vaultWatch: VaultWatch
    var vault: OpenVault?
    /// Why the vault is locked; nil while it is not.
    var lockReason: String?
    var sites: SiteList
    /// While false, the policy contains no sites.
    var isAnswering = true
    /// Whether all lines are as with `dry-run=yes`.
    var isDryRun = false
    /// Whether answering is switched off for the whole home.
    var isPaused = false
    var anchors: AnchorFiles
    var root: Certificate?
    var originTLS: TLSClientContext
    var identities: [Identity] = []
    var faults: [EnrolledIdentities.Fault] = []
    /// Warnings about files and lines of the home that have no effect.
    var remarks: [Diagnostic] = []
    var interceptionAuthority: InterceptionAuthority?
    var generation: UInt64 = 0
    /// The trust exceptions in effect when the policy was made.
    var trustExceptions: [TrustExceptionRecord] = []
    /// The vault's contents when the home was last read; nil if it was locked or missing.
    var readContents: VaultContents?
    /// What programs have written for the vault's credentials.
    var written = WrittenSecrets()
    /// The parts of the latest policy; nil before the first.
    private(set) var applied: PolicyInputs?
    /// When a renewal of the interception CA was last attempted.
    var lastRenewalAttempt: Int64 = 0

    /// The parts of a snapshot that a policy depends on. If they are equal, so are the policies.
    struct PolicyInputs: Equatable {
        let rules: [SiteRule]
        let isPaused: Bool
        let anchors: AnchorFiles
        let root: Certificate?
        let credentials: [String: PasswordCredential]?
        let tokens: [String: TokenCredential]?
        let principals: [String: PrincipalCredential]?
        let awsKeys: [String: AWSCredential]?
        let written: WrittenSecrets
        let expiryTimes: [String: Int64]
        let siteTokens: [Origin: [String: SiteToken]]
        let withheld: [String: Refusal]
        let withheldIdentities: [String: Refusal]
        let brokerAccounts: [String: BrokerCookies.Account]
        let identities: [Identity]
        let issuing: [Certificate]?
        let lockReason: String?
        let trustExceptions: [TrustExceptionRecord]
    }

    var policyInputs: PolicyInputs {
        PolicyInputs(
            rules: sites.rules, isPaused: isPaused, anchors: anchors, root: root,
            credentials: vault?.contents.credentials, tokens: vault?.contents.tokens,
            principals: vault?.contents.principals, awsKeys: vault?.contents.awsKeys, written: written,
            expiryTimes: expiryTimes, siteTokens: siteTokens,
            withheld: withheld, withheldIdentities: withheldIdentities, brokerAccounts: brokerAccounts,
            identities: identities, issuing: interceptionAuthority?.issuing, lockReason: lockReason,
            trustExceptions: trustExceptions)
    }

    /// Selects the vault's trust exceptions that are in effect at `now`.
    mutating func selectTrustExceptions(at now: Int64) {
        trustExceptions = (vault?.contents.trustExceptions ?? []).filter { $0.counts(at: now) }
    }

    /// The lock reason of a vault that the user has locked, or whose passphrase has not been entered.
    package static let vaultIsLocked = Refusal.locked.text

    /// Discards everything that comes from the vault.
    mutating func lock() {
        vault = nil
        readContents = nil
        written = WrittenSecrets()
        identities = []
        interceptionAuthority = nil
        trustExceptions = []
        lockReason = Self.vaultIsLocked
    }

    /// The policy for this snapshot, with the next generation number.
    mutating func makePolicy() -> Policy {
        generation += 1
        applied = policyInputs
        let withheld = withheld
        let withheldIdentities = withheldIdentities
        let enrolled: Policy.EnrolledMaterial =
            if lockReason != nil {
                .closed(reason: .locked)
            } else {
                .open(
                    credentials: taggedCredentials, tokens: taggedTokens.filter { withheld[$0.key] == nil },
                    identities: identities.filter { withheldIdentities[$0.name] == nil })
            }
        let exceptions = Dictionary(grouping: trustExceptions) { Origin(scheme: .https, host: $0.host, port: $0.port) }
        return Policy(
            sites: answeredSites, enrolled: enrolled,
            principals: lockReason == nil ? taggedPrincipals : [:],
            awsKeys: lockReason == nil ? awsKeys : [:],
            expiryTimes: lockReason == nil ? expiryTimes : [:],
            siteTokens: lockReason == nil ? siteTokens : [:],
            withheld: lockReason == nil ? withheld : [:],
            withheldIdentities: lockReason == nil ? withheldIdentities : [:],
            withheldSessions: withheldSessions,
            unwritten: lockReason == nil ? written.refusals : [:],
            brokerAccounts: lockReason == nil ? brokerAccounts : [:], originTLS: originTLS,
            interceptionAuthority: interceptionAuthority,
            trustExceptions: exceptions.mapValues { exceptions in
                exceptions.map { TrustException(leaf: $0.leafSHA256, until: $0.until, answers: $0.answers) }
            },
            generation: generation)
    }

    private var answeredSites: SiteList {
        if isPaused { return .empty(because: .paused) }
        guard isAnswering else { return .empty }
        return isDryRun ? sites.dryRun : sites
    }

    /// The credentials with the tags by which all processes of the home identify them.
    private var taggedCredentials: [String: PasswordCredential] {
        guard let vault else { return [:] }
        let key = vault.tagKey
        return vault.contents.credentials.merging(written.passwords) { own, _ in own }
            .mapValues { $0.tagged(with: key) }
    }

    private var taggedTokens: [String: TokenCredential] {
        guard let vault else { return [:] }
        let key = vault.tagKey
        return vault.contents.tokens.merging(written.tokens) { own, _ in own }.mapValues { $0.tagged(with: key) }
    }

    /// When the access tokens of sign-ins expire.
    private var expiryTimes: [String: Int64] {
        (vault?.contents.signIns ?? [:]).mapValues { record in
            // Tokens of a sign-in that is being removed are no longer sent.
            if record.ended == SignInRecord.isSigningOut { return 0 }
            return record.expires == 0 ? .max : record.expires
        }
    }

    /// The access tokens of sign-ins for one site alone; almost always empty.
    private var siteTokens: [Origin: [String: SiteToken]] {
        guard let vault, vault.contents.signIns.values.contains(where: { !$0.siteTokens.isEmpty }) else { return [:] }
        let (key, withheld) = (vault.tagKey, withheld)
        var tokens: [Origin: [String: SiteToken]] = [:]
        for record in vault.contents.signIns.values where record.ended.isEmpty && withheld[record.name] == nil {
            for token in record.siteTokens {
                let origin = Origin(scheme: .https, host: token.host, port: token.port)
                tokens[origin, default: [:]][record.name] = SiteToken(
                    token: token.token(named: record.name).tagged(with: key),
                    expires: token.expires == 0 ? .max : token.expires)
            }
        }
        return tokens
    }

    /// Why the enrolments of these names answer no challenge; almost always empty.
    private var withheld: [String: Refusal] { vault?.contents.withheld ?? [:] }

    private var withheldIdentities: [String: Refusal] { vault?.contents.withheldIdentities ?? [:] }

    private var withheldSessions: Set<SharedSession.Key> {
        guard let contents = vault?.contents else { return [] }
        let fromWipes = contents.wipes.values.filter { !$0.sessionGroup.isEmpty }.map {
            SharedSession.Key(group: $0.sessionGroup, host: $0.sessionHost)
        }
        return Set(
            fromWipes
                + withheld.keys.compactMap { name in
                    contents.signIns[name].flatMap { try? SignInProfile(Array($0.profile.utf8)) }?.session.map {
                        SharedSession.Key(group: $0.group, host: $0.host.text)
                    }
                })
    }

    /// The accounts of the sign-ins whose tokens come from the identity broker.
    private var brokerAccounts: [String: BrokerCookies.Account] {
        (vault?.contents.signIns ?? [:]).filter { $0.value.isFromBroker }.mapValues { record in
            let name = "the sign-in \"\(record.name)\""
            if let reason = withheld[record.name] { return .none(reason: reason.text) }
            guard record.ended.isEmpty else { return .none(reason: "\(name) has ended") }
            guard !record.subject.isEmpty else { return .none(reason: "\(name) does not say whose it is") }
            return .signIn(name: record.name, subject: record.subject, identifier: record.identifier)
        }
    }

    private var awsKeys: [String: AWSCredential] {
        (vault?.contents.awsKeys ?? [:]).merging(written.awsKeys) { own, _ in own }
    }

    private var taggedPrincipals: [String: PrincipalCredential] {
        guard let vault else { return [:] }
        let key = vault.tagKey
        return vault.contents.principals.mapValues { $0.tagged(with: key) }
    }

    /// The counts for the log: `3 sites, 1 credential, 0 identities`.
    var summary: String {
        func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }
        let sites = count(sites.rules.count, "site", "sites")
        guard lockReason == nil else { return "\(sites), the vault is locked" }
        let credentials = count(vault?.contents.credentialNames.count ?? 0, "credential", "credentials")
        let shared = vault?.contents.sessions.count ?? 0
        return "\(sites), \(credentials), \(count(identities.count, "identity", "identities"))"
            + (shared == 0 ? "" : ", \(count(shared, "session", "sessions"))")
    }
}
