// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignVault

/// Records a trust exception, in place of one for the same server and certificate.
package struct AddTrustException: VaultOperation {
    package static let name = "addTrustException"
    private let exception: TrustExceptionRecord

    package init(_ exception: TrustExceptionRecord) { self.exception = exception }

    package func change(_ result: Done) -> String? {
        "added a trust exception for \(exception.host.debugDescription), port \(exception.port)"
    }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Done {
        try vault.opened().update { try $0.setTrustException(exception) }
        return Done()
    }
}
