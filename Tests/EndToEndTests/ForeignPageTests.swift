// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Requests that say that a page of another origin causes them, with each kind of credential, in the middle of a
/// conversation that the credential has authenticated.
@Suite(.waiting) struct ForeignPageTests {
    /// A kind of credential.
    struct Kind: CustomTestStringConvertible, Sendable {
        let name: String
        let site: String
        let path: String
        let port: KeyPath<Origins, Int> & Sendable
        /// The response to a request without a credential: Apache closes the connection if it gets no certificate.
        let refused: Int

        var testDescription: String { name }

        func url(_ origins: Origins) -> String { "\(site):\(origins[keyPath: port])\(path)" }
    }

    static let kinds = [
        Kind(
            name: "basic", site: "https://basic.test.localhost", path: "/basic/index", port: \.apache.httpsPort,
            refused: 401),
        Kind(
            name: "basic http", site: "http://basic.test.localhost", path: "/basic/index", port: \.apache.httpPort,
            refused: 401),
        Kind(
            name: "digest", site: "https://digest.test.localhost", path: "/digest/index", port: \.apache.httpsPort,
            refused: 401),
        Kind(name: "ntlm", site: "https://ntlm.test.localhost", path: "/file", port: \.ntlm.port, refused: 401),
        Kind(
            name: "ntlm in negotiate", site: "https://negotiate.test.localhost", path: "/file", port: \.negotiate.port,
            refused: 401),
        Kind(name: "ntlm http", site: "http://ntlm.test.localhost", path: "/file", port: \.ntlmHTTP.port, refused: 401),
        Kind(
            name: "certificate", site: "https://optional.test.localhost", path: "/who", port: \.nginx.optionalPort,
            refused: 200),
        Kind(
            name: "required certificate, TLS 1.2", site: "https://cert12.test.localhost", path: "/who",
            port: \.nginx.mutual12Port, refused: 400),
        Kind(
            name: "required certificate, TLS 1.3", site: "https://cert13.test.localhost", path: "/who",
            port: \.nginx.mutual13Port, refused: 400),
        Kind(
            name: "post-handshake certificate", site: "https://post.test.localhost", path: "/certificate/index",
            port: \.apache.postHandshakePort, refused: 502),
        Kind(
            name: "renegotiated certificate", site: "https://again.test.localhost", path: "/certificate/index",
            port: \.apache.renegotiatingPort, refused: 502),
    ]

    /// The fields of a client, and whether its challenge is answered.
    static let causes: [(fields: [String], isAnswered: Bool)] = [
        (
            [
                "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty",
                "Origin: https://evil.example",
            ], false
        ),
        (["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"], false),
        (["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"], true),
        (["Origin: https://evil.example"], false), (["User-Agent: Mozilla/5.0"], false),
        (["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"], true),
        (["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"], false),
    ]

    /// One curl sends all requests, on one connection: the first one signs in, and is repeated after each other one.
    @Test(arguments: kinds)
    func theyGetNoCredential(kind: Kind) throws {
        let setting = try Setting.shared
        let url = kind.url(setting.origins)
        let tag = "foreign-\(kind.name.replacing(" ", with: "-").replacing(",", with: ""))"
        let common = [
            "-q", "-sS", "-o", "/dev/null", "--max-time", "40", "--cacert", setting.proxy.anchor, "-x",
            setting.proxy.url, "-w", "%{http_code}\n",
        ]
        var arguments = common + ["\(url)?\(tag)-own"]
        for (index, cause) in Self.causes.enumerated() {
            arguments += ["--next"] + common + cause.fields.flatMap { ["-H", $0] } + ["\(url)?\(tag)-\(index)"]
            arguments += ["--next"] + common + ["\(url)?\(tag)-own"]
        }
        let done = try Command.run(try Tool.path("curl"), arguments, in: TemporaryFolder())
        let statuses = done.output.split(separator: "\n").compactMap { Int($0) }
        let expected = [200] + Self.causes.flatMap { [$0.isAnswered ? 200 : kind.refused, 200] }
        #expect(statuses == expected, "\(done.said)")
        for (index, cause) in Self.causes.enumerated() {
            let seen = poll { () -> [LoggedRequest]? in
                let seen = setting.origins.logged(query: "\(tag)-\(index)")
                return seen.isEmpty ? nil : seen
            }
            let requests = try #require(seen)
            #expect(requests.contains(where: \.hasCredential) == cause.isAnswered, "\(cause.fields): \(requests)")
        }
    }

    @Test func theReasonNamesTheOption() throws {
        let setting = try Setting.shared
        let kind = Self.kinds[0]
        let page = ["-H", "Origin: https://evil.example:8443"]
        let response = try setting.proxy.get("\(kind.url(setting.origins))?reason", flags: page)
        #expect(response.status == 401 && response.values("WWW-Authenticate") == ["Basic realm=\"Apache\""])
        let reason =
            "a page of https://evil.example:8443 asks; cross-site=https://evil.example:8443 on the site's line "
            + "permits it"
        #expect(response.proxyStatus.contains("details=\"not answered: \(reason)\""), "\(response.proxyStatus)")
        let site = "\(kind.site):\(setting.origins.apache.httpsPort)"
        #expect(try setting.proxy.logged(site: site).contains { $0.reason == reason && $0.status == 401 })
    }

    @Test func aWithheldCertificateIsExplained() throws {
        let setting = try Setting.shared
        let response = try setting.proxy.get(
            "https://cert12.test.localhost:\(setting.origins.nginx.mutual12Port)/who",
            flags: ["-H", "Sec-Fetch-Site: cross-site", "-H", "Origin: https://evil.example"])
        #expect(response.status == 400)
        #expect(
            response.proxyStatus.contains("client certificate not sent: a page of https://evil.example asks"),
            "\(response.proxyStatus)")
    }
}

extension LoggedRequest {
    /// The request was authenticated: its user, token or client certificate is known.
    var hasCredential: Bool {
        [user, authorization, client].contains { $0.map { !["", "-"].contains($0) } ?? false }
    }
}
