// SPDX-License-Identifier: Apache-2.0

import CountersignCDBus
import CountersignCryptography

/// Why there is no connection to a bus.
package enum BusError: Error, Equatable {
    /// libdbus-1 is not installed.
    case noLibrary
    /// With the reason, printable and shortened.
    case unreachable(String)
}

/// A connection of its own to a bus, for one thread at a time. libdbus-1 is loaded by the first one. The first call
/// must be ``BusCall/hello``: the bus accepts nothing before.
package final class BusConnection {
    private let connection: OpaquePointer

    /// Blocks for as long as the bus does not accept the connection.
    package init(_ address: String) throws(BusError) {
        guard csn_dbus_is_available() == 1 else { throw .noLibrary }
        var reason = [CChar](repeating: 0, count: 256)
        guard let connection = csn_dbus_open(address, &reason, reason.count) else {
            let text = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw .unreachable(PrintableText.longer(String(decoding: text, as: UTF8.self)))
        }
        self.connection = connection
    }

    deinit { csn_dbus_close(connection) }

    /// The socket, to wait until the bus has sent something; -1 if there is none.
    package var descriptor: Int32 { csn_dbus_descriptor(connection) }

    /// Sends a call soon. Returns the number that its reply has; nil if the connection is lost.
    package func send(_ call: BusCall) -> UInt32? {
        guard let message = call.message, call.isComplete else { return nil }
        let serial = csn_dbus_send(connection, message)
        return serial == 0 ? nil : serial
    }

    /// Waits until all calls are written.
    package func flush() { csn_dbus_flush(connection) }

    /// Reads and writes for at most this time, and returns early. False once the connection is lost.
    package func run(milliseconds: Int32) -> Bool { csn_dbus_run(connection, milliseconds) == 1 }

    /// The next message that ``run(milliseconds:)`` has read.
    package func next() -> BusMessage? { csn_dbus_next(connection).map { BusMessage($0) } }
}
