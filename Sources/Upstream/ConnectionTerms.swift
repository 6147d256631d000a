// SPDX-License-Identifier: Apache-2.0

/// The purpose of a connection to an origin.
package struct ConnectionTerms: Sendable {
    /// The connection is a client's tunnel, regardless of the origin's scheme.
    package var isBlind = false
    /// The challenges of this site are answered, over plain http. A listed parent opens a tunnel to it, in which its
    /// challenges and the parent's own are apart.
    package var answersSite = false
    /// The site may select HTTP/2 in the TLS handshake.
    package var offersHTTP2 = false
    /// The value of the client's own Proxy-Authorization, for a parent that the proxy does not answer.
    package var clientAuthorization: String?
    /// The values of Via in the client's CONNECT (RFC 9110 §7.6.3), which a parent gets, too.
    package var via: [String] = []
    /// Whether the origin's name may lead to this machine or its link: the site is listed, or the person has permitted
    /// it. An address or `localhost` always may.
    package var mayBeLocal = false

    package init(
        clientAuthorization: String? = nil, via: [String] = [], mayBeLocal: Bool = false, answersSite: Bool = false,
        offersHTTP2: Bool = false
    ) {
        self.clientAuthorization = clientAuthorization
        self.via = via
        self.mayBeLocal = mayBeLocal
        self.answersSite = answersSite
        self.offersHTTP2 = offersHTTP2
    }
}
