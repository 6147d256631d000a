// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOCore
import NIOEmbedded
import CountersignTLS
import Testing

@testable import CountersignUpstream

@Suite struct EstablishingTests {
    private static let trust = ServerTrust(chain: [], reasons: [.selfSigned])

    /// The last step of a chain: a handshake that has ten seconds, and that the test completes or lets fail.
    private final class HandshakeStep: ConnectionStep {
        let kind = UpstreamError.Step.tls
        let place = "a.example:443"
        let limit = TimeAmount.seconds(10)
        let connection: OriginConnection

        init(_ connection: OriginConnection) { self.connection = connection }

        func run(on channel: any Channel, in chain: ConnectionChain) { connection.establish(in: chain) }
        func chainEnded() { connection.close() }
    }

    /// A connection in the middle of its handshake.
    private final class Wire {
        let channel: EmbeddedChannel
        let connection = OriginConnection(place: "a.example:443", tlsHandler: nil)
        var results: [Result<any Channel, UpstreamError>] = []
        var answers: [(TrustAnswer) -> Void] = []

        init(_ loop: EmbeddedEventLoop = EmbeddedEventLoop()) throws {
            channel = EmbeddedChannel(loop: loop)
            try channel.pipeline.syncOperations.addHandler(connection)
            try channel.connect(to: SocketAddress(ipAddress: "::1", port: 443)).wait()
            connection.trustSource = { _, _, answer in self.answers.append(answer) }
            let chain = ConnectionChain(loop: loop, steps: [HandshakeStep(connection)]) { self.results.append($0) }
            chain.runNextStep(on: channel)
        }

        var failures: [UpstreamError.Code] {
            results.compactMap { if case .failure(let error) = $0 { error.code } else { nil } }
        }

        func ask() {
            channel.pipeline.fireUserInboundEventTriggered(TLSEvent.serverTrustAsked(EstablishingTests.trust))
        }

        func pass(_ time: TimeAmount) { channel.embeddedEventLoop.advanceTime(by: time) }
    }

    @Test func handshakeHasALimit() throws {
        let wire = try Wire()
        wire.pass(.milliseconds(9_999))
        #expect(wire.results.isEmpty)
        wire.pass(.milliseconds(1))
        #expect(wire.failures == [.tlsTimedOut])
        #expect(!wire.channel.isActive)
    }

    @Test func clockStopsDuringATrustQuestion() throws {
        let wire = try Wire()
        wire.pass(.seconds(6))
        wire.ask()
        #expect(wire.answers.count == 1)
        wire.pass(.seconds(3600))
        #expect(wire.results.isEmpty && wire.channel.isActive)
        wire.answers[0](.proceed(answering: false))
        wire.pass(.milliseconds(3_999))
        #expect(wire.results.isEmpty)
        wire.pass(.milliseconds(1))
        #expect(wire.failures == [.tlsTimedOut])
    }

    @Test func secondAnswerToAQuestionIsIgnored() throws {
        let wire = try Wire()
        wire.ask()
        wire.answers[0](.undecided)
        wire.ask()
        wire.answers[0](.proceed(answering: true))
        wire.pass(.seconds(3600))
        #expect(wire.results.isEmpty)
        wire.answers[1](.refuse)
        wire.pass(.seconds(10))
        #expect(wire.failures == [.tlsTimedOut])
    }

    enum End: CaseIterable {
        case closed, failed, late, established
    }

    @Test(arguments: End.allCases, [true, false])
    func connectionIsReleasedWhenTheHandshakeIsOver(_ end: End, isAsked: Bool) throws {
        let loop = EmbeddedEventLoop()
        weak var left: OriginConnection?
        try {
            let wire = try Wire(loop)
            left = wire.connection
            if isAsked { wire.ask() }
            switch end {
            case .closed: wire.connection.close()
            case .failed: wire.channel.pipeline.fireErrorCaught(TLSError(.handshakeFailed, "gone"))
            case .late:
                wire.answers.first?(.undecided)
                wire.pass(.seconds(10))
            case .established:
                wire.connection.finishEstablishing(nil)
                #expect(wire.results.count == 1)
                try wire.channel.close().wait()
            }
            #expect(!wire.channel.isActive)
            wire.results.removeAll()
        }()
        loop.run()
        #expect(left == nil)
    }

    @Test func closingReportsNothing() throws {
        let wire = try Wire()
        wire.ask()
        wire.connection.close()
        #expect(!wire.channel.isActive)
        wire.answers[0](.proceed(answering: false))
        wire.pass(.seconds(3600))
        #expect(wire.results.isEmpty)
    }

    @Test func originThatClosesDuringAQuestionIsAFailure() throws {
        let wire = try Wire()
        wire.ask()
        wire.channel.pipeline.fireErrorCaught(TLSError(.handshakeFailed, "gone"))
        #expect(wire.failures == [.tlsFailed])
        wire.answers[0](.proceed(answering: false))
        wire.pass(.seconds(3600))
        #expect(wire.results.count == 1)
    }

    @Test func addressIsThatOfThePeer() throws {
        #expect(try Wire().connection.address == "[::1]:443")
        let other = EmbeddedChannel()
        let connection = OriginConnection(place: "a.example:443", tlsHandler: nil)
        try other.pipeline.syncOperations.addHandler(connection)
        #expect(connection.address == nil)
        try other.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 8443)).wait()
        #expect(connection.address == "192.0.2.1:8443")
    }
}
