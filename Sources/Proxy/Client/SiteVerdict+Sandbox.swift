// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy

extension SiteVerdict {
    /// Why a site that is only tunnelled is no listed one for this client; nil if it is, or with another verdict.
    var unlisted: Refusal? {
        guard case .tunnel(let reason) = self, reason.cause != .notIntercepted else { return nil }
        return Refusal(
            reason.cause,
            "\(reason.text); the command runs in a sandbox, which reaches only the sites that are listed for it")
    }
}
