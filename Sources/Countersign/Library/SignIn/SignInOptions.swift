// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSignIn

/// What one sign-in asks of the provider's page beyond the profile. The renewals of its tokens do not repeat it.
public struct SignInOptions: Equatable, Sendable {
    /// `prompt` (OpenID Connect Core §3.1.2.1): whether the page asks the person, even if a browser is signed in. Later
    /// versions of the standard may add values: ``init(_:)`` takes any.
    public struct Prompt: Hashable, Sendable, CustomStringConvertible {
        /// The value of the parameter.
        public let description: String

        /// Any value, also several that are separated by spaces.
        public init(_ text: String) { description = text }

        /// The person signs in again.
        public static let login = Prompt("login")
        /// The person consents again.
        public static let consent = Prompt("consent")
        /// The person chooses an account.
        public static let selectAccount = Prompt("select_account")
        /// The page fails instead of asking the person.
        public static let none = Prompt("none")
        /// The person creates an account, at providers that offer it.
        public static let create = Prompt("create")
    }

    /// Nil leaves it to the profile.
    public var prompt: Prompt?
    /// The account that the page suggests (`login_hint`), such as `jdoe@corp.example`; nil for none.
    public var loginHint: String?
    /// Further parameters of the authorization request. They replace those of the profile with the same name, and must
    /// not be ones that the protocol sets.
    public var parameters: [String: String]

    /// Without arguments, nothing beyond the profile.
    public init(prompt: Prompt? = nil, loginHint: String? = nil, parameters: [String: String] = [:]) {
        self.prompt = prompt
        self.loginHint = loginHint
        self.parameters = parameters
    }

    /// Throws `configuration` for a parameter that cannot be sent.
    func applied(to profile: SignInProfile) throws(OAuthError) -> SignInProfile {
        guard self != SignInOptions() else { return profile }
        return try profile.changing(
            prompt: prompt?.description, loginHint: loginHint,
            parameters: parameters.sorted { $0.key < $1.key }.map { SignInRequest.Parameter($0.key, $0.value) })
    }
}
