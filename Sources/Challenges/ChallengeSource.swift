// SPDX-License-Identifier: Apache-2.0

/// The sender of a challenge (RFC 9110 §11.6 and §11.7): the origin server, or a proxy between it and us.
package enum ChallengeSource: Hashable, Sendable, CaseIterable {
    case origin
    case parentProxy

    /// The status code of a response with challenges.
    package var status: Int {
        switch self {
        case .origin: 401
        case .parentProxy: 407
        }
    }

    /// The name of the field that contains the challenges.
    package var challengeField: String {
        switch self {
        case .origin: "WWW-Authenticate"
        case .parentProxy: "Proxy-Authenticate"
        }
    }

    /// The name of the field that contains our answer.
    package var authorizationField: String {
        switch self {
        case .origin: "Authorization"
        case .parentProxy: "Proxy-Authorization"
        }
    }

    /// The name of the field that completes an accepted answer (RFC 7615).
    package var informationField: String {
        switch self {
        case .origin: "Authentication-Info"
        case .parentProxy: "Proxy-Authentication-Info"
        }
    }

    /// The name for display.
    package var name: String {
        switch self {
        case .origin: "origin"
        case .parentProxy: "parent proxy"
        }
    }

    /// Whether the sender of a response with this status has examined our answer. If the answer is for the origin, a
    /// 407 comes from a proxy in front of it, which has not.
    func hasSeenAnswer(status: Int) -> Bool {
        switch self {
        case .origin: status != ChallengeSource.parentProxy.status
        case .parentProxy: true
        }
    }

    /// Whether a response with this status, which does not challenge, says that the answer was accepted. A gateway in
    /// front of an origin may itself have generated a 502 to 504 (RFC 9110 §15.6.3 to §15.6.5). A proxy that has
    /// challenged examines the answer first.
    package func acceptsAnswer(status: Int) -> Bool { !(502...504).contains(status) || self == .parentProxy }

    /// The reason for handing back a challenge that lacks the expected token. `scheme` is the authenticator's name.
    package func notContinued(_ scheme: String) -> Refusal {
        Refusal(.notContinued(scheme), "\(name) did not continue \(scheme)")
    }
}
