// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The token of an installation of a GitHub App: GitHub's REST API, "Create an installation access token for an app".
struct InstallationToken: Equatable {
    let token: Secret
    /// Seconds since 1970.
    let expiresAt: Int64
    /// `contents:read metadata:read`; nil if the server does not say.
    let scope: String?

    private static let place = ProviderRequest.Purpose.installation.place

    /// Throws an error that says what to do, or `malformedResponse`. `secrets` are those of the request.
    init(_ response: ProviderResponse, hiding secrets: [Secret]) throws(OAuthError) {
        guard response.status == 201 else { throw Self.error(response, hiding: secrets) }
        let what = "the response of \(Self.place)"
        guard response.isJSON else { throw .malformed(what, "it is not JSON (\(response.summary))") }
        let (token, expiry, scope) = try OAuthError.reading(what) { () throws(JSONError) in
            let value = try JSONParser.parse(response.body, secrets: ["token"])
            var reader = try JSONReader(value, "the document", .lenient)
            return (try reader.secret("token"), try reader.string("expires_at"), Self.scope(value["permissions"]))
        }
        try TokenResponse.check(token, what, "token")
        guard let expiresAt = WallClock.seconds(rfc3339: expiry) else {
            throw .malformed(what, "\"expires_at\" is not a time (RFC 3339)")
        }
        (self.token, self.expiresAt, self.scope) = (token, expiresAt, scope)
    }

    /// Of the permissions that are words, as all are.
    private static func scope(_ permissions: JSONValue?) -> String? {
        guard case .object(let members)? = permissions?.content, members.count <= 200 else { return nil }
        let isWord = MachineGrant.Installation.isWord
        let words = members.compactMap { member -> String? in
            guard case .string(let level) = member.value.content, isWord(member.name), isWord(level) else { return nil }
            return "\(member.name):\(level)"
        }
        return words.isEmpty ? nil : words.sorted().joined(separator: " ")
    }

    // MARK: Errors

    private static func error(_ response: ProviderResponse, hiding secrets: [Secret]) -> OAuthError {
        let said = message(response, hiding: secrets).map { ": \($0)" } ?? ""
        func refused(_ what: String, _ hint: String) -> OAuthError {
            OAuthError(.refused, .profile, "\(what) (\(response.status)\(said))", hint: hint)
        }
        switch response.status {
        case 401:
            return refused(
                "the server does not accept the signature of the GitHub App",
                "check that the clock is right, that \"client_id\" is that of the app, and that the app's settings still "
                    + "list this private key; `countersign enroll NAME --key FILE` gives another one")
        case 403 where response.retryAfter != nil:
            return OAuthError(
                .unavailable, .provider, "\(place) wants a pause (403\(said))", hint: "try again later",
                retryAfter: response.retryAfter)
        case 403:
            return refused(
                "the server issues no token for the installation of the GitHub App",
                "if the installation is suspended, an owner of the account ends that in the account's settings, under "
                    + "GitHub Apps")
        case 404:
            return refused(
                "the GitHub App has no such installation",
                "the number is at the end of the address of the installation's page, in the account's settings under "
                    + "GitHub Apps; the app may have been uninstalled, or be that of another server")
        case 422:
            return refused(
                "the installation of the GitHub App does not have the requested repositories or permissions",
                "compare \"repositories\" and \"permissions\" with the installation's page")
        default:
            return ProviderError.error(response, at: .installation, hiding: secrets)
        }
    }

    /// The server's own words.
    private static func message(_ response: ProviderResponse, hiding secrets: [Secret]) -> String? {
        guard response.isJSON, let value = try? JSONParser.parse(response.body, secrets: ["token"]),
            case .string(let text)? = value["message"]?.content, !text.isEmpty
        else { return nil }
        return ProviderText.sentence(text, hiding: secrets + response.secrets)
    }
}

extension TokenSet {
    init(_ installation: InstallationToken, now: Int64) {
        self.init(
            accessToken: installation.token, expiresAt: installation.expiresAt, obtainedAt: now, refreshToken: nil,
            scope: installation.scope, idToken: nil, clientInfo: nil)
    }
}

extension MachineGrant.Installation {
    /// Whether it may be the name of a permission: lower-case letters and `_`.
    package static func isWord(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 &- UInt8(ascii: "a") < 26 || $0 == UInt8(ascii: "_") }
    }

    /// The request for a token at `url`. `assertion` is the app's.
    func request(_ assertion: Secret?, at url: EndpointURL) -> ProviderRequest {
        var members: [JSONMember] = []
        if !repositories.isEmpty {
            members.append(JSONMember("repositories", JSONValue(.array(repositories.map { JSONValue(.string($0)) }))))
        }
        if !permissions.isEmpty {
            let all = permissions.map { JSONMember($0.name, JSONValue(.string($0.level))) }
            members.append(JSONMember("permissions", JSONValue(.object(all))))
        }
        return ProviderRequest(
            .installation, url, body: Secret(utf8: JSONValue(.object(members)).serialized),
            authorization: assertion.map { Secret(utf8: "Bearer \($0.utf8Text ?? "")") },
            secrets: assertion.map { [$0] } ?? [])
    }
}
