// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignSignIn
import Glibc
import Logging

/// The person in front of a server that runs in the foreground: has a display, a terminal, or both.
struct PersonAtHand: Sendable {
    private let environment: [String: String]
    private let hasDisplay: Bool

    /// Nil without a person: neither a display nor a terminal, or the server is a service. systemd sets variables for a
    /// service with its process identifier, the socket for its state, and the journal's stream; programs that a service
    /// starts inherit only the rest.
    init?(in environment: [String: String]) {
        let isService =
            environment["SYSTEMD_EXEC_PID"] == "\(getpid())" || environment["NOTIFY_SOCKET"] != nil
            || Self.isJournal(STDERR_FILENO, environment)
        hasDisplay = UserAgentKind.preferred(in: environment) == .system
        guard !isService, hasDisplay || Self.hasTerminal else { return nil }
        self.environment = environment
    }

    /// Whether the descriptor is the stream to the journal, `device:inode`; systemd.exec(5).
    static func isJournal(_ descriptor: Int32, _ environment: [String: String]) -> Bool {
        guard let stream = environment["JOURNAL_STREAM"] else { return false }
        var status = stat()
        return fstat(descriptor, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
    }

    /// The terminal may be closed while the server runs.
    private static var hasTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Asks the person for the scopes that access tokens lack.
    func scopeRequests(_ keeper: PolicyKeeper, _ logger: Logger) -> ScopeRequests {
        ScopeRequests(
            keeper: keeper, logger: logger, environment: environment, now: EnrollCommand.now, agent: agent,
            report: { SignInReporter(isJSON: false, agent: $0, readsAddress: false).report($1) })
    }

    /// A window of our own needs a proxy that belongs to the command.
    private func agent(_ kind: UserAgentKind) -> SignInFlow.Agent? {
        switch kind {
        case .system, .systemPrivate: hasDisplay ? SignInFlow.Agent(kind, environment: environment, door: nil) : nil
        case .device: Self.hasTerminal ? .device : nil
        case .embedded: nil
        }
    }
}
