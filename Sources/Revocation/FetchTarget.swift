// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// A URL in a certificate from which a status may be fetched. The issuer of the certificate chose it, so it is checked
/// like any other input from the network: http, no user information, a host that ``HostName`` accepts, and a port on
/// which a web server may be expected.
package struct FetchTarget: Hashable, Sendable {
    package let origin: Origin
    /// The URL in canonical form, without a fragment.
    package let url: String

    package init(url text: String) throws(FetchFault) {
        let url: AbsoluteURL
        do throws(HostNameError) { url = try AbsoluteURL(parsing: text) } catch { throw .notAsked(error.detail) }
        guard url.origin.scheme == .http else { throw .notAsked("only http is supported") }
        guard Self.permits(port: url.origin.port) else {
            throw .notAsked("port \(url.origin.port) is not permitted")
        }
        origin = url.origin
        self.url = url.description
    }

    /// 80, and the ports that an ordinary user may open, without those that browsers block (Fetch standard, section
    /// "Port blocking"): the text of a request must not reach a server of another protocol.
    private static func permits(port: UInt16) -> Bool { port == 80 || (port >= 1024 && !blockedPorts.contains(port)) }

    private static let blockedPorts: Set<UInt16> = [
        1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
        10080,
    ]
}
