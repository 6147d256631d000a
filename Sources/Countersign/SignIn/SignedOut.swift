// SPDX-License-Identifier: Apache-2.0

/// The result of the removal of a sign-in.
package struct SignedOut: Equatable, Sendable, Codable {
    /// The provider has revoked the tokens.
    package let isRevoked: Bool
    /// Why it has not; nil if it has.
    package let warning: String?
    /// Where the person signs out in the browser, if the provider has such a page.
    package let page: String?
    /// The kind of user agent that has shown the provider's pages; nil if it is not known.
    package let userAgent: String?
    /// The sites that are no longer listed.
    package let sites: [String]
    /// The configuration profiles that were removed with the sign-in; nil from an earlier version.
    package let profiles: [RemovedProfile]?
}
