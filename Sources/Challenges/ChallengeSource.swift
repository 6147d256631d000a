// SPDX-License-Identifier: Apache-2.0

/// Who challenges (RFC 9110 §11.6 and §11.7): the origin server, or a proxy between us and it.
package enum ChallengeSource: Hashable, Sendable, CaseIterable {
    case origin
    case parentProxy

    /// The status of a response that challenges.
    package var status: Int {
        switch self {
        case .origin: 401
        case .parentProxy: 407
        }
    }

    /// The field with the challenges.
    package var challengeField: String {
        switch self {
        case .origin: "WWW-Authenticate"
        case .parentProxy: "Proxy-Authenticate"
        }
    }

    /// The field with our answer.
    package var authorizationField: String {
        switch self {
        case .origin: "Authorization"
        case .parentProxy: "Proxy-Authorization"
        }
    }

    /// The field that completes an accepted answer (RFC 7615).
    package var informationField: String {
        switch self {
        case .origin: "Authentication-Info"
        case .parentProxy: "Proxy-Authentication-Info"
        }
    }

    /// The name in messages for people.
    package var name: String {
        switch self {
        case .origin: "origin"
        case .parentProxy: "parent proxy"
        }
    }

    /// Whether a response of this status comes from somebody who has not looked at our answer: a 407 comes from a proxy on the
    /// way to the origin.
    func hasSeenAnswer(status: Int) -> Bool {
        switch self {
        case .origin: status != ChallengeSource.parentProxy.status
        case .parentProxy: true
        }
    }

    /// The reason for handing back a challenge without the token that is due.
    package func notContinued(_ authenticator: any Authenticator) -> String {
        "\(name) did not continue \(authenticator.name)"
    }
}
