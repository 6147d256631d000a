// SPDX-License-Identifier: Apache-2.0

import CountersignNotifications
import CountersignSessionBus
import Glibc
import Logging

/// The ways, besides the page and `countersign approve`, in which `serve` asks the person. Nothing is connected, read
/// or changed before there is a question, so without `approve=` in the list they do nothing.
struct PersonAskers: Sendable {
    private let approvals: Approvals
    private let terminal: TerminalAsker?
    private let desktop: DesktopAsker?

    /// `notifies`: with notifications, if `environment` names a session bus. `usesTerminal`: on the terminal, if the
    /// standard streams for keys and messages are one.
    init(
        _ approvals: Approvals, notifies: Bool, usesTerminal: Bool, environment: [String: String], logger: Logger
    ) {
        self.approvals = approvals
        if notifies, let address = BusAddress.session(in: environment) {
            desktop = DesktopAsker(address: address, desk: approvals.desk) { reason in
                logger.notice("\(reason)", metadata: ["hint": "answer with `countersign approve`, or pass --no-notify"])
            }
        } else {
            desktop = nil
        }
        if usesTerminal, isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 {
            terminal = TerminalAsker(STDIN_FILENO, desk: approvals.desk) { Console.log("question", $0) }
        } else {
            terminal = nil
        }
        if let desktop { approvals.add(desktop) }
        if let terminal { approvals.add(terminal) }
    }

    /// The terminal is as it was before. Call it before the process may end at once.
    func leaveTerminal() { terminal?.stop() }

    /// Another process has taken over, which asks the person from now on. What waits here waits no longer.
    func handOver() {
        approvals.board.handOver()
        leaveTerminal()
    }

    /// Closes the notifications, too.
    func stop() {
        leaveTerminal()
        desktop?.stop()
    }
}
