// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignUpstream

extension ChallengeObserver {
    /// Reports a rejected identity, if that was the reason that the origin closed the connection.
    func ended(_ error: UpstreamError, at origin: Origin) {
        if let identity = error.rejectedIdentity { rejected(identity, at: origin) }
    }
}
