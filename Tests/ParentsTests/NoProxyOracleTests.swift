// SPDX-License-Identifier: Apache-2.0
import CountersignTestOrigin
import Testing

@testable import CountersignParents

/// Compares decisions with those of curl: a list of exceptions and a URL, and whether curl goes to the proxy.
@Suite struct NoProxyOracleTests {
    struct Case: CustomTestStringConvertible {
        let list: String
        let host: String

        var testDescription: String { "\(host) with \(list)" }

        init(_ list: String, _ host: String) {
            self.list = list
            self.host = host
        }
    }

    static let cases = [
        Case("*", "a.example"), Case(" *", "a.example"), Case("*,b.example", "a.example"), Case("", "a.example"),
        Case("example.com", "example.com"), Case("example.com", "www.example.com"),
        Case("example.com", "nonexample.com"), Case("example.com", "example.com.test"),
        Case(".example.com", "example.com"), Case(".example.com", "www.example.com"),
        Case("..example.com", "www.example.com"), Case("example.com.", "example.com"),
        Case("example.com", "example.com."), Case(".example.com.", "www.example.com"),
        Case("EXAMPLE.com", "www.Example.COM"), Case("www.example.com", "example.com"),
        Case("*.example.com", "www.example.com"), Case("com", "example.com"), Case("xample.com", "example.com"),
        Case("a.example,b.example", "b.example"), Case("a.example, b.example", "b.example"),
        Case("a.example b.example", "b.example"), Case(",,a.example,,b.example,", "b.example"),
        Case("\ta.example\t,\tb.example", "a.example"), Case("localhost", "localhost"), Case("a.example", "localhost"),
        Case("10.0.0.0/8", "10.255.1.2"), Case("10.0.0.0/8", "11.0.0.1"), Case("10.1.2.3", "10.1.2.3"),
        Case("10.1.2.3/32", "10.1.2.3"), Case("10.1.2.3/31", "10.1.2.2"), Case("10.1.2.3/31", "10.1.2.4"),
        Case("192.168.0.0/16,10.0.0.0/8", "10.9.8.7"), Case("192.168.1.0/23", "192.168.0.1"),
        Case("192.168.1.0/23", "192.168.2.1"), Case("10.0.0.0/33", "10.0.0.0"), Case("10.0.0.0/0", "11.0.0.1"),
        Case("10.0.0.0/0", "10.0.0.0"), Case("10.0.0.0/1", "127.0.0.9"), Case("10.0.0.0/1", "128.0.0.9"),
        Case("10", "10.0.0.1"), Case("10.0.0", "10.0.0.1"), Case(".10.0.0.1", "10.0.0.1"), Case("0.0.1", "10.0.0.1"),
        Case("10.0.0.1", "example.com"), Case("::1", "[::1]"), Case("::1", "[0:0:0:0:0:0:0:1]"),
        Case("2001:db8::/32", "[2001:db9::1]"),
        Case("2001:db8::/33", "[2001:db8:8000::1]"), Case("2001:db8::/129", "[2001:db8::]"),
        Case("fe80::/10", "[fec0::1]"), Case("::1", "127.0.0.1"),
        Case("127.0.0.1", "[::1]"), Case("example.com/8", "example.com"), Case("10.0.0.1", "10.0.0.10"),
    ]

    @Test(arguments: cases) func curlDecidesTheSame(example: Case) throws {
        let list = NoProxyList(environment: example.list)
        let name = example.host.hasPrefix("[") ? String(example.host.dropFirst().dropLast()) : example.host
        let isContained = list.element(containing: host(name), port: 81) != nil
        #expect(try goesToProxy(example) == !isContained)
    }

    /// curl reads neither ports nor brackets; these elements have their meaning in other programs.
    @Test(arguments: [Case("example.com:81", "example.com"), Case("[::1]", "[::1]"), Case("[::1]:81", "[::1]")])
    func curlIgnoresPortsAndBrackets(example: Case) throws {
        #expect(try goesToProxy(example))
    }

    /// Two ports refuse every connection: that of the proxy, and that of every host. curl says which it has tried.
    private func goesToProxy(_ example: Case) throws -> Bool {
        let scratch = try TemporaryFolder("no-proxy")
        let proxy = try RefusingPort()
        let origin = try RefusingPort()
        let curl = try Command.run(
            try Tool.path("curl"),
            ["-sS", "--max-time", "20", "--connect-to", "::127.0.0.1:\(origin.number)", "http://\(example.host):81/"],
            environment: ["http_proxy": "http://127.0.0.1:\(proxy.number)", "NO_PROXY": example.list], in: scratch)
        let tried = [proxy, origin].map { curl.error.contains("Failed to connect to 127.0.0.1 port \($0.number) ") }
        try #require(curl.status == 7 && tried.filter(\.self).count == 1, "\(curl.said)")
        return tried[0]
    }
}
