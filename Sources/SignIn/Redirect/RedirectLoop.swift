// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The connections of a redirect listener, on one thread.
struct RedirectLoop {
    private let sockets: RedirectSockets
    private let address: RedirectAddress
    private let admission: RedirectListener.Admission
    private let wake: Int32
    private let judge: (String) -> RedirectVerdict
    private var connections: [Connection] = []
    private var response: String?
    /// The page that the browser was sent to.
    private var page: RedirectPage?
    private var hasShownPage = false
    private var hasReportedRefusal = false

    /// More connections than these end the oldest one.
    static let maximumConnections = 16
    /// How long a connection may take for its request, and to close after the response.
    private static let requestLimit = Duration.seconds(10)
    private static let closingLimit = Duration.seconds(1)

    private struct Connection {
        let descriptor: Int32
        var input: RedirectInput
        var deadline: ContinuousClock.Instant
        /// It belongs to the person.
        let isAdmitted: Bool
        /// The response was sent. Further bytes are discarded until the client closes the connection: closing it
        /// earlier could discard the response.
        var isAnswered = false
    }

    init(
        _ sockets: RedirectSockets, _ address: RedirectAddress, _ admission: RedirectListener.Admission, wake: Int32,
        judge: @escaping (String) -> RedirectVerdict
    ) {
        self.sockets = sockets
        self.address = address
        self.admission = admission
        self.wake = wake
        self.judge = judge
    }

    mutating func waitForResponse(within limit: Duration) -> Result<String, SignInError> {
        let deadline = ContinuousClock.now + limit
        while response == nil {
            guard ContinuousClock.now < deadline else {
                return .failure(.timedOut(after: limit))
            }
            guard turn(until: deadline) else { return .failure(SignInError(.cancelled, "the sign-in was cancelled")) }
        }
        return response.map { .success($0) } ?? .failure(SignInError(.cancelled, "the sign-in was cancelled"))
    }

    /// Serves the last page, then closes everything.
    mutating func showPage(within limit: Duration) {
        let deadline = ContinuousClock.now + limit
        while page != nil, !hasShownPage || connections.contains(where: \.isAnswered),
            ContinuousClock.now < deadline, turn(until: deadline)
        {}
        for connection in connections { close(connection.descriptor) }
        connections = []
    }

    /// Waits for the next events and handles them. Returns false when the wait was ended.
    private mutating func turn(until deadline: ContinuousClock.Instant) -> Bool {
        var waiting = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
        for descriptor in sockets.descriptors + connections.map(\.descriptor) {
            waiting.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        }
        let next = connections.map(\.deadline).reduce(deadline, min)
        guard poll(&waiting, nfds_t(waiting.count), Self.milliseconds(until: next)) >= 0 || errno == EINTR else {
            return false
        }
        if waiting[0].revents != 0 { return false }
        let isReady = Set(waiting.dropFirst().filter { $0.revents != 0 }.map(\.fd))
        let now = ContinuousClock.now
        for index in connections.indices.reversed() {
            let isOpen = !isReady.contains(connections[index].descriptor) || read(index)
            if !isOpen || connections[index].deadline < now { remove(index) }
        }
        for descriptor in sockets.descriptors where isReady.contains(descriptor) { accept(on: descriptor) }
        return true
    }

    private static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
        let (seconds, attoseconds) = (deadline - ContinuousClock.now).components
        return Int32(clamping: max(0, seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1))
    }

    private mutating func accept(on descriptor: Int32) {
        let accepted = Glibc.accept(descriptor, nil, nil)
        guard accepted >= 0 else { return }
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        _ = fcntl(accepted, F_SETFL, O_NONBLOCK)
        let (isAdmitted, owner) = admission.admits(accepted)
        if !isAdmitted, !hasReportedRefusal {
            hasReportedRefusal = true
            admission.refused(owner)
        }
        if connections.count >= Self.maximumConnections {
            // Other users cannot push out the person's browser.
            guard let oldest = connections.firstIndex(where: { !$0.isAdmitted }) ?? (isAdmitted ? 0 : nil) else {
                close(accepted)
                return
            }
            remove(oldest)
        }
        connections.append(
            Connection(
                descriptor: accepted, input: RedirectInput(address, port: sockets.port),
                deadline: .now + Self.requestLimit, isAdmitted: isAdmitted))
    }

    private mutating func remove(_ index: Int) {
        close(connections[index].descriptor)
        connections.remove(at: index)
    }

    /// Reads the available bytes. Returns whether the connection is still open.
    private mutating func read(_ index: Int) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 8 << 10)
        let count = recv(connections[index].descriptor, &chunk, chunk.count, 0)
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        guard count > 0 else { return false }
        guard !connections[index].isAnswered else { return true }
        guard let request = connections[index].input.received(chunk.prefix(count)) else { return true }
        return answer(request, on: index)
    }

    /// A response is shorter than any socket's buffer, so that one call sends it. Returns whether it did.
    private mutating func answer(_ request: RedirectRequest, on index: Int) -> Bool {
        let bytes = connections[index].isAdmitted ? reply(to: request) : RedirectPage.refusal(403)
        let descriptor = connections[index].descriptor
        let sent = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        shutdown(descriptor, Int32(SHUT_WR))
        connections[index].isAnswered = true
        connections[index].deadline = .now + Self.closingLimit
        return sent == bytes.count
    }

    private mutating func reply(to request: RedirectRequest) -> [UInt8] {
        switch request {
        case .refused(let status): return RedirectPage.refusal(status)
        case .page(let wanted):
            guard wanted == page else { return RedirectPage.refusal(404) }
            hasShownPage = true
            return wanted.response
        case .response where response != nil: return RedirectPage.refusal(404)
        case .response(let parameters):
            switch judge(parameters) {
            case .foreign: return RedirectPage.refusal(400)
            case .accepted: page = .signedIn
            case .failed: page = .failed
            }
            response = parameters
            return page?.redirect ?? []
        }
    }
}
