// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// One line of the allowed-sites list: who may be answered, with what, and how.
package struct SiteRule: Equatable, Sendable {
    /// The file's name as it was given to the parser.
    package let file: String
    /// Counted from 1.
    package let line: Int
    /// The line as it was written, without its line end.
    package let text: String
    package let pattern: SitePattern
    /// The schemes that may be answered, strongest first; all that are supported when the line leaves them out.
    package var answer: [AuthenticationScheme] = AuthenticationScheme.supported
    package var credential = "enrollment"
    /// The client identity to show; nil: the one whose issuer the server accepts.
    package var identity: String?
    /// The domain put before a user name that has none.
    package var domain: String?
    /// `HTTP/host`; nil: made from the host.
    package var servicePrincipalName: String?
    /// Whether a challenge over `http://` may be answered.
    package var answersPlaintext = false
    /// Whether a protection space that has challenged and accepted is answered before it asks again (RFC 7617 §2.2).
    package var preempts = true
    /// Whether TLS is ended by the proxy; when not, the site is tunnelled untouched.
    package var intercepts = true

    /// `AllowedSites/work.sites:3`.
    package var location: String { "\(file):\(line)" }
}

/// What the list says of one origin.
package enum SiteVerdict: Equatable, Sendable {
    /// Nothing is added and nothing looked at. The reason is a short sentence without a full stop.
    case tunnel(reason: String)
    /// Challenges may be answered as the rule says.
    case answer(SiteRule)
    /// Not to be reached through the proxy at all: its name is below a listed one and not one that the list could hold.
    case refuse(reason: String)
}
