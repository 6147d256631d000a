// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import Dispatch
public import FoundationEssentials
import Glibc
public import Logging
import Synchronization

/// Answers authentication challenges from a home: applies the same three checks as the proxy, and uses the credentials
/// that the user has enrolled for the sites on their list.
///
/// All methods are thread-safe. A change to the home takes effect with the next call, which reads the changed files.
/// That usually takes a few milliseconds, but about a second if a key is protected by a passphrase or is in a token,
/// and up to ten seconds while another process writes to the vault. Only methods that are not `async` block the calling
/// thread.
public final class ChallengeController: Sendable {
    package let keeper: PolicyKeeper
    /// Those that sites have given for proofs (RFC 9449 §9).
    let nonces = DPoPNonces()
    package var breaker: BreakerBoard { keeper.breaker }
    let answersInUse = AnswersInUse()
    /// How long others wait for the outcome of a credential's first use at a site.
    let firstTryLimit = Mutex(BreakerPermit.limit)
    /// How long each of them waits in total.
    let patience = Mutex(BreakerPermit.patience)
    package let listeners = Listeners()
    package let logger: Logger
    let scopeQuestions = ScopeQuestions()
    private let isEnabled = Atomic(true)
    /// Reads the home on behalf of `async` methods, which must not block their thread.
    private let queue = DispatchQueue(label: "countersign.controller")
    /// The numbers of running proxies, and of those that belong to a window.
    private let proxies = Mutex((running: 0, ofWindows: 0))
    /// Renews the home's certificates, for this controller and for every proxy over it.
    package let renewals: RenewalKeeper
    /// Renews access tokens for the controller; each proxy has its own.
    let signInRenewals: SignInRenewals

