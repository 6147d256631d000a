// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import Foundation
import FoundationNetworking
import CountersignTestOrigin
import Testing
import CountersignVault

@testable import Countersign
@testable import CountersignNIO
@testable import CountersignURLSession

/// The events of a controller that its proxy causes.
@Suite(.waiting) struct LibraryProxyEventsTests {
    private static func home(password: String = LibraryHome.password) throws -> LibraryHome {
        try LibraryHome(
            try LibraryOrigins.shared.sites, credentials: ["enrollment": (LibraryHome.user, password)],
            identities: ["laptop"], anchors: [try TestPKI.shared.originAnchor])
    }

    /// The protection space of a URL's origin, as reported by the proxy.
    private static func space(
        _ url: String, _ method: AuthenticationMethod, realm: String? = nil
    ) throws -> ProtectionSpace {
        let parts = try #require(URLComponents(string: url))
        return ProtectionSpace(
            scheme: try #require(parts.scheme), host: try #require(parts.host), port: parts.port, realm: realm,
            authenticationMethod: method)
    }

    /// All events while `body` runs with a proxy for `home`.
    private static func events(
        _ home: LibraryHome, trust: (any ServerTrustDelegate)? = nil, passwords: (any CredentialDelegate)? = nil,
        _ body: (ChallengeProxy, ChallengeController) async throws -> Void
    ) async throws -> [ChallengeEvent] {
        var heard: [ChallengeEvent] = []
        try await withProxy(home, trust: trust, passwords: passwords) { proxy, controller in
            let events = controller.events
            try await body(proxy, controller)
            heard = await controller.told(events)
        }
        return heard
    }

