// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// Where the processes of one home share the breaker's records. The calls block, for as long as a file takes.
package struct BreakerStorage: Sendable {
    package typealias Records = [Breaker.Account: Breaker.AccountRecord]

    /// Why the records could not be written.
    package struct Failure: Error {
        package let detail: String
        /// Whether the storage permits no writes at all.
        package let isReadOnly: Bool

        package init(_ detail: String, isReadOnly: Bool) {
            self.detail = detail
            self.isReadOnly = isReadOnly
        }
    }

    /// The records if another process has changed them since the last call of either closure, otherwise nil.
    let changed: @Sendable () throws(Failure) -> Records?
    /// Applies a change to the newest records, stores the result and returns it. No other process writes meanwhile. The
    /// storage ends attempts of processes that have ended first; the number is this process's.
    let update: @Sendable (_ owner: UInt64, _ change: (inout Breaker) -> Void) throws(Failure) -> Records

    /// The accepted schemes stored with the records which either closure returned last; nil if it stores none.
    let schemes: (@Sendable () -> AcceptedSchemes)?

    package init(
        changed: @escaping @Sendable () throws(Failure) -> Records?,
        update: @escaping @Sendable (_ owner: UInt64, _ change: (inout Breaker) -> Void) throws(Failure) -> Records,
        schemes: (@Sendable () -> AcceptedSchemes)? = nil
    ) {
        self.changed = changed
        self.update = update
        self.schemes = schemes
    }
}
