// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
package import CountersignVault

/// A place where ``VaultOperation``s are performed: the session of a command, or the vault of a ``HomeManager``. Gives
/// each operation a method with its own result, so that commands and programs share them.
package protocol VaultDoor {
    /// Performs one operation. `secret` is the one that belongs to it.
    func operate(_ operation: VaultOperation, _ secret: Secret?) throws -> VaultResult
}

extension VaultDoor {
    /// The error of a running server of another version.
    package static var unexpected: CountersignError {
        CountersignError(
            .refused, "the running server gave an answer that this version does not expect",
            hint: "restart `countersign serve`")
    }

    // MARK: Credentials

    /// Sorted by name.
    package func credentials() throws -> [ListedCredential] {
        guard case .credentials(let found) = try operate(.listCredentials, nil) else { throw Self.unexpected }
        return found
    }

    package func names() throws -> (credentials: Set<String>, identities: Set<String>) {
        guard case .names(let credentials, let identities) = try operate(.listNames, nil) else { throw Self.unexpected }
        return (credentials, identities)
    }

    /// Performs `setCredential`, `setToken` or `setPrincipal`. Returns where the credential is blocked already.
    package func setCredential(_ operation: VaultOperation, _ secret: Secret) throws -> BlockedCredential? {
        guard case .stored(let blocked) = try operate(operation, secret) else { throw Self.unexpected }
        return blocked
    }

    /// Performs a removal. Returns the number of removed records and, if it is 0, the names that exist.
    package func remove(_ operation: VaultOperation) throws -> (count: Int, known: Set<String>) {
        guard case .removed(let count, let known) = try operate(operation, nil) else { throw Self.unexpected }
        return (count, known)
    }

    // MARK: Trust and identities

    package func trustExceptions() throws -> [TrustExceptionRecord] {
        guard case .trustExceptions(let found) = try operate(.listTrustExceptions, nil) else { throw Self.unexpected }
        return found
    }

    /// All identities, or the one of that name.
    package func identities(named name: String? = nil) throws -> IdentityListing {
        let operation = name.map { VaultOperation.showIdentity(name: $0) } ?? .listIdentities
        guard case .identities(let found) = try operate(operation, nil) else { throw Self.unexpected }
        return found
    }

    package func renewalStates(of name: String? = nil) throws -> [RenewalState] {
        guard case .renewalStates(let found) = try operate(.listRenewalStates(name: name), nil) else {
            throw Self.unexpected
        }
        return found
    }

    /// The outcome of a renewal or enrolment.
    package static func outcome(_ result: VaultResult) throws -> IdentityRenewal.Outcome {
        switch result {
        case .renewed(let leaf): .renewed(try Certificate(der: Array(leaf)))
        case .pending(let until): .pending(until: until)
        default: throw unexpected
        }
    }

    /// The interception CA's root after the operation.
    package func root(_ operation: VaultOperation) throws -> Certificate {
        guard case .root(let der) = try operate(operation, nil) else { throw Self.unexpected }
        return try Certificate(der: Array(der))
    }
}

/// Operations on an opened vault, behind a closure.
struct OpenedDoor: VaultDoor {
    let perform: SignInPlan.Vault

    func operate(_ operation: VaultOperation, _ secret: Secret?) throws -> VaultResult {
        try perform(operation, secret)
    }
}
