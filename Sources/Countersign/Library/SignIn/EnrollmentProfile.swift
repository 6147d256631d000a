// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSignIn

/// How an organisation's people sign in: a JSON document that it hands out, as `Documentation/profile.schema.json`
/// describes it. Show the user its effects before you follow it.
public struct EnrollmentProfile: Sendable {
    let profile: SignInProfile

    /// The source of the document: a file's absolute path, a URL, or the name that the program gave it.
    public let source: String

    init(_ profile: SignInProfile, from source: String) {
        self.profile = profile
        self.source = source
    }

    /// The service that says whether this device complies with the organisation's policy; nil for none. It gets the
    /// access token if the profile says so.
    public var complianceService: String? { profile.compliance?.url.description }

    /// The number of days without a confirmation that the device complies after which the results of the sign-in are
    /// wiped; nil for never.
    public var wipeAfterDays: Int? { profile.compliance?.wipeAfterDays.map { Int($0) } }

    /// Reads a document that the program has, of at most 64 KiB. `source` names its origin to the user. Throws
    /// ``ChallengeError`` with the code `profileFaulty`, and line and column in its text.
    public init(_ document: some Sequence<UInt8>, source: String) throws(ChallengeError) {
        do {
            self.init(try SignInProfile.parsed(Array(document), from: source), from: source)
        } catch {
            throw ChallengeError(readingProfile: error)
        }
    }

    /// Reads a file. Throws ``ChallengeError`` with the code `profileFaulty`. Blocks the calling thread while it reads.
    public init(file path: String) throws(ChallengeError) {
        do {
            let (profile, source) = try SignInProfile.read(file: path)
            self.init(profile, from: source)
        } catch {
            throw ChallengeError(readingProfile: error)
        }
    }

    /// The name of the sign-in and of its access token, unless the program chooses another: the profile's, else the
    /// issuer's host.
    public var name: String { profile.name ?? SignInName.implied(by: profile.issuer) }

    /// The provider's issuer identifier, a URL.
    public var issuer: String { profile.issuer.text }

    /// The organisation's client identifier at the provider (RFC 6749 §2.2).
    public var clientID: String { profile.request.client.identifier }

    /// The scopes that a sign-in requests.
    public var scopes: [String] { profile.request.scopes }

    /// The same profile, with more scopes to request. Throws ``ChallengeError`` with the code `profileFaulty` for a
    /// text that is not a scope (RFC 6749 §3.3).
    public func adding(scopes: [String]) throws(ChallengeError) -> EnrollmentProfile {
        do {
            return EnrollmentProfile(try profile.adding(scopes: scopes), from: source)
        } catch {
            throw ChallengeError(readingProfile: error)
        }
    }

    /// Whether the provider's pages may manage the device with special URLs, if the agent is `embedded`.
    public var permitsSpecialURLs: Bool { profile.specialURLs != nil }

    /// The same profile, whose provider's pages may manage the device with special URLs: enrol it, and offer
    /// configuration profiles. See ``InteractiveWebviewHandler``.
    public func enablingSpecialURLs() -> EnrollmentProfile {
        EnrollmentProfile(profile.enablingSpecialURLs(), from: source)
    }

    /// The APIs that the access token is for (RFC 8707); empty if the provider decides.
    public var resources: [String] { profile.request.resources }

    /// The sites whose Bearer challenges are answered with the access token, as the list of sites writes them. A
    /// sign-in adds them to the list.
    public var sites: [String] { profile.sites }

    /// The EST service that issues a client certificate after the sign-in; nil without one.
    public var certificateService: CertificateServiceDescription? {
        profile.certificates.map { CertificateServiceDescription($0) }
    }

    /// The user agent that the organisation wants; nil if the machine decides.
    public var userAgent: SignInAgent? { profile.userAgent.map { SignInAgent($0) } }
}

/// The EST service (RFC 7030) of an organisation, which issues a client certificate after a sign-in. The certificate is
/// the identity with the sign-in's name.
public struct CertificateServiceDescription: Equatable, Sendable {
    /// `https://host[:port][/label]`. The service gets the person's access token when it asks for one.
    public let server: String
    /// The certification authorities that verify the service and its certificates, and nothing else.
    public let anchors: [X509Certificate]
    /// The sites that get the certificate when they ask for one, as the list of sites writes them. A sign-in adds them
    /// to the list.
    public let sites: [String]

    init(_ service: CertificateService) {
        server = service.endpoint.description
        anchors = service.anchors.map { X509Certificate($0) }
        sites = service.sites
    }
}

extension EnrollmentProfile: Equatable {
    /// Compares the documents, their sources, the scopes, and whether special URLs are permitted.
    public static func == (left: Self, right: Self) -> Bool {
        left.profile.text == right.profile.text && left.source == right.source && left.scopes == right.scopes
            && left.permitsSpecialURLs == right.permitsSpecialURLs
    }
}

extension EnrollmentProfile: CustomStringConvertible {
    /// The document.
    public var description: String { profile.text }
}
