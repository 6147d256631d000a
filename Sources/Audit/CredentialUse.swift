// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// One use of a credential: who caused it, for which site, and what the site said. Has no path, no field's value and no
/// secret.
package struct CredentialUse: Sendable, Equatable {
    /// What became of it.
    package enum Result: String, Sendable, CaseIterable {
        /// The site accepted the credential.
        case accepted
        /// The site rejected it.
        case rejected
        /// It was sent, and the site's response does not say whether it was accepted.
        case sent
        /// It was sent, and no response came.
        case unanswered
        /// It was chosen, but not sent.
        case unsent
    }

    /// When the response arrived, or the use ended without one.
    package var time: Timestamp
    /// The user, process, program and control group of the client, as far as they are known.
    package var uid: UInt32?
    package var pid: Int32?
    package var program: String?
    package var cgroup: String?
    /// `scheme://host:port`.
    package var site: String
    /// The scheme of the answer: `ntlm`, `negotiate`, `basic`, `digest`, `bearer`, `certificate` or `injected`.
    package var scheme: String
    /// The name of the credential, and which of its versions it was, if that is known.
    package var credential: String
    package var generation: UInt64?
    /// The method of the request.
    package var method: String
    /// The status of the response; 0 without one.
    package var status: Int
    package var result: Result
    /// Everything was decided, and nothing was sent.
    package var isDryRun: Bool

    package init(
        time: Timestamp, uid: UInt32? = nil, pid: Int32? = nil, program: String? = nil, cgroup: String? = nil,
        site: String, scheme: String, credential: String, generation: UInt64? = nil, method: String, status: Int,
        result: Result, isDryRun: Bool = false
    ) {
        self.time = time
        self.uid = uid
        self.pid = pid
        self.program = program
        self.cgroup = cgroup
        self.site = site
        self.scheme = scheme
        self.credential = credential
        self.generation = generation
        self.method = method
        self.status = status
        self.result = result
        self.isDryRun = isDryRun
    }
}
