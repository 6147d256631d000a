// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Replies of a peer that keeps to no protocol, the same for each seed.
struct Hostility: RandomNumberGenerator {
    private var state: UInt64

    init(seed: Int) { state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 &+ 1 }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// True in one of `number` cases.
    mutating func once(in number: Int) -> Bool { Int.random(in: 0..<number, using: &self) == 0 }

    mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int.random(in: 0..<values.count, using: &self)]
    }

    mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }

    /// How many cases a test tries: all of them if `COUNTERSIGN_LONG_TESTS` is set.
    static func cases(_ number: Int) -> Int {
        ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == nil ? number / 10 : number
    }

    // MARK: HTTP

    /// One response to a request, or something like it, with challenges in these fields.
    mutating func response(challengesIn field: String, status: Int) -> [UInt8] {
        var text = pick(["HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.0 "])
        text += "\(once(in: 2) ? status : pick([200, 200, 100, 101, 103, 204, 302, 401, 403, 407, 502, 999])) r\r\n"
        for _ in 0..<number(0..<3) { text += "\(field): \(challenge())\r\n" }
        if once(in: 4) { text += "Connection: \(pick(["close", "keep-alive", "x"]))\r\n" }
        if once(in: 8) { text += "Authentication-Info: \(pick(["rspauth=\"0\"", "nextnonce=\"n\"", "=", ""]))\r\n" }
        let content = String(repeating: "x", count: pick([0, 0, 1, 7, 100, 3000]))
        switch number(0..<9) {
        case 0...4: text += "Content-Length: \(content.utf8.count)\r\n\r\n\(content)"
        case 5:
            let size = String(content.utf8.count, radix: 16)
            text += "Transfer-Encoding: chunked\r\n\r\n\(size)\r\n\(content)\r\n0\r\n\r\n"
        case 6: text += "Content-Length: \(pick(["-1", "99999999", "0, 1", "70000"]))\r\n\r\n\(content)"
        case 7: text += "Transfer-Encoding: \(pick(["chunked, chunked", "gzip", "chunked"]))\r\n\r\n\(content)"
        default: text += "\r\n\(content)"
        }
        if once(in: 3) { text += pick(["x", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", content]) }
        var bytes = Array(text.utf8)
        if once(in: 6), !bytes.isEmpty { bytes[number(0..<bytes.count)] = UInt8(truncatingIfNeeded: next()) }
        if once(in: 8) { bytes.removeLast(number(0..<bytes.count)) }
        return bytes
    }

    private mutating func challenge() -> String {
        // An NTLM challenge of a server, with a target name and without.
        let ntlm = "TlRMTVNTUAACAAAAAAAAADgAAAAFgomiASNFZ4mrze8AAAAAAAAAAAAAAAA4AAAABgBxFwAAAA8="
        return pick([
            "Basic realm=\"p\"", "Basic realm=\"q\"", "Basic", "NTLM", "NTLM \(ntlm)", "NTLM AAAA", "Negotiate",
            "Negotiate oRQwEqADCgEAoQsGCSqGSIb3EgECAg==", "Digest realm=\"p\", nonce=\"n\", qop=\"auth\"",
            "Digest realm=\"p\", nonce=\"m\", qop=\"auth\", stale=true", "Digest realm=\"p\", nonce=\"n\", algorithm=X",
            "Bearer error=\"invalid_token\"", "Basic realm=\"", "\u{7F}", "Basic realm=\"p\", NTLM, Digest nonce=\"n\"",
        ])
    }

    // MARK: SOCKS

    mutating func socksReply() -> [UInt8] {
        var bytes: [UInt8] = pick([
            [5, 0], [5, 2], [5, 2], [5, 2], [5, 0xFF], [1, 0], [1, 0], [1, 1], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            [5, 0, 0, 3, 1, 0x61, 0, 0], [5, 0, 0, 4], [5, 1], [4, 0], [5], [],
        ])
        if once(in: 4) { bytes += [UInt8](repeating: UInt8(truncatingIfNeeded: next()), count: number(0..<5)) }
        if once(in: 8), !bytes.isEmpty { bytes[number(0..<bytes.count)] = UInt8(truncatingIfNeeded: next()) }
        return bytes
    }

    /// Splits bytes at random places, as a network does.
    mutating func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = once(in: 2) ? rest.count : number(1..<rest.count + 1)
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return pieces
    }
}
