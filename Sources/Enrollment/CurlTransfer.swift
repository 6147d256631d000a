// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The state of one running call to an EST server.
final class CurlTransfer: CurlReceiver {
    /// The longest response body, in bytes.
    static let maximumBodyBytes = 1 << 20

    let body: RequestBody?
    /// libcurl's handle, while it runs.
    var handle: UnsafeMutableRawPointer?
    private var sockets: [Int32] = []
    private(set) var response = ESTResponse()
    /// The blank line after the head was received.
    private(set) var headIsWhole = false
    /// The number of 401 responses so far.
    private(set) var rejections = 0
    /// The first 401 response offered Bearer.
    private(set) var wasAskedForToken = false
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
        self.body = body
        super.init(tls: tls, cancellation: cancellation)
    }

    override func begins() {
        response = ESTResponse()
        headIsWhole = false
    }

    override func received(_ line: HeadLine) {
        switch line {
        case .status(let status):
            response = ESTResponse()
            headIsWhole = false
            response.status = status
            if status == 401 { rejections += 1 }
        case .field(let name, let value):
            response.fields.append((name, value))
            if rejections == 1, response.status == 401, name == "www-authenticate", Self.offersBearer(value) {
                wasAskedForToken = true
            }
        case .end: headIsWhole = true
        }
    }

    /// Whether a field offers Bearer, among other schemes or alone. Bearer in a quoted string counts, too, which only
    /// matters to the text of an error.
    private static func offersBearer(_ value: String) -> Bool {
        value.split { $0 == "," || $0 == " " }.contains { $0.lowercased() == "bearer" }
    }

    override func received(body bytes: UnsafeRawBufferPointer) -> Bool {
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
