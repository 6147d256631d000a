// SPDX-License-Identifier: Apache-2.0

/// Why a script has no result. The reason is a sentence without a full stop.
package struct ScriptError: Error, Equatable, Sendable {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
