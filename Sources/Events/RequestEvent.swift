// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// A request or tunnel that has ended: the members of a line of the access log, and of an event about a request.
package struct RequestEvent: Equatable, Sendable {
    /// The number of the request in this process.
    package var id: UInt64
    package var pid: Int32?
    package var uid: UInt32?
    package var method: String
    /// `scheme://host:port`, or `host:port` of a tunnel with unknown content.
    package var site: String
    /// `tunnel`, `intercept`, `forward` or `refuse`.
    package var decision: String
    /// The list's `file:line`.
    package var rule: String?
    /// The scheme of the challenge that was answered.
    package var challenge: String?
    /// The name of the credential or identity in the answer.
    package var credential: String?
    /// The schemes of the first 401, in lower case.
    package var offered: [String] = []
    /// The check that failed.
    package var check: Check?
    /// Who accepted the origin's certificate although it does not verify.
    package var trust: String?
    /// The revocation status of the origin's certificate, if a connection was opened.
    package var revocation: String?
    /// Why a challenge was not answered, or why the proxy made the response.
    package var reason: String?
    /// The versions of HTTP on both sides.
    package var clientVersion: String?
    package var originVersion: String?
    package var rounds = 0
    /// 0 without a response.
    package var status = 0
    /// Of the body that the client got.
    package var bytes = 0
    package var milliseconds: Int64 = 0

    /// One of the three checks, or that of a person.
    package enum Check: String, Sendable {
        case site, scheme, credential, approval
    }

    package init(id: UInt64, method: String, site: String, decision: String) {
        self.id = id
        self.method = method
        self.site = site
        self.decision = decision
    }

    /// Adds the members in the order of the access log.
    package func add(to object: inout JSONObject) {
        object.add("id", id)
        if let pid { object.add("pid", UInt64(max(0, pid))) }
        if let uid { object.add("uid", UInt64(uid)) }
        object.add("method", method)
        object.add("site", site)
        object.add("decision", decision)
        object.add("rule", ifAny: rule)
        object.add("challenge", ifAny: challenge)
        object.add("credential", ifAny: credential)
        if !offered.isEmpty { object.add("offered", offered) }
        object.add("check", ifAny: check?.rawValue)
        object.add("trust", ifAny: trust)
        object.add("revocation", ifAny: revocation)
        object.add("reason", ifAny: reason)
        object.add("http", ifAny: clientVersion)
        object.add("origin_http", ifAny: originVersion)
        object.add("rounds", UInt64(max(0, rounds)))
        object.add("status", UInt64(max(0, status)))
        object.add("bytes", UInt64(max(0, bytes)))
        object.add("ms", UInt64(max(0, milliseconds)))
    }
}

/// The use of a credential by a request that has ended, with what is known about the client's program.
package struct CredentialUseEvent: Sendable {
    package let request: RequestEvent
    /// The path of the client's executable.
    package let program: String?
    /// The client's control group, of version 2.
    package let controlGroup: String?
    /// Of the credential; nil for one that has none, such as an identity.
    package let generation: UInt64?
    package let time: EventTime
    package let result: Result

    package enum Result: String, Sendable {
        /// The site accepted it.
        case accepted
        case rejected
        /// It was sent, and the site's response does not say whether it was accepted.
        case sent
        /// It was sent, and no response of the site came.
        case unanswered
    }

    package init(
        _ request: RequestEvent, program: String?, controlGroup: String?, generation: UInt64?, time: EventTime,
        result: Result
    ) {
        self.request = request
        self.program = program
        self.controlGroup = controlGroup
        self.generation = generation
        self.time = time
        self.result = result
    }
}
