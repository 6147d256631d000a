// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// A place where operations are performed: the session of a command, a running server, or a vault that this process
/// has opened.
package protocol OperationPerformer {
    /// `secret` is the one that belongs to the operation.
    func perform<Operation: VaultOperation>(_ operation: Operation, secret: Secret?) throws -> Operation.Result
}

extension OperationPerformer {
    package func perform<Operation: VaultOperation>(_ operation: Operation) throws -> Operation.Result {
        try perform(operation, secret: nil)
    }
}

/// Operations in this process, with the same other side for each.
struct OwnPerformer: OperationPerformer {
    let operations: VaultOperations
    var dialogue = OperationDialogue.silent

    func perform<Operation: VaultOperation>(_ operation: Operation, secret: Secret?) throws -> Operation.Result {
        try operations.perform(operation, secret: secret, dialogue)
    }
}
