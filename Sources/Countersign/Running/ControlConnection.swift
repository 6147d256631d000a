// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignPage
import FoundationEssentials
import Glibc
import Synchronization

/// One connection of a control socket, at either end. Any thread may send.
final class ControlConnection: Sendable {
    private let socket: LocalSocket
    private let sending = Mutex(())

    init(_ socket: consuming LocalSocket) { self.socket = socket }

    enum Received {
        case request(ControlRequest, Secret?)
        /// The first line of a request in HTTP.
        case http([UInt8])
        case malformed(String)
        /// The peer has closed the connection, or has not sent anything in time.
        case nothing
    }

    var peer: (process: Int32, user: UInt32)? { socket.peer }

    var isClosedByPeer: Bool { socket.isClosedByPeer }

    /// Waits until the peer has sent something or closed its end. Returns whether it has.
    func waitForInput(seconds: Int) -> Bool { socket.waitForInput(seconds: seconds) }

    /// Tells the peer that nothing more will be sent.
    func endSending() { socket.endSending() }

    /// From any thread: a call that waits for the peer fails, and so do later ones.
    func endReceiving() { socket.endReceiving() }

    /// Receives a request and its secret.
    func receive() -> Received {
        switch socket.receiveLine() {
        case .nothing: return .nothing
        case .tooLong: return .malformed("the line is longer than \(LocalSocket.lineBytes) bytes")
        case .line(let line) where PageServer.isRequestLine(line): return .http(line)
        case .line(let line):
            guard let message = try? JSONDecoder().decode(ControlMessage.self, from: Data(line)) else {
                return .malformed("it is not a command in JSON that this version knows")
            }
            guard let count = message.secretBytes else { return .request(message.request, nil) }
            guard let secret = socket.receiveSecret(count: count) else { return .nothing }
            return .request(message.request, secret)
        }
    }

    /// Receives the server's next line.
    func receiveLine() -> LocalSocket.Received { socket.receiveLine(upTo: LocalSocket.replyBytes) }

    /// Returns whether everything was sent.
    func send(_ request: ControlRequest, _ secret: Secret?) -> Bool {
        // An empty secret cannot be distinguished from none.
        let secret = secret.flatMap { $0.count == 0 ? nil : $0 }
        guard send(ControlMessage(request, secretBytes: secret?.count)) else { return false }
        return secret.map { socket.send($0) } ?? true
    }

    /// Returns whether the whole line was sent.
    @discardableResult
    func send(_ value: some Encodable) -> Bool {
        guard let line = try? JSONEncoder().encode(value) else { return false }
        return sending.withLock { _ in socket.send(line: Array(line)) }
    }

    /// Returns whether everything was sent.
    func write(_ bytes: [UInt8]) -> Bool { sending.withLock { _ in socket.send(bytes) } }

    /// The peer may stop reading for an hour: events are lost for it then, and not the connection.
    func waitLongForReader() { socket.setSendTimeout(seconds: 3600) }

    /// For requests in HTTP.
    var page: PageServer.Connection {
        PageServer.Connection(
            readLine: { [self] in
                guard case .line(let line) = socket.receiveLine(upTo: LocalSocket.headLineBytes) else { return nil }
                return line
            }, readContent: { [self] in socket.receive(count: $0) }, write: { [self] in write($0) },
            isClosed: { [self] in isClosedByPeer },
            end: { [self] in
                endReceiving()
                endSending()
            })
    }

    /// Sends the reason for closing the connection.
    func refuse(_ reason: String) { send(Refusal(error: reason)) }

    /// A ``ControlReply`` that says nothing about the vault.
    private struct Refusal: Encodable {
        let error: String
        let locked = true
        let pid = getpid()
    }
}
