// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Server trust is the caller's decision: before it, nothing is sent and no challenge is answered.
@Suite(.waiting) struct TrustTests {
    private static let bad = ["server-expired", "server-name", "server-other", "server-self"]

    /// A site with a bad certificate that requires Basic, listed by a user who could answer.
    private struct Site {
        let origin: ChallengingOrigin
        let user: Countersign
        let proxy: RunningProxy
        let url: String
        let certificate: String

        init(_ certificate: String, mode: ChallengingOrigin.Mode = .basic) throws {
            self.certificate = certificate
            origin = try .acme(mode, certificate: certificate)
            user = try Countersign()
            try user.enroll()
            url = "https://bad.test.localhost:\(origin.port)"
            try user.allow(url)
            proxy = try user.serve()
        }

        /// Runs an openssl command with the origin's certificate.
        func openssl(_ arguments: String...) throws -> String {
            let file = try TestPKI.shared.certificate(certificate)
            return try Command.run(Tool.path("openssl"), ["x509", "-in", file, "-noout"] + arguments, in: user.folder)
                .output
        }

        var fingerprint: String {
            get throws {
                let digits = try openssl("-fingerprint", "-sha256").split(separator: "=").last ?? ""
                return "sha256:" + digits.filter(\.isHexDigit).lowercased()
            }
        }
    }

    @Test(arguments: bad, HTTPClient.allCases)
    func clientsVerificationFailsAndNothingIsSent(_ certificate: String, _ client: HTTPClient) throws {
        let site = try Site(certificate)
        let seen = try site.proxy.send(client, HTTPClient.Request(url: "\(site.url)/echo"))
        #expect(seen.status == 0 && seen.body.isEmpty, "\(seen.said)")
        let exits: [HTTPClient: Int32] = [.curl: 60, .wget: 5, .requests: 1]
        #expect(seen.exit == exits[client], "\(seen.said)")
        #expect(client != .requests || seen.said.contains("CERTIFICATE_VERIFY_FAILED"), "\(seen.said)")
        #expect(site.origin.log.requests.isEmpty)
    }

    @Test(arguments: bad, HTTPClient.allCases)
    func insecureClientGetsTheUnansweredChallenge(_ certificate: String, _ client: HTTPClient) throws {
        let site = try Site(certificate)
        let seen = try site.proxy.send(client, HTTPClient.Request(url: "\(site.url)/echo", isInsecure: true))
        #expect(seen.status == 401, "\(seen.said)")
        #expect(seen.values("WWW-Authenticate") == ["Basic realm=\"TestOrigin\", charset=\"UTF-8\""], "\(seen.said)")
        #expect(site.origin.log.requests.map(\.auth) == [nil])
    }

    @Test(arguments: bad)
    func absoluteFormRequestGetsTheReasonsAndTheFingerprint(_ certificate: String) throws {
        let site = try Site(certificate, mode: .open)
        let connection = try RawConnection(port: site.proxy.port)
        let host = site.url.dropFirst("https://".count)
        let head = "GET \(site.url)/echo HTTP/1.1\r\nHost: \(host)\r\n"
        try connection.send(head + "\r\n")
        let refused = connection.receive { $0.hasSuffix("}\n") }
        #expect(refused.hasPrefix("HTTP/1.1 502 ") && refused.contains("application/problem+json"), "\(refused)")
        let fingerprint = try site.fingerprint
        #expect(refused.contains("\"reasons\":[{\"") && refused.contains(fingerprint), "\(refused)")
        #expect(refused.contains("Proxy-Status: countersign; error=tls_certificate_error; details="), "\(refused)")
        #expect(site.origin.log.requests.isEmpty)

        let decided = try RawConnection(port: site.proxy.port)
        try decided.send(head + "Countersign-Trust: \(fingerprint)\r\nConnection: close\r\n\r\n")
        let seen = decided.receive()
        #expect(seen.hasPrefix("HTTP/1.1 200 "), "\(seen)")
        #expect(site.origin.log.requests.map { $0.fields?.contains("countersign-trust") } == [false])

        let wrong = try RawConnection(port: site.proxy.port)
        try wrong.send(
            head + "Countersign-Trust: sha256:\(String(repeating: "0", count: 64))\r\nConnection: close\r\n\r\n")
        #expect(wrong.receive().hasPrefix("HTTP/1.1 502 "))
        #expect(site.origin.log.requests.count == 1)
    }

