// SPDX-License-Identifier: Apache-2.0

import CountersignCDBus
import CountersignCryptography
import Glibc

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

/// A method call. Its arguments are appended in order.
package final class BusCall {
    fileprivate let message: OpaquePointer?
    fileprivate private(set) var isComplete = true

    package init(_ method: String, of interface: String, at path: String, to name: String) {
        message = csn_dbus_method_call(name, path, interface, method)
    }

    deinit { if let message { csn_dbus_release(message) } }

    private static let bus = "org.freedesktop.DBus"

    private convenience init(toBus method: String) {
        self.init(method, of: Self.bus, at: "/org/freedesktop/DBus", to: Self.bus)
    }

    package static var hello: BusCall { BusCall(toBus: "Hello") }

    /// Asks for the signals that a rule describes (D-Bus specification, "Match Rules").
    package static func addMatch(_ rule: String) -> BusCall {
        let call = BusCall(toBus: "AddMatch")
        call.append(rule)
        return call
    }

    /// A NUL in the text ends it.
    package func append(_ text: String) { append { csn_dbus_append_string($0, text) } }

    /// A text that ends with a NUL. libdbus copies it into its message, and does not overwrite that.
    package func append(bytes: UnsafeRawBufferPointer) {
        append { csn_dbus_append_string($0, bytes.bindMemory(to: CChar.self).baseAddress) }
    }

    package func append(_ number: UInt32) {
        append { message in withUnsafePointer(to: number) { csn_dbus_append(message, CChar(bitPattern: 0x75), $0) } }
    }

    package func append(_ number: Int32) {
        append { message in withUnsafePointer(to: number) { csn_dbus_append(message, CChar(bitPattern: 0x69), $0) } }
    }

    /// An argument of type `as`.
    package func append(_ texts: [String]) {
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        append { csn_dbus_append_strings($0, copies.map { UnsafePointer($0) }, Int32(copies.count)) }
    }

    /// An argument of type `a{sv}` with one entry.
    package func append(_ key: String, _ value: UInt8) { append { csn_dbus_append_byte_entry($0, key, value) } }

    private func append(_ body: (OpaquePointer) -> Int32) {
        guard let message, body(message) != 0 else { return isComplete = false }
    }
}

/// A message that was received. Its texts come from another program.
package final class BusMessage {
    private let message: OpaquePointer

    fileprivate init(_ message: OpaquePointer) { self.message = message }

    deinit { csn_dbus_release(message) }

    /// The number of the call that this replies to; nil if it is not a reply.
    package var replySerial: UInt32? {
        let serial = csn_dbus_reply_serial(message)
        return serial == 0 ? nil : serial
    }

    /// `org.freedesktop.DBus.Error.Failed`; nil if it is not an error.
    package var errorName: String? { csn_dbus_error_name(message).map { String(cString: $0) } }

    /// The unique name of the connection that has sent it, which the bus has checked.
    package var sender: String? { csn_dbus_sender(message).map { String(cString: $0) } }

    package func isSignal(_ name: String, of interface: String) -> Bool {
        csn_dbus_is_signal(message, interface, name) == 1
    }

    /// The argument with this index; nil if it is not a text.
    package func text(_ index: Int = 0) -> String? { csn_dbus_text(message, Int32(index)).map { String(cString: $0) } }

    /// The bytes of the first argument, without a copy elsewhere; nil if it is not a text.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard let text = csn_dbus_text(message, 0) else { return nil }
        return try body(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }

    /// The argument with this index; nil if it is not a UINT32.
    package func number(_ index: Int = 0) -> UInt32? {
        var number: UInt32 = 0
        return csn_dbus_number(message, Int32(index), &number) == 1 ? number : nil
    }

    /// Whether the first argument is an array with this text.
    package func contains(_ text: String) -> Bool { csn_dbus_contains(message, text) == 1 }
}
