// SPDX-License-Identifier: Apache-2.0

import NIOEmbedded
import Testing

@testable import CountersignProxy

/// The content of a repeated request equals that of the first, however the network interrupts its sender.
@Suite struct ReplayTests {
    private static let limit = 1 << 20
    private static let put = "PUT http://a.example/ HTTP/1.1\r\nHost: a\r\n"
    private static let unauthorized =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// Up to the limit, content is in memory; the rest has no complete record in the spool.
    static let lengths = [1, 65_536, limit - 1, limit, limit + 1, 1_050_000, 1_150_000, 1_200_000, 1_300_000]

    private let bench: Bench
    private let origin: EmbeddedChannel

    init() throws {
        bench = try Bench(sites: "http://a.example answer=basic plaintext=yes", password: "pw")
        origin = try bench.idleOrigin(withCredential: true, isNarrow: true)
    }

    private static func content(_ length: Int) -> String {
        String((0..<length / 8 + 1).map { "\(10_000_000 + $0)" }.joined().prefix(length))
    }

    /// The content after a head.
    private func received() throws -> Substring {
        let text = try origin.sent()
        guard let end = text.firstRange(of: "\r\n\r\n") else { return text[...] }
        return text.hasPrefix("PUT ") ? text[end.upperBound...] : text[...]
    }

    private static func decoded(_ chunks: Substring) -> String? {
        var content = ""
        var rest = chunks.utf8[...]
        while let end = rest.firstIndex(of: 13) {
            guard let size = Int(String(rest[..<end]) ?? "", radix: 16) else { return nil }
            let start = rest.index(end, offsetBy: 2)
            guard size > 0 else { return rest[start...].elementsEqual("\r\n".utf8) ? content : nil }
            guard let after = rest.index(start, offsetBy: size, limitedBy: rest.endIndex),
                rest[after...].starts(with: "\r\n".utf8)
            else { return nil }
            content += String(rest[start..<after]) ?? ""
            rest = rest[rest.index(after, offsetBy: 2)...]
        }
        return nil
    }

    @Test(arguments: lengths) func contentOfKnownLengthIsRepeated(_ length: Int) throws {
        let content = Self.content(length)
        try bench.send("\(Self.put)Content-Length: \(length)\r\n\r\n")
        bench.loop.advanceTime(by: .seconds(2))
        for start in stride(from: 0, to: length, by: 50_000) {
            try bench.send(String(content.utf8.dropFirst(start).prefix(50_000)) ?? "")
        }
        #expect(try received() == content)
        try origin.receive(Self.unauthorized)
        bench.loop.advanceTime(by: .seconds(2))
        #expect(try received() == content)
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 ") && origin.isActive)
    }

    @Test(arguments: lengths) func contentInChunksIsRepeated(_ length: Int) throws {
        let content = Self.content(length)
        try bench.send("\(Self.put)Transfer-Encoding: chunked\r\n\r\n")
        bench.loop.advanceTime(by: .seconds(2))
        for start in stride(from: 0, to: length, by: 50_000) {
            let piece = String(content.utf8.dropFirst(start).prefix(50_000)) ?? ""
            try bench.send("\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n")
        }
        try bench.send("0\r\n\r\n")
        #expect(try Self.decoded(received()) == content)
        try origin.receive(Self.unauthorized)
        bench.loop.advanceTime(by: .seconds(2))
        #expect(try Self.decoded(received()) == content)
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 ") && origin.isActive)
    }
}
