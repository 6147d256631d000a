// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHome
package import CountersignSignIn
import CountersignVault

extension VaultOperations {
    func listed(_ record: SignInRecord) -> ListedSignIn {
        ListedSignIn(
            record, certificate: (vault?.contents).flatMap { ListedCertificate(of: record, in: $0) },
            compliance: compliance(of: record),
            unstored: RenewalLock.unstoredReason(RenewalLock.name(ofSignIn: record.name), of: home))
    }

    static func isBeingWiped(_ name: String) -> CountersignError {
        CountersignError(
            .nameInUse, "\(name.debugDescription) is being wiped",
            hint: "complete that with `countersign wipe \(name)`, or choose another name with --name")
    }

    /// Throws `nameInUse` if the certificate of the sign-in `name` would replace an identity that is not its own.
    func checkIdentity(of name: String, in contents: VaultContents) throws {
        let former = contents.signIns[name]
        let hint = "choose another name with --name, or remove it with `countersign certificate remove \(name)`"
        if let plan = contents.pendingPlan(of: name), former.map({ plan.belongs(to: $0) }) != true {
            throw CountersignError(
                .nameInUse,
                "a certificate of identity \(name.debugDescription) is requested that is not that of a sign-in",
                hint: hint)
        }
        let isThere = contents.hasKey(of: name) || contents.enrollments[name] != nil
        let isTaken =
            isThere
            ? former.map { contents.ownsCertificate($0) } != true
                // A sign-in that was not stored completely may have left a file.
            : try former?.formerSites == nil
                && home.identityChain(named: name).readIfThere(upTo: Home.fileLimitBytes) != nil
        guard isTaken else { return }
        throw CountersignError(
            .nameInUse, "the identity \(name.debugDescription) exists and is not that of a sign-in", hint: hint)
    }

    /// Whether the identity of that name is the sign-in's, or a certificate is requested for it or for a sign-in that
    /// was not stored.
    func ownsIdentity(_ name: String, in vault: OpenVault) throws -> Bool {
        try vault.reload()
        let contents = vault.contents
        if contents.hasAbandonedRequest(named: name) { return true }
        return contents.signIns[name].map { contents.ownsCertificate($0) || contents.ownsRequest($0) } ?? false
    }

    /// Removes the chain's file if the vault has no identity of that name.
    func removeLeftFile(of name: String, in vault: OpenVault) throws {
        let contents = vault.contents
        guard !contents.hasKey(of: name), contents.enrollments[name] == nil else { return }
        _ = try home.identityChain(named: name).remove()
    }

    /// The names of all sign-ins.
    var signInNames: Set<String> { Set((contents?.signIns ?? [:]).keys) }
}

extension VaultContents {
    /// Whether another sign-in's profile has the same session. Which of them has added a cookie is not recorded.
    func shares(_ scope: SessionScope, besides name: String) -> Bool {
        signIns.values.contains { $0.name != name && scope.isSame(as: $0.session) }
    }
}

extension SignInRecord {
    /// The lines that the list may have for it.
    var allSites: [String] { sites + (formerSites ?? []) }

    /// The session that its profile shares; nil if it shares none.
    var session: SessionScope? { (try? SignInProfile(Array(profile.utf8)))?.session }
}

extension SessionScope {
    /// Whether the cookies are stored in the same place, regardless of their names.
    func isSame(as other: SessionScope?) -> Bool {
        other?.group == group && other?.host.text == host.text
    }
}

extension Home {
    /// A client for providers, which trusts the system's anchors and those in `Certs/anchors`, and never the home's own
    /// interception CA.
    package func providerClient(now: @escaping @Sendable () -> Int64) throws -> ProviderClient {
        let anchors = try anchorFiles()
        return ProviderClient(
            anchors: .implicit(additional: anchors.certificates, revocationLists: anchors.revocationLists),
            refusing: try InterceptionStore(home: self).root().map { [$0] } ?? [], now: now)
    }
}