    /// Opens a home: its vault, list of sites, certificates and trust anchors. Starts renewing certificates that are
    /// due.
    ///
    /// `home` is the URL of a folder. By default, it is the home that the `countersign` command uses:
    /// `COUNTERSIGN_HOME`, else `${XDG_CONFIG_HOME:-~/.config}/countersign`. `passphrase` is called on the calling
    /// thread if the vault requires a passphrase, and opening the vault then takes about a second. `logger` receives
    /// faults found later in the home and the results of renewals; by default, they are not logged.
    ///
    /// With `startsLocked`, a vault that requires a passphrase stays locked and `passphrase` is not called: no
    /// challenge is answered until ``unlockVault(passphrase:)``.
    ///
    /// Throws ``ChallengeError``: `homeMissing`, `homeUnreadable`, `homeFaulty`, `listFaulty`, `vaultLocked`,
    /// `vaultFaulty`, `certificateFaulty`. If `passphrase` throws, the code is `vaultLocked`.
    public init(
        home: URL? = nil, logger: Logger? = nil, startsLocked: Bool = false,
        passphrase: (() throws -> Password)? = nil
    ) throws(ChallengeError) {
        let environment = ProcessVariables.of(
            "COUNTERSIGN_HOME", "XDG_CONFIG_HOME", "HOME", "SSL_CERT_FILE", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
        let logger = logger ?? Logger(label: "countersign") { _ in SwiftLogNoOpLogHandler() }
        var refusal: ChallengeError?
        do {
            let home = try Self.locate(Self.path(of: home), environment)
            try Self.checkFolder(home)
            keeper = try PolicyKeeper(
                home: home, interception: .never, environment: environment, logger: logger, now: Self.now
            ) { () throws in
                if startsLocked { throw ChallengeError(.vaultLocked, "the vault stays locked") }
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
        if let shut = keeper.vaultErrorAtStart, !startsLocked { throw refusal ?? ChallengeError(shut) }
        self.logger = logger
        signInRenewals = SignInRenewals(keeper: keeper, logger: logger, now: Self.now)
        renewals = RenewalKeeper(
            policyKeeper: keeper, now: Self.now, logger: logger, refreshed: listeners.renewalEnded)
        renewals.start()
    }

    deinit {
        renewals.stop()
        signInRenewals.cancel()
    }

    /// The path of a folder's URL; an empty one for another URL, so that ``locate(_:_:)`` refuses it.
    static func path(of home: URL?) -> String? {
        home.map { $0.isFileURL ? $0.path(percentEncoded: false) : "" }
    }

    /// The home's absolute path, so that it stays valid if the process changes its working directory. Everything of the
    /// library that has a home begins here.
    static func locate(_ path: String?, _ environment: [String: String]) throws(ChallengeError) -> Home {
        ProcessHardening.keepOpenSSLAtExit()
        guard path?.isEmpty != true else {
            throw ChallengeError(
                .homeMissing, "the home is not the URL of a folder",
                hint: "pass `URL(filePath:)` with the path of the home's folder, or omit `home:`")
        }
        let home: Home
        do {
            home = try Home.locate(flag: path, environment: environment)
        } catch {
            throw ChallengeError(.homeMissing, error.detail, hint: "pass the path of the home's folder as `home:`")
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
                hint: "create one with `countersign credential set --user U --home DIR`")
        }
        guard found.st_mode & S_IFMT == S_IFDIR else {
            throw ChallengeError(
                .homeMissing, "\(home.path.debugDescription) is not a folder",
                hint: "pass the path of the home's folder")
        }
    }

    static func asked(_ passphrase: (() throws -> Password)?) throws(ChallengeError) -> Secret {
        guard let passphrase else {
            throw ChallengeError(
                .vaultLocked, "the vault requires a passphrase, and none was given",
                hint: "pass `passphrase:` to the initialiser", fault: .caller)
        }
        do {
            return try passphrase().secret
        } catch {
            throw ChallengeError(.vaultLocked, "the vault requires a passphrase, and the closure threw an error")
        }
    }

    // MARK: Reading

    /// The policy for the current state of the home's files, which it reads on the calling thread.
    func currentPolicy() -> Policy {
        keeper.refresh()
        return keeper.policy.current
    }

    /// The policy for the current state of the home's files, without blocking the thread.
    package func policyNow() async -> Policy {
        await reading { $0.refresh() }
        return keeper.policy.current
    }

    /// Runs `body` on a thread that may block on files.
    @discardableResult
    func reading<Value: Sendable>(_ body: @escaping @Sendable (PolicyKeeper) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            queue.async { [keeper] in continuation.resume(returning: body(keeper)) }
        }
    }

    // MARK: Proxies

    /// While a proxy runs, an interception CA is created when a listed site needs one.
    package func proxyBegins() async {
        await changeProxies { $0.running += 1 }
    }

    /// Must follow each ``proxyBegins()``. Without a proxy, no interception CA is written into the home.
    package func proxyEnded() async {
        await changeProxies { $0.running -= 1 }
    }

    /// While a window has a proxy, there is an interception CA: the window trusts it from the beginning.
    func windowProxyBegins() async {
        await changeProxies { $0.ofWindows += 1 }
    }

    /// Must follow each ``windowProxyBegins()``.
    func windowProxyEnded() async {
        await changeProxies { $0.ofWindows -= 1 }
    }

    private func changeProxies(_ change: @escaping @Sendable (inout (running: Int, ofWindows: Int)) -> Void) async {
        @Sendable func need(_ proxies: (running: Int, ofWindows: Int)) -> InterceptionNeed {
            if proxies.ofWindows > 0 { return .always }
            return proxies.running > 0 ? .whenNeeded : .never
        }
        await reading { [self] keeper in
            // Not a race, because `reading` runs its bodies one at a time.
            var numbers = proxies.withLock { $0 }
            let before = need(numbers)
            change(&numbers)
            proxies.withLock { [numbers] in $0 = numbers }
            if need(numbers) != before { keeper.require(need(numbers)) }
        }
    }

    // MARK: Switch and events

    /// Whether challenges are answered at all. While false, ``canHandle(_:)`` returns false, all challenges are handed
    /// back, and a `ChallengeProxy` treats no site as listed, starting with the next request. Setting it waits if the
    /// home is being read.
    public var isIntegratedAuthenticationEnabled: Bool {
        get { isEnabled.load(ordering: .acquiring) }
        set {
            isEnabled.store(newValue, ordering: .releasing)
            keeper.setAnswering { isIntegratedAuthenticationEnabled }
        }
    }

    /// Asks the person for more when a site requires a scope that the access token of a sign-in does not have. Without
    /// a delegate, the site's response is delivered. A `ChallengeProxy` delivers it in any case, while the person is
    /// asked.
    public var scopeDelegate: (any ScopeDelegate)? {
        get { scopeQuestions.delegate }
        set { scopeQuestions.delegate = newValue }
    }

    /// Is called when silent questions find that the device begins or ceases to comply with the policy of a sign-in,
    /// and when an enrolment is wiped because it was not confirmed for too long. Not called by a ``ComplianceManager``,
    /// which has its own.
    public var complianceDelegate: (any ComplianceDelegate)? {
        get { renewals.compliance.delegate }
        set { renewals.compliance.delegate = newValue }
    }

    /// A new stream of the events of the controller and of all its proxies, from now on. Each stream receives all
    /// events and buffers the newest 256 of them.
    public var events: AsyncStream<ChallengeEvent> { listeners.stream() }

    /// Reports an event to all streams.
    package func report(_ event: ChallengeEvent) { listeners.tell(event) }
}

/// The process's current environment variables.
enum ProcessVariables {
    static func of(_ names: String...) -> [String: String] {
        var found: [String: String] = [:]
        for name in names {
            if let value = getenv(name) { found[name] = String(cString: value) }
        }
        return found
    }
}
