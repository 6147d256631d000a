// SPDX-License-Identifier: Apache-2.0

import CountersignCDBus

/// A method call. Its arguments are appended in order.
package final class BusCall {
    let message: OpaquePointer?
    private(set) var isComplete = true
    private var arguments = csn_dbus_iterator()

    /// The names and the path must be valid: libdbus ends the process otherwise.
    package init(_ method: String, of interface: String, at path: String, to name: String) {
        message = csn_dbus_method_call(name, path, interface, method)
        if let message { csn_dbus_begin_writing(message, &arguments) }
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

    /// Asks for the unique name of the connection that owns a name.
    package static func owner(of name: String) -> BusCall {
        let call = BusCall(toBus: "GetNameOwner")
        call.append(name)
        return call
    }

    package func append(_ value: BusValue) {
        guard message != nil, value.write(to: &arguments) else { return isComplete = false }
    }

    package func append(_ text: String) { append(.text(text)) }

    /// A text that ends with a NUL. libdbus copies it into its message, and does not overwrite that.
    package func append(bytes: UnsafeRawBufferPointer) {
        let text = bytes.bindMemory(to: CChar.self).baseAddress
        guard message != nil, csn_dbus_write_text(&arguments, BusValue.code("s"), text) == 1 else {
            return isComplete = false
        }
    }

    /// Overwrites the arrays of bytes in the message, which must have been written to the bus.
    func overwriteBytes() { if let message { _ = BusValue.all(in: message) } }
}
