// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents

/// The texts of a question, without its path, its fields and secrets. They are on one line, printable, and not longer
/// than a person reads.
struct QuestionText {
    private let question: QuestionEvent

    init(_ question: QuestionEvent) { self.question = question }

    /// `Permit POST to https://git.corp.example:443?` Without the program, whose name may look like markup: some
    /// servers read markup here, too.
    var title: String { "Permit \(method) to \(site)?" }

    /// `/usr/bin/git wants to use the credential "enrollment". 2 requests wait.`
    var details: String { "\(program) wants to use the credential \"\(credential)\". \(requests)." }

    /// For a server without buttons.
    var command: String { "Answer with: countersign approve \(question.id)" }

    /// `/usr/bin/git wants to send POST to https://git.corp.example:443 with "enrollment", 41 s left`
    var sentence: String {
        "\(program) wants to send \(method) to \(site) with \"\(credential)\", \(question.secondsLeft) s left"
    }

    private var method: String { Self.cut(question.method, 32) }

    private var site: String { Self.cut(question.site, 280) }

    private var credential: String { Self.cut(question.credential, 64) }

    /// The name matters more than the first folders.
    private var program: String {
        let text = PrintableText.escaped(question.client)
        guard text.count > 120 else { return text }
        return "\(text.prefix(40))…\(text.suffix(79))"
    }

    private var requests: String {
        question.waiting == 1 ? "1 request waits" : "\(question.waiting) requests wait"
    }

    private static func cut(_ text: String, _ limit: Int) -> String {
        let text = PrintableText.escaped(text)
        return text.count > limit ? "\(text.prefix(limit - 1))…" : text
    }
}

extension QuestionAnswer {
    /// For the word of any answer, that of the page and of `countersign approve` too; nil: without one.
    static func report(_ word: String?) -> String {
        switch word {
        case once.rawValue: "permitted once"
        case quarter.rawValue: "permitted for 15 minutes"
        case deny.rawValue: "refused"
        case "always": "permitted until the proxy ends"
        case .some, nil:
            "not answered: its time is over, its client has gone, the list has changed, or the proxy has restarted"
        }
    }
}
