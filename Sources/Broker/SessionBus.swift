// SPDX-License-Identifier: Apache-2.0

import CountersignCDBus
import CountersignCryptography
import CountersignJSON
import Dispatch
import Glibc
import Synchronization

/// Calls the broker over the D-Bus session bus. Each call has a connection and a thread of its own, so that nothing is
/// left behind when the broker or the bus restarts; calls are rare. libdbus-1 is loaded by the first one.
package struct SessionBus: BrokerTransport {
    private let address: String?
    private let environment: String

    /// How long to wait for a broker that the bus has just started and that does not have its object yet.
    private static let startLimit = Duration.seconds(5)
    private static let queue = DispatchQueue(label: "countersign.broker", attributes: .concurrent)

    /// The bus of the user's session, as `environment` names it (D-Bus specification, "Well-known Message Bus
    /// Instances"). No bus is started.
    package init(environment: [String: String]) {
        if let address = environment["DBUS_SESSION_BUS_ADDRESS"], !address.isEmpty {
            self.address = address
        } else if let folder = environment["XDG_RUNTIME_DIR"], access("\(folder)/bus", F_OK) == 0 {
            address = "unix:path=\(Self.escaped("\(folder)/bus"))"
        } else {
            address = nil
        }
        self.environment = "DBUS_SESSION_BUS_ADDRESS is not set, and XDG_RUNTIME_DIR has no socket called bus"
    }

    /// A value in an address: bytes other than these are written as `%` and two digits.
    private static func escaped(_ path: String) -> String {
        path.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                String(Unicode.Scalar(byte))
            default:
                "-_/.\\*".utf8.contains(byte) ? String(Unicode.Scalar(byte)) : "%" + Hex.encode([byte])
            }
        }.joined()
    }

    package func reply(to call: BrokerCall, correlation: String) async throws(BrokerError) -> [UInt8] {
        guard let address else { throw .noBus(environment) }
        let cancellation = Cancellation()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Self.queue.async {
                    continuation.resume(
                        returning: Result { () throws(BrokerError) in
                            try Self.reply(to: call, correlation, at: address, cancellation)
                        })
                }
            }
        } onCancel: {
            cancellation.cancel()
        }
        return try result.get()
    }

    /// The same for a caller that may block. Does not end when a task is cancelled.
    package func replyBlocking(to call: BrokerCall, correlation: String) throws(BrokerError) -> [UInt8] {
        guard let address else { throw .noBus(environment) }
        return try Self.reply(to: call, correlation, at: address, Cancellation())
    }

    /// Blocks.
    private static func reply(
        to call: BrokerCall, _ correlation: String, at address: String, _ cancellation: Cancellation
    ) throws(BrokerError) -> [UInt8] {
        let start = ContinuousClock.now
        let deadline = call.limit.map { start + $0 }
        let busCall = BusCall(call, correlation, address, deadline, cancellation)
        while true {
            if let reply = try busCall.run() { return reply }
            // A broker that was just started may not have its object yet (seen by linux-entra-sso).
            guard ContinuousClock.now < min(start + startLimit, deadline ?? start + startLimit) else {
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
private struct BusCall {
    private let call: BrokerCall
    private let correlation: String
    private let address: String
    private let deadline: ContinuousClock.Instant?
    private let cancellation: Cancellation

    /// How often a waiting thread looks whether its call was cancelled.
    private static let pollMilliseconds: Int32 = 50

    init(
        _ call: BrokerCall, _ correlation: String, _ address: String, _ deadline: ContinuousClock.Instant?,
        _ cancellation: Cancellation
    ) {
        self.call = call
        self.correlation = correlation
        self.address = address
        self.deadline = deadline
        self.cancellation = cancellation
    }

    /// Nil if the broker is there, but not the object that has the methods.
    func run() throws(BrokerError) -> [UInt8]? {
        guard csn_dbus_is_available() == 1 else { throw .noLibrary }
        var reason = [CChar](repeating: 0, count: 256)
        guard let connection = csn_dbus_open(address, &reason, reason.count) else {
            let text = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw .noBus(PrintableText.longer(String(decoding: text, as: UTF8.self)))
        }
        defer { csn_dbus_close(connection) }
        // The bus accepts nothing before this call.
        do throws(BrokerError) {
            _ = try reply(
                on: connection,
                to: csn_dbus_call(
                    connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", nil,
                    nil, nil, CSN_DBUS_NO_LIMIT))
        } catch {
            guard error.code == .failed || error.code == .noMethod else { throw error }
            throw .noBus("it does not accept this program")
        }
        return try reply(
            on: connection,
            to: csn_dbus_call(
                connection, BrokerCall.busName, BrokerCall.objectPath, BrokerCall.interface, call.method.rawValue,
                BrokerCall.protocolVersion, correlation, call.request.serialized, CSN_DBUS_NO_LIMIT))
    }

    private func reply(on connection: OpaquePointer, to pending: OpaquePointer?) throws(BrokerError) -> [UInt8]? {
        guard let pending else { throw .noBus("it has closed the connection") }
        defer { csn_dbus_end_call(pending) }
        while true {
            if let message = csn_dbus_take_reply(pending) {
                defer { csn_dbus_release(message) }
                return try text(of: message)
            }
            if cancellation.isCancelled { throw .cancelled(call.method) }
            if let deadline, ContinuousClock.now >= deadline { throw .timedOut(call.method) }
            guard csn_dbus_run(connection, Self.pollMilliseconds) == 1 else {
                throw .noBus("it has closed the connection")
            }
        }
    }

    private func text(of message: OpaquePointer) throws(BrokerError) -> [UInt8]? {
        let text = csn_dbus_text(message)
        if let name = csn_dbus_error_name(message).map({ String(cString: $0) }) {
            if name == BrokerError.unknownObject { return nil }
            throw BrokerError(named: name, text.map { String(cString: $0) }, in: call.method)
        }
        guard let text else { throw .malformed(call.method, "it is not a string") }
        let count = strlen(text)
        guard count <= BrokerReply.maximumBytes else {
            throw .malformed(call.method, "it is longer than \(BrokerReply.maximumBytes) bytes")
        }
        return Array(UnsafeRawBufferPointer(start: text, count: count))
    }
}
