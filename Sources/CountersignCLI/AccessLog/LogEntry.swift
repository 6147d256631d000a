// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Glibc

/// A line of the access log, as `serve --access-log` writes it, for a person to read.
enum LogEntry: Equatable {
    case request(Request)
    /// That many requests before it were not logged.
    case lost(count: Int64, time: Time)

    struct Request: Equatable {
        let time: Time
        let method: String
        /// `scheme://host:port` or `host:port`.
        let site: String
        /// `tunnel`, `intercept`, `forward` or `refuse`.
        let decision: String
        /// The scheme of the challenge that was answered.
        let challenge: String?
        let credential: String?
        let reason: String?
        /// 0 without a response.
        let status: Int64
        let milliseconds: Int64

        /// Whether the proxy refused it, or left a challenge to the client.
        var isRefused: Bool {
            decision == "refuse" || challenge == nil && reason?.isEmpty == false && (status == 0 || status >= 400)
        }

        /// Without the scheme.
        var authority: Substring {
            site.firstRange(of: "://").map { site[$0.upperBound...] } ?? site[...]
        }
    }

    /// A second in UTC.
    struct Time: Equatable {
        /// Since 1970.
        let seconds: Int64

        /// RFC 3339 in UTC, as the access log has it: `2026-01-01T00:00:00.000Z`.
        init?(_ text: String) {
            guard let match = text.wholeMatch(of: #/(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z/#),
                let year = Int32(match.1), let month = Int32(match.2), let day = Int32(match.3),
                let hour = Int32(match.4), let minute = Int32(match.5), let second = Int32(match.6)
            else { return nil }
            var parts = tm()
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
            (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
            let seconds = timegm(&parts)
            guard parts.tm_mon == month - 1, parts.tm_mday == day, hour < 24, minute < 60, second < 61 else {
                return nil
            }
            self.seconds = Int64(seconds)
        }

        /// `2026-01-01 01:00:00` in the time zone of the process.
        var local: String {
            var seconds = time_t(seconds)
            var parts = tm()
            localtime_r(&seconds, &parts)
            var buffer = [CChar](repeating: 0, count: 32)
            let count = strftime(&buffer, buffer.count, "%Y-%m-%d %H:%M:%S", &parts)
            return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
    }

    /// Nil for a line that is not of an access log.
    init?(_ line: some Collection<UInt8>) {
        guard let object = try? JSONParser.parse(Array(line)), let time = Self.string(object["time"]).flatMap(Time.init)
        else { return nil }
        if let count = Self.integer(object["lost"]) {
            self = .lost(count: count, time: time)
            return
        }
        guard let method = Self.string(object["method"]), let site = Self.string(object["site"]),
            let decision = Self.string(object["decision"]), let status = Self.integer(object["status"]),
            let milliseconds = Self.integer(object["ms"])
        else { return nil }
        self = .request(
            Request(
                time: time, method: method, site: site, decision: decision, challenge: Self.string(object["challenge"]),
                credential: Self.string(object["credential"]), reason: Self.string(object["reason"]), status: status,
                milliseconds: milliseconds))
    }

    private static func string(_ value: JSONValue?) -> String? {
        if case .string(let text)? = value?.content { text } else { nil }
    }

    private static func integer(_ value: JSONValue?) -> Int64? {
        if case .integer(let number)? = value?.content { number } else { nil }
    }

    /// One line for a person, without a line break: time, decision, status, duration, request, and the answer or the
    /// reason.
    var text: String {
        switch self {
        case .lost(let count, let time):
            return "\(time.local)  \(count) \(count == 1 ? "request was" : "requests were") not logged"
        case .request(let request):
            var columns = [
                request.time.local, Self.padded(request.decision, 9),
                Self.padded(request.status == 0 ? "-" : String(request.status), 3),
                Self.padded("\(request.milliseconds) ms", 8, atEnd: false), "\(request.method) \(request.site)",
            ]
            if let challenge = request.challenge {
                columns.append("answered: \(challenge)" + (request.credential.map { ", \($0)" } ?? ""))
            }
            if let reason = request.reason, !reason.isEmpty { columns.append(reason) }
            return columns.joined(separator: "  ")
        }
    }

    private static func padded(_ text: String, _ width: Int, atEnd: Bool = true) -> String {
        let blanks = String(repeating: " ", count: max(0, width - text.count))
        return atEnd ? text + blanks : blanks + text
    }
}
