// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignOAuth

/// The account whose device is to comply.
package struct ComplianceAccount: Equatable, Sendable {
    /// The part of its `homeAccountId` before the dot; nil if the provider has not said.
    package let identifier: String?
    /// The provider's name for the person; nil if it gives none.
    package let user: String?

    package init(identifier: String?, user: String?) {
        self.identifier = identifier.flatMap { $0.isEmpty ? nil : $0 }
        self.user = user.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Distinguishes the requests for one account from those for others; nil if nothing is known.
    package var key: String? { identifier ?? user }
}

/// A POST to the compliance service, with JSON.
///
/// The service identifies the person in one of two ways. An access token for the service does so at once. Without one,
/// the client makes a random verifier and sends its SHA-256 with the first request; the service then reveals nothing
/// until a person has signed in at the page that it names, and after that only to a client with the verifier.
package struct ComplianceRequest: Equatable, Sendable {
    package let url: EndpointURL
    package let body: Secret
    /// The value of `Authorization`; nil without an access token.
    package let authorization: Secret?
    /// The value of `Accept-Language`.
    package let languages: String

    static let version: Int64 = 1

    /// Registers, enrols and applies the policy in one call.
    static func remediate(
        _ account: ComplianceAccount, at service: ComplianceService, client: String, isSilent: Bool, verifier: Secret,
        token: Secret?, languages: String
    ) -> ComplianceRequest {
        var members: [(String, JSONValue.Content)] = [
            ("Version", .integer(version)), ("Action", .string("remediate")), ("ClientId", .string(client)),
            ("Platform", .string("Linux")), ("Silent", .bool(isSilent)),
            ("Challenge", .string(challenge(of: verifier))),
        ]
        if let identifier = account.identifier { members.append(("AccountId", .string(identifier))) }
        if let user = account.user { members.append(("User", .string(user))) }
        return request(members, service, token, languages)
    }

    /// Asks about a session that the service has opened.
    static func status(
        of session: Secret, at service: ComplianceService, verifier: Secret, token: Secret?, languages: String
    ) -> ComplianceRequest {
        request(
            [
                ("Version", .integer(version)), ("Action", .string("status")), ("Session", .secret(session)),
                ("Verifier", .secret(verifier)),
            ], service, token, languages)
    }

    /// SHA-256 of the verifier's characters, base64url, as in RFC 7636 §4.2.
    static func challenge(of verifier: Secret) -> String {
        Base64URL.encode(verifier.withBytes { Digest.sha256.hash($0) })
    }

    private static func request(
        _ members: [(String, JSONValue.Content)], _ service: ComplianceService, _ token: Secret?, _ languages: String
    ) -> ComplianceRequest {
        let object = JSONValue(.object(members.map { JSONMember($0.0, JSONValue($0.1)) }))
        return ComplianceRequest(
            url: service.url, body: Secret(utf8: object.serialized), authorization: token.map(bearer),
            languages: languages)
    }

    private static func bearer(_ token: Secret) -> Secret {
        let prefix = Array("Bearer ".utf8)
        return Secret(count: prefix.count + token.count) { room in
            room.copyBytes(from: prefix)
            token.withBytes { UnsafeMutableRawBufferPointer(rebasing: room[prefix.count...]).copyMemory(from: $0) }
        }
    }
}

/// The languages that a person reads, from the locale of the environment.
package enum PreferredLanguages {
    private static let maximum = 8

    /// The value of `Accept-Language` (RFC 9110 §12.5.4). `LANGUAGE` is a list; else the locale of messages counts, by
    /// POSIX's order of `LC_ALL`, `LC_MESSAGES` and `LANG`. English comes last, and alone without a locale.
    package static func field(in environment: [String: String]) -> String {
        let locale =
            ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        // Without a locale, gettext ignores LANGUAGE, too.
        let isPlain = locale.isEmpty || tag(locale) == nil
        let list = isPlain ? "" : environment["LANGUAGE"] ?? ""
        var tags: [String] = []
        func add(_ tag: String) {
            if !tags.contains(tag), tags.count < maximum { tags.append(tag) }
        }
        for name in list.split(separator: ":").map(String.init) + [locale] {
            guard let tag = tag(name) else { continue }
            add(tag)
            if let language = tag.split(separator: "-").first { add(String(language)) }
        }
        add("en")
        return tags.enumerated().map { index, tag in index == 0 ? tag : "\(tag);q=0.\(9 - index)" }
            .joined(separator: ", ")
    }

    /// `de_CH.UTF-8@euro` as `de-CH` (RFC 5646); nil for `C`, `POSIX`, and anything else.
    static func tag(_ locale: String) -> String? {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        let parts = name.split(separator: "_", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), (2...3).contains(parts[0].utf8.count),
            parts.allSatisfy({ part in
                part.utf8.allSatisfy { ($0 | 0x20) &- UInt8(ascii: "a") < 26 || $0 &- UInt8(ascii: "0") < 10 }
            }), parts.count == 1 || (2...3).contains(parts[1].utf8.count)
        else { return nil }
        return parts.count == 1 ? parts[0].lowercased() : "\(parts[0].lowercased())-\(parts[1].uppercased())"
    }
}
