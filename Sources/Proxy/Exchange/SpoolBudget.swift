// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The space that the spools of all exchanges may take, in bytes.
final class SpoolBudget: Sendable {
    let limitBytes: Int
    private let taken = Atomic(0)

    init(limitBytes: Int) { self.limitBytes = limitBytes }

    /// Takes `count` bytes, which ``giveBack(_:)`` returns. False if there is not that much left.
    func take(_ count: Int) -> Bool {
        guard taken.add(count, ordering: .relaxed).newValue <= limitBytes else {
            giveBack(count)
            return false
        }
        return true
    }

    func giveBack(_ count: Int) { taken.subtract(count, ordering: .relaxed) }

    /// The bytes that are taken.
    var takenBytes: Int { taken.load(ordering: .relaxed) }
}
