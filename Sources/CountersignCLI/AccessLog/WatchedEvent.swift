// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// An event of a running server, for a person to read.
struct WatchedEvent {
    private let time: LogEntry.Time
    private let kind: String
    private let object: JSONValue
    /// Nil for an event that is not about a request.
    private let request: LogEntry?

    /// Nil for a line that is no event. An event of a later version is one.
    init?(_ line: [UInt8]) {
        guard let object = try? JSONParser.parse(line), case .string(let kind)? = object["event"]?.content,
            case .string(let text)? = object["time"]?.content, let time = LogEntry.Time(text)
        else { return nil }
        self.time = time
        self.kind = kind
        self.object = object
        request = kind == "request" ? LogEntry(line) : nil
        if kind == "request", request == nil { return nil }
    }

    private func text(_ name: String) -> String? {
        switch object[name]?.content {
        case .string(let text)?: text
        case .integer(let number)?: String(number)
        default: nil
        }
    }

    /// Events without a site match a filter without one.
    func matches(_ filter: LogFilter) -> Bool {
        if let request {
            return text("check") == nil
                ? filter.matches(request) : LogFilter(site: filter.site, isRefusedOnly: false).matches(request)
        }
        if filter.isRefusedOnly, kind == "approval", text("answer") != "deny", text("answer") != "none" { return false }
        guard let site = text("site") else { return filter.site == nil && !filter.isRefusedOnly }
        let authority = site.firstRange(of: "://").map { site[$0.upperBound...] } ?? site[...]
        return filter.site?.matches(authority) ?? true
    }

    /// One line, without a line break.
    var text: String {
        if let request { return request.text + (text("check").map { "  [\($0)]" } ?? "") }
        return "\(time.local)  \(sentence)"
    }

    private var sentence: String {
        let site = text("site") ?? "a site"
        let reason = text("reason") ?? "for an unknown reason"
        return switch kind {
        case "rejected":
            "rejected: \(site) has rejected \"\(text("credential") ?? "")\" (\(text("scheme") ?? "unknown scheme"))"
        case "untrusted":
            "untrusted: \(site): \(reason)" + (text("fingerprint").map { ", certificate \($0)" } ?? "")
        case "distrusted": "distrusted: \(reason)"
        case "unreached": "unreached: \(site): \(reason)"
        case "renewed": "renewed: identity \"\(text("identity") ?? "")\" has a new certificate"
        case "renewalFailed": "not renewed: identity \"\(text("identity") ?? "")\": \(reason)"
        case "question":
            "question \(text("id") ?? ""): \(text("client") ?? "a client") wants to send \(text("method") ?? "a request") "
                + "to \(site) with \"\(text("credential") ?? "")\"; `countersign approve` answers"
        case "approval": "approval: \(text("client") ?? "a client") at \(site): \(text("answer") ?? "")"
        case "paused": "paused: nothing is answered until `countersign resume`"
        case "resumed": "resumed: challenges are answered again"
        case "locked": "locked: the vault was locked"
        case "unlocked": "unlocked: the vault was unlocked"
        case "reloaded": "reloaded: the home was read again, \(text("sites") ?? "0") lines are in force"
        case "notReloaded": "not reloaded: \(reason)"
        case "notice": "\(text("level") ?? "notice"): \(text("message") ?? "")"
        case "lost": "lost: \(text("count") ?? "some") events, because this reader was too slow"
        default: kind
        }
    }
}
