// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// The origins without a proxy: each challenges and accepts only the correct answer, which the other tests rely on.
@Suite(.waiting) struct OriginTests {
    private static let nginx = Result { try NginxOrigin() }
    private static let apache = Result { try ApacheOrigin(user: Countersign.user, password: Countersign.password) }

    private func curl(_ url: String, _ flags: String...) throws -> HTTPClient.Response {
        try HTTPClient.curl.send(
            HTTPClient.Request(url: url, flags: flags), proxy: nil, anchors: TestPKI.shared.originAnchor)
    }

    @Test(arguments: ["basic", "digest"])
    func apacheAcceptsOnlyTheCorrectPassword(_ scheme: String) throws {
        let apache = try Self.apache.get()
        let url = "https://apache.test.localhost:\(apache.httpsPort)/\(scheme)/index"
        #expect(try curl(url).status == 401)
        #expect(try curl(url, "--\(scheme)", "-u", "jdoe:wrong").status == 401)
        let answered = try curl(url, "--\(scheme)", "-u", "jdoe:\(Countersign.password)")
        #expect(answered.status == 200 && answered.text == "apache \(scheme)/index\n", "\(answered.said)")
    }

    @Test(arguments: [true, false])
    func apacheRequestsACertificateMidConnection(isTLS13: Bool) throws {
        let apache = try Self.apache.get()
        let pki = try TestPKI.shared
        let port = isTLS13 ? apache.postHandshakePort : apache.renegotiatingPort
        let url = "https://apache.test.localhost:\(port)"
        #expect(try curl("\(url)/open").status == 200)
        #expect(try curl("\(url)/certificate/index").status != 200)
        let answered = try curl(
            "\(url)/certificate/index", "--cert", pki.certificate("laptop"), "--key", pki.key("laptop"))
        #expect(answered.status == 200 && answered.values("X-Client-Certificate") == ["laptop"], "\(answered.said)")
        #expect(
            poll {
                let logged = apache.log.requests(path: "/certificate/index")
                return logged.contains { $0.client == "laptop" && $0.port == port } ? true : nil
            } == true)
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3", "B", "optional"])
    func nginxRequestsACertificateFromItsCA(_ which: String) throws {
        let nginx = try Self.nginx.get()
        let pki = try TestPKI.shared
        let ports = ["TLSv1.2": nginx.mutual12Port, "TLSv1.3": nginx.mutual13Port, "B": nginx.mutualBPort]
        let url = "https://nginx.test.localhost:\(ports[which] ?? nginx.optionalPort)/who"
        let (right, wrong) = which == "B" ? ("badge", "laptop") : ("laptop", "badge")
        let without = try curl(url)
        #expect(without.status == (which == "optional" ? 200 : 400), "\(without.said)")
        #expect(try curl(url, "--cert", pki.certificate(wrong), "--key", pki.key(wrong)).status == 400)
        let answered = try curl(url, "--cert", pki.certificate(right), "--key", pki.key(right))
        #expect(answered.status == 200 && answered.text.hasSuffix(" CN=\(right),O=Test\n"), "\(answered.said)")
    }

    @Test(arguments: ["NTLM", "Negotiate"], ["server", "server-sha384"])
    func ntlmRequiresTheCorrectPasswordAndChannelBinding(_ scheme: String, _ certificate: String) throws {
        let origin = try ChallengingOrigin(
            scheme == "NTLM" ? .ntlm : .negotiate, certificate: certificate, user: "ACME\\jdoe",
            password: Countersign.password)
        let scratch = try TemporaryFolder()
        func login(_ password: String, _ binding: String) throws -> String {
            try Command.run(
                Tool.python(),
                [
                    Tool.server("ntlm_client.py"), "\(origin.port)", scheme, "ACME\\jdoe", password, binding,
                    TestPKI.shared.originAnchor,
                ], in: scratch
            ).output
        }
        #expect(try login(Countersign.password, "right") == "200 ACME\\jdoe\n")
        #expect(try login(Countersign.password, "wrong") == "401 -\n")
        #expect(try login(Countersign.password, "none") == "401 -\n")
        #expect(try login(Countersign.wrongPassword, "right") == "401 -\n")
        let judged = origin.log.requests.filter { $0.auth == "authenticate" }.map(\.why)
        #expect(judged == [nil, "wrong channel binding", "wrong channel binding", "InvalidTokenError"])
    }

    @Test func ntlmWithoutAMICIsRejected() throws {
        let origin = try ChallengingOrigin(
            .ntlm, certificate: nil, user: "ACME\\jdoe", password: Countersign.password)
        let refused = try curl(
            "http://127.0.0.1:\(origin.port)/echo", "--ntlm", "-u", "ACME\\jdoe:\(Countersign.password)")
        #expect(refused.status == 401, "\(refused.said)")
        #expect(origin.log.requests.last?.why == "no MIC")
    }

    @Test func pythonOriginEchoesBodiesAndSupportsBasic() throws {
        let origin = try ChallengingOrigin(.basic, user: "jdoe", password: Countersign.password)
        let scratch = try TemporaryFolder()
        let file = try scratch.write("body", [UInt8](repeating: 7, count: 1 << 20))
        let url = "https://basic.test.localhost:\(origin.port)/echo"
        let flags = ["-u", "jdoe:\(Countersign.password)"]
        #expect(try curl(url).values("WWW-Authenticate") == ["Basic realm=\"TestOrigin\", charset=\"UTF-8\""])
        for more in [[], ["-H", "Transfer-Encoding: chunked"]] {
            let request = HTTPClient.Request(method: "POST", url: url, body: file, flags: flags + more)
            let answered = try HTTPClient.curl.send(request, proxy: nil, anchors: TestPKI.shared.originAnchor)
            #expect(answered.text.contains("\"length\": 1048576"), "\(answered.said)")
        }
        #expect(
            try curl("https://basic.test.localhost:\(origin.port)/chunked/70000", flags[0], flags[1]).body.count
                == 70000)
    }

    @Test(arguments: ["server-expired", "server-name", "server-other", "server-self"])
    func curlRejectsABadCertificate(_ certificate: String) throws {
        let origin = try ChallengingOrigin(
            .open, certificate: certificate, user: "jdoe", password: Countersign.password)
        let refused = try curl("https://bad.test.localhost:\(origin.port)/echo")
        #expect(refused.exit == 60 && origin.log.requests.isEmpty, "\(refused.said)")
    }

    @Test func webSocketServerEchoes() throws {
        let echo = try WebSocketEcho()
        let done = try Command.run(
            Tool.python(), [Tool.server("websocket_client.py"), "ws://127.0.0.1:\(echo.port)/", "-", "-"],
            in: TemporaryFolder())
        #expect(done.output == "ok 4\n", "\(done.said)")
    }
}
