// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Something that a command does with a home's vault: in its own process if it opens the vault, otherwise in the
/// running server, which has it open. The properties of the value are the arguments, in JSON on the control socket. An
/// operation may carry a secret into the vault, beside its value. Only ``GiveToken`` takes one out of it.
///
/// ``OperationTable`` lists all operations. Those with keys in PKCS#11 tokens are missing on purpose: their URIs name
/// libraries, which the server would load. So is the storing of a program that writes a secret.
package protocol VaultOperation: Codable, Sendable {
    /// The type of its result, which never contains a secret, except for the access token of ``GiveToken``.
    associatedtype Result: Codable & Sendable

    /// Its name on the control socket; no other operation has it.
    static var name: String { get }

    /// Whether it may take much longer than reading and writing files: it lasts as long as a command, or waits for
    /// another server. By default, it does not.
    var isLong: Bool { get }

    /// The change that it made, for the server's log, as in `process 1 has ...`; nil, the default, without a change.
    func change(_ result: Result) -> String?

    /// Called by ``VaultOperations/perform(_:secret:_:)`` only. `secret` is that of the operation. Throws
    /// ``CountersignError``, `VaultError` and others with a text for people.
    func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Result
}

extension VaultOperation {
    package var isLong: Bool { false }

    package func change(_ result: Result) -> String? { nil }
}

/// The result of an operation that returns nothing.
package struct Done: Codable, Sendable {}

/// The result of a removal.
package struct RemovedRecords: Equatable, Codable, Sendable {
    package let count: Int
    /// If ``count`` is 0, the names that exist.
    package let known: Set<String>
}

/// The result of an operation on something that has a name.
package enum Named<Value: Codable & Sendable>: Codable, Sendable {
    case done(Value)
    /// There is nothing of that name; these are the names that exist.
    case unknown(known: Set<String>)

    package var done: Value? {
        if case .done(let value) = self { value } else { nil }
    }
}
