// SPDX-License-Identifier: Apache-2.0

/// All operations: a new one is a type of its own and a line here.
package enum OperationTable {
    package static let types: [any VaultOperation.Type] = [
        // Credentials
        ListNames.self, ListCredentials.self, SetCredential.self, SetToken.self, SetPrincipal.self,
        SetAWSKeys.self, RemoveCredential.self,
        // Trust
        ListTrustExceptions.self, AddTrustException.self, RemoveTrustExceptions.self,
        EnsureAuthority.self, RotateAuthority.self,
        // Identities
        ListIdentities.self, ShowIdentity.self, ListRenewalStates.self, ImportIdentity.self, RemoveIdentity.self,
        RepairIdentity.self, RefreshIdentity.self, CheckEnrollment.self, EnrollIdentity.self,
        // Sign-ins
        ListSignIns.self, CheckSignIn.self, StoreSignIn.self, StoreSiteToken.self, RemoveSignIn.self,
        RemediateCompliance.self, WipeSignIn.self,
        // Access tokens as values
        GiveToken.self, PermitToken.self, ListTokenPermissions.self,
        // Shared sessions
        ListSessions.self, StoreSession.self, ClearSessions.self,
        // Configuration profiles
        ListProfiles.self, InstallProfile.self, RemoveProfile.self,
        // The policy of a running server
        ReportPolicy.self, RunProxy.self,
    ]

    /// The names of all operations.
    package static let names = types.map { $0.name }

    private static let byName = Dictionary(types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })

    static func type(named name: String) -> (any VaultOperation.Type)? { byName[name] }
}

/// The JSON form of an operation of any type: an object with its arguments under its name.
struct SentOperation: Codable {
    let operation: any VaultOperation

    init(_ operation: any VaultOperation) { self.operation = operation }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        guard let name = container.allKeys.first, container.allKeys.count == 1,
            let type = OperationTable.type(named: name.stringValue)
        else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "not an operation that this version knows"))
        }
        operation = try container.decode(type, forKey: name)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        try container.encode(operation, forKey: Name(stringValue: type(of: operation).name))
    }
}
