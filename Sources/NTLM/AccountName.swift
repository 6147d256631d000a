// SPDX-License-Identifier: Apache-2.0

/// The account that an NTLM response authenticates, split into the two fields of the AuthenticateMessage.
struct AccountName: Equatable, Sendable {
    let domain: String
    let user: String

    init(domain: String, user: String) {
        self.domain = domain
        self.user = user
    }

    /// Splits `DOMAIN\user` at the first backslash. `user@domain` is a user name as a whole (MS-NLMP §2.2.1.3) and has
    /// no domain. A bare `user` gets `domain`, if there is one. Throws `unusableCredential` for an empty user name,
    /// which would be an anonymous log-on.
    init(enrolled name: String, domain: String?) throws(NTLMError) {
        if let backslash = name.firstIndex(of: "\\") {
            self.init(domain: String(name[..<backslash]), user: String(name[name.index(after: backslash)...]))
        } else if name.contains("@") {
            self.init(domain: "", user: name)
        } else {
            self.init(domain: domain ?? "", user: name)
        }
        guard !user.isEmpty else {
            throw NTLMError(.unusableCredential, "\"\(name)\" has no user name")
        }
    }
}
