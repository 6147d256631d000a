// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// A client's own `Authorization` is passed through unchanged, and its challenges are not answered.
@Suite(.waiting) struct OwnAuthorizationTests {
    @Test(
        arguments: HTTPClient.allCases,
        ["Basic  b3duOm93bg==", "Bearer abc.def", "Digest username=\"own\",  realm=\"r\""])
    func valueIsForwardedByteForByte(_ client: HTTPClient, _ value: String) throws {
        let origin = try ChallengingOrigin.acme(.open)
        let user = try Countersign()
        try user.enroll()
        let url = "https://own.test.localhost:\(origin.port)"
        try user.allow(url)
        let seen = try user.serve().send(
            client, HTTPClient.Request(url: "\(url)/headers", fields: [("Authorization", value)]))
        let quoted = value.replacing("\"", with: "\\\"")
        #expect(seen.text.contains("[\"Authorization\", \"\(quoted)\"]"), "\(seen.text)")
    }

    @Test(arguments: HTTPClient.allCases, [ChallengingOrigin.Mode.basic, .ntlm])
    func rejectionIsPassedOnAndNotAnswered(_ client: HTTPClient, _ mode: ChallengingOrigin.Mode) throws {
        let site = try BodyTests.Site(mode)
        let seen = try site.proxy.send(
            client, HTTPClient.Request(url: "\(site.url)/echo", fields: [("Authorization", "Basic b3duOm93bg==")]))
        #expect(seen.status == 401, "\(seen.said)")
        let challenge = mode == .basic ? "Basic realm=\"TestOrigin\", charset=\"UTF-8\"" : "NTLM"
        #expect(seen.values("WWW-Authenticate") == [challenge], "\(seen.said)")
        #expect(site.origin.log.requests.count == 1)
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
    }

    @Test(arguments: ["http", "https"], [true, false])
    func clientsOwnNTLMWorksThroughTheProxy(_ scheme: String, isListed: Bool) throws {
        let origin = try ChallengingOrigin.acme(.ntlm, certificate: scheme == "https" ? "server" : nil)
        let user = try Countersign()
        if isListed { try user.allow("\(scheme)://own.test.localhost:\(origin.port) intercept=no") }
        let proxy = try user.serve()
        let anchors = scheme == "https" ? try TestPKI.shared.originAnchor : "-"
        let done = try Command.run(
            Tool.python(),
            [
                Tool.server("ntlm_client.py"), "\(origin.port)", "NTLM", "ACME\\jdoe", Countersign.password, "right",
                anchors, "\(proxy.port)",
            ], in: user.folder)
        #expect(done.output == "200 ACME\\jdoe\n", "\(done.said)")
    }
}
