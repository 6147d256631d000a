// SPDX-License-Identifier: Apache-2.0
import CountersignTestOrigin
import Testing

@testable import CountersignParents

@Suite struct EnvironmentProxiesTests {
    struct Case {
        let environment: [String: String]
        let http: String?
        let https: String?
    }

    /// With the ports in the place of names of proxies.
    static let cases = [
        Case(environment: [:], http: nil, https: nil),
        Case(environment: ["http_proxy": "1"], http: "http_proxy", https: nil),
        Case(environment: ["HTTP_PROXY": "1"], http: nil, https: nil),
        Case(environment: ["https_proxy": "1", "HTTPS_PROXY": "2"], http: nil, https: "https_proxy"),
        Case(environment: ["HTTPS_PROXY": "2"], http: nil, https: "HTTPS_PROXY"),
        Case(environment: ["https_proxy": "", "HTTPS_PROXY": "2"], http: nil, https: "HTTPS_PROXY"),
        Case(environment: ["all_proxy": "1", "ALL_PROXY": "2"], http: "all_proxy", https: "all_proxy"),
        Case(environment: ["ALL_PROXY": "2", "HTTP_PROXY": "3"], http: "ALL_PROXY", https: "ALL_PROXY"),
        Case(environment: ["http_proxy": "1", "ALL_PROXY": "2"], http: "http_proxy", https: "ALL_PROXY"),
        Case(environment: ["no_proxy": "", "NO_PROXY": "example.com", "all_proxy": "1"], http: nil, https: nil),
        Case(
            environment: ["no_proxy": "a.example", "NO_PROXY": "example.com", "all_proxy": "1"], http: "all_proxy",
            https: "all_proxy"),
    ]

    /// Each variable's proxy is a port that refuses every connection; curl says which it has tried.
    @Test(arguments: cases) func variablesAreReadAsCurlReadsThem(example: Case) throws {
        let scratch = try TemporaryFolder("environment")
        var ports: [String: RefusingPort] = [:]
        var environment = example.environment
        for (name, value) in example.environment where !value.isEmpty && !name.lowercased().hasPrefix("no") {
            let port = try RefusingPort()
            ports[name] = port
            environment[name] = "http://127.0.0.1:\(port.number)"
        }
        let read = try EnvironmentProxies(environment)
        for (url, expected) in [("http://example.com/", example.http), ("https://example.com/", example.https)] {
            let curl = try Command.run(
                try Tool.path("curl"), ["-sS", "--max-time", "20", "--connect-to", "::127.0.0.1:1", url],
                environment: environment, in: scratch)
            let tried = ports.first { curl.error.contains("Failed to connect to 127.0.0.1 port \($0.value.number) ") }
            #expect(curl.status == 7)
            #expect(tried?.key == expected, "\(url) \(curl.said)")
            let candidate = read.candidate(for: try origin(url), host("example.com"))
            let variable: String? = if case .variable(let name)? = candidate?.reason { name } else { nil }
            #expect(variable == expected, "\(url)")
        }
    }

    @Test func aProxyWithoutASchemeIsAnHTTPProxy() throws {
        let read = try EnvironmentProxies(["http_proxy": "proxy.corp.example:3128"])
        #expect(read.http?.parent == proxy(.http, "proxy.corp.example", 3128))
    }

    @Test(arguments: [
        ("http_proxy", "proxy.corp.example"), ("HTTPS_PROXY", "socks4://a:1"), ("all_proxy", "http://a:b@c:1"),
    ])
    func errorsNameTheVariable(name: String, value: String) {
        let error = parentsError { () throws(ParentsError) in try EnvironmentProxies([name: value]) }
        #expect(error?.detail.hasPrefix("\(name): ") == true)
        #expect(error?.detail.contains("a:b") == false)
    }
}
