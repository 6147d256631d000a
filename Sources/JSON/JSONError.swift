// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A place in a JSON text. Both numbers begin at 1; the column counts Unicode scalars.
package struct JSONPosition: Hashable, Sendable, CustomStringConvertible {
    package let line: Int
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    package var description: String { "line \(line), column \(column)" }
}

/// Why a JSON text cannot be used. Never contains a value of the text, only names of members.
package struct JSONError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The text does not match the grammar of RFC 8259.
        case malformed
        /// The text is longer than ``JSONLimits/bytes``, or a name than ``JSONLimits/nameBytes``.
        case tooLong
        /// Arrays and objects are nested deeper than ``JSONLimits/depth``.
        case tooDeep
        /// An object has two members of one name.
        case duplicateMember
        /// A member that the reader does not know.
        case unknownMember
        /// A required member is missing.
        case missingMember
        /// A value of another type or range than the reader requires.
        case wrongValue
    }

    package let code: Code
    package let position: JSONPosition
    /// Without the position.
    package let reason: String

    package init(_ code: Code, at position: JSONPosition, _ reason: String) {
        self.code = code
        self.position = position
        self.reason = reason
    }

    package var detail: String { "\(position): \(reason)" }
}
