// SPDX-License-Identifier: Apache-2.0

import CountersignSignIn
import CountersignVault

/// A sign-in without its tokens, for display.
package struct ListedSignIn: Equatable, Sendable, Codable {
    package let name: String
    package let issuer: String
    package let account: String
    package let subject: String
    package let scope: String
    package let source: String
    package let sites: [String]
    package let signedIn: Int64
    /// When the access token expires; 0 if the provider does not say.
    package let expires: Int64
    /// Whether the access token can be renewed.
    package let isRenewable: Bool
    /// Why the person has to sign in again; empty if that is not so.
    package let ended: String
    package let failures: UInt32
    package let lastFailure: Int64
    /// Empty if an earlier version has stored it.
    package let identifier: String
    /// Why another process cannot store the newer tokens that it has; nil if there is no such process.
    package let unstored: String?
    /// The client certificate of the sign-in; nil if it has none.
    package let certificate: ListedCertificate?
    /// Whether the device complies; nil if the profile names no compliance service.
    package let compliance: ListedCompliance?
    /// The profile's document, for a profile with a compliance service or one that is built in; else nil.
    package let profileText: String?
    /// Whether the client's secret is stored; nil from an earlier version.
    package let hasClientSecret: Bool?

    init(
        _ record: SignInRecord, certificate: ListedCertificate?, compliance: ListedCompliance?, unstored: String?
    ) {
        self.compliance = compliance
        let isKeptHere =
            NamedMachine.isBuiltIn(record.source) || SiteProfile.isOne(record.profile, from: record.source)
        profileText = compliance == nil && !isKeptHere ? nil : record.profile
        hasClientSecret = record.clientSecret != nil
        self.certificate = certificate
        name = record.name
        identifier = record.identifier
        self.unstored = unstored
        issuer = record.issuer
        account = record.account
        subject = record.subject
        scope = record.scope
        source = record.source
        sites = record.sites
        signedIn = record.signedIn
        expires = record.expires
        isRenewable = record.isRenewable
        ended = record.shownEnd
        failures = record.failures
        lastFailure = record.lastFailure
    }
}
