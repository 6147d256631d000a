// SPDX-License-Identifier: Apache-2.0

/// The person's permission to give out the access token of a sign-in as a value. It ends with the sign-in, and with a
/// new sign-in of that name for another person or at another provider.
package struct TokenPermission: Equatable, Sendable {
    /// The name of the sign-in.
    package let name: String
    /// When the person permitted it, in seconds since 1970.
    package let permitted: Int64

    package init(name: String, permitted: Int64) {
        self.name = name
        self.permitted = permitted
    }
}

extension VaultContents {
    /// Permits that the access token of a sign-in is given out; an earlier permission stays as it is. Throws
    /// `invalidRecord` if there is no sign-in of that name.
    package mutating func permitToken(of name: String, at time: Int64) throws(VaultError) {
        guard signIns[name] != nil else {
            throw VaultError(.invalidRecord, "there is no sign-in \(name.debugDescription)")
        }
        guard tokenPermissions[name] == nil else { return }
        advance()
        tokenPermissions[name] = TokenPermission(name: name, permitted: max(0, time))
    }

    /// Withdraws the permission, and returns whether there was one.
    @discardableResult
    package mutating func denyToken(of name: String) -> Bool {
        guard tokenPermissions.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }
}

extension RecordWriter {
    mutating func append(_ permission: TokenPermission) {
        field(permission.name)
        append(UInt64(clamping: permission.permitted))
    }
}
