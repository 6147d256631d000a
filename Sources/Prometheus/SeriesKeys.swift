// SPDX-License-Identifier: Apache-2.0

/// The series of requests that one belongs to. Clients choose methods and origins choose statuses, so both are limited
/// to registered ones.
struct RequestKey: HandlerKey {
    private let method: UInt8
    private let decision: UInt8
    private let status: UInt16
    private let site: String

    init(method: String, status: Int, decision: String, site: String?) {
        self.method = Self.index(ofMethod: method)
        self.decision = Self.index(ofDecision: decision)
        self.status = Self.known(status)
        self.site = site ?? "unlisted"
    }

    var hash: UInt64 {
        var hash = KeyHash()
        hash.add(UInt64(method) << 32 | UInt64(decision) << 16 | UInt64(status))
        hash.add(site)
        return hash.value
    }

    var dimensions: [(String, String)] {
        [
            ("http.request.method", Self.methods[Int(method)]), ("http.response.status_code", String(status)),
            ("countersign.decision", Self.decisions[Int(decision)]), ("countersign.site", site),
        ]
    }

    private static let methods = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "_OTHER",
    ]
    private static let decisions = ["tunnel", "intercept", "forward", "refuse", "_OTHER"]

    private static func index(ofMethod text: String) -> UInt8 {
        // One comparison instead of nine, which took 100 ns for the last ones.
        let index: UInt8 =
            switch (text.utf8.count, text.utf8.first) {
            case (3, UInt8(ascii: "G")): 0
            case (4, UInt8(ascii: "H")): 1
            case (4, UInt8(ascii: "P")): 2
            case (3, UInt8(ascii: "P")): 3
            case (6, UInt8(ascii: "D")): 4
            case (7, UInt8(ascii: "C")): 5
            case (7, UInt8(ascii: "O")): 6
            case (5, UInt8(ascii: "T")): 7
            case (5, UInt8(ascii: "P")): 8
            default: 9
            }
        return methods[Int(index)] == text ? index : 9
    }

    private static func index(ofDecision text: String) -> UInt8 {
        switch text {
        case "tunnel": 0
        case "intercept": 1
        case "forward": 2
        case "refuse": 3
        default: 4
        }
    }

    /// IANA's registered status codes. An unknown one counts as x00 of its class, and an invalid one as 500
    /// (RFC 9110 §15).
    private static func known(_ status: Int) -> UInt16 {
        switch status {
        case 0, 100...104, 200...208, 226, 300...305, 307...308: UInt16(status)
        case 400...418, 421...426, 428...429, 431, 451, 500...508, 510...511: UInt16(status)
        case 100...599: UInt16(status / 100 * 100)
        default: 500
        }
    }
}

/// A series of a counter with at most two dimensions.
struct CounterKey: HandlerKey {
    enum Counter: UInt8 { case answers, refusals, rejections, untrusted, unreached, renewals, reloads }

    let counter: Counter
    private let word: String
    private let site: String

    /// `site` is the identity for renewals.
    init(_ counter: Counter, _ word: String, site: String? = nil) {
        self.counter = counter
        self.word = word
        self.site = site ?? "unlisted"
    }

    var hash: UInt64 {
        var hash = KeyHash()
        hash.add(UInt64(counter.rawValue))
        hash.add(word)
        hash.add(site)
        return hash.value
    }

    var label: String { "countersign.\(counter)" }

    var dimensions: [(String, String)] {
        switch counter {
        case .answers, .rejections: [("countersign.scheme", word), ("countersign.site", site)]
        case .refusals: [("countersign.check", word), ("countersign.site", site)]
        case .untrusted: [("countersign.site", site)]
        case .unreached: [("countersign.reason", word)]
        case .renewals: [("countersign.result", word), ("countersign.identity", site)]
        case .reloads: [("countersign.result", word)]
        }
    }
}