    @Test(
        arguments: zip(
            bad,
            [
                "certificate has expired", "hostname mismatch", "self-signed certificate in certificate chain",
                "self-signed certificate in certificate chain",
            ]))
    func presentedLeafFailsForTheSameReason(_ certificate: String, _ error: String) throws {
        let site = try Site(certificate)
        let place = "bad.test.localhost:\(site.origin.port)"
        let shown = try Self.handshake(
            by: site.proxy, place, ["-CAfile", site.proxy.anchor, "-verify_hostname", "bad.test.localhost"],
            in: site.user.folder)
        #expect(shown.contains("\nVerification error: \(error)\n"), "\(shown)")
        let leaf = try site.user.folder.write("shown.pem", Self.leaf(in: shown))
        func leafText(_ arguments: String...) throws -> String {
            try Command.run(Tool.path("openssl"), ["x509", "-in", leaf, "-noout"] + arguments, in: site.user.folder)
                .output
        }
        #expect(try leafText("-fingerprint", "-sha256") != site.openssl("-fingerprint", "-sha256"))
        if certificate != "server-name" { #expect(try leafText("-enddate") == site.openssl("-enddate")) }
        // The browser that has accepted it must see the same one again.
        #expect(try Self.shown(by: site.proxy, place, in: site.user.folder) == Self.leaf(in: shown))
    }

    @Test func unlistedTunnelPresentsTheOriginsCertificate() throws {
        let setting = try Setting.shared
        let port = setting.origins.nginx.httpsPort
        let scratch = try TemporaryFolder()
        let shown = try Self.shown(by: setting.proxy, "unlisted.test.localhost:\(port)", in: scratch)
        #expect(shown == TextFile.text(try TestPKI.shared.certificate("server")))
        let listed = try Self.shown(by: setting.proxy, "open.test.localhost:\(port)", in: scratch)
        let leaf = try scratch.write("listed.pem", listed)
        let names = try Command.run(
            Tool.path("openssl"), ["x509", "-in", leaf, "-noout", "-ext", "subjectAltName"], in: scratch)
        #expect(names.output.components(separatedBy: "DNS:").dropFirst() == ["open.test.localhost\n"], "\(names.said)")
    }

    /// The leaf that a client receives inside CONNECT, in PEM.
    private static func shown(by proxy: RunningProxy, _ place: String, in scratch: TemporaryFolder) throws -> String {
        try leaf(in: handshake(by: proxy, place, in: scratch))
    }

    /// The report of `openssl s_client` about the handshake inside CONNECT.
    private static func handshake(
        by proxy: RunningProxy, _ place: String, _ flags: [String] = [], in scratch: TemporaryFolder
    ) throws -> String {
        let host = String(place.split(separator: ":")[0])
        return try Command.run(
            Tool.path("openssl"),
            ["s_client", "-proxy", "127.0.0.1:\(proxy.port)", "-connect", place, "-servername", host] + flags,
            in: scratch
        ).output
    }

    private static func leaf(in handshake: String) throws -> String {
        guard let begin = handshake.range(of: "-----BEGIN CERTIFICATE-----"),
            let end = handshake.range(of: "-----END CERTIFICATE-----\n")
        else { throw HarnessError("no certificate behind CONNECT: \(handshake)") }
        return String(handshake[begin.lowerBound..<end.upperBound])
    }

    @Test func onlyTheSystemsAndTheHomesAnchorsAreTrusted() throws {
        let origin = try ChallengingOrigin.acme(.open)
        let url = "https://anchor.test.localhost:\(origin.port)"
        for (anchors, exit) in [
            ([try TestPKI.shared.certificate("other-ca")], Int32(60)), ([try TestPKI.shared.originAnchor], 0),
        ] {
            let user = try Countersign(anchors: anchors)
            try user.allow(url)
            #expect(try user.serve().get("\(url)/echo").exit == exit)
        }
    }
}
