// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A request or tunnel that has ended: the members of a line of the access log, and of an event about a request.
///
/// One is made for each request that is watched: what most requests do not have is in one object, and what all requests
/// of a route have in another.
package struct RequestEvent: Equatable, Sendable {
    package enum Decision: String, Sendable {
        case tunnel
        case intercept
        case refuse
        /// Forwarded without interception: over http, or in absolute form.
        case forward
    }

    /// A version of HTTP.
    package enum Version: String, Sendable {
        case http10 = "1.0"
        case http11 = "1.1"
        case http2 = "2"
    }

    /// One of the three checks, or that of a person.
    package enum Check: String, Sendable {
        case site, scheme, credential, approval
    }

    /// What most requests do not have.
    package final class Details: Equatable, Sendable {
        /// The schemes of the first 401, in lower case.
        package let offered: [String]
        /// Who accepted the origin's certificate although it does not verify.
        package let trust: String?
        /// The revocation status of the origin's certificate, if a connection was opened.
        package let revocation: String?
        /// Why a challenge was not answered, or why the proxy made the response.
        package let reason: String?

        /// Nil if there are none.
        package init?(offered: [String] = [], trust: String? = nil, revocation: String? = nil, reason: String? = nil) {
            if offered.isEmpty, trust == nil, revocation == nil, reason == nil { return nil }
            self.offered = offered
            self.trust = trust
            self.revocation = revocation
            self.reason = reason
        }

        package static func == (left: Details, right: Details) -> Bool {
            left === right
                || left.offered == right.offered && left.trust == right.trust && left.revocation == right.revocation
                    && left.reason == right.reason
        }
    }

    /// The number of the request in this process.
    package var id: UInt64
    package var pid: Int32?
    package var uid: UInt32?
    package var method: String
    package var site: RequestSite
    package var decision: Decision
    /// The scheme of the challenge that was answered.
    package var challenge: String?
    /// The name of the credential or identity in the answer.
    package var credential: String?
    /// The check that failed.
    package var check: Check?
    package var details: Details?
    /// The versions of HTTP on both sides.
    package var clientVersion: Version?
    package var originVersion: Version?
    package var rounds: Int
    /// 0 without a response.
    package var status: Int
    /// Of the body that the client got.
    package var bytes: Int
    package var milliseconds: Int64

    package init(
        id: UInt64, pid: Int32? = nil, uid: UInt32? = nil, method: String, site: RequestSite, decision: Decision,
        challenge: String? = nil, credential: String? = nil, check: Check? = nil, details: Details? = nil,
        clientVersion: Version? = nil, originVersion: Version? = nil, rounds: Int = 0, status: Int = 0, bytes: Int = 0,
        milliseconds: Int64 = 0
    ) {
        self.id = id
        self.pid = pid
        self.uid = uid
        self.method = method
        self.site = site
        self.decision = decision
        self.challenge = challenge
        self.credential = credential
        self.check = check
        self.details = details
        self.clientVersion = clientVersion
        self.originVersion = originVersion
        self.rounds = rounds
        self.status = status
        self.bytes = bytes
        self.milliseconds = milliseconds
    }

    /// Adds the members in the order of the access log.
    package func add(to object: inout JSONObject) {
        object.add("id", id)
        if let pid { object.add("pid", UInt64(max(0, pid))) }
        if let uid { object.add("uid", UInt64(uid)) }
        object.add("method", method)
        object.add("site", site.name)
        object.add("decision", decision.rawValue)
        object.add("rule", ifAny: site.rule)
        object.add("challenge", ifAny: challenge)
        object.add("credential", ifAny: credential)
        if let details, !details.offered.isEmpty { object.add("offered", details.offered) }
        object.add("check", ifAny: check?.rawValue)
        if let details {
            object.add("trust", ifAny: details.trust)
            object.add("revocation", ifAny: details.revocation)
            object.add("reason", ifAny: details.reason)
        }
        object.add("http", ifAny: clientVersion?.rawValue)
        object.add("origin_http", ifAny: originVersion?.rawValue)
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
    package let time: Timestamp
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
        _ request: RequestEvent, program: String?, controlGroup: String?, generation: UInt64?, time: Timestamp,
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
