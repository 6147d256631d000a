// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Logging
import ServiceLifecycle
import Synchronization
import TestOrigin
import Testing

@testable import Countersign
@testable import CountersignURLSession

/// The origins that the library's proxy is tried at, made once.
final class LibraryOrigins: Sendable {
    private static let made = Result { try LibraryOrigins() }

    static var shared: LibraryOrigins { get throws { try made.get() } }

    let nginx: NginxOrigin
    let apache: ApacheOrigin
    let ntlm: ChallengingOrigin
    let untrusted: ChallengingOrigin

    private init() throws {
        nginx = try NginxOrigin()
        apache = try ApacheOrigin(user: LibraryHome.user, password: LibraryHome.password)
        ntlm = try ChallengingOrigin(.ntlm, user: "ACME\\\(LibraryHome.user)", password: LibraryHome.password)
        untrusted = try ChallengingOrigin(
            .open, certificate: "server-other", user: LibraryHome.user, password: LibraryHome.password)
        for origin in [ntlm, untrusted] {
            try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        }
    }

    var basicURL: String { "https://basic.test.localhost:\(apache.httpsPort)" }
    var ntlmURL: String { "https://ntlm.test.localhost:\(ntlm.port)" }
    var certificateURL: String { "https://cert.test.localhost:\(nginx.mutual13Port)" }
    var openURL: String { "https://open.test.localhost:\(nginx.httpsPort)" }
    var untrustedURL: String { "https://untrusted.test.localhost:\(untrusted.port)" }
    var unlistedURL: String { "https://unlisted.test.localhost:\(apache.httpsPort)" }

    var sites: String {
        """
        \(basicURL) answer=basic
        \(ntlmURL) answer=ntlm domain=ACME
        \(certificateURL) answer=certificate
        \(openURL)
        \(untrustedURL)

        """
    }
}

/// A proxy that runs as long as `body` does.
func withProxy(
    _ home: LibraryHome, trust: (any ServerTrustDelegate)? = nil, passwords: (any CredentialDelegate)? = nil,
    _ body: (ChallengeProxy, ChallengeController) async throws -> Void
) async throws {
    let controller = try home.controller()
    let proxy = ChallengeProxy(controller, serverTrustDelegate: trust, credentialDelegate: passwords)
    let running = Task { try await proxy.run() }
    do {
        try await body(proxy, controller)
    } catch {
        running.cancel()
        throw error
    }
    running.cancel()
    try await running.value
}

/// Answers every question about a server in the same way, and remembers them.
final class FixedTrust: ServerTrustDelegate {
    let asked = Mutex<[ServerTrustQuestion]>([])
    private let decision: ServerTrustDecision

    init(_ decision: ServerTrustDecision) { self.decision = decision }

    func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision {
        asked.withLock { $0.append(question) }
        return decision
    }
}

struct LibraryProxyTests {
    private static func home() throws -> LibraryHome {
        try LibraryHome(
            try LibraryOrigins.shared.sites, identities: ["laptop"], anchors: [try TestPKI.shared.originAnchor])
    }

    // MARK: URLSession through the proxy

