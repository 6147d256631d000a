// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Asks the compliance service of a sign-in's profile to register, enrol and apply the policy. The receiver of the
/// progress opens pages, unless it is silent.
package struct RemediateCompliance: VaultOperation {
    package static let name = "remediateCompliance"
    private let name: String
    private let isSilent: Bool
    private let languages: String
    private let seconds: Int64

    /// `languages` is the value of `Accept-Language`; `seconds` limits the wait for a person.
    package init(name: String, isSilent: Bool, languages: String, seconds: Int64) {
        self.name = name
        self.isSilent = isSilent
        self.languages = languages
        self.seconds = seconds
    }

    package var isLong: Bool { true }

    package func change(_ result: Named<ComplianceReport>) -> String? {
        result.done.map { _ in "asked the compliance service of sign-in \(name.debugDescription)" }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Named<ComplianceReport> {
        try vault.remediate(name, isSilent: isSilent, languages: languages, seconds: seconds, dialogue)
    }
}
