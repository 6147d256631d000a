// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Installs a configuration profile, in place of one with the same identifier. The secret is ``ProfileKeys``; there is
/// none if the profile has no identity. Returns the outcome of its enrolment; nil if it has none.
package struct InstallProfile: VaultOperation {
    package static let name = "installProfile"
    private let profile: NewProfile

    package init(_ profile: NewProfile) { self.profile = profile }

    package var isLong: Bool { true }

    package func change(_ result: RenewalOutcome?) -> String? {
        "installed profile \(profile.record.identifier.debugDescription)"
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RenewalOutcome? {
        try vault.installProfile(profile, secret, dialogue)
    }
}
