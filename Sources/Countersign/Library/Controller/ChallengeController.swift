// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Dispatch
import Glibc
import Logging
import NIOConcurrencyHelpers
import CountersignProxy
import Synchronization

/// Answers authentication challenges with what the person enrolled, for the sites that they listed: the proxy's three
/// checks and the proxy's home, inside a Swift program.
///
/// Every verb may be called from any thread, also concurrently. What is changed in the home is in force with the next
/// call. That reads the changed files, which takes a few milliseconds as a rule, about a second where a key is opened by a
/// passphrase or a token, and up to ten while another process writes into the vault. Verbs that are `async` hold no thread
/// meanwhile; the others do.
public final class ChallengeController: Sendable {
    let keeper: PolicyKeeper
    let breaker: BreakerBoard
    let handedOut = HandedOut()
    /// How long others wait for the verdict on a credential that is tried for the first time.
    let firstTryLimit = NIOLockedValueBox(BreakerPermit.limit)
    /// How long one of them waits at most.
    let patience = NIOLockedValueBox(BreakerPermit.patience)
    let listeners = Listeners()
    let logger: Logger
    private let isEnabled = Atomic(true)
    /// Reads the home where the caller must not wait in a thread for it.
    private let queue = DispatchQueue(label: "countersign.controller")
    /// How many proxies run over it.
    private let proxies = NIOLockedValueBox(0)
    /// Renews the home's certificates, for this controller and for every proxy over it.
    let renewals: RenewalKeeper

    /// Opens the home's vault, reads its list, its certificates and its trust anchors, and begins to fetch certificates
    /// that are due.
    ///
    /// `home` is a folder, of the working directory where its path is relative; left out, it is the one that the command `countersign` finds: `COUNTERSIGN_HOME`, else
    /// `${XDG_CONFIG_HOME:-~/.config}/countersign`. `passphrase` is asked, on the calling thread, where the vault is
    /// opened by one. Opening such a vault takes about a second of computing. `logger` hears of faults in what is read;
    /// left out, nobody does.
    ///
    /// Throws ``ChallengeError``: `homeMissing`, `homeUnreadable`, `homeFaulty`, `listFaulty`, `vaultLocked`,
    /// `vaultFaulty`, `certificateFaulty`. What `passphrase` throws becomes `vaultLocked`.
    public init(
        home path: String? = nil, logger: Logger? = nil, passphrase: (() throws -> Password)? = nil
    ) throws(ChallengeError) {
        let environment = ProcessVariables.of("COUNTERSIGN_HOME", "XDG_CONFIG_HOME", "HOME", "SSL_CERT_FILE")
        let logger = logger ?? Logger(label: "countersign") { _ in SwiftLogNoOpLogHandler() }
        var refusal: ChallengeError?
        do {
            let home = try Self.locate(path, environment)
            try Self.checkFolder(home)
            keeper = try PolicyKeeper(
                home: home, interception: .never, environment: environment, logger: logger, now: Self.now
            ) { () throws in
                do throws(ChallengeError) {
                    return try Self.asked(passphrase)
                } catch {
                    refusal = error
                    throw error
                }
            }
        } catch {
            throw refusal ?? ChallengeError(error)
        }
        if let shut = keeper.vaultErrorAtStart { throw refusal ?? ChallengeError(shut) }
        self.logger = logger
        breaker = BreakerBoard()
        renewals = RenewalKeeper(
            policyKeeper: keeper, now: Self.now, logger: logger, refreshed: listeners.renewalEnded)
        renewals.start()
    }

    deinit { renewals.stop() }

