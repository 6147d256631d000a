// SPDX-License-Identifier: Apache-2.0

package import CountersignChallenges
package import CountersignCryptography
import CountersignHome
package import CountersignReporting

/// Lists the credentials, sorted by name.
package struct ListCredentials: VaultOperation {
    package static let name = "listCredentials"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [ListedCredential] {
        guard let open = vault.vault else { return [] }
        let records = try BreakerFile(home: vault.home, now: vault.now).read()
        let (key, contents, time) = (open.tagKey, open.contents, vault.now())
        func listed(_ kind: EnrolledCredential.Kind, _ name: String, _ user: String?, _ tag: CredentialTag)
            -> ListedCredential
        {
            ListedCredential(
                name: name, kind: kind, user: user,
                blocked: BlockedCredential.all(in: records, only: [tag], at: time).first)
        }
        let passwords = contents.credentials.values.map {
            listed(.password, $0.name, $0.user, CredentialTag(user: $0.user, password: $0.password, key: key))
        }
        let tokens = contents.tokens.values.map {
            listed(.token, $0.name, nil, CredentialTag(token: $0.stored, key: key))
        }
        let principals = contents.principals.values.map { credential in
            listed(
                EnrolledCredential.principal(credential).kind ?? .principal, credential.name, credential.principal,
                CredentialTag(user: credential.principal, password: credential.proof.secret, key: key))
        }
        let keys = contents.awsKeys.values.map { credential in
            ListedCredential(name: credential.name, kind: .aws, user: credential.keys.accessKeyID, blocked: nil)
        }
        let programs = contents.programs.values.map { credential in
            let kind: EnrolledCredential.Kind =
                switch credential.written {
                case .password: .password
                case .token: .token
                case .awsKeys: .aws
                }
            // The secret, and with it what the breaker knows, is only in the memory of those who run the program.
            return ListedCredential(
                name: credential.name, kind: kind, user: credential.user, blocked: nil, program: credential.words)
        }
        return (passwords + tokens + principals + keys + programs).sorted { $0.name < $1.name }
    }
}

/// A credential without its password or token.
package struct ListedCredential: Equatable, Sendable, Codable {
    package let name: String
    package let kind: EnrolledCredential.Kind
    /// The user name, the principal or the access key ID; nil for a token.
    package let user: String?
    package let blocked: BlockedCredential?
    /// The program that writes it, and its arguments; nil for one in the vault.
    package var program: [String]?
}
