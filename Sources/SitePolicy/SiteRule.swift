// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// One line of the allowed-sites list: a site whose challenges may be answered, with which credential, and how.
package struct SiteRule: Equatable, Sendable {
    /// The file name that was given to the parser.
    package let file: String
    /// Counted from 1.
    package let line: Int
    /// The line's text without its line end.
    package let text: String
    package let pattern: SitePattern
    /// The schemes that may be answered, strongest first. All supported schemes by default.
    package var answer: [AuthenticationScheme] = AuthenticationScheme.supported
    package var credential = Self.defaultCredential
    /// The client identity to use; nil: the one whose issuer the server accepts.
    package var identity: String?
    /// The domain for user names without one.
    package var domain: String?
    /// How user names and passwords beyond ASCII are sent to servers that do not say it.
    package var charset = CredentialCharset.utf8
    /// `HTTP/host`; nil: derived from the host.
    package var servicePrincipalName: String?
    /// Whether the user's Kerberos ticket is forwarded to the site if the KDC permits it (ok-as-delegate).
    package var delegatesByPolicy = false
    /// Whether a challenge over `http://` may be answered.
    package var answersPlaintext = false
    /// Whether credentials are sent without a challenge to a protection space that has accepted them before (RFC 7617
    /// §2.2).
    package var preempts = true
    /// Whether the proxy terminates TLS. If not, the connection is tunnelled unchanged.
    package var intercepts = true
    /// What to do about the revocation status of the site's certificate.
    package var revocation = RevocationCheck.soft

    package static let defaultCredential = "enrollment"

    /// `AllowedSites/work.sites:3`.
    package var location: String { "\(file):\(line)" }
}

/// The handling of a request to one origin.
package enum SiteVerdict: Equatable, Sendable {
    /// The connection is tunnelled unchanged. The reason is a short sentence without a full stop.
    case tunnel(reason: String)
    /// Challenges may be answered according to the rule.
    case answer(SiteRule)
    /// The request is refused: the host is covered by a listed wildcard, but is not a valid name for the list.
    case refuse(reason: String)
}
