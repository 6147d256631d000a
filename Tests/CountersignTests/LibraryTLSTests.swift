// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import NIOCore
import NIOPosix
import Synchronization
import CountersignTestOrigin
import Testing
import CountersignVault

@testable import Countersign
@testable import CountersignNIO

/// TLS that a controller starts on the program's own channel.
@Suite(.waiting) struct LibraryTLSTests {
    /// The data received on a channel until it closes.
    private final class Received: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let promise: EventLoopPromise<String>
        private var text = ""

        init(_ promise: EventLoopPromise<String>) { self.promise = promise }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { text += String(buffer: unwrapInboundIn(data)) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { promise.fail(error) }

        func channelInactive(context: ChannelHandlerContext) { promise.succeed(text) }
    }

    private struct Link {
        let channel: any Channel
        let received: EventLoopFuture<String>

        init(_ port: Int) async throws {
            let group = MultiThreadedEventLoopGroup.singleton
            let promise = group.next().makePromise(of: String.self)
            channel = try await ClientBootstrap(group: promise.futureResult.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Received(promise))
                    }
                }
                .connect(host: "127.0.0.1", port: port).get()
            received = promise.futureResult
        }

        func get(_ path: String) async throws -> String {
            let request = "GET \(path) HTTP/1.1\r\nHost: open.test.localhost\r\nConnection: close\r\n\r\n"
            channel.writeAndFlush(ByteBuffer(string: request), promise: nil)
            return try await received.get()
        }
    }

    private static func controller(
        _ sites: String = "", identities: [String] = [], isAnchored: Bool = true
    ) throws -> ChallengeController {
        try LibraryHome(
            sites, identities: identities, anchors: isAnchored ? [try TestPKI.shared.originAnchor] : []
        ).controller()
    }

    // MARK: Server trust

    @Test func theCertificateOfATrustedServerIsReturned() async throws {
        let nginx = try LibraryOrigins.shared.nginx
        let link = try await Link(nginx.httpsPort)
        let verdict = try await Self.controller().startTLS(
            on: link.channel, host: "open.test.localhost", port: nginx.httpsPort)
        #expect(verdict.isTrusted)
        #expect(verdict.leaf?.pem == TextFile.text(try TestPKI.shared.certificate("server")))
        #expect(try await link.get("/who").hasSuffix("open https\n"))
    }

    @Test(arguments: [ServerTrustDecision.proceed, .refuse, nil])
    func theDelegateDecidesAboutAnUnverifiedServer(_ decision: ServerTrustDecision?) async throws {
        let nginx = try LibraryOrigins.shared.nginx
        let controller = try Self.controller(isAnchored: false)
        let link = try await Link(nginx.httpsPort)
        let delegate = decision.map { FixedTrust($0) }
        do {
            let verdict = try await controller.startTLS(
                on: link.channel, host: "elsewhere.example", port: nginx.httpsPort, serverTrustDelegate: delegate)
            #expect(decision == .proceed)
            #expect(!verdict.isTrusted)
            #expect(Set(verdict.reasons.map(\.kind)) == [.unknownIssuer, .hostMismatch])
            #expect(try await link.get("/who").hasSuffix("open https\n"))
        } catch let error as ChallengeError {
            #expect(decision != .proceed)
            #expect(error.code == .serverNotTrusted)
            #expect(error.fault == .peer)
            #expect(error.detail.hasPrefix("https://elsewhere.example:\(nginx.httpsPort) is not trusted: "))
            #expect(error.hint != nil)
            #expect(try await link.received.get() == "")
        }
        let asked = delegate?.asked.withLock { $0 } ?? []
        #expect(asked.count == (decision == nil ? 0 : 1))
        guard let question = asked.first else { return }
        #expect(question.host == "elsewhere.example")
        #expect(question.address == NetworkAddress(host: "127.0.0.1", port: nginx.httpsPort))
        #expect(question.tlsVersion.hasPrefix("TLSv1."))
    }

    /// A trust exception applies to one certificate of one listed server.
    @Test(arguments: [(true, true, true), (true, false, true), (false, true, true), (true, true, false)])
    func aTrustExceptionAppliesAsInTheProxy(_ isListed: Bool, _ answers: Bool, _ isThisLeaf: Bool) async throws {
        let port = try LibraryOrigins.shared.nginx.mutual13Port
        let home = try LibraryHome(
            isListed ? "https://open.test.localhost:\(port)\n" : "", identities: ["laptop"])
        let shown = try LibraryExchangeTests.certificate("server").sha256Fingerprint
        let vault = try SealedVault(home: home.path).open { () throws in throw HarnessError("no passphrase") }
        try vault.update {
            try $0.setTrustException(
                TrustExceptionRecord(
                    host: "open.test.localhost", port: UInt16(port),
                    leafSHA256: isThisLeaf ? shown : [UInt8](repeating: 1, count: 32), until: nil, answers: answers,
                    made: ChallengeController.now()))
        }
        let link = try await Link(port)
        let delegate = FixedTrust(.refuse)
        do {
            let verdict = try await home.controller().startTLS(
                on: link.channel, host: "open.test.localhost", port: port, serverTrustDelegate: delegate)
            #expect(isListed && isThisLeaf)
            #expect(verdict.isTrusted == answers)
            #expect(!verdict.reasons.isEmpty)
            #expect(verdict.description != "certificate trusted")
            let said = try await link.get("/who")
            #expect(said.contains("CN=laptop") == answers)
        } catch let error as ChallengeError {
            #expect(!(isListed && isThisLeaf))
            #expect(error.code == .serverNotTrusted)
        }
        #expect(delegate.asked.withLock { $0.count } == (isListed && isThisLeaf ? 0 : 1))
    }

    /// Never answers, and records whether its task was cancelled.
    private final class SilentPerson: ServerTrustDelegate {
        let wasCancelled = Mutex(false)

        func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision {
            try? await Task.sleep(for: .seconds(3600))
            wasCancelled.withLock { $0 = true }
            return .proceed
        }
    }

    @Test func noAnswerInTimeIsARefusal() async throws {
        let nginx = try LibraryOrigins.shared.nginx
        let person = SilentPerson()
        let link = try await Link(nginx.httpsPort)
        let error = await #expect(throws: ChallengeError.self) {
            try await Self.controller(isAnchored: false).startTLS(
                on: link.channel, host: "open.test.localhost", port: nginx.httpsPort, person,
                limit: .seconds(5))
        }
        #expect(error?.code == .serverNotTrusted)
        let wasCancelled = try await eventually { person.wasCancelled.withLock { $0 } }
        #expect(wasCancelled)
    }

    // MARK: Client certificates

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func aTrustedServersCertificateRequestIsAnsweredAndReported(_ version: String) async throws {
        let nginx = try LibraryOrigins.shared.nginx
        let port = version == "TLSv1.2" ? nginx.mutual12Port : nginx.mutual13Port
        let controller = try Self.controller("https://open.test.localhost:\(port)\n", identities: ["badge", "laptop"])
        let events = controller.events
        let link = try await Link(port)
        try await controller.startTLS(on: link.channel, host: "open.test.localhost", port: port)
        #expect(try await link.get("/who").hasSuffix("\(version) CN=laptop,O=Test\n"))
        guard case .answered(let space, with: "laptop")? = await controller.told(events).first else {
            Issue.record("unexpected event")
            return
        }
        #expect(space.host == "open.test.localhost")
        #expect(space.authenticationMethod == .clientCertificate)
        #expect(!space.acceptableIssuers.isEmpty)
    }

    @Test(arguments: [true, false])
    func noCertificateIsPresentedToAnUntrustedOrUnlistedServer(isListed: Bool) async throws {
        let port = try LibraryOrigins.shared.nginx.mutual13Port
        let controller = try Self.controller(
            isListed ? "https://open.test.localhost:\(port)\n" : "", identities: ["laptop"], isAnchored: !isListed)
        let link = try await Link(port)
        try await controller.startTLS(
            on: link.channel, host: "open.test.localhost", port: port, serverTrustDelegate: FixedTrust(.proceed))
        #expect(try await link.get("/who").contains("No required SSL certificate was sent"))
    }

    /// The EST server requests a client certificate, and no longer accepts this one.
    @Test func aRejectedIdentityIsReportedAndEndsTheConnection() async throws {
        let pki = try TestPKI.shared
        let server = try ESTServer(#"{"auth": "basic", "clientCertificate": "optional"}"#)
        let home = try LibraryHome(
            "https://127.0.0.1:\(server.port)\n", credentials: ["enrollment": (ESTServer.user, ESTServer.password)],
            anchors: [server.certificate("ca"), pki.originAnchor])
        try await home.enroll("laptop", at: server)
        let chain = TextFile.bytes(Home(path: home.path).identityChain(named: "laptop").path)
        let serial = try #require(try Certificate.readPEM(chain).first).serialNumberHex
        try server.set(
            #"{"auth": "basic", "clientCertificate": "optional", "tls": "1.3", "revoked": ["\#(serial)"]}"#)

        let controller = try home.controller()
        let events = controller.events
        let link = try await Link(server.port)
        try await controller.startTLS(on: link.channel, host: "127.0.0.1", port: server.port)
        let error = await #expect(throws: ChallengeError.self) { try await link.get("/.well-known/est/cacerts") }
        #expect(error?.code == .tlsFailed)
        #expect(error?.detail.contains("certificate_revoked") == true)
        let told = await controller.told(events)
        guard case .answered(let shown, with: "laptop")? = told.first, case .rejected(let space, "laptop")? = told.last
        else {
            Issue.record("\(told)")
            return
        }
        #expect(shown.port == server.port && space.port == server.port)
        #expect(space.authenticationMethod == .clientCertificate)
    }

    // MARK: Cancellation and time-outs

    @Test func aCancelledTaskEndsTheHandshake() async throws {
        let origin = try await Silent()
        let controller = try Self.controller()
        let link = try await Link(origin.port)
        let task = Task { try await controller.startTLS(on: link.channel, host: "open.test.localhost") }
        await Task.yield()
        let began = ContinuousClock.now
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        _ = try await link.received.get()
        // The time-out of the handshake would end it too.
        #expect(ContinuousClock.now - began < .seconds(20))
    }

    @Test func aSilentServerTimesOut() async throws {
        let origin = try await Silent()
        let link = try await Link(origin.port)
        let error = await #expect(throws: ChallengeError.self) {
            try await Self.controller().startTLS(
                on: link.channel, host: "open.test.localhost", port: 443, nil, limit: .milliseconds(200))
        }
        #expect(error?.code == .tlsFailed)
        #expect(error?.fault == .peer)
        _ = try await link.received.get()
    }

    @Test func anErrorSaysWhetherTheCallerOrTheServerIsAtFault() async throws {
        let origins = try LibraryOrigins.shared
        let controller = try Self.controller()
        for (host, port) in [("", 443), ("a b", 443), ("open.test.localhost", 0), ("open.test.localhost", 70_000)] {
            let link = try await Link(origins.nginx.httpPort)
            let error = await #expect(throws: ChallengeError.self) {
                try await controller.startTLS(on: link.channel, host: host, port: port)
            }
            #expect(error?.code == .invalidProtectionSpace)
            _ = try await link.received.get()
        }
        let plain = try await Link(origins.nginx.httpPort)
        let spoken = await #expect(throws: ChallengeError.self) {
            try await controller.startTLS(on: plain.channel, host: "open.test.localhost")
        }
        #expect(spoken?.code == .tlsFailed)
        let closed = try await Link(origins.nginx.httpPort)
        try await closed.channel.close().get()
        let shut = await #expect(throws: ChallengeError.self) {
            try await controller.startTLS(on: closed.channel, host: "open.test.localhost")
        }
        #expect(shut?.code == .tlsFailed)
    }

    /// Accepts connections, and sends nothing.
    private final class Silent: Sendable {
        private let server: any Channel
        let port: Int

        init() async throws {
            server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .bind(host: "127.0.0.1", port: 0).get()
            port = try #require(server.localAddress?.port)
        }

        deinit { server.close(promise: nil) }
    }
}
