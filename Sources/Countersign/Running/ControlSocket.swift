// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
package import CountersignCryptography
package import CountersignEvents
package import CountersignHome
package import CountersignPage
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization

/// The control socket of a home, `run/control.sock`. A running server accepts commands for its vault on it, from
/// processes of its own user only.
package final class ControlSocket: Sendable {
    /// The server's handlers for accepted requests. The closures are called on threads of their own, several at a time.
    package struct Service: Sendable {
        let answer: @Sendable (ControlRequest, Secret?) -> ControlReply
        /// Returns an ``OperationReply`` with the operation's result.
        let perform: @Sendable (any VaultOperation, Secret?, OperationDialogue) -> any Encodable & Sendable
        let events: EventBoard
        /// Answers requests in HTTP on the same socket; nil if there is no page.
        let page: PageServer?

        package init(
            answer: @escaping @Sendable (ControlRequest, Secret?) -> ControlReply,
            perform:
                @escaping @Sendable (any VaultOperation, Secret?, OperationDialogue) -> any Encodable & Sendable,
            events: EventBoard = EventBoard(), page: PageServer? = nil
        ) {
            self.answer = answer
            self.perform = perform
            self.events = events
            self.page = page
        }
    }

    private let path: String
    /// For a process that replaces this one. Non-blocking, because both accept connections for a moment.
    package let descriptor: Int32
    /// Closed by ``stop()``, which ends the thread that accepts connections.
    private let wake: (reading: Int32, writing: Int32)
    private let service: Service
    private let state = Mutex(State())

    private struct State {
        /// The connections that do not perform a long operation.
        var connections = 0
        /// Those of them that have not sent their next request, the one that has waited longest first.
        var silent: [ControlConnection] = []
        /// The long operations in progress.
        var longOperations = 0
        /// Those of them, and of the ones that have ended, whose reply has not been sent.
        var unsentReplies = 0
        var isStopped = false
    }

    /// The most connections at a time. Those that perform a long operation are not counted, so that they keep out
    /// neither `vault lock` nor a short operation. One that has not sent its request makes room for another.
    static let connections = 64
    /// The most ``VaultOperation/isLong`` operations at a time. A thread is blocked for each.
    static let longOperations = 128

    /// Listens until ``stop()``, on the socket `inherited` from the process that this one replaces if there is one.
    /// Throws `environment` if another server of this home is listening.
    package init(home: Home, inherited: Int32? = nil, service: Service) throws(CountersignError) {
        path = home.controlSocket.path
        try home.prepare()
        try HomeFile.makeFolder(HomeFile.folder(of: path), mode: 0o700)
        if let inherited {
            descriptor = inherited
        } else {
            if try LocalSocket.connect(to: path) != nil {
                throw CountersignError(
                    .environment, "another server of this home is listening on \(path)",
                    hint: "`countersign vault lock` and `unlock` reach only that server")
            }
            descriptor = try LocalSocket.listen(at: path)
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        var ends: [Int32] = [-1, -1]
        guard csn_pipe2(&ends) == 0 else { throw .system(errno, "cannot create a pipe") }
        wake = (ends[0], ends[1])
        self.service = service
        DispatchQueue(label: "countersign.control").async { [self] in acceptUntilStopped() }
    }

    /// Accepts no more commands, and waits a few seconds for the long operations, which notice it, to reply.
    ///
    /// `isHandedOver`: another process has the socket now.
    package func stop(isHandedOver: Bool = false) async {
        if !isHandedOver { _ = unlink(path) }
        let wasStopped = state.withLock { state in
            defer { state.isStopped = true }
            return state.isStopped
        }
        // Its other end sees that, and its thread closes the socket.
        if !wasStopped { close(wake.writing) }
        let deadline = ContinuousClock.now + .seconds(5)
        while state.withLock({ $0.unsentReplies > 0 }), ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    private func acceptUntilStopped() {
        defer {
            close(descriptor)
            close(wake.reading)
        }
        while true {
            var waiting = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake.reading, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waiting, 2, -1) > 0 || errno == EINTR else { return }
            if waiting[1].revents != 0 { return }
            let descriptor = accept(descriptor, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED || errno == EAGAIN { continue }
                if errno == EMFILE || errno == ENFILE {
                    sleep(1)
                    continue
                }
                return
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let connection = ControlConnection(LocalSocket(adopting: descriptor))
            guard begin(connection) else {
                connection.refuse("the server is busy with \(Self.connections) other commands")
                continue
            }
            DispatchQueue(label: "countersign.command").async { [self] in
                if serve(connection) { state.withLock { $0.connections -= 1 } }
            }
        }
    }

    /// Counts a new connection, which is silent until its first request, if need be in place of another silent one.
    private func begin(_ connection: ControlConnection) -> Bool {
        let (isAccepted, replaced) = state.withLock { state -> (Bool, ControlConnection?) in
            guard state.connections == Self.connections else {
                state.connections += 1
                state.silent.append(connection)
                return (true, nil)
            }
            guard !state.silent.isEmpty else { return (false, nil) }
            state.silent.append(connection)
            return (true, state.silent.removeFirst())
        }
        replaced?.endReceiving()
        return isAccepted
    }

    /// Receives the next request on a silent connection; nil if it had to make room for another meanwhile, and no
    /// longer counts.
    private func nextRequest(on connection: ControlConnection) -> ControlConnection.Received? {
        let received = connection.receive()
        return endSilence(of: connection) ? received : nil
    }

    /// Returns whether the connection still counts.
    private func endSilence(of connection: ControlConnection) -> Bool {
        state.withLock { state in
            let place = state.silent.firstIndex { $0 === connection }
            if let place { state.silent.remove(at: place) }
            return place != nil
        }
    }

    /// The connection no longer counts among the ``State/connections``.
    private func beginLongOperation() -> Bool {
        state.withLock { state in
            guard state.longOperations < Self.longOperations else { return false }
            state.longOperations += 1
            state.unsentReplies += 1
            state.connections -= 1
            return true
        }
    }

    /// A reply without a result.
    private typealias Notice = OperationReply<Done>

    /// Returns whether the connection still counts.
    private func serve(_ connection: ControlConnection) -> Bool {
        guard let peer = connection.peer, peer.user == getuid() else {
            let user = connection.peer.map { " and not of user \($0.user)" } ?? ""
            connection.refuse("the server accepts commands from processes of user \(getuid()) only\(user)")
            return endSilence(of: connection)
        }
        var isNew = true
        while true {
            if !isNew { state.withLock { $0.silent.append(connection) } }
            isNew = false
            guard let received = nextRequest(on: connection) else {
                connection.refuse("the server is busy with \(Self.connections) other commands")
                return false
            }
            switch received {
            case .nothing: return true
            case .malformed(let reason):
                connection.refuse("the request is malformed: \(reason)")
                return true
            case .request(.perform(let operation), let secret):
                let dialogue = OperationDialogue(
                    process: peer.process, report: { connection.send(Notice.progress($0)) },
                    isAbandoned: { [self] in isAbandoned(connection) },
                    pageEnd: {
                        guard connection.waitForInput(seconds: 0), !connection.isClosedByPeer,
                            case .request(.pageEnded(let end), _) = connection.receive()
                        else { return nil }
                        return end
                    },
                    opened: { connection.send(Notice.opened(address: $0, token: $1)) },
                    waitForEnd: { [self] in
                        // The client has nothing to say before its end, so input ends the proxy, too.
                        while !isAbandoned(connection), !connection.waitForInput(seconds: 1) {}
                    })
                guard operation.isLong else {
                    guard connection.send(service.perform(operation, secret, dialogue)) else { return true }
                    continue
                }
                guard beginLongOperation() else {
                    guard connection.send(Notice.busy(count: Self.longOperations)) else { return true }
                    continue
                }
                let reply = service.perform(operation, secret, dialogue)
                // This connection may end with the reply, so nothing is checked when it counts again. The reply's
                // receiver may start another operation, for which there must be room.
                state.withLock { state in
                    state.longOperations -= 1
                    state.connections += 1
                }
                let isSent = connection.send(reply)
                state.withLock { $0.unsentReplies -= 1 }
                guard isSent else { return true }
            // The operation has ended meanwhile.
            case .request(.pageEnded, _): continue
            case .request(.events, _):
                return atLength(connection, refuse: connection.refuse) { self.streamEvents(to: connection) }
            case .http(let line):
                guard let page = service.page else {
                    connection.refuse("this program has no page")
                    return true
                }
                return atLength(connection, refuse: { page.refuse($0, on: connection.page) }) {
                    connection.waitLongForReader()
                    page.serve(line, on: connection.page)
                }
            case .request(let request, let secret):
                guard connection.send(service.answer(request, secret)) else { return true }
            }
        }
    }

    /// Serves a reader, who may stay for days, among the long operations. Returns whether the connection still counts.
    private func atLength(
        _ connection: ControlConnection, refuse: (String) -> Void, _ serve: () -> Void
    ) -> Bool {
        guard beginLongOperation() else {
            refuse("the server is busy with \(Self.longOperations) other readers")
            return true
        }
        // No reply is owed to a reader when the server stops.
        state.withLock { $0.unsentReplies -= 1 }
        serve()
        state.withLock { $0.longOperations -= 1 }
        return false
    }

    /// Between two looks at whether the reader is still there.
    private static let readerSilence = DispatchTimeInterval.seconds(1)

    private func streamEvents(to connection: ControlConnection) {
        connection.waitLongForReader()
        let reader = service.events.reader()
        defer { service.events.remove(reader) }
        while let batch = reader.next(timeout: Self.readerSilence), !isAbandoned(connection) {
            guard batch.isEmpty || connection.write(batch.flatMap(\.line)) else { return }
        }
    }

    private func isAbandoned(_ connection: ControlConnection) -> Bool {
        connection.isClosedByPeer || state.withLock { $0.isStopped }
    }

    // MARK: Client

    /// How long a server may take to lock or unlock its vault: it derives a key and reads the home.
    private static let lockSeconds = 30

    /// Sends a request to the running server of a home. Throws `notRunning` without a running server, and `refused`
    /// with the server's reason.
    package static func ask(
        _ request: ControlRequest, secret: Secret? = nil, of home: Home
    ) throws -> ControlReply {
        let connection = try connect(to: home)
        // A server that refuses the connection sends the reason before it has read the request.
        _ = connection.send(request, secret)
        var limit = Self.lockSeconds
        if case .status = request { limit = LocalSocket.timeoutSeconds }
        guard connection.waitForInput(seconds: limit),
            case .line(let line) = connection.receiveLine(),
            let reply = try? JSONDecoder().decode(ControlReply.self, from: Data(line))
        else {
            throw noAnswer(of: home)
        }
        if let error = reply.error {
            throw CountersignError(
                reply.isWrongPassphrase == true ? .wrongPassphrase : .refused, error, hint: reply.hint)
        }
        return reply
    }

    /// Whether the running server of a home answers on a new connection within the time limits of ``LocalSocket``.
    static func responds(_ home: Home) -> Bool {
        guard let connection = try? connectIfRunning(to: home) else { return false }
        _ = connection.send(.status, nil)
        return connection.receiveLine() != .nothing
    }

    static func connect(to home: Home) throws(CountersignError) -> ControlConnection {
        guard let connection = try connectIfRunning(to: home) else {
            throw CountersignError(
                .notRunning, "no server of \(home.path) is running",
                hint: "start one with `countersign serve`")
        }
        return connection
    }

    /// Returns nil if no server of the home is running. Throws `refused` if it belongs to another user.
    static func connectIfRunning(to home: Home) throws(CountersignError) -> ControlConnection? {
        guard let socket = try LocalSocket.connect(to: home.controlSocket.path) else { return nil }
        // Otherwise, a user who can replace the socket would receive secrets.
        guard let peer = socket.peer, peer.user == getuid() else {
            throw CountersignError(.refused, "the server of \(home.path) belongs to another user")
        }
        return ControlConnection(socket)
    }
}
