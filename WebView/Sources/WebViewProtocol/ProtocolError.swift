// SPDX-License-Identifier: Apache-2.0

/// A command that breaks the protocol. The caller is at fault. The text never has a value from the message, because
/// messages contain secrets.
package struct ProtocolError: Error, Equatable, CustomStringConvertible {
    /// The member and its fault: lower case, without a full stop.
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
