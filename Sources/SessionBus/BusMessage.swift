// SPDX-License-Identifier: Apache-2.0

import CountersignCDBus
import Glibc

/// A message that was received. Its texts come from another program.
package final class BusMessage {
    private let message: OpaquePointer

    init(_ message: OpaquePointer) { self.message = message }

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

    /// The object that has sent a signal.
    var path: String? { csn_dbus_path(message).map { String(cString: $0) } }

    package func isSignal(_ name: String, of interface: String) -> Bool {
        csn_dbus_is_signal(message, interface, name) == 1
    }

    /// The arguments. Arrays of bytes are overwritten in the message.
    package private(set) lazy var values = BusValue.all(in: message)

    /// The argument with this index; nil if it is not a text.
    package func text(_ index: Int = 0) -> String? { index < values.count ? values[index].text : nil }

    /// The argument with this index; nil if it is not a UINT32.
    package func number(_ index: Int = 0) -> UInt32? { index < values.count ? values[index].number : nil }

    /// Whether the first argument is an array with this text.
    package func contains(_ text: String) -> Bool {
        if case .array(of: _, let elements) = values.first { elements.contains(.text(text)) } else { false }
    }

    /// The bytes of the first argument, without a copy elsewhere; nil if it is not a text.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        var first = csn_dbus_iterator()
        guard csn_dbus_begin_reading(message, &first) == 1, csn_dbus_type(&first) == BusValue.code("s"),
            let text = csn_dbus_read_text(&first)
        else { return nil }
        return try body(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }
}
