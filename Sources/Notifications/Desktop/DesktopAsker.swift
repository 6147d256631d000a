// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import CountersignSessionBus
import Dispatch

/// Asks with notifications of the desktop (Desktop Notifications Specification, version 1.2). There is no connection to
/// the bus before the first question. A bus that accepts no connection blocks the thread here and nothing else.
package final class DesktopAsker: QuestionAsker {
    private let inbox: QuestionInbox
    private let end = DispatchSemaphore(value: 0)

    /// `address` is that of the session bus. `report` gets a sentence if nothing can be shown. Nil if the process has
    /// no descriptors left.
    package convenience init?(
        address: String, desk: QuestionDesk, report: @escaping @Sendable (String) -> Void
    ) {
        self.init(address: address, desk: desk, pauseBetweenAttempts: .seconds(5), report: report)
    }

    init?(
        address: String, desk: QuestionDesk, pauseBetweenAttempts: Duration,
        report: @escaping @Sendable (String) -> Void
    ) {
        guard let inbox = QuestionInbox() else { return nil }
        self.inbox = inbox
        DispatchQueue(label: "countersign.notifications").async { [end] in
            DesktopThread(address, desk, inbox, pauseBetweenAttempts: pauseBetweenAttempts, report: report).run()
            end.signal()
        }
    }

    package let isInPlaceOfLog = false

    package func questionAsked() { inbox.bell.ring() }

    package func questionEnded(_ id: UInt64, answer: String?) { inbox.bell.ring() }

    package func stop() {
        inbox.stop()
        _ = end.wait(timeout: .now() + 1)
    }
}

/// The thread's variables.
private final class DesktopThread {
    private enum Call {
        case abilities
        case notify(UInt64)
    }

    private let address: String
    private let desk: QuestionDesk
    private let inbox: QuestionInbox
    private let pauseBetweenAttempts: Duration
    private let report: (String) -> Void
    private var board = NotificationBoard()
    private var connection: BusConnection?
    private var calls: [UInt32: Call] = [:]
    private var nextAttempt = ContinuousClock.now
    /// Until when the server may take to reply with its capabilities. The bus may have to start it.
    private var abilitiesLimit: ContinuousClock.Instant?

    private static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    private static let patience = Duration.seconds(20)

    init(
        _ address: String, _ desk: QuestionDesk, _ inbox: QuestionInbox, pauseBetweenAttempts: Duration,
        report: @escaping (String) -> Void
    ) {
        self.address = address
        self.desk = desk
        self.inbox = inbox
        self.pauseBetweenAttempts = pauseBetweenAttempts
        self.report = report
    }

    func run() {
        while !inbox.isStopped {
            let questions = desk.waiting()
            if connection == nil, !questions.isEmpty { connect() }
            // Without a connection, the server cannot be asked.
            if connection != nil || questions.isEmpty { perform(board.questionsRead(questions)) }
            exchange()
            if let limit = abilitiesLimit, limit <= .now {
                abilitiesLimit = nil
                perform(board.serverMissed())
            }
            // A question that waits may change.
            let isBusy = board.isBusy || !questions.isEmpty
            wait(milliseconds: isBusy ? 1000 : -1)
        }
        perform(board.questionsRead([]))
        exchange()
        let limit = ContinuousClock.now + .milliseconds(500)
        while board.isBusy, connection != nil, ContinuousClock.now < limit {
            wait(milliseconds: 50)
            exchange()
        }
    }

    private func wait(milliseconds: Int32) {
        _ = inbox.bell.wait(connection?.descriptor ?? -1, milliseconds: milliseconds)
        if let connection, !connection.run(milliseconds: 0) { lose("it has closed the connection") }
    }

    // MARK: The connection

    private func connect() {
        guard nextAttempt <= .now else { return }
        nextAttempt = .now + pauseBetweenAttempts
        do throws(BusError) {
            let connection = try BusConnection(address)
            self.connection = connection
            // The bus performs them in order. If it refuses the first one, it closes the connection.
            _ = connection.send(.hello)
            for rule in [
                "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                    + "member='NameOwnerChanged',arg0='\(Self.name)'",
                "type='signal',sender='\(Self.name)',interface='\(Self.name)',path='\(Self.path)'",
            ] { _ = connection.send(.addMatch(rule)) }
        } catch {
            switch error {
            case .noLibrary: lose("libdbus-1 is not installed (Debian: libdbus-1-3)")
            case .unreachable(let reason): lose(reason)
            }
        }
    }

    private func lose(_ reason: String) {
        connection = nil
        calls = [:]
        abilitiesLimit = nil
        // The first report needs the questions.
        _ = board.questionsRead(desk.waiting())
        perform(board.busLost(reason))
    }

    /// Writes what is to be sent, and performs what has come. Afterwards, nothing waits in the library.
    private func exchange() {
        connection?.flush()
        while let message = connection?.next() {
            received(message)
            connection?.flush()
        }
    }

    private func received(_ message: BusMessage) {
        if let serial = message.replySerial {
            if let call = calls.removeValue(forKey: serial) { replied(message, to: call) }
        } else if message.isSignal("NameOwnerChanged", of: "org.freedesktop.DBus") {
            guard message.sender == "org.freedesktop.DBus", message.text(0) == Self.name else { return }
            let owner = message.text(2) ?? ""
            perform(board.ownerChanged(owner.isEmpty ? nil : owner))
        } else if message.isSignal("ActionInvoked", of: Self.name) {
            guard let number = message.number(0), let key = message.text(1) else { return }
            perform(board.actionInvoked(number, key: key, by: message.sender))
        } else if message.isSignal("NotificationClosed", of: Self.name) {
            guard let number = message.number(0) else { return }
            perform(board.notificationClosed(number, by: message.sender))
        }
    }

    private func replied(_ message: BusMessage, to call: Call) {
        switch call {
        case .abilities:
            abilitiesLimit = nil
            guard message.errorName == nil, let owner = message.sender else { return perform(board.serverMissed()) }
            let abilities = ServerAbilities(
                hasActions: message.contains("actions"), readsMarkup: message.contains("body-markup"))
            perform(board.abilitiesReceived(abilities, from: owner))
        case .notify(let id):
            guard message.errorName == nil, let number = message.number() else {
                return perform(board.notificationRefused(for: id))
            }
            perform(board.notificationShown(number, for: id))
        }
    }

    // MARK: Actions

    private func perform(_ actions: [NotificationBoard.Action]) {
        for action in actions {
            switch action {
            case .askAbilities:
                abilitiesLimit = .now + Self.patience
                send(Self.call("GetCapabilities"), .abilities)
            case .notify(let id, let notification): send(Self.notify(notification), .notify(id))
            case .close(let number):
                let close = Self.call("CloseNotification")
                close.append(.number(number))
                send(close, nil)
            case .answer(let id, let answer): _ = desk.answer(id, answer)
            case .report(let text): report(text)
            }
        }
    }

    private func send(_ call: BusCall, _ kind: Call?) {
        guard let serial = connection?.send(call) else { return }
        calls[serial] = kind
    }

    private static func call(_ method: String) -> BusCall { BusCall(method, of: name, at: path, to: name) }

    private static func notify(_ notification: DesktopNotification) -> BusCall {
        let call = call("Notify")
        call.append(DesktopNotification.program)
        call.append(.number(notification.replaces))
        // The icon.
        call.append("")
        call.append(notification.summary)
        call.append(notification.body)
        call.append(.texts(notification.actions))
        call.append(.dictionary("urgency", .byte(DesktopNotification.urgencyCritical)))
        call.append(.integer(notification.expiresMilliseconds))
        return call
    }
}
