// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Throws if an enrolment may not have this name.
package struct CheckEnrollment: VaultOperation {
    package static let name = "checkEnrollment"
    private let name: String
    private let replaces: Bool

    package init(name: String, replaces: Bool) {
        self.name = name
        self.replaces = replaces
    }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Done {
        try VaultOperations.check(name)
        try vault.renewal(dialogue).checkName(name, replaces: replaces, isInToken: false)
        return Done()
    }
}
