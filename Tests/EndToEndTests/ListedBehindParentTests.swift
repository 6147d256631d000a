// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A listed http site behind a listed parent: both challenge, and both are answered.
@Suite(.waiting) struct ListedBehindParentTests {
    private let user: Countersign

    init() throws {
        user = try Countersign()
        try user.enroll(SquidParent.user, password: SquidParent.password, name: "corp")
        try user.enroll("jdoe", name: "site")
    }

    private func origin(_ mode: ChallengingOrigin.Mode) throws -> (ChallengingOrigin, String) {
        let name = mode == .basic ? "jdoe" : "ACME\\jdoe"
        let origin = try ChallengingOrigin(mode, certificate: nil, user: name, password: Countersign.password)
        let site = "http://127.0.0.1:\(origin.port)"
        try user.allow("\(site) credential=site plaintext=yes" + (mode == .ntlm ? " domain=ACME" : ""))
        return (origin, site)
    }

    private func serve(_ squid: SquidParent, domain: String = "") throws -> RunningProxy {
        try user.allow("proxy://127.0.0.1:\(squid.port) credential=corp plaintext=yes\(domain)")
        return try RunningProxy(user, ["--no-proxy", "<-loopback>", "--parent", "http://127.0.0.1:\(squid.port)"])
    }

    @Test(arguments: ["Basic", "NTLM"], [ChallengingOrigin.Mode.basic, .ntlm])
    func bothAreAnswered(parent: String, mode: ChallengingOrigin.Mode) throws {
        let squid = try SquidParent(parent == "Basic" ? .basic : .ntlm(boundTo: nil))
        let (origin, site) = try origin(mode)
        let proxy = try serve(squid, domain: parent == "NTLM" ? " domain=ACME" : "")
        for _ in 0..<3 {
            let shown = try proxy.get("\(site)/headers")
            #expect(shown.status == 200 && !shown.text.contains("Proxy-"), "\(shown.said)")
        }
        let content = try user.folder.write("content", String(repeating: "x", count: 200_000))
        let posted = try proxy.get("\(site)/echo", flags: ["-X", "POST", "--data-binary", "@\(content)"])
        #expect(posted.status == 200 && posted.text.contains("\"length\": 200000"), "\(posted.said)")
        // Browsers reach `ws://` in this way.
        let inside = try proxy.get("\(site)/headers", flags: ["-p"])
        #expect(inside.status == 200, "\(inside.said)")
        #expect(squid.logged("GET").isEmpty && squid.logged("POST").isEmpty, "\(squid.logged("GET"))")
        // Squid logs a tunnel when it ends.
        proxy.process.stop()
        let tunnels =
            poll { () -> [String]? in
                let tunnels = squid.logged("CONNECT")
                return tunnels.contains { $0.hasPrefix("200 ") } ? tunnels : nil
            } ?? []
        #expect(tunnels.contains { $0.hasPrefix("200 127.0.0.1:\(origin.port) jdoe") }, "\(tunnels)")
        #expect(origin.log.requests.contains { $0.status == 200 && $0.user?.contains("jdoe") == true })
    }

    /// The client's own answer reaches the site, and the parent is answered all the same.
    @Test func aClientThatAnswersTheSiteItselfGetsThere() throws {
        let squid = try SquidParent(.basic)
        let (origin, site) = try origin(.basic)
        let proxy = try serve(squid)
        let own = try proxy.get("\(site)/headers", flags: ["-u", "jdoe:\(Countersign.password)"])
        #expect(own.status == 200, "\(own.said)")
        let wrong = try proxy.get("\(site)/headers", flags: ["-u", "jdoe:\(Countersign.wrongPassword)"])
        #expect(wrong.status == 401, "\(wrong.said)")
        #expect(origin.log.requests.count { $0.auth == "basic" } == 2, "\(origin.log.requests)")
    }

    /// The parent permits CONNECT to 443 alone, as squid does by default.
    @Test(arguments: ["Basic", "NTLM"]) func withoutATunnelTheParentIsAnswered(parent: String) throws {
        let squid = try SquidParent(parent == "Basic" ? .basic : .ntlm(boundTo: nil), opensTunnels: false)
        let (origin, site) = try origin(.basic)
        let proxy = try serve(squid, domain: parent == "NTLM" ? " domain=ACME" : "")
        for _ in 0..<4 {
            let shown = try proxy.get("\(site)/headers")
            #expect(shown.status == 401, "\(shown.said)")
            #expect(shown.values("WWW-Authenticate").count == 1 && shown.values("Proxy-Authenticate").isEmpty)
            let reason = "the parent http://127.0.0.1:\(squid.port) opens no tunnel to port \(origin.port)"
            #expect(shown.proxyStatus.contains("not answered: \(reason)"), "\(shown.said)")
        }
        let logged = try proxy.logged(site: site, atLeast: 4)
        #expect(logged.allSatisfy { $0.status == 401 && $0.reason?.contains("opens no tunnel") == true }, "\(logged)")
        let own = try proxy.get("\(site)/headers", flags: ["-u", "jdoe:\(Countersign.password)"])
        #expect(own.status == 200 && !own.text.contains("Proxy-"), "\(own.said)")
        let tunnels = squid.logged("CONNECT")
        #expect(tunnels.allSatisfy { $0.hasPrefix("403 ") } && (1...2).contains(tunnels.count), "\(tunnels)")
        #expect(squid.logged("GET").contains { $0.hasPrefix("401 ") && $0.hasSuffix(" jdoe") })
        // Only the client's own password has reached the site.
        #expect(origin.log.requests.count { $0.auth == "basic" } == 1, "\(origin.log.requests)")
    }

    /// The first request after the refusal may have content, and be the client's own.
    @Test func theRequestThatLearnsOfTheRefusalGoesOn() throws {
        let squid = try SquidParent(.basic, opensTunnels: false)
        let (origin, site) = try origin(.basic)
        let proxy = try serve(squid)
        let own = ["-u", "jdoe:\(Countersign.password)"]
        let posted = try proxy.get("\(site)/echo", flags: own + ["-X", "POST", "--data-binary", "twelve bytes"])
        #expect(posted.status == 200 && posted.text.contains("\"length\": 12"), "\(posted.said) \(posted.text)")
        #expect(squid.logged("CONNECT").count == 1 && origin.log.requests.count == 1)
    }
}
