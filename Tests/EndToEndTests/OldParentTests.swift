// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Behind a parent proxy that speaks HTTP/1.0: lines that end with a line feed, a realm without quotes, and a
/// connection that is kept because of Proxy-Connection, on which a handshake depends.
@Suite(.waiting) struct OldParentTests {
    private let user: Countersign
    private let origin: ChallengingOrigin

    init() throws {
        user = try Countersign()
        origin = try ChallengingOrigin(.open, certificate: nil, user: "x", password: "y")
        try user.enroll(SquidParent.user, password: SquidParent.password, name: "corp")
    }

    private func serve(_ scheme: OldParent.Scheme, _ lineEnd: OldParent.LineEnd) throws -> (OldParent, RunningProxy) {
        let parent = try OldParent(scheme, lineEnd, in: user.folder)
        let domain = scheme == .ntlm ? " domain=ACME" : ""
        try user.allow("proxy://127.0.0.1:\(parent.port) credential=corp plaintext=yes\(domain)")
        let proxy = try RunningProxy(
            user, ["--no-proxy", "<-loopback>", "--parent", "http://127.0.0.1:\(parent.port)"])
        return (parent, proxy)
    }

    @Test(arguments: [OldParent.Scheme.basic, .ntlm], [OldParent.LineEnd.crlf, .lf])
    func plainRequestsAreAnswered(scheme: OldParent.Scheme, lineEnd: OldParent.LineEnd) throws {
        let (parent, proxy) = try serve(scheme, lineEnd)
        for number in 1...3 {
            let shown = try proxy.get("http://127.0.0.1:\(origin.port)/bytes/\(number)")
            #expect(shown.status == 200 && shown.body.count == number, "\(shown.said) \(parent.logged)")
        }
        #expect(parent.logged.count { $0.hasPrefix("200 GET ") } == 3, "\(parent.logged)")
    }

    @Test(arguments: [OldParent.Scheme.basic, .ntlm], [OldParent.LineEnd.crlf, .lf])
    func tunnelsAreOpened(scheme: OldParent.Scheme, lineEnd: OldParent.LineEnd) throws {
        let (parent, proxy) = try serve(scheme, lineEnd)
        for _ in 1...2 {
            let site = "https://parent.test.localhost:\(try Origins.shared.nginx.optionalPort)/who"
            let shown = try proxy.get(site, flags: ["-k"])
            #expect(shown.status == 200 && shown.text == "NONE \n", "\(shown.said) \(parent.logged)")
        }
        #expect(parent.logged.count { $0.hasPrefix("200 CONNECT ") } == 2, "\(parent.logged)")
    }

    /// One client sends two requests. The second needs no handshake.
    @Test func theConnectionOfAHandshakeIsKept() throws {
        let (parent, proxy) = try serve(.ntlm, .crlf)
        let url = "http://127.0.0.1:\(origin.port)/bytes/1"
        let done = try Command.run(
            try Tool.path("curl"), ["-q", "-sS", "-x", proxy.url, url, url, "-o", "/dev/null", "-o", "/dev/null"],
            in: user.folder)
        #expect(done.status == 0, "\(done.said)")
        #expect(parent.logged == ["407 GET 1", "407 GET 1", "200 GET 1", "200 GET 1"])
    }
}
