// SPDX-License-Identifier: Apache-2.0

import CountersignUpstream
import Foundation
import FoundationNetworking
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import CountersignURLSession

/// The time-outs of the transfer of a response. The test sets the clock.
@Suite struct TransferTimeoutTests {
    /// A transfer whose proxy is the test. The request times out after 2 seconds without data, the task after 100.
    private final class Transfer {
        let channel = EmbeddedChannel()
        private let accepts = AcceptsContent()
        private let handle: URLSessionTransfer.Handle
        private(set) var failure: URLError.Code?

        final class AcceptsContent: Sendable { let value = Atomic(true) }

        init() throws {
            let loop = channel.embeddedEventLoop
            handle = URLSessionTransfer.Handle(loop: loop)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
            let link = ProxyLink(to: nil, on: loop)
            link.returnConnection(try OriginConnection.plain(over: channel, place: "the proxy"), acceptedBefore: 0)
            let url = try #require(URL(string: "http://a.example/"))
            let request = try ProxiedRequest(
                URLRequest(url: url, timeoutInterval: 2), with: SessionSettings(.ephemeral))
            let transfer = URLSessionTransfer(
                request, by: loop.now + .seconds(100), link: link, loop: loop,
                pieces: { [accepts] _ in accepts.value.load(ordering: .relaxed) }, sent: nil
            ) { [weak self] result in
                if case .failure(let error) = result { self?.failure = (error as? URLError)?.code }
            }
            handle.begin(transfer)
        }

        func receive(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

        func pass(_ time: TimeAmount) { channel.embeddedEventLoop.advanceTime(by: time) }

        /// The reader of the response accepts no more.
        func stopReading() { accepts.value.store(false, ordering: .relaxed) }

        func readOn() {
            accepts.value.store(true, ordering: .relaxed)
            handle.resume()
            channel.embeddedEventLoop.run()
        }
    }

    @Test func aServerThatSendsNothingIsWaitedForUntilTheTimeout() throws {
        let transfer = try Transfer()
        transfer.pass(.milliseconds(1999))
        #expect(transfer.failure == nil)
        try transfer.receive("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none")
        transfer.pass(.milliseconds(1999))
        #expect(transfer.failure == nil)
        transfer.pass(.milliseconds(1))
        #expect(transfer.failure == .timedOut)
    }

    /// Nothing arrives without a reader, which is not the server's fault.
    @Test func aReaderThatPausesIsNotATimeout() throws {
        let transfer = try Transfer()
        transfer.stopReading()
        try transfer.receive("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none")
        transfer.pass(.seconds(90))
        #expect(transfer.failure == nil)
        transfer.readOn()
        transfer.pass(.milliseconds(1999))
        try transfer.receive("two")
        transfer.pass(.milliseconds(1999))
        #expect(transfer.failure == nil)
        transfer.pass(.milliseconds(1))
        #expect(transfer.failure == .timedOut)
    }

    @Test func aReaderThatPausesDoesNotOutlastTheWholeTask() throws {
        let transfer = try Transfer()
        transfer.stopReading()
        try transfer.receive("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none")
        transfer.pass(.milliseconds(99_999))
        #expect(transfer.failure == nil)
        transfer.pass(.milliseconds(1))
        #expect(transfer.failure == .timedOut)
    }
}
