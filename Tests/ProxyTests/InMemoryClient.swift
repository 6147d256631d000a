// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import NIOCore

@testable import CountersignProxy

/// A client that speaks no version of HTTP: it keeps the messages of the exchange, in the terms of RFC 9110, as a
/// stream of HTTP/2 would.
final class InMemoryClient: ExchangeClient {
    let speaksHTTP2 = false
    enum Event: Equatable {
        case interim(Int)
        case head(Int, ContentEnd)
        case end(trailers: [String])
        case generated(Int)
        case reset
        case upgraded
    }

    private(set) var events: [Event] = []
    private(set) var content = ""
    private(set) var fields: [String] = []
    private(set) var isRequestPaused = false
    private(set) var isLast = false
    var isWritable = true
    /// Called for each part of the content.
    var contentSent: (String) -> Void = { _ in }
    let session = ClientSession(process: ClientProcess(uid: Bench.uid), addresses: nil)

    func sendInterim(_ head: ResponseHead, _ changes: ResponseChanges) {
        events.append(.interim(head.status))
    }

    func inviteContent() { events.append(.interim(100)) }

    func send(_ response: BufferedResponse, _ changes: ResponseChanges) {
        events.append(.head(response.head.status, response.content))
        fields = Self.lines(response.head.fields) + changes.extraFields.map { "\($0.0): \($0.1)" }
    }

    func send(_ content: ByteBuffer) {
        let text = String(buffer: content)
        self.content += text
        contentSent(text)
    }

    func finish(trailers: FieldLines?) {
        events.append(.end(trailers: trailers.map(Self.lines) ?? []))
    }

    func finish(with response: OwnResponse) { events.append(.generated(response.status)) }
    func reset() { events.append(.reset) }
    func flush() {}
    func closeAfterResponse() { isLast = true }
    func pauseRequest() { isRequestPaused = true }
    func resumeRequest() { isRequestPaused = false }

    func switchProtocols(
        _ head: ResponseHead, _ changes: ResponseChanges, to origin: UpgradedConnection, tally: TunnelHandler.Tally
    ) {
        events.append(.upgraded)
        content += String(buffer: origin.received)
    }

    private static func lines(_ fields: FieldLines) -> [String] {
        fields.lines.map { "\(fields.name(of: $0)): \(fields.value(of: $0))" }
    }
}
