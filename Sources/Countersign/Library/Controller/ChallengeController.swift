// SPDX-License-Identifier: Apache-2.0

import Challenges
import Cryptography
import Glibc
import Logging
import Proxy
import NIOConcurrencyHelpers

/// Answers authentication challenges with what the person enrolled, for the sites that they listed: the proxy's three
/// checks and the proxy's home, inside a Swift program.
///
/// Every verb may be called from any thread, also concurrently. What is changed in the home is in force with the next
/// call, which then reads the changed files: a few milliseconds.
public final class ChallengeController: Sendable {
    let keeper: PolicyKeeper
    let breaker: BreakerBoard
    let handedOut = HandedOut()
    let listeners = Listeners()
    let logger: Logger
    private let isEnabled = NIOLockedValueBox(true)
    private let keepingFresh = NIOLockedValueBox<Task<Void, Never>?>(nil)

    /// Opens the home's vault, reads its list, its certificates and its trust anchors, and begins to fetch certificates
    /// that are due.
    ///
    /// `home` is a folder; left out, it is the one that the command `countersign` finds: `COUNTERSIGN_HOME`, else
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
            let home = try Home.locate(flag: path, environment: environment)
            try Self.checkFolder(home)
            keeper = try PolicyKeeper(
                home: home, authority: .never, environment: environment, logger: logger, now: Self.now
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
        if let shut = keeper.shutAtStart { throw ChallengeError(shut) }
        self.logger = logger
        breaker = BreakerBoard()
        keepingFresh.withLockedValue { $0 = Self.keepFresh(self) }
    }

    deinit { keepingFresh.withLockedValue { $0?.cancel() } }

    private static func checkFolder(_ home: Home) throws(ChallengeError) {
        var found = stat()
        guard stat(home.path, &found) == 0 else {
            let reason = String(cString: strerror(errno))
            throw ChallengeError(
                errno == ENOENT ? .homeMissing : .homeUnreadable, "no home at \(home.path.debugDescription): \(reason)",
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
                hint: "give `passphrase:` when the controller is made")
        }
        do {
            return try passphrase().secret
        } catch {
            throw ChallengeError(.vaultLocked, "the vault wants a passphrase, and was given none")
        }
    }

    // MARK: Switches and news

    /// Whether challenges are answered at all. While it is false, ``canHandle(_:)`` answers no to everything and every
    /// challenge is the caller's.
    public var isIntegratedAuthenticationEnabled: Bool {
        get { isEnabled.withLockedValue { $0 } }
        set { isEnabled.withLockedValue { $0 = newValue } }
    }

    /// What is answered, handed back, refreshed and rejected from now on. Each stream hears everything; of one that is
    /// not read, the newest 256 events are kept.
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
