// SPDX-License-Identifier: Apache-2.0
import Synchronization

@testable import CountersignPAC

/// The look-ups of a test, in order.
final class LookUps: Sendable {
    private let list = Mutex<[PACLookUp]>([])

    func append(_ lookUp: PACLookUp) { list.withLock { $0.append(lookUp) } }

    var all: [PACLookUp] { list.withLock { $0 } }
}
