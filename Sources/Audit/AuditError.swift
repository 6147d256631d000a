// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a file cannot be used as an audit.
package struct AuditError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The system refused an operation on the file.
        case environment
        /// Another process writes the file.
        case inUse
        /// The file has a fault.
        case damaged(AuditFault.Kind)
        /// The file is signed by another key.
        case otherKey
        /// The file to continue with has records of its own.
        case notEmpty
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    static func quoted(_ path: String) -> String { "\"\(PrintableText.escaped(path))\"" }

    init(_ fault: AuditFault, in path: String) {
        let name = Self.quoted(path)
        let file = ShellWord.quoted(path)
        let move = "`mv \(file) \(ShellWord.quoted(path + ".old"))` keeps it and lets the server begin a new audit"
        guard fault.kind != .otherKey else {
            self.init(
                .otherKey, "the audit \(name) is not this server's: \(fault.place): \(fault.reason)",
                hint: "name another file, or \(move)")
            return
        }
        let place = fault.line > 0 ? "\(fault.place): " : ""
        self.init(
            .damaged(fault.kind), "somebody has damaged the audit \(name): \(place)\(fault.reason)",
            hint: "`countersign audit verify \(file)` shows what is intact; \(move)")
    }
}
