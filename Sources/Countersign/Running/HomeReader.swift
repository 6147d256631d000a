// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignClientSetup
import CountersignCryptography
import CountersignHome
import CountersignRevocation
import CountersignTLS
import CountersignVault
import Logging

/// Reads a home's files into a ``HomeSnapshot``, and creates or renews the interception CA if that is required.
///
/// Every method reads files and may block for about a second.
struct HomeReader: Sendable {
    let home: Home
    let environment: [String: String]
    let logger: Logger
    /// Learns whether origins' certificates are revoked.
    let revocation: RevocationService
    /// Seconds since 1970.
    let now: @Sendable () -> Int64

    init(home: Home, environment: [String: String], logger: Logger, now: @escaping @Sendable () -> Int64) {
        self.home = home
        self.environment = environment
        self.logger = logger
        self.now = now
        revocation = RevocationService(storage: RevocationFolder(home: home).storage, now: now)
    }

    /// Reads everything, and throws on the first fault. If the vault requires a passphrase and `passphrase` throws, the
    /// snapshot is locked and the error is returned with it.
    func read(
        need: InterceptionNeed, again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws -> (snapshot: HomeSnapshot, vaultError: VaultError?) {
        let sites = try home.sites()
        let anchors = try home.anchorFiles()
        report(weaknessesOf: anchors, except: AnchorFiles())
        let root = try InterceptionStore(home: home).root()
        var snapshot = HomeSnapshot(
            stamp: HomeStamp(home), vaultWatch: VaultWatch(home.vault.storage), sites: sites, anchors: anchors,
            root: root,
            originTLS: try originTLS(anchors: anchors, root: root))
        snapshot.isPaused = home.isPaused
        var vaultError: VaultError?
        do {
            snapshot.vault = try openVault(creating: need.isMet(by: sites), again: again, passphrase: passphrase)
        } catch let error as VaultError where error.code == .passphraseNeeded || isOutdatedCopy(error) {
            snapshot.lockReason = HomeSnapshot.vaultIsLocked
            vaultError = error
        }
        finishProfiles(of: snapshot)
        try readIdentities(into: &snapshot)
        for fault in snapshot.faults { report(fault) }
        try renewInterceptionAuthority(need, in: &snapshot)
        snapshot.selectTrustExceptions(at: now())
        snapshot.remarks = remarks(on: snapshot)
        return (snapshot, vaultError)
    }

    /// Reads each part again. A fault in one part is logged and keeps that part, and only that part, unchanged. Returns
    /// the faults.
    func reread(_ snapshot: inout HomeSnapshot, need: InterceptionNeed) -> [String] {
        var faults: [String] = []
        func attempt(_ consequence: Logger.Message, _ body: () throws -> Void) {
            faults += self.attempt(consequence, body)
        }
        snapshot.isPaused = home.isPaused
        attempt("keeping the previous list of sites") { snapshot.sites = try home.sites() }
        attempt("keeping the previous trust anchors") {
            let anchors = try home.anchorFiles()
            report(weaknessesOf: anchors, except: snapshot.anchors)
            snapshot.anchors = anchors
        }
        if snapshot.lockReason == nil {
            attempt("keeping the previous credentials") {
                if let vault = snapshot.vault {
                    try vault.reload()
                } else {
                    snapshot.vault = try openVault(creating: need.isMet(by: snapshot.sites)) { () throws in
                        throw VaultError(.passphraseNeeded, "the vault requires a passphrase")
                    }
                }
                finishProfiles(of: snapshot)
                snapshot.readContents = snapshot.vault?.contents
            }
            let before = snapshot.faults
            attempt("keeping the previous identities") { try readIdentities(into: &snapshot) }
            for fault in snapshot.faults where !before.contains(fault) { report(fault) }
            attempt("keeping the previous interception CA") {
                try renewInterceptionAuthority(need, in: &snapshot)
            }
        }
        attempt("keeping the previous trust anchors") {
            snapshot.root = try InterceptionStore(home: home).root()
            snapshot.originTLS = try originTLS(anchors: snapshot.anchors, root: snapshot.root)
        }
        snapshot.selectTrustExceptions(at: now())
        let before = snapshot.remarks
        snapshot.remarks = remarks(on: snapshot)
        for remark in snapshot.remarks where !before.contains(remark) {
            logger.warning("\(remark.message)", metadata: remark.hint.map { ["hint": "\($0)"] })
        }
        return faults
    }

    private func remarks(on snapshot: HomeSnapshot) -> [Diagnostic] {
        let contents = snapshot.vault?.contents
        let isKnown = snapshot.lockReason == nil
        let lines =
            snapshot.sites.remarks(
                credentials: isKnown ? Set(contents?.credentialNames ?? []) : nil,
                identities: isKnown ? contents?.identityNames ?? [] : nil)
            + snapshot.sites.scriptRemarks(isScript: Home.isScript)
        return home.ignoredSiteFiles + home.ignoredAnchorFiles + lines.map(Diagnostic.init)
    }

    /// Whether the copy of the passphrase that the home's keeper has may be that of an earlier passphrase.
    private func isOutdatedCopy(_ error: VaultError) -> Bool {
        error.code == .wrongPassphrase && (try? VaultKeeper.read(home)) != nil
    }

    /// The copy of the vault's passphrase that the home's keeper has; nil without a keeper.
    func keptPassphrase() throws(CountersignError) -> Secret? {
        try VaultKeeper.read(home)?.passphrase(environment: environment, patience: VaultKeeper.servicePatience)
    }

    /// Opens the vault with a passphrase given at run time; nil is enough if a key file opens it.
    func openVault(passphrase: Secret?) throws -> OpenVault {
        try home.vault.open { () throws in
            guard let passphrase else {
                throw VaultError(.passphraseNeeded, "the vault requires a passphrase, and none was given")
            }
            return passphrase
        }
    }

    private func openVault(
        creating: Bool, again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws -> OpenVault? {
        let vault = home.vault
        if creating { return try vault.openOrCreate(again: again, passphrase: passphrase) }
        return try vault.exists() ? try vault.open(again: again, passphrase: passphrase) : nil
    }

    /// Completes a configuration profile operation that a killed command left unfinished. The next reading of the home
    /// sees the files that this changes.
    private func finishProfiles(of snapshot: HomeSnapshot) {
        guard let vault = snapshot.vault else { return }
        attempt("a configuration profile is not complete") {
            try VaultOperations(home: home, vault: vault, now: now).finishProfiles()
        }
    }

    private func readIdentities(into snapshot: inout HomeSnapshot) throws {
        guard let vault = snapshot.vault else { return }
        let enrolled = try EnrolledIdentities(vault.contents, home: home)
        snapshot.identities = enrolled.identities.map {
            $0.checked(against: snapshot.anchors.revocationLists, issuers: snapshot.anchors.certificates)
                .accepted(byOpenSSL: snapshot.originTLS.accepts($0))
        }
        snapshot.faults = enrolled.faults
        guard !enrolled.refusedPINs.isEmpty else { return }
        // If the vault cannot be written, this process still does not use the refused PINs again.
        try? vault.update { contents in enrolled.refusedPINs.forEach { contents.refusePIN(of: $0) } }
    }

    // MARK: Interception CA

    private func renewInterceptionAuthority(_ need: InterceptionNeed, in snapshot: inout HomeSnapshot) throws {
        guard let vault = snapshot.vault, need.isMet(by: snapshot.sites) else {
            snapshot.interceptionAuthority = nil
            return
        }
        let hosts = InterceptionStore.hosts(of: snapshot.sites)
        let loaded = try InterceptionStore(home: home).authority(for: hosts, in: vault, at: now())
        if loaded.hasNewRoot {
            logger.notice(
                "created a new interception CA: clients must trust \(home.rootCertificate.path)",
                metadata: [
                    "hint": "`countersign exec` and `countersign env` configure that; `countersign ca export` prints it"
                ])
        }
        snapshot.interceptionAuthority = loaded.authority
        if snapshot.root != loaded.authority.root {
            snapshot.root = loaded.authority.root
            snapshot.originTLS = try originTLS(anchors: snapshot.anchors, root: snapshot.root)
        }
        try TrustBundle(home: home, environment: environment).write(
            root: loaded.authority.root, anchors: snapshot.anchors.certificates)
    }

    /// TLS to origins: trusts the system's and the home's anchors, and refuses certificates of our own interception CA.
    private func originTLS(anchors: AnchorFiles, root: Certificate?) throws -> TLSClientContext {
        let verifier = ChainVerifier(
            anchors: try TrustAnchors(system: true, additional: anchors.certificates),
            refusing: root.map { [$0] } ?? [], revocationLists: anchors.revocationLists,
            isPublicSuffix: { name in
                guard let host = try? HostName(canonicalizing: name, for: .forwarded) else { return true }
                return Home.publicSuffixes.isPublicSuffix(host)
            })
        return try TLSClientContext(verifier: verifier, revocation: revocation.lookup, now: now)
    }

    // MARK: Logging

    /// Returns the faults, which it has logged.
    @discardableResult
    private func attempt(_ consequence: Logger.Message, _ body: () throws -> Void) -> [String] {
        do {
            try body()
            return []
        } catch {
            let diagnostics = Diagnostic.all(in: error)
            for diagnostic in diagnostics {
                logger.error("\(diagnostic.message)", metadata: diagnostic.hint.map { ["hint": "\($0)"] })
            }
            logger.warning(consequence)
            return diagnostics.map(\.message)
        }
    }

    private func report(weaknessesOf anchors: AnchorFiles, except known: AnchorFiles) {
        for weakness in anchors.weaknesses where !known.weaknesses.contains(weakness) {
            logger.warning("\(weakness)", metadata: ["hint": "replace it with an anchor of today's strength"])
        }
    }

    private func report(_ fault: EnrolledIdentities.Fault) {
        logger.warning("identity \"\(fault.name)\" is not used: \(fault.reason)")
    }
}

extension RevocationService {
    /// For connections to origins.
    fileprivate var lookup: RevocationLookup {
        RevocationLookup(
            known: { [self] in status(of: $0, by: $1) }, version: { [self] in version },
            learn: { [self] questions, patience, done in learn(questions, patience: patience, done: done) })
    }
}
