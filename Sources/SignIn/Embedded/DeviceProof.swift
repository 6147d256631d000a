// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignDeviceManagement
import CountersignOAuth
import Glibc
import Synchronization

/// The proof of this device for pages that ask for it.
package struct DeviceProof: Sendable {
    /// The certificate for a challenge of this origin, or the reason for its absence.
    package enum Decision: Sendable {
        case certificate(DeviceCredential)
        case none(reason: String)
    }

    /// Whether there is a certificate for one of these origins, so that the window may say so.
    let isAnnounced: @Sendable ([Origin]) -> Bool
    let decide: @Sendable (PKeyAuthChallenge, Origin) -> Decision

    package init(
        isAnnounced: @escaping @Sendable ([Origin]) -> Bool,
        decide: @escaping @Sendable (PKeyAuthChallenge, Origin) -> Decision
    ) {
        self.isAnnounced = isAnnounced
        self.decide = decide
    }
}

/// A page's question for this device's certificate: a redirect to `urn:http-auth:PKeyAuth?…` (MS-PKAP §3.2.5.1.2).
/// The answer is a request to the URL in its parameter `SubmitUrl`.
struct DeviceChallenge: Equatable, Sendable {
    let challenge: PKeyAuthChallenge
    let submitURL: EndpointURL

    /// Names of parameters compare without case. Throws `malformed` without `nonce`, `Context`, `Version` and
    /// `SubmitUrl`, or with one of them more than once; `foreignPage` unless `SubmitUrl` is https and on one of
    /// `origins`.
    init(_ url: String, origins: [Origin]) throws(DeviceManagementError) {
        func malformed(_ reason: String) -> DeviceManagementError {
            DeviceManagementError(.malformed, "the page's question for this device's certificate \(reason)")
        }
        let query = url.prefix { $0 != "#" }.drop { $0 != "?" }.dropFirst()
        guard let pairs = FormEncoding.decode(query.utf8) else { throw malformed("cannot be decoded") }
        let parameters = Dictionary(grouping: pairs) { $0.name.lowercased() }
        guard parameters.allSatisfy({ $0.value.count == 1 }) else { throw malformed("is ambiguous") }
        func value(_ name: String) -> String? { parameters[name.lowercased()]?.first?.value }
        guard let challenge = PKeyAuthChallenge(value), let submit = value("SubmitUrl") else {
            throw malformed("lacks a nonce, Context, Version or SubmitUrl")
        }
        // They return in a field of the answer.
        guard (challenge.context + challenge.version).utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw malformed("has a Context or Version that no field can have")
        }
        self.challenge = challenge
        do {
            submitURL = try EndpointURL(String(submit.prefix { $0 != "#" }), "SubmitUrl")
        } catch {
            throw DeviceManagementError(.foreignPage, "\(error.detail); the device was not proved")
        }
        guard origins.contains(submitURL.origin) else {
            throw DeviceManagementError(
                .foreignPage,
                "SubmitUrl leads to \(submitURL.origin), which is not one of the profile's hosts; the device was not "
                    + "proved",
                hint: "if the organisation uses that host, its profile must name it in \"navigation_hosts\"")
        }
    }

    /// The fields of the request to ``submitURL``. `time` is in seconds since 1970.
    func fields(_ device: DeviceCredential, time: Int64) -> [AdditionalHeader] {
        let audience = "\(submitURL.origin.scheme.rawValue)://\(submitURL.origin.authority)\(submitURL.path)"
        let answer = PKeyAuthAnswer(challenge, device).field(audience: audience, time: time)
        return [AdditionalHeader("Authorization", answer.fieldValue), AdditionalHeader("x-ms-PKeyAuth", "1.0")]
    }
}

/// Answers the pages of one sign-in, in all its windows.
final class DeviceAnswers: Sendable {
    private let page: SignInPage
    private let origins: [Origin]
    private let proof: DeviceProof?
    private let count = Mutex(0)

    /// How often the pages may ask: each answer leads to a page that can ask again.
    static let maximum = 8
    /// The size of the largest field value that the window accepts.
    private static let maximumFieldBytes = 16 << 10
    private static let subject = "urn:http-auth:PKeyAuth"

    /// `origins` are those of the windows' pages. Without `proof`, every answer says that there is no certificate.
    init(_ page: SignInPage, _ origins: [Origin], _ proof: DeviceProof?) {
        self.page = page
        self.origins = origins
        self.proof = proof
    }

    /// Whether the windows say that there is a certificate.
    var isAnnounced: Bool { proof?.isAnnounced(origins) ?? false }

    /// The window's next page, which carries the answer. Throws an error that ends the sign-in.
    func answer(to url: String) throws(DeviceManagementError) -> WebViewCommand {
        page.report(.specialURL(Self.subject))
        let number = count.withLock { count in
            count += 1
            return count
        }
        guard number <= Self.maximum else {
            throw DeviceManagementError(
                .malformed, "the provider's pages ask for this device's certificate again and again",
                hint: "ask the organisation's administrators whether the device is registered")
        }
        let challenge = try DeviceChallenge(url, origins: origins)
        let origin = challenge.submitURL.origin
        let device: DeviceCredential
        let unproved = DeviceProof.Decision.none(reason: "the window has no proxy with its identities")
        switch proof?.decide(challenge.challenge, origin) ?? unproved {
        case .certificate(let credential): device = credential
        case .none(let reason):
            page.report(.unavailable("\(origin.host) asks for this device's certificate, and gets none: \(reason)"))
            device = .none
        }
        let fields = challenge.fields(device, time: Int64(time(nil)))
        guard fields.allSatisfy({ $0.value.utf8.count <= Self.maximumFieldBytes }) else {
            throw DeviceManagementError(.malformed, "the page's question for this device's certificate is too long")
        }
        return .load(url: challenge.submitURL.description, headers: fields)
    }
}
