// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Digest with lighttpd's own implementation of RFC 7616.
@Suite(.waiting) struct LighttpdTests {
    private let origin: LighttpdOrigin
    private let user: Countersign

    init() throws {
        origin = try LighttpdOrigin(user: Countersign.user, password: Countersign.password)
        user = try Countersign()
        try user.allow("\(origin.url) answer=digest")
    }

    /// The requests so far: the status, and whether an answer was sent.
    private func seen(_ count: Int) -> [String] {
        origin.log.requests(atLeast: count).map { "\($0.status ?? 0)\($0.authorization == "-" ? "" : " answered")" }
    }

    @Test(arguments: ["md5", "sha256"]) func curlAgreesWithLighttpd(realm: String) throws {
        func status(_ password: String) throws -> Int {
            let flags = ["--digest", "-u", "\(Countersign.user):\(password)"]
            return try HTTPClient.curl.send(
                HTTPClient.Request(url: "\(origin.url)/\(realm)/index", flags: flags), proxy: nil,
                anchors: TestPKI.shared.originAnchor
            ).status
        }
        #expect(try status(Countersign.password) == 200)
        #expect(try status(Countersign.wrongPassword) == 401)
    }

    @Test(arguments: [
        ("md5", "algorithm=MD5"), ("sha256", "algorithm=SHA-256"), ("both", "algorithm=SHA-256"),
        ("userhash", "userhash=true"),
    ])
    func aChallengeIsAnsweredOnceAndThenAheadOfIt(realm: String, parameter: String) throws {
        try user.enroll()
        let proxy = try user.serve()
        for query in ["", "?a=b%20c&d='", "?e"] {
            let response = try proxy.get("\(origin.url)/\(realm)/index\(query)")
            #expect(response.status == 200 && response.text == "lighttpd \(realm)\n", "\(response.said)")
            #expect(response.values("WWW-Authenticate") == [])
        }
        #expect(seen(4) == ["401", "200 answered", "200 answered", "200 answered"])
        let answers = origin.log.requests.dropFirst()
        #expect(answers.allSatisfy { $0.authorization?.contains(parameter) == true && $0.user == Countersign.user })
    }

    /// In HTTP/2, lighttpd 1.4.69 sends two challenges in one field with a line break, which no client accepts.
    @Test(arguments: ["sha256", "both"], ["--http1.1", "--http2"])
    func theSiteMayOfferHTTP2(realm: String, version: String) throws {
        let origin = try LighttpdOrigin(user: Countersign.user, password: Countersign.password, speaksHTTP2: true)
        try user.enroll()
        try user.allow("\(origin.url) answer=digest")
        let proxy = try user.serve()
        for _ in 0..<3 {
            let response = try proxy.get("\(origin.url)/\(realm)/index", flags: [version])
            #expect(response.status == 200 && response.text == "lighttpd \(realm)\n", "\(response.said)")
        }
        let versions = TextFile.lines(proxy.accessLog).filter { $0.contains(#""method":"GET""#) }
        let isHTTP2 = versions.allSatisfy { $0.contains(#""origin_http":"2""#) }
        #expect(versions.count == 3 && isHTTP2 == (realm == "sha256"), "\(versions)")
    }

    @Test func aWrongPasswordIsSentOnceAndTheChallengesAreHandedBack() throws {
        try user.enroll(password: Countersign.wrongPassword)
        let proxy = try user.serve()
        for _ in 0..<2 {
            let response = try proxy.get("\(origin.url)/both/index")
            #expect(response.status == 401 && response.values("WWW-Authenticate").count == 2, "\(response.said)")
            #expect(response.proxyStatus.contains("was rejected"), "\(response.proxyStatus)")
        }
        #expect(seen(3) == ["401", "401 answered", "401"])
    }

    /// After nine minutes lighttpd announces another nonce, and accepts the old one for one more minute.
    @Test func theNextNonceIsUsed() throws {
        try user.enroll()
        let proxy = try user.serve()
        for seconds in [0, 570, 900] {
            if seconds > 0 { try origin.restart(afterSeconds: seconds) }
            #expect(try proxy.get("\(origin.url)/sha256/index").status == 200)
        }
        #expect(seen(4) == ["401", "200 answered", "200 answered", "200 answered"])
        let nonces = origin.log.requests.dropFirst().map { $0.authorization?.firstMatch(of: /nonce="([^"]+)"/)?.1 }
        #expect(nonces[0] == nonces[1] && nonces[1] != nonces[2])
    }

    @Test func aStaleNonceIsRenewedWithinTheRequest() throws {
        try user.enroll()
        let proxy = try user.serve()
        for seconds in [0, 660] {
            if seconds > 0 { try origin.restart(afterSeconds: seconds) }
            #expect(try proxy.get("\(origin.url)/both/index").status == 200)
        }
        #expect(seen(4) == ["401", "200 answered", "401 answered", "200 answered"])
        #expect(try user.succeed("credential", "list").contains("rejected") == false)
    }
}
