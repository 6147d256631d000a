// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

/// Why a person could not be signed in, or why a sign-in could not be used. Never contains a secret.
package struct SignInError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The profile is not valid, or asks for something that this version does not do.
        case profile
        /// The requested user agent is not installed or cannot be started.
        case noAgent
        /// The system refused a socket or a process.
        case environment
        /// The person did not sign in within the time limit.
        case timedOut
        /// The sign-in was cancelled on this side.
        case cancelled
        /// The identity broker of the machine continues the sign-in.
        case transferred
        /// The provider could not be reached, or its response was incomplete.
        case unreachable
        /// The provider refused, or sent something that is not valid.
        case provider
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    static func timedOut(after limit: Duration) -> SignInError {
        SignInError(
            .timedOut, "nobody has signed in within \(limit.components.seconds) seconds",
            hint: "run the command again, and complete the sign-in in the browser")
    }

    /// A redirect URI that is not on the loopback interface, for a user agent that does not notice it.
    static func unnoticed(_ redirect: RedirectURI) -> SignInError {
        SignInError(
            .profile,
            "the redirect URI \(redirect) is not on the loopback interface, and the user agent does not notice others",
            hint: "use --user-agent embedded, or ask for a profile with http://127.0.0.1/ as redirect_uri")
    }
}
