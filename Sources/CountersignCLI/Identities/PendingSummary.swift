// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography

/// A certificate that an EST server has received a request for and that is not in use yet, as `certificate list` shows
/// it.
struct PendingSummary: Encodable {
    let name: String
    let subject: String
    let server: String
    let pending = true
    /// When the key was created, in RFC 3339.
    let since: String
    /// The earliest time of the next request, in RFC 3339; nil if it is due, or if the certificate is issued.
    let nextRequest: String?
    /// The certificate is issued and has not passed its test handshake yet.
    let issued: Bool

    private enum CodingKeys: String, CodingKey { case name, subject, server, pending, since, nextRequest, issued }

    init(_ request: ListedRequest) {
        name = request.name
        subject = request.subject
        server = request.server
        since = WallClock.rfc3339(request.created)
        issued = request.isIssued
        nextRequest = issued || request.retryAt == 0 ? nil : WallClock.rfc3339(request.retryAt)
    }

    /// Name, subject, server, time of the request, next step.
    var row: [String] {
        let next = issued ? "issued, not tested yet" : nextRequest.map { "next request \($0)" } ?? "next request now"
        return [name, subject, server, "pending since \(since)", next]
    }
}
