// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A token of `--client-token-file`.
package struct ClientToken: Sendable {
    /// What `for=token:NAME` calls it; nil for the only token of a file without names.
    package let name: String?
    package let secret: Secret

    package init(_ secret: Secret, name: String? = nil) {
        self.secret = secret
        self.name = name
    }

    /// The one of `tokens` that the values of Proxy-Authorization contain: `Basic` with the token as its password and
    /// any user name, or `Bearer` with the token.
    static func sent(in values: [String], _ tokens: [ClientToken]) -> ClientToken? {
        guard values.count == 1, let space = values[0].firstIndex(of: " ") else { return nil }
        let credentials = values[0][values[0].index(after: space)...].drop { $0 == " " }
        let sent: Secret
        switch values[0][..<space].lowercased() {
        case "basic":
            guard let decoded = Base64.decode(credentials), let colon = decoded.firstIndex(of: UInt8(ascii: ":")) else {
                return nil
            }
            sent = Secret(decoded[(colon + 1)...])
        case "bearer":
            sent = Secret(utf8: credentials)
        default:
            return nil
        }
        return tokens.first { $0.secret == sent }
    }
}
