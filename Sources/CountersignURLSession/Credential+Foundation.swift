// SPDX-License-Identifier: Apache-2.0

public import Countersign
import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Countersign.Credential {
    /// Converts a user name and password. Nil if the credential has none, as an identity or a trusted server.
    public init?(_ credential: URLCredential) {
        guard let user = credential.user, let password = credential.password else { return nil }
        self = .password(user: user, Password(password))
    }
}

extension URLCredential {
    /// Converts a user name and password, which URLSession keeps for `persistence`. Nil for a token or an identity,
    /// which FoundationNetworking cannot send, and for a password that is not UTF-8.
    ///
    /// The password leaves the vault's locked memory. With a longer persistence than `none`, URLSession sends it
    /// without asking again, and the home does not learn whether it was rejected.
    public convenience init?(_ credential: Countersign.Credential, persistence: Persistence = .none) {
        guard case .password(let user, let password) = credential, let text = password.text else { return nil }
        self.init(user: user, password: text, persistence: persistence)
    }
}

extension Countersign.ChallengeDisposition {
    /// Converts Foundation's disposition.
    public init(_ disposition: URLSession.AuthChallengeDisposition) {
        switch disposition {
        case .useCredential: self = .useCredential
        case .performDefaultHandling: self = .performDefaultHandling
        case .cancelAuthenticationChallenge: self = .cancelAuthenticationChallenge
        case .rejectProtectionSpace: self = .rejectProtectionSpace
        }
    }
}

extension URLSession.AuthChallengeDisposition {
    /// Converts a disposition.
    ///
    /// URLSession on Linux waits forever after `performDefaultHandling` if the challenge has no proposed credential.
    /// `ChallengeController.answer(_:)` cancels the challenge then.
    public init(_ disposition: Countersign.ChallengeDisposition) {
        switch disposition {
        case .useCredential: self = .useCredential
        case .performDefaultHandling: self = .performDefaultHandling
        case .cancelAuthenticationChallenge: self = .cancelAuthenticationChallenge
        case .rejectProtectionSpace: self = .rejectProtectionSpace
        }
    }
}
