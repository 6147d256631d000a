// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// A client that left when it was shown a certificate of the local CA.
package struct ClientDistrust: Equatable, Sendable {
    /// How it left.
    package enum Sign: Equatable, Sendable {
        /// With an alert that says that it does not trust the certificate: its name in RFC 8446 §6.2.
        case alert(String)
        /// With the alert no_application_protocol (RFC 7301 §3.2): it speaks HTTP/2 only.
        case noApplicationProtocol
        /// Without an alert. Clients that do not trust a certificate do this, and those that need the connection no
        /// longer.
        case silence
        /// After the handshake, without a request. Clients that verify the certificate then do this (wget with GnuTLS),
        /// and browsers that opened a connection in advance.
        case noRequest

        /// Whether the client said so itself.
        package var isCertain: Bool {
            switch self {
            case .alert, .noApplicationProtocol: true
            case .silence, .noRequest: false
            }
        }
    }

    /// The site that it connected to.
    package let origin: Origin
    /// The name of the client's program, in printable characters; nil if the program has ended already.
    package let program: String?
    package let pid: Int32?
    package let sign: Sign

    package init(origin: Origin, program: String?, pid: Int32?, sign: Sign) {
        self.origin = origin
        self.program = program
        self.pid = pid
        self.sign = sign
    }

    /// The remedy for a client that does not trust the CA.
    package static let hint = """
        `countersign ca install` adds the CA to the trust stores of the system and of browsers; programs started by \
        `countersign exec` get variables that name it
        """

    /// `php (pid 123) does not trust the local CA: …`, without a full stop.
    package var sentence: String {
        let name = program ?? "a program that has ended"
        let client = name + (pid.map { " (pid \($0))" } ?? "")
        return switch sign {
        case .alert(let alert):
            "\(client) does not trust the local CA: it left the TLS handshake for \(origin) with the alert \(alert)"
        case .noApplicationProtocol:
            "\(client) speaks only HTTP/2, which the proxy does not: it left the TLS handshake for \(origin)"
        case .silence:
            "\(client) left the TLS handshake for \(origin) without an alert; it may not trust the local CA"
        case .noRequest:
            "\(client) ended the TLS connection to \(origin) without a request; it may not trust the local CA"
        }
    }
}
