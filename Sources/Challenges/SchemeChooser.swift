// SPDX-License-Identifier: Apache-2.0

/// A way in which a 401 can be answered.
package enum OfferKind: String, Hashable, CaseIterable, Sendable {
    /// NTLM messages behind the word `NTLM`.
    case ntlm
    /// NTLM messages inside SPNEGO behind the word `Negotiate`.
    case ntlmInNegotiate
    /// RFC 7617.
    case basic

    /// The scheme as it stands on the wire.
    package var schemeName: String {
        switch self {
        case .ntlm: "NTLM"
        case .ntlmInNegotiate: "Negotiate"
        case .basic: "Basic"
        }
    }

    /// How the question about it is put.
    package var method: AuthenticationSpace.Method {
        switch self {
        case .ntlm, .ntlmInNegotiate: .ntlm
        case .basic: .basic
        }
    }

    /// Whether it authenticates a connection and not a request, in rounds that must share one.
    package var bindsConnection: Bool { method == .ntlm }
}

/// A challenge that can be answered, and how.
package struct Offer: Equatable, Sendable {
    package let kind: OfferKind
    package let challenge: Challenge

    package init(kind: OfferKind, challenge: Challenge) {
        self.kind = kind
        self.challenge = challenge
    }

    /// Where the answer belongs at `origin`; the realm is Basic's alone.
    package func space(at origin: Origin) -> AuthenticationSpace {
        AuthenticationSpace(origin: origin, realm: kind == .basic ? challenge.realm : nil, method: kind.method)
    }
}

/// Decides which of an origin's challenges may be answered, and in which order.
package enum SchemeChooser {
    /// What of `challenges` this build answers and `permitted` allows, strongest first (RFC 7616 §5.6): raw NTLM, NTLM inside
    /// Negotiate, Basic. Several Basic realms keep the origin's order; a Basic without a realm is none (RFC 7617 §2).
    package static func rank(_ challenges: [Challenge], permitted: [AuthenticationScheme]) -> [Offer] {
        OfferKind.allCases.filter { permitted.contains($0.method.scheme) }.flatMap { kind -> [Offer] in
            let offers = challenges.filter { $0.isOf(kind.schemeName) }.map { Offer(kind: kind, challenge: $0) }
            return kind == .basic ? offers.filter { $0.challenge.realm != nil } : Array(offers.prefix(1))
        }
    }
}
