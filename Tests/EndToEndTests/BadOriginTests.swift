// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Each bad origin in each way of connecting: the reasons are correct, nothing is sent before a decision and no
/// challenge is answered. Each test marks its requests with its own query.
@Suite(.waiting) struct BadOriginTests {
    private static let challenge = ChainOrigins.challenge

    // MARK: Inside CONNECT

    @Test(arguments: BadOrigin.all)
    func verifyingClientFailsAndNothingIsSent(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let seen = try setting.proxy.get("https://\(setting.place(origin))/open?checks")
        #expect(seen.exit == 60 && seen.status == 0 && seen.body.isEmpty, "\(seen.said)")
        #expect(try setting.logged(origin, "checks").isEmpty)
    }

    @Test(arguments: BadOrigin.all)
    func insecureClientSeesTheReasonAndTheUnansweredChallenge(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let place = try setting.place(origin)
        let flags = ["-v", "-o", "/dev/null", "-w", "%{http_code} ", "https://\(place)/open?on"]
        let seen = try setting.proxy.send(
            .curl, HTTPClient.Request(url: "https://\(place)/secret?on", isInsecure: true, flags: flags))
        #expect(seen.exit == 0 && seen.said.contains("\n200 401 \n"), "\(seen.said)")
        #expect(seen.said.contains(origin.reasonLine), "\(seen.said)")
        #expect(seen.values("WWW-Authenticate") == [Self.challenge], "\(seen.said)")
        try Unanswered.expect(setting, origin, "on", ["/open", "/secret"])
    }

    // MARK: Absolute form

    private struct Problem: Decodable {
        struct Reason: Decodable {
            let code: String
            let text: String
        }

        let type: String
        let status: Int
        let host: String
        let port: Int
        let reasons: [Reason]
        let fingerprint: String
        let chain: String
        let address: String
        let tls: String
    }

    @Test(arguments: BadOrigin.all)
    func absoluteFormGetsTheReasonsAndProceedsWithTheFingerprint(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let chain = try setting.chain(origin)
        let port = setting.proxy.port
        let refused = try setting.absolute(origin, "/open?absolute", proxy: port)
        #expect(refused.hasPrefix("HTTP/1.1 502 ") && refused.contains("application/problem+json"), "\(refused)")
        #expect(refused.contains("Proxy-Status: countersign; error=tls_certificate_error; details="), "\(refused)")
        let body = refused.components(separatedBy: "\r\n\r\n").dropFirst().joined()
        let problem = try JSONDecoder().decode(Problem.self, from: Data(body.utf8))
        #expect(problem.reasons.map(\.text) == origin.reasons, "\(body)")
        #expect(problem.fingerprint == chain.fingerprint && problem.chain == chain.certificates.joined(), "\(body)")
        let originPort = try setting.origins.port(origin.name)
        #expect(problem.status == 502 && problem.host == origin.host && problem.port == originPort, "\(body)")
        #expect(problem.address == "127.0.0.1:\(originPort)" && problem.tls == "TLSv1.3", "\(body)")
        #expect(try setting.logged(origin, "absolute").isEmpty)

        let field = "Countersign-Trust: \(chain.fingerprint)\r\n"
        let open = try setting.absolute(origin, "/open?absolute", proxy: port, fields: field)
        #expect(open.hasPrefix("HTTP/1.1 200 ") && open.hasSuffix(ChainOrigins.openText), "\(open)")
        let secret = try setting.absolute(origin, "/secret?absolute", proxy: port, fields: field)
        #expect(secret.hasPrefix("HTTP/1.1 401 "), "\(secret)")
        #expect(secret.contains("\r\nWWW-Authenticate: \(Self.challenge)\r\n"), "\(secret)")
        try Unanswered.expect(setting, origin, "absolute", ["/open", "/secret"])

        let other = "Countersign-Trust: sha256:\(String(repeating: "5", count: 64))\r\n"
        #expect(try setting.absolute(origin, "/open?other", proxy: port, fields: other).hasPrefix("HTTP/1.1 502 "))
        #expect(try setting.logged(origin, "other").isEmpty)
    }
}
