// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignSessionBus
import Dispatch
import Glibc
import Synchronization

/// Calls the broker over the D-Bus session bus. Each call has a connection and a thread of its own, so that nothing is
/// left behind when the broker or the bus restarts; calls are rare. A call with a limit ends with it, even if the bus
/// accepts no connection. libdbus-1 is loaded by the first one.
package struct SessionBus: BrokerTransport {
    private let address: String?

    /// The bus of the user's session, as `environment` names it.
    package init(environment: [String: String]) { address = BusAddress.session(in: environment) }

    package func reply(to call: BrokerCall, correlation: String) async throws(BrokerError) -> [UInt8] {
        guard let address else { throw .noBus(BusAddress.reasonForNone) }
        let attempt = BusAttempt(call, correlation, address)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                attempt.start { continuation.resume(returning: $0) }
            }
        } onCancel: {
            attempt.cancel()
        }
        return try result.get()
    }

    /// The same for a caller that may block. Does not end when a task is cancelled.
    package func replyBlocking(to call: BrokerCall, correlation: String) throws(BrokerError) -> [UInt8] {
        guard let address else { throw .noBus(BusAddress.reasonForNone) }
        let done = DispatchSemaphore(value: 0)
        let result = Mutex<Result<[UInt8], BrokerError>>(.failure(.timedOut(call.method)))
        BusAttempt(call, correlation, address).start { outcome in
            result.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        return try result.withLock { $0 }.get()
    }
}

/// One call on a thread of its own, with an end in time: libdbus cannot be stopped while it connects, and a bus that
/// accepts no connection blocks it for as long as that bus lives. The thread is left behind then.
private final class BusAttempt: Sendable {
    typealias Outcome = Result<[UInt8], BrokerError>

    private let call: BrokerCall
    private let correlation: String
    private let address: String
    private let cancellation = Cancellation()
    private let state = Mutex(State())

    private struct State {
        var done: (@Sendable (Outcome) -> Void)?
        var isConnected = false
    }

    private static let calls = DispatchQueue(label: "countersign.broker", attributes: .concurrent)
    private static let deadlines = DispatchQueue(label: "countersign.broker.deadlines")
    private static let running = Atomic(0)
    /// The most threads at a time. Without a limit, a bus that hangs would use up the system's threads.
    private static let threadLimit = 32
    /// How long to wait for a broker that the bus has just started and that does not have its object yet.
    private static let startLimit = Duration.seconds(5)
    /// How long a connection may take if the call has no limit.
    private static let connectionLimit = Duration.seconds(20)
    /// How much later than the thread's own limit the deadline is: the thread's error is more precise.
    private static let grace = Duration.milliseconds(500)

    init(_ call: BrokerCall, _ correlation: String, _ address: String) {
        self.call = call
        self.correlation = correlation
        self.address = address
    }

    /// `done` is called once, on any thread.
    func start(_ done: @escaping @Sendable (Outcome) -> Void) {
        state.withLock { $0.done = done }
        if cancellation.isCancelled { return end(.failure(.cancelled(call.method))) }
        guard Self.running.add(1, ordering: .relaxed).newValue <= Self.threadLimit else {
            Self.running.subtract(1, ordering: .relaxed)
            return end(.failure(.tooManyCalls))
        }
        Self.calls.async { [self] in
            let outcome = Outcome { () throws(BrokerError) in try reply() }
            Self.running.subtract(1, ordering: .relaxed)
            end(outcome)
        }
        let limit = call.limit ?? Self.connectionLimit
        let seconds = (limit + Self.grace) / Duration.seconds(1)
        Self.deadlines.asyncAfter(deadline: .now() + seconds) { [weak self] in self?.limitReached() }
    }

    /// Ends the call at once. A thread that waits for a reply ends soon after that.
    func cancel() {
        cancellation.cancel()
        end(.failure(.cancelled(call.method)))
    }

    private func limitReached() {
        if call.limit == nil, state.withLock({ $0.isConnected }) { return }
        cancellation.cancel()
        end(.failure(.timedOut(call.method)))
    }