    private static func statuses(_ count: Int, _ proxy: ChallengeProxy, _ url: String) async throws -> [Int] {
        let session = URLSession(configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
        let url = try #require(URL(string: url))
        var statuses: [Int] = []
        for _ in 0..<count {
            let (_, response) = try await session.data(from: url)
            statuses.append((response as? HTTPURLResponse)?.statusCode ?? 0)
        }
        return statuses
    }

    // MARK: Answered

    @Test func anAnswerIsReportedOnceAndPreemptiveCredentialsAreNot() async throws {
        let origins = try LibraryOrigins.shared
        let events = try await Self.events(try Self.home()) { proxy, _ in
            let statuses = try await Self.statuses(3, proxy, "\(origins.basicURL)/basic/index")
            #expect(statuses == [200, 200, 200])
        }
        let space = try Self.space(origins.basicURL, .basic, realm: "Apache")
        #expect(events == [.answered(space, with: "enrollment")])
    }

    @Test func anNTLMExchangeIsReportedOncePerConnection() async throws {
        let origins = try LibraryOrigins.shared
        let events = try await Self.events(try Self.home()) { proxy, _ in
            let statuses = try await Self.statuses(1, proxy, "\(origins.ntlmURL)/file")
            #expect(statuses == [200])
        }
        #expect(events == [.answered(try Self.space(origins.ntlmURL, .ntlm), with: "enrollment")])
    }

    @Test(arguments: [true, false])
    func aPresentedClientCertificateIsReported(throughTunnel isTunnel: Bool) async throws {
        let origins = try LibraryOrigins.shared
        let url = "\(origins.certificateURL)/who"
        let events = try await Self.events(try Self.home()) { proxy, _ in
            guard isTunnel else {
                let statuses = try await Self.statuses(1, proxy, url)
                #expect(statuses == [200])
                return
            }
            let folder = try TemporaryFolder("curl")
            let result = try Command.run(
                try Tool.path("curl"),
                ["-sS", "-x", "\(try await proxy.address)", "--cacert", proxy.trustBundlePath, url], in: folder)
            #expect(result.output == "TLSv1.3 CN=laptop,O=Test\n", "\(result.said)")
        }
        #expect(events == [.answered(try Self.space(origins.certificateURL, .clientCertificate), with: "laptop")])
    }

    // MARK: Rejected

    @Test(arguments: [AuthenticationMethod.basic, .ntlm])
    func aRejectedPasswordIsReportedOnceAndHandedBackFromThenOn(_ method: AuthenticationMethod) async throws {
        let origins = try LibraryOrigins.shared
        let site = method == .basic ? origins.basicURL : origins.ntlmURL
        let secret = "kanarie-refused-19"
        let events = try await Self.events(try Self.home(password: secret)) { proxy, _ in
            let url = method == .basic ? "\(site)/basic/index" : "\(site)/file"
            let statuses = try await Self.statuses(3, proxy, url)
            #expect(statuses == [401, 401, 401])
        }
        let space = try Self.space(site, method, realm: method == .basic ? "Apache" : nil)
        try #require(events.count == 3)
        #expect(events[0] == .rejected(space, credential: "enrollment"))
        for event in events.dropFirst() {
            guard case .handedBack(space, let error?) = event else {
                Issue.record("\(event)")
                continue
            }
            #expect(error.code == .nothingToAnswerWith)
            #expect(error.detail.contains("enrollment"))
        }
        #expect(!"\(events)".contains(secret))
    }

    @Test func aSuppliedPasswordIsReportedAfterTheRejectedOne() async throws {
        let origins = try LibraryOrigins.shared
        let delegate = FixedPassword(
            SuppliedCredential(user: LibraryHome.user, password: Password(LibraryHome.password)))
        let events = try await Self.events(try Self.home(password: "kanarie-elsewhere"), passwords: delegate) {
            proxy, _ in
            let statuses = try await Self.statuses(2, proxy, "\(origins.basicURL)/basic/index")
            #expect(statuses == [200, 200])
        }
        let space = try Self.space(origins.basicURL, .basic, realm: "Apache")
        // printf Apache | sha256sum | cut -c1-8
        let name = "https_basic.test.localhost_\(origins.apache.httpsPort)_87ec4027"
        #expect(events == [.rejected(space, credential: "enrollment"), .answered(space, with: name)])
        #expect(!"\(events)".contains(LibraryHome.password))
    }

    /// The EST server is also the origin: it requests a client certificate, and no longer accepts this one.
    @Test(arguments: [true, false])
    func aRejectedAndRenewedIdentityIsReported(throughTunnel isTunnel: Bool) async throws {
        let usual = #"{"auth": "basic", "clientCertificate": "optional""#
        let server = try ESTServer(usual + "}")
        let home = try LibraryHome(
            "\(server.address()) answer=certificate\n",
            credentials: ["enrollment": (ESTServer.user, ESTServer.password)], anchors: [server.certificate("ca")])
        try await home.enroll("laptop", at: server)
        let chain = TextFile.bytes(Home(path: home.path).identityChain(named: "laptop").path)
        let serial = try #require(try Certificate.readPEM(chain).first).serialNumberHex
        try server.set(usual + #", "revoked": ["\#(serial)"]}"#)

        let url = "\(server.address())/.well-known/est/cacerts"
        let events = try await Self.events(home) { proxy, _ in
            guard isTunnel else {
                let statuses = try await Self.statuses(1, proxy, url)
                #expect(statuses == [200])
                return
            }
            let folder = try TemporaryFolder("curl")
            let result = try Command.run(
                try Tool.path("curl"),
                [
                    "-sS", "-o", folder.file("body"), "-w", "%{http_code}", "-x", "\(try await proxy.address)",
                    "--cacert",
                    proxy.trustBundlePath, url,
                ], in: folder)
            #expect(result.output == "200", "\(result.said)")
        }
        let space = try Self.space(server.address(), .clientCertificate)
        let answered = ChallengeEvent.answered(space, with: "laptop")
        let expected = [
            answered, .rejected(space, credential: "laptop"), .refreshed(identity: "laptop"), answered,
        ]
        // A tunnel's first connection may close before its request. Then the identity is presented on another one.
        let isAgain = isTunnel && events.starts(with: [answered, answered])
        #expect(Array(events.dropFirst(isAgain ? 1 : 0)) == expected)
    }

    // MARK: Handed back

    @Test func anUnansweredChallengeIsHandedBackWithTheFailedCheck() async throws {
        let origins = try LibraryOrigins.shared
        let home = try Self.home()
        try home.write(sites: "\(origins.ntlmURL) answer=basic\n\(origins.certificateURL) answer=basic\n")
        let urls = ["\(origins.unlistedURL)/basic/index", "\(origins.ntlmURL)/file", "\(origins.certificateURL)/who"]
        let events = try await Self.events(home) { proxy, _ in
            for url in urls { _ = try await Self.statuses(1, proxy, url) }
        }
        let found = events.map { event -> String in
            guard case .handedBack(let space, let error) = event else { return "\(event)" }
            return "\(space.authenticationMethod), \(error?.code as Any), \(error?.listLine ?? "no line")"
        }
        #expect(
            found == [
                "Basic, Optional(siteNotAllowed), no line",
                "NTLM, Optional(methodNotAnswered), AllowedSites/test.sites:1",
                "client certificate, Optional(methodNotAnswered), "
                    + "AllowedSites/test.sites:2",
            ])
        guard case .handedBack(let space, _)? = events.first else { return }
        #expect(try space == Self.space(origins.unlistedURL, .basic, realm: "Apache"))
    }

    @Test func aChallengeOfAnUntrustedServerIsHandedBackForThatReason() async throws {
        let origin = try ChallengingOrigin(
            .basic, certificate: "server-other", user: LibraryHome.user, password: LibraryHome.password)
        let site = "https://untrusted.test.localhost:\(origin.port)"
        let home = try LibraryHome("\(site)\n", anchors: [try TestPKI.shared.originAnchor])
        let events = try await Self.events(home, trust: FixedTrust(.proceed)) { proxy, _ in
            let statuses = try await Self.statuses(1, proxy, "\(site)/file")
            #expect(statuses == [401])
        }
        guard case .handedBack(let space, let error?)? = events.first, events.count == 1 else {
            Issue.record("\(events)")
            return
        }
        #expect(space.authenticationMethod == .basic)
        #expect(error.code == .serverNotTrusted)
        #expect(error.fault == .peer)
    }

    @Test func aRequestWithoutAChallengeIsNotReported() async throws {
        let origins = try LibraryOrigins.shared
        let events = try await Self.events(try Self.home()) { proxy, _ in
            let statuses = try await Self.statuses(2, proxy, "\(origins.openURL)/who")
            #expect(statuses == [200, 200])
        }
        #expect(events == [])
    }
}
