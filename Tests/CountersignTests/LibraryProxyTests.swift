// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign
@testable import CountersignNIO
import CountersignServiceLifecycle
@testable import CountersignURLSession

/// The origins for the tests of the library's proxy, created once.
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

/// Runs a proxy during `body`.
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

/// Answers every question about a server with the same decision, and records the questions.
final class FixedTrust: ServerTrustDelegate {
    let asked = Mutex<[ServerTrustQuestion]>([])
    private let decision: ServerTrustDecision

    init(_ decision: ServerTrustDecision) { self.decision = decision }

    func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision {
        asked.withLock { $0.append(question) }
        return decision
    }
}

@Suite(.waiting) struct LibraryProxyTests {
    private static func home() throws -> LibraryHome {
        try LibraryHome(
            try LibraryOrigins.shared.sites, identities: ["laptop"], anchors: [try TestPKI.shared.originAnchor])
    }

    // MARK: URLSession through the proxy

    @Test(arguments: [
        ("basic", "/basic/index", "apache basic/index\n"), ("ntlm", "/file", "a file\n"),
        ("certificate", "/who", "TLSv1.3 CN=laptop,O=Test\n"), ("open", "/who", "open https\n"),
    ])
    func aPlainURLSessionReachesEachKindOfSite(_ kind: String, _ path: String, _ text: String) async throws {
        let origins = try LibraryOrigins.shared
        let site = [
            "basic": origins.basicURL, "ntlm": origins.ntlmURL, "certificate": origins.certificateURL,
            "open": origins.openURL,
        ][kind, default: ""]
        let url = try #require(URL(string: site + path))
        try await withProxy(try Self.home()) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            // Twice, so that the second request reuses the connection.
            for _ in 0..<2 {
                let (data, response) = try await session.data(from: url)
                #expect((response as? HTTPURLResponse)?.statusCode == 200)
                #expect(String(decoding: data, as: UTF8.self) == text)
            }
        }
    }

    @Test func anUnansweredChallengeIsDeliveredAsItsStatusAndTheTaskEnds() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.unlistedURL + "/basic/index"))
        let home = try Self.home()
        try await withProxy(home) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            // The unlisted site's challenge is forwarded without additions.
            let (_, response) = try await session.data(from: url)
            let http = try #require(response as? HTTPURLResponse)
            #expect(http.statusCode == 401)
            #expect(http.value(forHTTPHeaderField: "Countersign-WWW-Authenticate") == "Basic realm=\"Apache\"")
        }
    }

    @Test func aRequestIsSentWithItsFieldsAndBody() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.ntlmURL + "/echo"))
        try await withProxy(try Self.home()) { proxy, _ in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpAdditionalHeaders = ["X-Session": "17"]
            let session = URLSession(configuration: try await configuration.answering(through: proxy))
            var request = URLRequest(url: url)
            request.httpMethod = "POST"
            request.httpBody = Data("the request's body".utf8)
            let (data, _) = try await session.data(for: request)
            #expect(String(decoding: data, as: UTF8.self).contains("\"length\": 18"))
            request.httpBody = nil
            request.httpBodyStream = InputStream(data: Data("and again".utf8))
            let (again, _) = try await session.data(for: request)
            #expect(String(decoding: again, as: UTF8.self).contains("\"length\": 9"))
        }
    }

    /// Not those of the request, although that has a body too.
    @Test(arguments: [false, true]) func anUploadSendsItsOwnBytes(fromFile: Bool) async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.ntlmURL + "/echo"))
        let folder = try TemporaryFolder("upload")
        let file = URL(fileURLWithPath: try folder.write("body", "the file's body"))
        try await withProxy(try Self.home()) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            for own in [nil, Data("wrong".utf8)] {
                var request = URLRequest(url: url)
                request.httpMethod = "POST"
                request.httpBody = own
                let (data, _) =
                    fromFile
                    ? try await session.upload(for: request, fromFile: file)
                    : try await session.upload(for: request, from: Data("the upload's bytes".utf8))
                let echo = String(decoding: data, as: UTF8.self)
                #expect(echo.contains("\"length\": \(fromFile ? 15 : 18)"), "\(echo)")
            }
        }
    }

    @Test func anUnsupportedTaskFailsImmediatelyWithAReason() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.openURL + "/who"))
        try await withProxy(try Self.home()) { proxy, _ in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            let download = await #expect(throws: URLError.self) { try await session.download(from: url) }
            #expect(download?.code == .unsupportedURL)
            #expect(download?.localizedDescription.hasPrefix("download tasks are not supported") == true)
            let missing = URL(fileURLWithPath: "/nonexistent/body")
            await #expect(throws: (any Error).self) {
                try await session.upload(for: URLRequest(url: url), fromFile: missing)
            }
        }
    }

    /// Supplies the body of uploads, in parts of 1 MiB, and records the bytes received.
    private final class Supplier: NSObject, URLSessionDataDelegate {
        let body: Data?
        let received = Mutex(Data())
        let end = Mutex<(isComplete: Bool, error: URLError?)>((false, nil))

        init(_ body: Data?) { self.body = body }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            completionHandler(body.map { InputStream(data: $0) })
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            received.withLock { $0 += data }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            end.withLock { $0 = (true, error as? URLError) }
        }
    }

    @Test func aDelegateSuppliesTheBodyOfAnUpload() async throws {
        let url = try #require(URL(string: try LibraryOrigins.shared.ntlmURL + "/echo"))
        try await withProxy(try Self.home()) { proxy, _ in
            for body in [Data(repeating: 7, count: 3 << 20), Data(), nil] {
                let supplier = Supplier(body)
                let session = URLSession(
                    configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy),
                    delegate: supplier, delegateQueue: nil)
                var request = URLRequest(url: url)
                request.httpMethod = "POST"
                session.uploadTask(withStreamedRequest: request).resume()
                let isOver = try await eventually { supplier.end.withLock { $0.isComplete } }
                #expect(isOver)
                #expect(supplier.end.withLock { $0.error?.code } == (body == nil ? .requestBodyStreamExhausted : nil))
                let echo = String(decoding: supplier.received.withLock { $0 }, as: UTF8.self)
                if let body { #expect(echo.contains("\"length\": \(body.count),"), "\(echo)") }
            }
        }
    }

    @Test func aDelegateReceivesPiecesAsTheyArrive() async throws {
        let origin = try await PlainOrigin { request in
            request.hasPrefix("GET /moved ")
                ? PlainOrigin.response("302 Found\r\nLocation: /piece", "moved")
                : "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe first piece"
        }
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let end = TaskEnd()
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy), delegate: end,
                delegateQueue: nil)
            let task = session.dataTask(with: try #require(URL(string: origin.site + "/moved")))
            task.resume()
            let isHere = try await eventually { end.received == "the first piece" }
            #expect(isHere, "\(end.received)")
            #expect(end.error == nil)
            task.cancel()
            let isOver = try await eventually { end.error?.code == .cancelled }
            #expect(isOver)
        }
        try await origin.stop()
    }

    @Test func aDelegateAndACompletionHandlerReceiveTheSameBytes() async throws {
        let body = String(repeating: "0123456789", count: 100_000)
        let origin = try await PlainOrigin(head: "200 OK", body: body)
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let end = TaskEnd()
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy), delegate: end,
                delegateQueue: nil)
            let url = try #require(URL(string: origin.site))
            session.dataTask(with: url).resume()
            let isOver = try await eventually { end.isComplete }
            #expect(isOver && end.error == nil)
            #expect(end.received == body)
            let (data, _) = try await session.data(from: url)
            #expect(data == Data(body.utf8))
        }
        try await origin.stop()
    }

    /// Records the content and the end of a task.
    private final class TaskEnd: NSObject, URLSessionDataDelegate {
        private let state = Mutex((received: Data(), isComplete: false, error: URLError?.none))
        var received: String { String(decoding: state.withLock { $0.received }, as: UTF8.self) }
        var isComplete: Bool { state.withLock { $0.isComplete } }
        var error: URLError? { state.withLock { $0.error } }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            state.withLock { $0.received += data }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            state.withLock { state in
                state.isComplete = true
                state.error = error as? URLError
            }
        }
    }

    /// Sends a challenge, and does not respond to the answer.
    private final class SilentAfterwards: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        let isAnswered = Mutex(false)
        let isClosed = Mutex(false)

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let request = String(buffer: unwrapInboundIn(data))
            guard !request.contains("Authorization: Basic ") else { return isAnswered.withLock { $0 = true } }
            let response = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: response)), promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { isClosed.withLock { $0 = true } }
    }

    @Test func aCancelledTaskEndsTheExchangeWithTheOrigin() async throws {
        let origin = SilentAfterwards()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { $0.pipeline.addHandler(origin) }
            .bind(host: "127.0.0.1", port: 0).get()
        let site = "http://127.0.0.1:\(try #require(server.localAddress?.port))"
        try await withProxy(try LibraryHome("\(site) answer=basic plaintext=yes\n")) { proxy, controller in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            let url = try #require(URL(string: "\(site)/"))
            let task = Task { try await session.data(from: url) }
            let isAnswered = try await eventually { origin.isAnswered.withLock { $0 } }
            #expect(isAnswered)
            #expect(!origin.isClosed.withLock { $0 })
            task.cancel()
            await #expect(throws: (any Error).self) { _ = try await task.value }
            let isClosed = try await eventually { origin.isClosed.withLock { $0 } }
            #expect(isClosed)
            // It ended without an outcome, which does not count against the credential.
            let space = ProtectionSpace(
                scheme: "http", host: "127.0.0.1", port: url.port, realm: "r", authenticationMethod: .basic)
            #expect(try controller.canHandle(space))
        }
        try await server.close().get()
    }

    // MARK: Switched off

    @Test(arguments: [true, false])
    func whileSwitchedOffTheProxyAnswersNothingEither(throughTunnel isTunnel: Bool) async throws {
        let origins = try LibraryOrigins.shared
        let folder = try TemporaryFolder("curl")
        try await withProxy(try Self.home()) { proxy, controller in
            let session = URLSession(
                configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
            let address = "\(try await proxy.address)"
            func status(_ url: String) async throws -> Int? {
                guard isTunnel else {
                    let (_, response) = try await session.data(from: try #require(URL(string: url)))
                    return (response as? HTTPURLResponse)?.statusCode
                }
                let anchors = [proxy.trustBundlePath, try TestPKI.shared.originAnchor].map(TextFile.text).joined()
                let result = try Command.run(
                    try Tool.path("curl"),
                    [
                        "-s", "-o", folder.file("body"), "-w", "%{http_code}", "-x", address, "--cacert",
                        try folder.write("anchors.pem", anchors), url,
                    ], in: folder)
                return Int(result.output)
            }
            let urls = [
                "\(origins.basicURL)/basic/index", "\(origins.ntlmURL)/file", "\(origins.certificateURL)/who",
            ]
            for isOn in [true, false, true] {
                controller.isIntegratedAuthenticationEnabled = isOn
                for (url, refusal) in zip(urls, [401, 401, 400]) {
                    let found = try await status(url)
                    #expect(found == (isOn ? 200 : refusal), "\(url)")
                }
            }
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
            guard decision == .proceed else {
                let error = await #expect(throws: URLError.self) { _ = try await session.data(from: url) }
                #expect(error?.code == .serverCertificateUntrusted)
                return
            }
            let (data, _) = try await session.data(from: url)
            #expect(String(decoding: data, as: UTF8.self) == "a file\n")
        }
        let asked = delegate.asked.withLock { $0 }
        let question = try #require(asked.first)
        #expect(question.host == "untrusted.test.localhost")
        #expect(question.port == origins.untrusted.port)
        #expect(question.verdict.reasons.contains { $0.kind == .unknownIssuer })
        #expect(question.verdict.leaf?.fingerprint.hasPrefix("sha256:") == true)
        #expect(!question.verdict.isTrusted)
    }

    // MARK: Service

    @Test func aServiceGroupStopsTheProxy() async throws {
        let proxy = ChallengeProxy(try Self.home().controller())
        let group = ServiceGroup(
            services: [proxy.service], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
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

    @Test func aTakenPortIsReportedToCallersWaitingForTheAddress() async throws {
        let home = try Self.home()
        try await withProxy(home) { first, controller in
            let taken = try await first.address.port
            for port in [taken, 70_000, -1] {
                let proxy = ChallengeProxy(controller, port: port)
                let waiting = Task { try await proxy.address }
                let error = await #expect(throws: ChallengeError.self) { try await proxy.run() }
                #expect(error?.code == .proxyFailed)
                #expect(error?.fault == (port == taken ? .environment : .caller))
                if port == taken { #expect(error?.hint == "choose another `port:`; 0 selects a free one") }
                await #expect(throws: ChallengeError.self) { try await waiting.value }
            }
        }
    }

    @Test func waitingForTheAddressCanBeCancelled() async throws {
        let proxy = ChallengeProxy(try Self.home().controller())
        let found = Mutex<Result<ChallengeProxy.Address, any Error>?>(nil)
        let waiting = Task {
            do {
                let address = try await proxy.address
                found.withLock { $0 = .success(address) }
            } catch {
                found.withLock { $0 = .failure(error) }
            }
        }
        await Task.yield()
        waiting.cancel()
        try #require(try await eventually { found.withLock { $0 != nil } }, "a cancelled task waits on")
        let end = try #require(found.withLock { $0 })
        #expect(throws: CancellationError.self) { try end.get() }
    }

    @Test func aCredentialRejectedThroughTheProxyIsRejectedForTheController() async throws {
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