    private func end(_ outcome: Outcome) {
        let done = state.withLock { state in
            defer { state.done = nil }
            return state.done
        }
        if let done { return done(outcome) }
        // The reply arrived too late.
        if case .success(var bytes) = outcome { bytes.wipe() }
    }

    /// Blocks.
    private func reply() throws(BrokerError) -> [UInt8] {
        let start = ContinuousClock.now
        let deadline = call.limit.map { start + $0 }
        let connected = ConnectedCall(call, correlation, address, deadline, cancellation) { [self] in
            state.withLock { $0.isConnected = true }
        }
        while true {
            if let reply = try connected.run() { return reply }
            // A broker that was just started may not have its object yet (seen by linux-entra-sso).
            guard ContinuousClock.now < min(start + Self.startLimit, deadline ?? start + Self.startLimit) else {
                throw .noMethod(call.method)
            }
            usleep(100_000)
        }
    }
}

/// Set from any thread.
private final class Cancellation: Sendable {
    private let flag = Atomic(false)

    func cancel() { flag.store(true, ordering: .releasing) }

    var isCancelled: Bool { flag.load(ordering: .acquiring) }
}

/// One call on a connection of its own.
private struct ConnectedCall {
    private let call: BrokerCall
    private let correlation: String
    private let address: String
    private let deadline: ContinuousClock.Instant?
    private let cancellation: Cancellation
    /// Called once the bus has accepted the connection.
    private let connected: () -> Void

    /// How often a waiting thread looks whether its call was cancelled.
    private static let pollMilliseconds: Int32 = 50

    init(
        _ call: BrokerCall, _ correlation: String, _ address: String, _ deadline: ContinuousClock.Instant?,
        _ cancellation: Cancellation, connected: @escaping () -> Void
    ) {
        self.call = call
        self.correlation = correlation
        self.address = address
        self.deadline = deadline
        self.cancellation = cancellation
        self.connected = connected
    }

    /// Nil if the broker is running, but the object with the methods does not exist yet.
    func run() throws(BrokerError) -> [UInt8]? {
        let connection: BusConnection
        do throws(BusError) {
            connection = try BusConnection(address)
        } catch {
            switch error {
            case .noLibrary: throw .noLibrary
            case .unreachable(let reason): throw .noBus(reason)
            }
        }
        connected()
        do throws(BrokerError) {
            _ = try reply(on: connection, to: connection.send(.hello))
        } catch {
            guard error.code == .failed || error.code == .noMethod else { throw error }
            throw .noBus("it does not accept this program")
        }
        return try reply(on: connection, to: connection.send(brokerCall))
    }

    private var brokerCall: BusCall {
        let message = BusCall(
            call.method.rawValue, of: BrokerCall.interface, at: BrokerCall.objectPath, to: BrokerCall.busName)
        message.append(BrokerCall.protocolVersion)
        message.append(correlation)
        call.request.serializedSecret.withBytes { message.append(bytes: $0) }
        return message
    }

    private func reply(on connection: BusConnection, to serial: UInt32?) throws(BrokerError) -> [UInt8]? {
        guard let serial else { throw .noBus("it has closed the connection") }
        while true {
            while let message = connection.next() {
                if message.replySerial == serial { return try text(of: message) }
            }
            if cancellation.isCancelled { throw .cancelled(call.method) }
            if let deadline, ContinuousClock.now >= deadline { throw .timedOut(call.method) }
            guard connection.run(milliseconds: Self.pollMilliseconds) else {
                throw .noBus("it has closed the connection")
            }
        }
    }

    private func text(of message: BusMessage) throws(BrokerError) -> [UInt8]? {
        if let name = message.errorName {
            if name == BrokerError.unknownObject { return nil }
            throw BrokerError(named: name, message.text(), in: call.method)
        }
        let text = try message.withBytes { (bytes) throws(BrokerError) -> [UInt8] in
            guard bytes.count <= BrokerReply.maximumBytes else {
                throw .malformed(call.method, "it is longer than \(BrokerReply.maximumBytes) bytes")
            }
            return Array(bytes)
        }
        guard let text else { throw .malformed(call.method, "it is not a string") }
        return text
    }
}
