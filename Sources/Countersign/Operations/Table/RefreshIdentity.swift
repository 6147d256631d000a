// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Renews an enrolled identity.
package struct RefreshIdentity: VaultOperation {
    package static let name = "refreshIdentity"
    private let name: String
    private let options: IdentityRenewal.Options

    package init(name: String, options: IdentityRenewal.Options) {
        self.name = name
        self.options = options
    }

    package var isLong: Bool { true }

    package func change(_ result: RenewalOutcome) -> String? {
        if case .renewed = result { "renewed identity \(name.debugDescription)" } else { nil }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RenewalOutcome {
        try VaultOperations.check(name)
        let renewal = try vault.renewal(dialogue)
        return try Blocking.run(isAbandoned: dialogue.isAbandoned) { try await renewal.refresh(name, options) }
    }
}
