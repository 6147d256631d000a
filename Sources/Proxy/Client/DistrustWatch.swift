// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignTLS
import NIOConcurrencyHelpers
import NIOPosix

/// The program at the other end of a client connection, which a thread looks for.
final class ClientProgram: Sendable {
    struct Found: Sendable {
        let pid: Int32
        let name: String?
    }

    private let process: ClientProcess
    private let found = NIOLockedValueBox<Found?>(nil)

    init(_ process: ClientProcess) { self.process = process }

    /// Looks for it while it runs. Reads many files, so it must not run on an event loop.
    @discardableResult
    func find() -> Found? {
        if let known = found.withLockedValue({ $0 }) { return known }
        guard let pid = process.pid ?? process.socketInode.flatMap({ ProcessOfSocket.find(inode: $0) }) else {
            // Meanwhile another thread may have found it.
            return found.withLockedValue { $0 }
        }
        let program = Found(pid: pid, name: ProcessOfSocket.name(of: pid))
        found.withLockedValue { $0 = program }
        return program
    }
}

/// Watches whether a client shows that it does not trust the local CA: it leaves during its handshake, or after it
/// without a request.
struct DistrustWatch {
    /// Nil until the client begins a TLS handshake.
    private var program: ClientProgram?
    /// Whether a client that was shown a certificate of the local CA has sent nothing since the handshake.
    private(set) var hasOnlyShakenHands = false

    /// The client's handshake begins. Identifies its program now, because it may end after that, if an observer wants
    /// to know of each client. Only one search runs at a time.
    mutating func handshakeBegan(_ session: ClientSession, _ services: LoopServices) {
        let shared = services.shared
        let program = ClientProgram(session.process)
        self.program = program
        guard shared.observer != nil, !shared.isIdentifying.exchange(true, ordering: .relaxed) else { return }
        NIOThreadPool.singleton.submit { _ in
            program.find()
            shared.isIdentifying.store(false, ordering: .relaxed)
        }
    }

    mutating func handshakeCompleted() { hasOnlyShakenHands = true }

    /// The client has sent something after the handshake.
    mutating func received() { hasOnlyShakenHands = false }

    /// The client has left: `isInHandshake`, or perhaps before its first request. Reports this, with the client's
    /// program. Does not report it if the certificate stands in for one that does not verify, which no client is
    /// supposed to trust.
    mutating func left(
        _ sign: ClientDistrust.Sign, isInHandshake: Bool, _ session: ClientSession, _ services: LoopServices
    ) {
        guard isInHandshake || hasOnlyShakenHands, let site = session.connectSite, site.pin == nil, let program else {
            return
        }
        let sign = !isInHandshake && sign == .silence ? .noRequest : sign
        hasOnlyShakenHands = false
        let origin = site.origin
        let shared = services.shared
        // The report is in time for the last lines of `exec`, which are printed when all searches have ended.
        _ = shared.lookups.run(on: services.loop) {
            let found = program.find()
            shared.tellDistrust(
                ClientDistrust(origin: origin, program: found?.name, pid: found?.pid, sign: sign))
        }
    }
}

extension ClientDistrust.Sign {
    /// Nil for an error that says nothing of trust.
    init?(_ error: any Error) {
        switch (error as? TLSError)?.code {
        case .peerAlert(let number, let name):
            switch number {
            // bad_certificate, unsupported_certificate, certificate_revoked, certificate_expired, certificate_unknown,
            // unknown_ca
            case 42...46, 48: self = .alert(name)
            case 120: self = .noApplicationProtocol
            default: return nil
            }
        // The second is an error of the socket, such as a reset.
        case .truncated, nil: self = .silence
        default: return nil
        }
    }
}
