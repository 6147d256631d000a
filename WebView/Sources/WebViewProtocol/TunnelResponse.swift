// SPDX-License-Identifier: Apache-2.0

/// The proxy's response to a CONNECT request. WebKit keeps only its status.
package struct TunnelResponse: Equatable, Sendable {
    package let status: Int
    package let failure: ProxyFailure?

    package var isOpen: Bool { (200...299).contains(status) }

    /// Parses a head, up to and with its empty line. Nil if it is none.
    package init?(head: some Collection<UInt8>) {
        let text = String(decoding: head, as: UTF8.self)
        var lines = text.split(separator: "\r\n")[...]
        guard text.hasSuffix("\r\n\r\n"), let words = lines.popFirst()?.split(separator: " "), words.count >= 2,
            words[0].hasPrefix("HTTP/1."), let status = Int(words[1])
        else { return nil }
        self.status = status
        let values = lines.compactMap { line -> Substring? in
            guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == "proxy-status" else {
                return nil
            }
            return line[line.index(after: colon)...]
        }
        failure = ProxyFailure(values.joined(separator: ","))
    }

    /// Why there is no tunnel, as a sentence in lower case without a full stop.
    package var reason: String {
        if let details = failure?.details, !details.isEmpty { return details }
        return "the proxy answers with the status \(status)"
    }
}
