// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why the broker did not perform a call. Text of the broker is printable and shortened, and never secret.
package struct BrokerError: CodedError {
    package enum Code: Equatable, Sendable {
        /// libdbus-1 is not installed.
        case noLibrary
        /// There is no session bus, or it cannot be reached.
        case noBus
        /// No program on the bus is the broker, and none can be started.
        case noBroker
        /// The broker does not have the method.
        case noMethod
        /// The broker did not reply in time.
        case timedOut
        /// The caller has cancelled the call.
        case cancelled
        /// The reply is not one of the documented forms.
        case malformedReply
        /// The broker reports an error.
        case failed
        /// The broker has no account, or not the requested one.
        case noAccount
    }

    package let code: Code
    package let detail: String
    package let hint: String?
    /// The detail without text of the broker, which may name an account: for responses.
    package let summary: String

    /// Without a `summary`, the detail.
    package init(_ code: Code, _ detail: String, summary: String? = nil, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.summary = summary ?? detail
        self.hint = hint
    }

    static let noLibrary = BrokerError(
        .noLibrary, "the identity broker is reached over D-Bus, and libdbus-1 is not installed",
        hint: "install it (Debian: libdbus-1-3)")

    static func noBus(_ reason: String) -> BrokerError {
        BrokerError(
            .noBus, "there is no session bus for the identity broker: \(reason)",
            hint: "run this in the desktop session, or set DBUS_SESSION_BUS_ADDRESS")
    }

    static let noBroker = BrokerError(
        .noBroker, "there is no identity broker on the session bus (\(BrokerCall.busName))",
        hint: "install the identity broker of the organisation, and sign in to it")

    static func noMethod(_ method: BrokerCall.Method) -> BrokerError {
        BrokerError(
            .noMethod, "the identity broker has no method \(method.rawValue)", hint: "update the identity broker")
    }

    static func timedOut(_ method: BrokerCall.Method) -> BrokerError {
        BrokerError(.timedOut, "the identity broker did not reply to \(method.rawValue) in time", hint: "try again")
    }

    static func cancelled(_ method: BrokerCall.Method) -> BrokerError {
        BrokerError(.cancelled, "\(method.rawValue) was cancelled")
    }

    static func malformed(_ method: BrokerCall.Method, _ reason: String) -> BrokerError {
        let summary = "the identity broker's reply to \(method.rawValue) cannot be used"
        return BrokerError(.malformedReply, "\(summary): \(reason)", summary: summary)
    }

    static func failed(_ method: BrokerCall.Method, _ reason: String) -> BrokerError {
        let summary = "the identity broker failed at \(method.rawValue)"
        return BrokerError(.failed, "\(summary): \(reason)", summary: summary)
    }

    /// Too many calls are blocked by a bus that accepts no connection.
    static let tooManyCalls = BrokerError(
        .noBus, "too many calls wait for the session bus", hint: "restart the session bus, or the desktop session")

    static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"

    /// The error for a D-Bus error reply.
    init(named name: String, _ message: String?, in method: BrokerCall.Method) {
        let bus = "org.freedesktop.DBus.Error."
        switch name {
        case "\(bus)ServiceUnknown", "\(bus)NameHasNoOwner": self = .noBroker
        case _ where name.hasPrefix("\(bus)Spawn."): self = .noBroker
        case "\(bus)UnknownMethod", "\(bus)UnknownInterface", Self.unknownObject: self = .noMethod(method)
        case "\(bus)NoReply", "\(bus)Timeout", "\(bus)TimedOut": self = .timedOut(method)
        case "\(bus)Disconnected": self = .noBus("it has closed the connection")
        default:
            let text = message.map { PrintableText.longer($0) } ?? ""
            self = .failed(method, text.isEmpty ? PrintableText.plain(name) : text)
        }
    }
}