    /// The home that is meant, also after the process has gone to another folder.
    private static func locate(_ path: String?, _ environment: [String: String]) throws(ChallengeError) -> Home {
        guard path?.isEmpty != true else {
            throw ChallengeError(
                .homeMissing, "the home's path is empty", hint: "name the home's folder, or leave `home:` out")
        }
        let home: Home
        do {
            home = try Home.locate(flag: path, environment: environment)
        } catch {
            throw ChallengeError(.homeMissing, error.detail, hint: "name the home's folder by `home:`")
        }
        guard !home.path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return home }
        defer { free(folder) }
        return Home(path: "\(String(cString: folder))/\(home.path)")
    }

    private static func checkFolder(_ home: Home) throws(ChallengeError) {
        var found = stat()
        guard stat(home.path, &found) == 0 else {
            let number = errno
            let reason = CountersignError.system(number, "no home at \(home.path.debugDescription)").detail
            throw ChallengeError(
                number == ENOENT ? .homeMissing : .homeUnreadable, reason,
                hint: "`countersign credential set --user U --home DIR` makes one")
        }
        guard found.st_mode & S_IFMT == S_IFDIR else {
            throw ChallengeError(
                .homeMissing, "\(home.path.debugDescription) is not a folder", hint: "name the home's folder")
        }
    }

    private static func asked(_ passphrase: (() throws -> Password)?) throws(ChallengeError) -> Secret {
        guard let passphrase else {
            throw ChallengeError(
                .vaultLocked, "the vault is opened by a passphrase, and there is nobody to ask for it",
                hint: "give `passphrase:` when the controller is made", fault: .caller)
        }
        do {
            return try passphrase().secret
        } catch {
            throw ChallengeError(.vaultLocked, "the vault wants a passphrase, and was given none")
        }
    }

    // MARK: Reading

    /// The policy of the home as its files are now. Reads them on the calling thread.
    func currentPolicy() -> Policy {
        keeper.refresh()
        return keeper.policy.current
    }

    /// The same for a task, whose thread others need meanwhile.
    func policyNow() async -> Policy {
        await reading { $0.refresh() }
        return keeper.policy.current
    }

    /// Runs `body` on a thread that may wait for files.
    func reading(_ body: @escaping @Sendable (PolicyKeeper) -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async { [keeper] in
                body(keeper)
                continuation.resume()
            }
        }
    }

    // MARK: Proxies over it

    /// While there is one, the home has an interception CA where a listed site needs one.
    func proxyBegins() async {
        await changeProxies(by: 1)
    }

    /// After each ``proxyBegins()``. Without a proxy nothing is written into the home.
    func proxyEnded() async {
        await changeProxies(by: -1)
    }

    private func changeProxies(by step: Int) async {
        await reading { [proxies] keeper in
            // Of `reading` there is one at a time.
            let before = proxies.withLockedValue { $0 }
            let after = before + step
            proxies.withLockedValue { $0 = after }
            if (before == 0) != (after == 0) { keeper.require(after == 0 ? .never : .whenNeeded) }
        }
    }

    // MARK: Switches and news

    /// Whether challenges are answered at all. While it is false, ``canHandle(_:)`` answers no to everything and every
    /// challenge is the caller's; to a ``ChallengeProxy`` no site is listed, from the next request on. Setting it waits
    /// for a reading of the home that is going on.
    public var isIntegratedAuthenticationEnabled: Bool {
        get { isEnabled.load(ordering: .acquiring) }
        set {
            isEnabled.store(newValue, ordering: .releasing)
            keeper.answer { isIntegratedAuthenticationEnabled }
        }
    }

    /// What is answered, handed back, refreshed and rejected from now on, by the controller and by each
    /// ``ChallengeProxy`` over it. Each stream hears everything; of one that is not read, the newest 256 events are kept.
    public var events: AsyncStream<ChallengeEvent> { listeners.stream() }
}

/// What of the process's environment is looked at, as it is at the moment.
enum ProcessVariables {
    static func of(_ names: String...) -> [String: String] {
        var found: [String: String] = [:]
        for name in names {
            if let value = getenv(name) { found[name] = String(cString: value) }
        }
        return found
    }
}
