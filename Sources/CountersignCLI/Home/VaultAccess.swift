// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignCryptography
import CountersignHome
import CountersignSitePolicy
import CountersignVault
import FoundationEssentials
import Synchronization

/// Keeps a passphrase as long as a command runs.
final class RememberedPassphrase {
    var secret: Secret?
}

/// The passphrase that was given last, for a command whose own requests may need the vault once more, for a parent
/// proxy's password.
enum KeptPassphrase {
    private static let state = Mutex<(isWanted: Bool, secret: Secret?)>((false, nil))

    static var isWanted: Bool {
        get { state.withLock { $0.isWanted } }
        set { state.withLock { $0 = (newValue, newValue ? $0.secret : nil) } }
    }

    static var secret: Secret? { state.withLock { $0.secret } }

    static func keep(_ secret: Secret?) { state.withLock { if $0.isWanted { $0.secret = secret } } }
}

/// Opens the vault of a command's home, asking for the passphrase if it needs one.
struct VaultAccess {
    let home: Home
    let secrets: SecretInput
    /// The passphrase that was given last, for a command that opens the vault more than once.
    var remembered: RememberedPassphrase?

    private var file: SealedVault { SealedVault(home: home.path) }

    /// The vault's passphrase: the one on standard input, the copy that the home's keeper has, or the one that the
    /// person types. Throws `passphraseNeeded` without any.
    func passphrase() throws -> Secret {
        if let known = remembered?.secret ?? KeptPassphrase.secret { return known }
        let (copy, failure) = secrets.isStandardInput ? (nil, nil) : kept()
        if let failure, secrets.canAskAgain {
            Console.warning("\(failure.detail), so the passphrase is asked for", hint: failure.hint)
        }
        do {
            let given = try copy ?? secrets.read("the vault's passphrase")
            remembered?.secret = given
            KeptPassphrase.keep(given)
            return given
        } catch let error as CountersignError {
            throw VaultError(
                .passphraseNeeded, "the vault needs its passphrase: \((failure ?? error).detail)",
                hint: (failure ?? error).hint)
        }
    }

    /// The copy of the passphrase that the home's keeper has, or why it does not give it out.
    private func kept() -> (copy: Secret?, failure: CountersignError?) {
        do throws(CountersignError) {
            let keeper = try VaultKeeper.read(home)
            return (try keeper?.passphrase(environment: ProcessInfo.processInfo.environment), nil)
        } catch {
            return (nil, error)
        }
    }

    /// Asks on the terminal for another passphrase after a wrong one, twice. Nil without a terminal.
    var again: PassphraseRetry? {
        guard secrets.canAskAgain else { return nil }
        var attempts = 2
        return {
            guard attempts > 0 else { return nil }
            attempts -= 1
            let given = secrets.readAgain("the vault's passphrase")
            remembered?.secret = given
            KeptPassphrase.keep(given)
            return given
        }
    }

    /// The home's running server, if the vault needs a passphrase and the server has it open.
    var server: VaultServer? { server { _ in } }

    /// The same; `failed` receives the reason if the server does not answer.
    func server(failed: (String) -> Void) -> VaultServer? {
        (try? file.status().key) == .passphrase ? VaultServer(of: home, failed: failed) : nil
    }

    /// The vault, or nil if the home has none.
    func openIfThere() throws -> OpenVault? {
        guard try file.exists() else {
            try file.checkNotLost()
            return nil
        }
        return try open()
    }

    /// The vault for ``VaultOperation``s: through the home's running server if it has the vault open, so that the
    /// passphrase is not needed; otherwise opened by this process, or created if the home has none and `creates` is
    /// set. A vault with a key file is opened by this process.
    ///
    /// `readsSecret` says that the command reads one secret of its own from standard input. If standard input has only
    /// one line, that is the secret; if it has more, the first one is the vault's passphrase. A passphrase that was
    /// given is used, and the server is not.
    func session(creates: Bool = false, readsSecret: Bool = false) throws -> VaultSession {
        var server = secrets.isStandardInput ? server : server(failed: Self.opensVault)
        if server != nil, secrets.isStandardInput, try !readsSecret || SecretInput.hasSecondLine() { server = nil }
        let session = VaultSession(access: self, creates: creates, server: server)
        try session.prepare()
        return session
    }

    /// The answer of the home's running server to a question about its policy for `origin`; nil if this process has to
    /// open the vault for it.
    func report(_ question: PolicyQuestion, at origin: Origin) throws -> PolicyReport? {
        guard !secrets.isStandardInput, let server = server(failed: Self.opensVault),
            server.offers(ReportPolicy.self),
            hasSameTickets(server, for: try home.sites().rules(for: origin))
        else { return nil }
        return try server.perform(ReportPolicy(question), declined: Self.opensVault)
    }

    /// Whether the server answers at the sites of `rules` with the Kerberos tickets that this process would use.
    /// Reports it if the server does not, because the command then asks for the passphrase.
    func hasSameTickets(_ server: VaultServer, for rules: [SiteRule]) -> Bool {
        guard rules.contains(where: { $0.answer.contains(.negotiate) }), let reason = server.otherTickets else {
            return true
        }
        Self.opensVault(because: reason)
        return false
    }

    /// Says why this process opens the vault although the server has it open.
    static func opensVault(because reason: String) {
        Console.warning("\(reason), so this command opens the vault itself")
    }

    /// The vault opened by this process.
    func ownSession(creates: Bool) throws -> VaultSession {
        let session = VaultSession(access: self, creates: creates, server: nil)
        try session.prepare()
        return session
    }

    func open() throws -> OpenVault {
        Startup.reportHardening()
        return try file.open(again: again, passphrase: passphrase)
    }

    /// The vault, created if the home has none.
    func openOrCreate() throws -> OpenVault {
        Startup.reportHardening()
        return try file.openOrCreate(again: again, passphrase: passphrase)
    }
}
