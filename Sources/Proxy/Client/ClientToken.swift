// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Checks the token of `--client-token-file`.
enum ClientToken {
    /// Accepts `Basic` with the token as its password and any user name, or `Bearer` with the token.
    static func matches(_ values: [String], _ token: Secret) -> Bool {
        guard values.count == 1, let space = values[0].firstIndex(of: " ") else { return false }
        let credentials = values[0][values[0].index(after: space)...].drop { $0 == " " }
        switch values[0][..<space].lowercased() {
        case "basic":
            guard let decoded = Base64.decode(credentials), let colon = decoded.firstIndex(of: UInt8(ascii: ":")) else {
                return false
            }
            return Secret(decoded[(colon + 1)...]) == token
        case "bearer":
            return Secret(utf8: credentials) == token
        default:
            return false
        }
    }
}
