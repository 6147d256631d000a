// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignSignIn
import Glibc
import Logging

/// The person in front of a server that runs in the foreground: has a display, a terminal, or both.
struct PersonAtHand: Sendable {
    private let environment: [String: String]
    private let hasDisplay: Bool
    private let hasTerminal: Bool

    /// Nil if there is nobody: neither a display nor a terminal, or the server is a service. systemd tells a service
    /// its process identifier, and where to report its state; programs that a service starts inherit only the rest.
    init?(in environment: [String: String]) {
        let isService = environment["SYSTEMD_EXEC_PID"] == "\(getpid())" || environment["NOTIFY_SOCKET"] != nil
        hasDisplay = UserAgentKind.preferred(in: environment) == .system
        hasTerminal = isatty(STDERR_FILENO) == 1
        guard !isService, hasDisplay || hasTerminal else { return nil }
        self.environment = environment
    }

    /// Asks the person for the scopes that access tokens lack.
    func scopeRequests(_ keeper: PolicyKeeper, _ logger: Logger) -> ScopeRequests {
        ScopeRequests(
            keeper: keeper, logger: logger, environment: environment, now: EnrollCommand.now, agent: agent,
            report: { SignInReporter(isJSON: false, agent: $0, readsAddress: false).report($1) })
    }

    /// A window of our own needs a proxy that belongs to the command.
    private func agent(_ kind: UserAgentKind) -> SignInFlow.Agent? {
        switch kind {
        case .system, .systemPrivate: hasDisplay ? SignInFlow.Agent(kind, environment: environment) : nil
        case .device: hasTerminal ? .device : nil
        case .embedded: nil
        }
    }
}
