// SPDX-License-Identifier: Apache-2.0

import CountersignEvents

/// Which questions the notification server shows, and which answer belongs to which question.
///
/// Rules: each question has at most one notification. A notification that the person has closed does not come back.
/// Only the connection that owns the server's name can answer. A server or a bus that is not there is reported once,
/// until it was there, and is tried again for the next question.
struct NotificationBoard {
    enum Action: Equatable {
        /// Ask the server for its capabilities. The bus may start it.
        case askAbilities
        case notify(UInt64, DesktopNotification)
        /// Close the notification with this number.
        case close(UInt32)
        case answer(UInt64, QuestionAnswer)
        case report(String)
    }

    private enum Server: Equatable {
        case unknown, asked, absent
        /// `owner` is the unique name of its connection.
        case present(owner: String, ServerAbilities)
    }

    private struct Entry {
        enum Place: Equatable {
            case wanted
            /// Notify was called, and has not returned.
            case sent
            case shown(UInt32)
            /// The person has closed it or has answered, or the server refuses it.
            case over
        }

        var question: QuestionEvent
        var place = Place.wanted
        /// The requests in its text.
        var shownWaiting = 0
        /// It does not wait any more, and is to be closed as soon as its number is known.
        var hasEnded = false
    }

    private var server = Server.unknown
    private var entries: [UInt64: Entry] = [:]
    private var hasReported = false

    /// Whether a question waits, so that it may have changed a second later.
    var isBusy: Bool { !entries.isEmpty }

    /// These questions wait now. With none, each notification is closed; ``isBusy`` is true until the last one can be.
    mutating func questionsRead(_ questions: [QuestionEvent]) -> [Action] {
        var actions: [Action] = []
        let present = Set(questions.map(\.id))
        for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where !present.contains(id) {
            if case .shown(let number) = entry.place { actions.append(.close(number)) }
            if entry.place == .sent { entries[id]?.hasEnded = true } else { entries[id] = nil }
        }
        for question in questions {
            if entries[question.id] == nil, server == .absent { server = .unknown }
            entries[question.id, default: Entry(question: question)].question = question
        }
        return actions + show()
    }

    private mutating func show() -> [Action] {
        guard case .present(_, let abilities) = server else {
            guard server == .unknown, entries.values.contains(where: { !$0.hasEnded }) else { return [] }
            server = .asked
            return [.askAbilities]
        }
        var actions: [Action] = []
        for (id, entry) in entries.sorted(by: { $0.key < $1.key }) {
            let replaced: UInt32
            switch entry.place {
            case .wanted where !entry.hasEnded: replaced = 0
            case .shown(let number) where entry.shownWaiting != entry.question.waiting: replaced = number
            case .wanted, .shown, .sent, .over: continue
            }
            entries[id]?.place = .sent
            entries[id]?.shownWaiting = entry.question.waiting
            actions.append(
                .notify(id, DesktopNotification(entry.question, replacing: replaced, for: abilities)))
        }
        return actions
    }

    // MARK: What the server replies

    mutating func abilitiesReceived(_ abilities: ServerAbilities, from owner: String) -> [Action] {
        guard server == .asked else { return [] }
        server = .present(owner: owner, abilities)
        hasReported = false
        return show()
    }

    /// There is no server on the bus, and none can be started; or it fails.
    mutating func serverMissed() -> [Action] {
        guard server == .asked else { return [] }
        server = .absent
        return report("no program shows notifications on the session bus")
    }

    mutating func notificationShown(_ number: UInt32, for id: UInt64) -> [Action] {
        guard let entry = entries[id], entry.place == .sent else { return [] }
        if entry.hasEnded {
            entries[id] = nil
            return [.close(number)]
        }
        entries[id]?.place = .shown(number)
        return show()
    }

    mutating func notificationRefused(for id: UInt64) -> [Action] {
        guard let entry = entries[id], entry.place == .sent else { return [] }
        if entry.hasEnded { entries[id] = nil } else { entries[id]?.place = .over }
        return report("the notification server refuses a notification")
    }

    // MARK: Signals

    /// The server's name has another owner; nil: none.
    mutating func ownerChanged(_ owner: String?) -> [Action] {
        if case .present(let present, _) = server, present == owner { return [] }
        // The one that the call for the capabilities has started.
        if server == .asked, owner != nil { return [] }
        server = .unknown
        forgetShown()
        // Without an owner, the bus may start another server when the questions are read next, a second later.
        return owner == nil ? [] : show()
    }

    mutating func actionInvoked(_ number: UInt32, key: String, by sender: String?) -> [Action] {
        guard let id = question(number, sender), let button = DesktopNotification.Button(rawValue: key) else {
            return []
        }
        entries[id]?.place = .over
        // The server may leave it open.
        return [.answer(id, button.answer), .close(number)]
    }

    mutating func notificationClosed(_ number: UInt32, by sender: String?) -> [Action] {
        if let id = question(number, sender) { entries[id]?.place = .over }
        return []
    }

    private func question(_ number: UInt32, _ sender: String?) -> UInt64? {
        guard case .present(let owner, _) = server, owner == sender else { return nil }
        return entries.first { $0.value.place == .shown(number) }?.key
    }

    // MARK: The bus

    /// There is no connection. The next one starts over.
    mutating func busLost(_ reason: String) -> [Action] {
        server = .unknown
        forgetShown()
        guard isBusy else { return [] }
        return report("there is no session bus for notifications: \(reason)")
    }

    /// What a former server has shown. What the person has closed there stays closed.
    private mutating func forgetShown() {
        entries = entries.filter { !$0.value.hasEnded }
        for (id, entry) in entries where entry.place != .over { entries[id]?.place = .wanted }
    }

    private mutating func report(_ text: String) -> [Action] {
        defer { hasReported = true }
        return hasReported ? [] : [.report(text)]
    }
}
