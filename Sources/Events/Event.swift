// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Synchronization

/// Something that the proxy has done or found out. The access log, `watch`, the page, the metrics and the audit are
/// views of it. No kind has a member for a path, a field's value or a secret.
package final class Event: Sendable {
    /// Grows by one with each event of the process that somebody receives.
    package var number: UInt64 { sequence.load(ordering: .relaxed) }
    package let time: Timestamp
    package let kind: Kind
    /// ``number``. The ring sets it before a reader has the event.
    let sequence: Atomic<UInt64>
    /// ``line``, once a reader has wanted it.
    private let text = Mutex<[UInt8]>([])

    init(number: UInt64 = 0, time: Timestamp, kind: consuming Kind) {
        sequence = Atomic(number)
        self.time = time
        self.kind = kind
    }

    package enum Kind: Sendable {
        /// A request or tunnel has ended.
        case request(RequestEvent)
        /// The site has rejected the credential or identity of that name. `rule` is the list's `file:line`.
        case rejected(site: String, rule: String?, scheme: String, realm: String?, credential: String)
        /// The certificate of a listed site does not verify.
        case untrusted(site: String, rule: String?, reason: String, fingerprint: String?)
        /// A client has refused the certificate that it was shown in place of the site's.
        case distrusted(site: String, program: String?, reason: String)
        /// There was no connection to the site, or no response.
        case unreached(site: String, reason: String)
        /// The certificate of the identity of that name was renewed.
        case renewed(identity: String)
        case renewalFailed(identity: String, reason: String)
        /// Answering was switched off or on.
        case paused, resumed
        /// The vault was closed or opened.
        case locked, unlocked
        /// A request waits for a person, and what came of it.
        case question(QuestionEvent)
        case approval(id: UInt64, site: String, client: String, answer: String)
        /// A changed home is in force. `sites` is the number of lines in the list.
        case reloaded(sites: Int)
        /// A changed home has errors. What was in force stays in force.
        case notReloaded(reason: String)
        /// A sentence of the program's log.
        case notice(level: String, message: String, hint: String?)
        /// The reader was too slow: `count` events after the one before this are missing.
        case lost(count: UInt64)
    }

    /// The word for the kind in JSON.
    package var name: String {
        switch kind {
        case .request: "request"
        case .rejected: "rejected"
        case .untrusted: "untrusted"
        case .distrusted: "distrusted"
        case .unreached: "unreached"
        case .renewed: "renewed"
        case .renewalFailed: "renewalFailed"
        case .paused: "paused"
        case .resumed: "resumed"
        case .locked: "locked"
        case .unlocked: "unlocked"
        case .question: "question"
        case .approval: "approval"
        case .reloaded: "reloaded"
        case .notReloaded: "notReloaded"
        case .notice: "notice"
        case .lost: "lost"
        }
    }

    /// One JSON object and a line feed. Made once for all readers.
    package var line: [UInt8] {
        text.withLock { text in
            if text.isEmpty { text = json.line }
            return text
        }
    }

    /// One JSON object without a line break.
    package var json: JSONObject {
        var object = JSONObject()
        object.add("event", name)
        object.add("n", number)
        object.add("time", time.text)
        switch kind {
        case .request(let request):
            request.add(to: &object)
        case .rejected(let site, let rule, let scheme, let realm, let credential):
            object.add("site", site)
            object.add("rule", ifAny: rule)
            object.add("scheme", scheme)
            object.add("realm", ifAny: realm)
            object.add("credential", credential)
        case .untrusted(let site, let rule, let reason, let fingerprint):
            object.add("site", site)
            object.add("rule", ifAny: rule)
            object.add("reason", reason)
            object.add("fingerprint", ifAny: fingerprint)
        case .distrusted(let site, let program, let reason):
            object.add("site", site)
            object.add("program", ifAny: program)
            object.add("reason", reason)
        case .unreached(let site, let reason):
            object.add("site", site)
            object.add("reason", reason)
        case .renewed(let identity):
            object.add("identity", identity)
        case .renewalFailed(let identity, let reason):
            object.add("identity", identity)
            object.add("reason", reason)
        case .paused, .resumed, .locked, .unlocked:
            break
        case .question(let question):
            question.add(to: &object)
        case .approval(let id, let site, let client, let answer):
            object.add("id", id)
            object.add("site", site)
            object.add("client", client)
            object.add("answer", answer)
        case .reloaded(let sites):
            object.add("sites", UInt64(sites))
        case .notReloaded(let reason):
            object.add("reason", reason)
        case .notice(let level, let message, let hint):
            object.add("level", level)
            object.add("message", message)
            object.add("hint", ifAny: hint)
        case .lost(let count):
            object.add("count", count)
        }
        return object
    }
}