    @Test(arguments: [
        ("basic", "/basic/index", "apache basic/index\n"), ("ntlm", "/file", "a file\n"),
        ("certificate", "/who", "TLSv1.3 CN=laptop,O=Test\n"), ("open", "/who", "open https\n"),
    ])
    func aPlainURLSessionReachesASiteOfEachKind(_ kind: String, _ path: String, _ text: String) async throws {
        let origins = try LibraryOrigins.shared
        let site = [
            "basic": origins.basicURL, "ntlm": origins.ntlmURL, "certificate": origins.certificateURL,
            "open": origins.openURL,
        ][kind, default: ""]
        let url = try #require(URL(string: site + path))
        try await withProxy(try Self.home()) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            // Twice: the second goes over a connection that is kept.
            for _ in 0..<2 {
                let (data, response) = try await session.data(from: url)
                #expect((response as? HTTPURLResponse)?.statusCode == 200)
                #expect(String(decoding: data, as: UTF8.self) == text)
            }
        }
    }

    @Test func aChallengeThatNobodyAnswersComesAsItsStatusAndTheTaskEnds() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.unlistedURL + "/basic/index"))
        let home = try Self.home()
        try await withProxy(home) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            // The unlisted site is forwarded with nothing added.
            let (_, response) = try await session.data(from: url)
            let http = try #require(response as? HTTPURLResponse)
            #expect(http.statusCode == 401)
            #expect(http.value(forHTTPHeaderField: "Countersign-WWW-Authenticate") == "Basic realm=\"Apache\"")
        }
    }

    @Test func aRequestOfItsOwnGoesWithItsFieldsAndBody() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.ntlmURL + "/echo"))
        try await withProxy(try Self.home()) { proxy, _ in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpAdditionalHeaders = ["X-Session": "17"]
            let session = URLSession(configuration: try await configuration.answering(through: proxy))
            var request = URLRequest(url: url)
            request.httpMethod = "POST"
            request.httpBody = Data("what is to be said".utf8)
            let (data, _) = try await session.data(for: request)
            #expect(String(decoding: data, as: UTF8.self).contains("\"length\": 18"))
            request.httpBody = nil
            request.httpBodyStream = InputStream(data: Data("and again".utf8))
            let (again, _) = try await session.data(for: request)
            #expect(String(decoding: again, as: UTF8.self).contains("\"length\": 9"))
        }
    }

    @Test func whatCannotBeServedFailsAtOnce() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.openURL + "/who"))
        try await withProxy(try Self.home()) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            await #expect(throws: URLError.self) { try await session.download(from: url) }
            await #expect(throws: URLError.self) {
                try await session.upload(for: URLRequest(url: url), from: Data("body".utf8))
            }
        }
    }

    @Test(arguments: [
        ("https://open.test.localhost/a b", "GET", "X-Own", "a"),
        ("https://jdoe@open.test.localhost/", "GET", "X-Own", "a"),
        ("https://open.test.localhost/", "CONNECT", "X-Own", "a"),
        ("https://open.test.localhost/", "G ET", "X-Own", "a"),
        ("https://open.test.localhost/", "GET", "X-Own", "a\r\nInjected: b"),
        ("https://open.test.localhost/", "GET", "X-Own:\r\nInjected", "b"),
    ])
    func noRequestEndsALineTooMany(_ url: String, _ method: String, _ name: String, _ value: String) throws {
        guard let url = URL(string: url) else { return }
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.setValue(value, forHTTPHeaderField: name)
        guard
            let made = try? ProxiedRequest(
                request, additionalFields: [:], cookies: nil, isUpload: false, isDownload: false),
            let bytes = try? made.bytes()
        else { return }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(!text.contains("\r\nInjected"))
        #expect(!text.contains("jdoe"))
        #expect(
            text.hasPrefix("GET https://open.test.localhost/")
                && text.contains(" HTTP/1.1\r\nHost: open.test.localhost\r\n"))
    }

    @Test func aCancelledTaskEnds() async throws {
        let origin = try MisbehavingOrigin("silent")
        let home = try LibraryHome("https://silent.test.localhost:\(origin.port)\n")
        try await withProxy(home) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            let url = try #require(URL(string: "https://silent.test.localhost:\(origin.port)/"))
            let task = Task { try await session.data(from: url) }
            await Task.yield()
            task.cancel()
            await #expect(throws: (any Error).self) { _ = try await task.value }
        }
    }

    // MARK: The delegate of a session

    @Test func aSessionDelegateAnswersBasicAndNothingTwice() async throws {
        let origin = try ChallengingOrigin(
            .basic, certificate: nil, user: LibraryHome.user, password: LibraryHome.password)
        let site = "http://basic.test.localhost:\(origin.port)"
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        let url = try #require(URL(string: "\(site)/file"))
        for password in [LibraryHome.password, "wrong"] {
            let home = try LibraryHome(
                "\(site) plaintext=yes\n", credentials: ["enrollment": (LibraryHome.user, password)])
            let controller = try home.controller()
            let session = URLSession(
                configuration: .ephemeral, delegate: URLSessionChallengeAnswerer(controller), delegateQueue: nil)
            let before = origin.log.requests(path: "/file").count
            if password == LibraryHome.password {
                let (data, _) = try await session.data(from: url)
                #expect(String(decoding: data, as: UTF8.self) == "a file\n")
            } else {
                await #expect(throws: URLError.self) { try await session.data(from: url) }
                #expect(origin.log.requests(path: "/file").count == before + 2)
                await #expect(throws: URLError.self) { try await session.data(from: url) }
                #expect(origin.log.requests(path: "/file").count == before + 3)
            }
            session.invalidateAndCancel()
        }
    }

    // MARK: Server trust

    @Test(arguments: [ServerTrustDecision.proceed, .refuse])
    func theDelegateDecidesAboutAServer(_ decision: ServerTrustDecision) async throws {
        let origins = try LibraryOrigins.shared
        let url = try #require(URL(string: origins.untrustedURL + "/file"))
        let delegate = FixedTrust(decision)
        try await withProxy(try Self.home(), trust: delegate) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            let (data, response) = try await session.data(from: url)
            let isThere = String(decoding: data, as: UTF8.self) == "a file\n"
            #expect(isThere == (decision == .proceed))
            #expect((response as? HTTPURLResponse)?.statusCode == (decision == .proceed ? 200 : 502))
        }
        let asked = delegate.asked.withLock { $0 }
        let question = try #require(asked.first)
        #expect(question.host == "untrusted.test.localhost")
        #expect(question.port == origins.untrusted.port)
        #expect(question.verdict.reasons.contains { $0.kind == .unknownIssuer })
        #expect(question.verdict.leaf?.fingerprint.hasPrefix("sha256:") == true)
        #expect(!question.verdict.isTrusted)
    }

    // MARK: As a service

    @Test func aServiceGroupStopsIt() async throws {
        let proxy = ChallengeProxy(try Self.home().controller())
        let group = ServiceGroup(services: [proxy], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let running = Task { try await group.run() }
        let address = try await proxy.address
        #expect(address.host == "127.0.0.1")
        #expect(Loopback.answers(port: address.port))
        #expect(address.description == "http://127.0.0.1:\(address.port)")
        #expect(TextFile.text(proxy.trustBundlePath).contains("BEGIN CERTIFICATE"))
        await group.triggerGracefulShutdown()
        try await running.value
        #expect(!Loopback.answers(port: address.port))
        await #expect(throws: ChallengeError.self) { try await proxy.address }
        await #expect(throws: ChallengeError.self) { try await proxy.run() }
    }

    @Test func aPortThatIsTakenIsToldToWhoeverWaits() async throws {
        let home = try Self.home()
        try await withProxy(home) { first, controller in
            let taken = try await first.address.port
            for port in [taken, 70_000, -1] {
                let proxy = ChallengeProxy(controller, port: port)
                let waiting = Task { try await proxy.address }
                let error = await #expect(throws: ChallengeError.self) { try await proxy.run() }
                #expect(error?.code == .proxyFailed)
                #expect(error?.fault == .environment)
                await #expect(throws: ChallengeError.self) { try await waiting.value }
            }
        }
    }

    @Test func whoeverWaitsForTheAddressMayGiveUp() async throws {
        let proxy = ChallengeProxy(try Self.home().controller())
        let waiting = Task { try await proxy.address }
        await Task.yield()
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func whatIsRejectedThroughTheProxyIsRejectedForTheController() async throws {
        let origins = try LibraryOrigins.shared
        let home = try LibraryHome(
            "\(origins.basicURL) answer=basic\n", credentials: ["enrollment": (LibraryHome.user, "wrong")],
            anchors: [try TestPKI.shared.originAnchor])
        let url = try #require(URL(string: origins.basicURL + "/basic/index"))
        try await withProxy(home) { proxy, controller in
            let space = ProtectionSpace(
                host: "basic.test.localhost", port: origins.apache.httpsPort, authenticationMethod: .basic)
            #expect(try controller.canHandle(space))
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            let (_, response) = try await session.data(from: url)
            #expect((response as? HTTPURLResponse)?.statusCode == 401)
            #expect(throws: ChallengeError.self) { try controller.canHandle(space) }
        }
    }
}
