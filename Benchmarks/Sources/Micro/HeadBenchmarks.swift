// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// HTTP1: the cost of the heads of every request and response.
enum HeadBenchmarks {
    static let groups = [
        BenchmarkGroup(prefix: "request", make: requests), BenchmarkGroup(prefix: "response", make: responses),
    ]

    /// Parses a received head, and serialises it for the origin with the proxy's own fields.
    private static func requests() throws -> [Benchmark] {
        let samples = [("curl", HeadSamples.curl), ("git", HeadSamples.git), ("chromium", HeadSamples.chromium)]
        return try samples.flatMap { (client, bytes) -> [Benchmark] in
            let head = try require(RequestHead.parse(bytes.span.bytes), "the head from \(client) is incomplete").head
            let scheme = "http://".utf8
            let isAbsolute = head.targetBytes.starts(with: scheme)
            let path = head.targetBytes.dropFirst(isAbsolute ? scheme.count : 0).drop { $0 != UInt8(ascii: "/") }
            let forwarding = RequestForwarding(
                target: path, host: head.host ?? "", framing: head.framing, via: ViaField("1.1 countersign"))
            guard try RequestHead.parse(head.forwarded(forwarding).span.bytes) != nil else {
                throw SetUpFailure("the forwarded head from \(client) is incomplete")
            }
            return [
                Benchmark("request-parse-\(client)") { keep(try RequestHead.parse(bytes.span.bytes)) },
                Benchmark("request-forward-\(client)") { keep(head.forwarded(forwarding)) },
            ]
        }
    }

    /// Includes determining the framing of the body, once per response.
    private static func responses() throws -> [Benchmark] {
        let samples = [("nginx", HeadSamples.nginx), ("application", HeadSamples.application)]
        let benchmarks = try samples.flatMap { (server, bytes) -> [Benchmark] in
            let head = try require(ResponseHead.parse(bytes.span.bytes), "the head from \(server) is incomplete").head
            let framing = try head.framing(answering: .get)
            let changes = ResponseChanges(via: ViaField("1.1 countersign"))
            return [
                Benchmark("response-parse-\(server)") {
                    let parsed = try ResponseHead.parse(bytes.span.bytes)
                    keep(try parsed?.head.framing(answering: .get))
                },
                Benchmark("response-forward-\(server)") { keep(head.forwarded(changes, framing: framing)) },
            ]
        }
        let challenge = HeadSamples.challenge
        // Line feeds alone: the whole head is written anew.
        let deviating = HeadSamples.nginx.filter { $0 != UInt8(ascii: "\r") }
        guard try ResponseHead.parse(deviating.span.bytes)?.head.repair != nil else {
            throw SetUpFailure("the head with line feeds is not repaired")
        }
        return benchmarks + [
            Benchmark("response-repair-nginx") {
                let parsed = try ResponseHead.parse(deviating.span.bytes)
                keep(try parsed?.head.framing(answering: .get))
            },
            Benchmark("response-parse-challenge") {
                let parsed = try ResponseHead.parse(challenge.span.bytes)
                keep(parsed?.head.fields.values(of: .wwwAuthenticate))
            },
        ]
    }
}
