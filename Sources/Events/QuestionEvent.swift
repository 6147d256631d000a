// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// Requests of one client to one site that wait until a person has agreed.
package struct QuestionEvent: Equatable, Sendable, Codable {
    package let id: UInt64
    /// `scheme://host:port`.
    package let site: String
    /// The list's `file:line`.
    package let rule: String
    /// That of the first request.
    package let method: String
    package let credential: String
    /// The path of the program, or `process 4711` if it is not known.
    package let client: String
    package let uid: UInt32?
    /// RFC 3339.
    package let since: String
    /// The requests that wait.
    package let waiting: Int
    package let secondsLeft: Int64

    package init(
        id: UInt64, site: String, rule: String, method: String, credential: String, client: String, uid: UInt32?,
        since: Int64, waiting: Int, secondsLeft: Int64
    ) {
        self.id = id
        self.site = site
        self.rule = rule
        self.method = method
        self.credential = credential
        self.client = client
        self.uid = uid
        self.since = WallClock.rfc3339(since)
        self.waiting = waiting
        self.secondsLeft = secondsLeft
    }

    package func add(to object: inout JSONObject) {
        object.add("id", id)
        object.add("site", site)
        object.add("rule", rule)
        object.add("method", method)
        object.add("credential", credential)
        object.add("client", client)
        if let uid { object.add("uid", UInt64(uid)) }
        object.add("since", since)
        object.add("waiting", UInt64(max(0, waiting)))
        object.add("secondsLeft", UInt64(max(0, secondsLeft)))
    }

    package var json: JSONObject {
        var object = JSONObject()
        add(to: &object)
        return object
    }
}
