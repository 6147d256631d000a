// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The state of one running call to a server, for libcurl's callbacks. Used on one thread, except for the cancellation.
final class CurlTransfer {
    /// The longest response body, in bytes.
    static let maximumBodyBytes = 1 << 20

    let tls: ServerTLS
    let body: RequestBody?
    let cancellation: Cancellation
    /// libcurl's handle, while it runs.
    var handle: UnsafeMutableRawPointer?
    private var sockets: [Int32] = []
    private(set) var response = ESTResponse()
    /// The blank line after the head was received.
    private(set) var headIsWhole = false
    /// The number of 401 responses so far.
    private(set) var rejections = 0
    /// The reason why a callback stopped the transfer.
    private(set) var stop: Stop?

    enum Stop: Equatable {
        case bodyTooLong
        /// The server sent a second 401.
        case credentialRejected
        /// The connection's kind of link does not match the announced length of the request.
        case otherLink(ConnectionLink.Kind)
        case noLink
        case requestNotMade(String)
        /// The server closed the connection after it received the identity.
        case endedEarly
        case cancelled
    }

    init(tls: ServerTLS, body: RequestBody?, cancellation: Cancellation) {
        self.tls = tls
        self.body = body
        self.cancellation = cancellation
    }

    /// Handles one line of a head, including its line break.
    func received(headLine: UnsafeRawBufferPointer) {
        var line = String(decoding: headLine, as: UTF8.self)[...]
        while let last = line.unicodeScalars.last, last == "\r" || last == "\n" { line.unicodeScalars.removeLast() }
        if line.hasPrefix("HTTP/") {
            response = ESTResponse()
            headIsWhole = false
            let status = line.split(separator: " ", maxSplits: 2).dropFirst().first
            response.status = status.flatMap { Int($0) } ?? 0
            if response.status == 401 { rejections += 1 }
        } else if line.isEmpty {
            headIsWhole = true
        } else if let colon = line.firstIndex(of: ":") {
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            response.fields.append((line[..<colon].lowercased(), String(value)))
        }
    }

    /// Handles a piece of the body. Returns false to stop the transfer.
    func received(body bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= Self.maximumBodyBytes - response.body.count else {
            stop = .bodyTooLong
            return false
        }
        response.body += bytes
        return true
    }

    /// Called when the connection is established, before the request is sent. Returns false to stop the transfer.
    func requestBegins(ssl: OpaquePointer?, localPort: Int32) -> Bool {
        stop = decide(ssl: ssl, localPort: localPort)
        return stop == nil
    }

    /// Remembers a socket that this transfer's connection may use.
    func made(socket: Int32) { sockets.append(socket) }

    private func decide(ssl: OpaquePointer?, localPort: Int32) -> Stop? {
        if cancellation.isCancelled { return .cancelled }
        if rejections > 1 { return .credentialRejected }
        guard let ssl else { return .noLink }
        if tls.wasAskedForIdentity, !tls.hasVerdict {
            tls.verdictCame()
            if let socket = sockets.last(where: { IdentityRejectionCheck.localPort(of: $0) == localPort }),
                !IdentityRejectionCheck.isAccepted(ssl, socket: socket)
            {
                return .endedEarly
            }
        }
        guard let body, let kind = body.linkKind else { return nil }
        guard let link = ConnectionLink(of: ssl) else { return .noLink }
        guard link.kind == kind else { return .otherLink(link.kind) }
        do {
            try body.link(to: link)
            return nil
        } catch {
            return .requestNotMade(error.detail)
        }
    }
}

/// Cancels a running call.
final class Cancellation: Sendable {
    private let flag = Atomic(false)

    var isCancelled: Bool { flag.load(ordering: .relaxed) }

    func cancel() { flag.store(true, ordering: .relaxed) }
}
