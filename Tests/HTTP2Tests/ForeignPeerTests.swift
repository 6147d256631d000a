// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// Octets that another implementation, hyper-h2 4.4.1 for Python, sent: with Huffman code, a dynamic table and its own
/// order of fields.
@Suite struct ForeignPeerTests {
    private static let client = """
        505249202a20485454502f322e300d0a0d0a534d0d0a0d0a00002a04000000000000010000100000020000000100040000ffff0005000040
        000008000000000003000000640006000100000000380105000000018241871ae5f23a6ba0bf87448961051d849ffced007f7a889fd565b1
        69c4c35f5383f963e760914150831ea8001132d36e3af3e38c92165f00002101050000000382c287448961051d849ffced033fc1c01f1182
        1c011f0889ba51d85b144149615300003301040000000583c387448961051d849ffced037f5f8b1d75d0620d263d4c4d65644082497f864d
        833505b11f4084f2b1e34786ffffafffffee00000a000000000005000000000568656c6c6f0000090105000000054084f2b22da782685f
        """
    private static let origin = """
        00002a04000000000000010000100000020000000000040000ffff0005000040000008000000000003000000640006000100000000000401
        0000000000000b010400000001488208196d85fff8c0ffef00000d010400000001885f87497ca58ae819aa5c816f000005000100000001
        68656c6c6f00000f01040000000388bf4084f2b1e34786ffffafffffee000002000000000003686900000c01050000000340889acac8b212
        34da8f81070000040300000000050000000d
        """

    private func octets(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.filter { !$0.isWhitespace }.map { UInt8($0.hexDigitValue ?? 0) }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    @Test(arguments: [1, 7, .max])
    func requestsAreRead(step: Int) throws {
        let server = UnderTest(.server, hasStarted: false)
        let octets = octets(Self.client)
        for start in stride(from: 0, to: octets.count, by: min(step, octets.count)) {
            server.send(Array(octets[start..<(octets.count - start < step ? octets.count : start + step)]))
        }
        let recorder = server.recorder
        #expect(
            recorder.events == [
                "1 request GET /search?q=1", "1 end", "3 request GET /search?q=3", "3 end",
                "5 request POST /search?q=5", "5 end after 10",
            ])
        let lines = try [Int32](arrayLiteral: 1, 3, 5).map { id in
            let fields = try #require(recorder.requests[id]).fields
            return fields.lines.map { "\(fields.name(of: $0)): \(fields.value(of: $0))" }
        }
        #expect(
            lines == [
                ["Host: a.example", "User-Agent: hyper-h2/4", "Accept: */*", "Cookie: session=0123456789abcdef"],
                [
                    "Host: a.example", "User-Agent: hyper-h2/4", "Accept: */*", "Authorization: Bearer secret",
                    "Cookie: a=1",
                ],
                ["Host: a.example", "Content-Type: application/grpc", "Te: trailers", "X-Obs: \u{FFFD}\u{FFFD}"],
            ])
        let fields = try #require(recorder.requests[5]).fields
        #expect(Array(fields.valueBytes(of: fields.lines[3])) == [0xE9, 0xFF])
        #expect(recorder.content[5] == [0, 0, 0, 0, 5] + Array("hello".utf8))
        #expect(recorder.trailers[5]?.values(named: "x-sum") == ["42"])
        #expect(server.replies().map(\.type) == [4, 4, 8])
    }

    @Test(arguments: [1, 7, .max])
    func responsesAreRead(step: Int) throws {
        let client = UnderTest(.client, hasStarted: false)
        for _ in 0..<3 {
            let head = try requestHead("GET / HTTP/1.1\nHost: a.example")
            _ = client.session.open(
                head, RequestForwarding(target: head.targetBytes, host: "a.example", framing: .none), endsStream: true)
        }
        _ = client.replies()
        let octets = octets(Self.origin)
        for start in stride(from: 0, to: octets.count, by: min(step, octets.count)) {
            client.send(Array(octets[start..<(octets.count - start < step ? octets.count : start + step)]))
        }
        let recorder = client.recorder
        #expect(
            recorder.events == [
                "1 response 103 none", "1 response 200 length(5)", "1 end after 5", "1 ended complete",
                "3 response 200 chunked", "3 end after 2", "3 ended complete", "5 ended resetByPeer(HTTP_1_1_REQUIRED)",
            ])
        #expect(recorder.trailers[3]?.values(named: "grpc-status") == ["0"])
        let fields = try #require(recorder.responses[3]).fields
        #expect(fields.lines.last.map { Array(fields.valueBytes(of: $0)) } == [0xE9, 0xFF])
    }
}
