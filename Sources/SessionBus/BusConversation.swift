// SPDX-License-Identifier: Apache-2.0

/// Why a call has no reply.
enum BusCallError: Error, Equatable {
    /// The connection is lost.
    case lost
    /// There is no memory for the call.
    case unwritable
    /// Nothing has come before the deadline.
    case timedOut
    /// `org.freedesktop.DBus.Error.Failed`, and the text of the error, if it has one.
    case refused(String, String?)
}

/// Several calls in a row, each of which waits for its reply. Blocks until the deadline at most, unless the bus accepts
/// no connection or reads nothing.
final class BusConversation {
    private let connection: BusConnection
    private let deadline: ContinuousClock.Instant
    /// Signals that came while a reply was awaited.
    private var signals: [BusMessage] = []

    /// The object of a service and one of its interfaces.
    struct Target {
        let service: String
        let path: String
        let interface: String
    }

    private static let pollMilliseconds: Int32 = 50
    /// More signals than this are not kept: nobody but the services that were asked should send any.
    private static let mostSignals = 64

    /// `connection` is a new one.
    init(on connection: BusConnection, until deadline: ContinuousClock.Instant) throws(BusCallError) {
        self.connection = connection
        self.deadline = deadline
        _ = try reply(to: .hello)
    }

    /// Calls a method and returns the values of its reply.
    func call(_ method: String, of target: Target, _ arguments: [BusValue] = []) throws(BusCallError) -> [BusValue] {
        let call = BusCall(method, of: target.interface, at: target.path, to: target.service)
        for argument in arguments { call.append(argument) }
        return try reply(to: call)
    }

    /// Lets the bus deliver the signals of this object.
    func watch(_ target: Target) throws(BusCallError) {
        _ = try reply(
            to: .addMatch(
                "type='signal',sender='\(target.service)',path='\(target.path)',interface='\(target.interface)'"))
    }

    /// Waits for a signal of a watched object and returns its values.
    func signal(_ name: String, of target: Target) throws(BusCallError) -> [BusValue] {
        let owner = try reply(to: .owner(of: target.service)).first?.text
        while true {
            let message = signals.isEmpty ? try next() : signals.removeFirst()
            if message.isSignal(name, of: target.interface), message.path == target.path, message.sender == owner {
                return message.values
            }
        }
    }

    private func reply(to call: BusCall) throws(BusCallError) -> [BusValue] {
        guard call.isComplete else { throw .unwritable }
        guard let serial = connection.send(call) else { throw .lost }
        connection.flush()
        call.overwriteBytes()
        while true {
            let message = try next()
            guard message.replySerial == serial else {
                if signals.count < Self.mostSignals { signals.append(message) }
                continue
            }
            if let name = message.errorName { throw .refused(name, message.text()) }
            return message.values
        }
    }

    private func next() throws(BusCallError) -> BusMessage {
        while true {
            if let message = connection.next() { return message }
            guard ContinuousClock.now < deadline else { throw .timedOut }
            guard connection.run(milliseconds: Self.pollMilliseconds) else { throw .lost }
        }
    }
}
