// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Lines that are for some requests of a site only.
@Suite(.waiting) struct RequestRulesTests {
    /// A listed site of an origin that speaks HTTP/2.
    private struct Site {
        let origin: HTTP2Origin
        let proxy: RunningProxy

        init(_ options: [String], _ lines: String...) throws {
            origin = try HTTP2Origin(options)
            let user = try Countersign()
            try user.enroll()
            for line in lines { try user.allow("\(origin.url) \(line)") }
            proxy = try RunningProxy(user, [])
        }

        func send(_ method: String, _ target: String, _ client: String, body: String? = nil) throws
            -> HTTPClient.Response
        {
            try proxy.send(
                .curl,
                HTTPClient.Request(
                    method: method, url: origin.url + target, body: body, flags: [client, "--path-as-is"]))
        }
    }

    private static let basic = ["--basic", "\(Countersign.user):\(Countersign.password)"]
    private static let clients = ["--http2", "--http1.1"]

    /// It goes out, before and after one that is answered, and nothing is answered.
    @Test(arguments: clients) func aRequestThatNoLineIsForGetsNoCredential(client: String) throws {
        let site = try Site(Self.basic, "answer=basic methods=GET,HEAD paths=/size/**,!/size/2/**")
        for (method, target, status) in [
            ("GET", "/size/2", 401), ("GET", "/size/1", 200), ("GET", "/size/2", 401), ("GET", "/size//2", 401),
            ("GET", "/x/../size/2", 401), ("POST", "/size/1", 401), ("GET", "/echo", 401), ("GET", "/size/3", 200),
        ] {
            let seen = try site.send(method, target, client)
            #expect(seen.status == status, "\(method) \(target): \(seen.said)")
            guard status == 401 else { continue }
            let reason = "test.sites:1 is not for requests with this \(method == "GET" ? "path" : "method")"
            #expect(seen.values("Proxy-Status").contains { $0.contains(reason) }, "\(seen.said)")
        }
        let answered = site.origin.log.requests.filter { $0.authorized == true }.map(\.path)
        #expect(Set(answered) == ["/size/1", "/size/3"], "\(answered)")
    }

    /// With its length in the head, and without.
    @Test(arguments: clients, [[], ["-H", "Transfer-Encoding: chunked", "-H", "Content-Length:"]])
    func moreContentThanTheLinePermitsGetsA413(client: String, flags: [String]) throws {
        // In HTTP/2 there is no transfer coding, and curl leaves the field out.
        let site = try Site(Self.basic, "answer=basic max-body=64K", "answer=basic paths=/size/** max-body=100000")
        let folder = try TemporaryFolder()
        for (target, bytes, status) in [
            ("/echo", 64 << 10, 200), ("/echo", 64 << 10 + 1, 413), ("/echo", 1 << 20, 413), ("/size/1", 100_000, 200),
            ("/size/1", 100_001, 413),
        ] {
            let body = try folder.write("body", [UInt8](repeating: 0x61, count: bytes))
            let seen = try site.proxy.send(
                .curl,
                HTTPClient.Request(
                    method: "PUT", url: site.origin.url + target, body: body, flags: [client] + flags))
            #expect(seen.status == status, "\(target) \(bytes): \(seen.said)")
            guard status == 413 else { continue }
            #expect(seen.values("Proxy-Status").contains { $0.contains("permits at most") }, "\(seen.said)")
        }
    }

    @Test(arguments: clients) func aDeniedRequestNeverReachesTheOrigin(client: String) throws {
        let site = try Site(Self.basic, "answer=basic paths=/size/** deny=yes")
        let body = try TemporaryFolder().write("body", [UInt8](repeating: 0x61, count: 200_000))
        for (method, target, reason) in [
            ("GET", "/echo", "deny=yes"), ("GET", "/size/../echo", "deny=yes"), ("GET", "/size/%2e%2e/echo", "%2E"),
            ("GET", "/size%2F1", "%2F"), ("GET", "/size/..%5cecho", "%5C"), ("GET", "/size/%c0%ae/1", "UTF-8"),
            ("GET", "/size/..;/echo", "parameters"), ("PUT", "/echo", "deny=yes"),
        ] {
            let seen = try site.send(method, target, client, body: method == "PUT" ? body : nil)
            #expect(seen.status == 403, "\(method) \(target): \(seen.said)")
            let status = seen.values("Proxy-Status").joined()
            #expect(status.contains("http_request_denied") && status.contains("test.sites:1"), "\(status)")
            #expect(status.contains(reason), "\(status)")
        }
        #expect(site.origin.log.requests.isEmpty, "\(site.origin.log.requests)")
        #expect(try site.send("GET", "/size/1", client).status == 200)
    }

    /// The connection that was authenticated for one line carries no request of another.
    @Test(arguments: clients) func aConnectionBelongsToOneLine(client: String) throws {
        let origin = try ChallengingOrigin.acme(.ntlm)
        let user = try Countersign()
        try user.enroll("ACME\\jdoe")
        let url = "https://lines.test.localhost:\(origin.port)"
        try user.allow("\(url) answer=ntlm paths=/in/**", "\(url) answer=none paths=/out/**")
        let proxy = try RunningProxy(user, [])
        let urls = ["/in/1", "/out/2", "/other", "/in/3"].map { url + $0 }
        let done = try Command.run(
            try Tool.path("curl"),
            ["-q", "-sS", client, "-x", proxy.url, "--cacert", proxy.anchor, "-w", "%{http_code} %{num_connects}\n"]
                + urls.flatMap { ["-o", "/dev/null", $0] }, in: TemporaryFolder())
        let codes = done.output.split(separator: "\n").map { $0.prefix(3) }
        // There is no such page, but the origin has let the client in.
        #expect(codes == ["404", "401", "401", "404"], "\(done.said)")
        let requests = origin.log.requests
        func connections(_ beginning: String) -> Set<Int> {
            Set(requests.filter { $0.path?.hasPrefix(beginning) == true }.compactMap(\.connection))
        }
        #expect(connections("/in/").isDisjoint(with: connections("/out/").union(connections("/other"))), "\(requests)")
    }
}
