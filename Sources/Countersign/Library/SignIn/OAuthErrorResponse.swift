// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

/// An error that the provider has reported (RFC 6749 §4.1.2.1, §5.2), in printable characters. For a program that
/// distinguishes errors of its provider, or reports them to the provider's operator.
public struct OAuthErrorResponse: Equatable, Sendable {
    /// `error`, such as `invalid_grant`.
    public let error: String
    /// `suberror`, which some providers add; nil without one.
    public let suberror: String?
    /// `correlation_id`, by which the operator of Microsoft's provider finds the request; nil without one.
    public let correlationID: String?
    /// `homeAccountId`, the account and its tenant at Microsoft's provider; nil if the provider has not said.
    public let homeAccountID: String?

    /// Creates a value, for the tests of a program.
    public init(error: String, suberror: String? = nil, correlationID: String? = nil, homeAccountID: String? = nil) {
        self.error = error
        self.suberror = suberror
        self.correlationID = correlationID
        self.homeAccountID = homeAccountID
    }

    /// Nil if the provider has reported nothing.
    init?(_ error: OAuthError) {
        guard let reported = error.providerCode else { return nil }
        self.init(
            error: reported.error, suberror: reported.suberror, correlationID: reported.correlationID,
            homeAccountID: reported.homeAccount)
    }
}
