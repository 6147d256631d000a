// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents

/// What a notification server can do (Desktop Notifications Specification, "GetCapabilities").
struct ServerAbilities: Equatable {
    /// `actions`: it has buttons.
    var hasActions = false
    /// `body-markup`: it reads a part of HTML in the body.
    var readsMarkup = false
}

/// The arguments of Notify.
struct DesktopNotification: Equatable {
    /// The first of the arguments, and that of every notification.
    static let program = "Countersign"
    static let urgencyCritical: UInt8 = 2

    /// The number of the notification to replace; 0: none.
    let replaces: UInt32
    /// Never markup.
    let summary: String
    let body: String
    /// A key and a label for each button.
    let actions: [String]
    let expiresMilliseconds: Int32

    init(_ question: QuestionEvent, replacing replaces: UInt32, for abilities: ServerAbilities) {
        self.replaces = replaces
        let text = QuestionText(question)
        summary = text.title
        let body = abilities.hasActions ? text.details : "\(text.details)\n\(text.command)"
        self.body = abilities.readsMarkup ? body.markupEscaped : body
        actions = abilities.hasActions ? Button.allCases.flatMap { [$0.rawValue, $0.label] } : []
        expiresMilliseconds = Int32(clamping: max(1, question.secondsLeft) * 1000)
    }

    /// The raw values are the keys of the actions.
    enum Button: String, CaseIterable {
        case allowOnce = "allow-once"
        case allowClient = "allow-client"
        case deny

        var label: String {
            switch self {
            case .allowOnce: "Allow"
            case .allowClient: "Allow for 15 minutes"
            case .deny: "Deny"
            }
        }

        var answer: QuestionAnswer {
            switch self {
            case .allowOnce: .once
            case .allowClient: .quarter
            case .deny: .deny
            }
        }
    }
}
