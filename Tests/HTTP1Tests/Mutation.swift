// SPDX-License-Identifier: Apache-2.0

/// SplitMix64, which produces the same numbers in every run.
struct RepeatableNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// Almost valid messages: valid ones with one to three small changes that are known to confuse parsers.
struct Mutation {
    static let requests = [
        "GET /a?b=c HTTP/1.1\r\nHost: origin.example\r\nAccept: */*\r\n\r\n",
        "GET http://origin.example:80/ HTTP/1.1\r\nHost: origin.example:80\r\nProxy-Connection: keep-alive\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;a=b\r\nabc\r\n10;c=\"d\"\r\n"
            + "0123456789abcdef\r\n0\r\nX: y\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: [::1]:8080\r\nX-A: 1\r\nX-A: 2\r\nConnection: close, x-a\r\n\r\n",
        "HEAD / HTTP/1.0\r\nUser-Agent: x\r\n\r\n",
        "\r\nDELETE /1 HTTP/1.1\r\nhost: a\r\nCookie: a=b; c=d\r\nAuthorization: Basic eA==\r\n\r\n",
    ]

    static let responses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: x\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n"
            + "Content-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nA;x\r\n"
            + "0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n",
    ]

    private static let fragments = [
        "\r\n", "\n", "\r", "\r\r\n", "\n\r", " ", "\t", "\u{0}", "\u{B}", "\u{7F}", "\u{80}", "\u{FF}", "\u{A0}", ":",
        ",", ";", "0",
        "00", "1", "+", "-", "0x", "\"", "\\", "/", "(", "\r\n ", "\r\n\t", " :", "\r\n\r\n", "\r\n: x", "chunked",
        ",chunked",
        "chunked, chunked", " chunked", "xchunked", "gzip", "identity", "Content-Length: 5\r\n",
        "Content-Length: 6\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n", "Content-Length:\r\n", "Content-Length : 5\r\n",
        "Content-Length: 18446744073709551621\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding:\u{B}chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding : chunked\r\n",
        "Transfer_Encoding: chunked\r\n", "transfer-encoding: identity\r\n", "Host: b\r\n", "Host:\r\n",
        "Connection: close\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n", "Upgrade: h2c\r\n", "HTTP/1.0", "HTTP/1.1", "HTTP/2.0",
        "HTTP/0.9",
        "Expect: 100-continue\r\n", "X: y\r\n", "0\r\n\r\n", "5\r\n", ";a", ";a=b", ";a=\"b\"", "ffffffffffffffff",
        "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]

    private var numbers: RepeatableNumbers
    private let seeds: [[UInt8]]

    init(of seeds: [String], seed: UInt64) {
        numbers = RepeatableNumbers(seed: seed)
        self.seeds = seeds.map(octets)
    }

    mutating func next() -> [UInt8] {
        var message = seeds[pick(seeds.count)]
        for _ in 0...pick(3) { change(&message) }
        return message
    }

    private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &numbers) }

    private mutating func change(_ message: inout [UInt8]) {
        let place = pick(message.count + 1)
        let end = min(message.count, place + 1 + pick(4))
        switch pick(9) {
        case 0, 1, 2:
            message.insert(contentsOf: octets(Mutation.fragments[pick(Mutation.fragments.count)]), at: place)
        case 3, 4:
            // Insert at the start of a line, because most fragments are whole lines.
            let starts = message.indices.filter { $0 > 0 && message[$0 - 1] == 0x0A }
            guard !starts.isEmpty else { return }
            let fragment = octets(Mutation.fragments[pick(Mutation.fragments.count)])
            message.insert(contentsOf: fragment, at: starts[pick(starts.count)])
        case 5:
            message.removeSubrange(min(place, end)..<end)
        case 6:
            message.replaceSubrange(
                min(place, end)..<end, with: octets(Mutation.fragments[pick(Mutation.fragments.count)]))
        case 7:
            guard place < message.count else { return }
            message[place] = UInt8(pick(256))
        default:
            guard place < message.count else { return }
            message[place] ^= 1 << UInt8(pick(8))
        }
    }
}
