// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The area to which a credential gives access (RFC 9110 §11.5): an origin, a realm if the scheme has realms, and the
/// scheme.
package struct AuthenticationSpace: Hashable, Sendable {
    package let origin: Origin
    /// The realm as the origin wrote it; nil for schemes without realms (NTLM, client certificates), and for challenges
    /// that name none.
    package let realm: String?
    package let scheme: AuthenticationScheme

    package init(origin: Origin, realm: String?, scheme: AuthenticationScheme) {
        self.origin = origin
        self.realm = realm
        self.scheme = scheme
    }

    /// The KDC of a Kerberos realm. It is not an origin, but the breaker counts its rejections in this space.
    package static func kdc(of realm: String) -> AuthenticationSpace {
        AuthenticationSpace(origin: kdcOrigin, realm: realm, scheme: .negotiate)
    }

    /// No site has this name (RFC 2606 §2).
    private static let kdcOrigin = Origin(scheme: .https, host: "kdc.invalid", port: 443)

    package var isKDC: Bool { origin == Self.kdcOrigin && scheme == .negotiate }

    /// `https://host:port`, or `the KDC`.
    package var place: String { isKDC ? "the KDC" : origin.description }

    /// Whether an account that is wrong in one of the spaces is wrong in the other: those of one realm, and a site's
    /// spaces without a realm with all others of the site.
    package func overlaps(_ other: AuthenticationSpace) -> Bool {
        origin == other.origin && (realm == other.realm || realm == nil || other.realm == nil)
    }
}
