// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignOAuth

/// Where the provider has granted less than the profile asks for.
struct GrantReport {
    /// The scopes of the request that the access token does not have.
    let missing: [String]
    /// The provider has sent no refresh token: the sign-in ends with the access token.
    let isFinal: Bool
    /// When the access token expires; nil if the provider does not say.
    private let expires: Int64?
    private let asksForRefresh: Bool
    private let name: String

    /// Scopes with another effect than access, which providers leave out of `scope`, or translate.
    private static let standard: Set<String> = ["openid", "profile", "email", "address", "phone", "offline_access"]

    init(_ tokens: TokenSet, of request: SignInRequest, name: String) {
        let granted = Set((tokens.scope ?? "").split(separator: " ").map { Self.permission(String($0)) })
        missing = request.scopes.filter { scope in
            // `.default` asks for whatever was agreed to before.
            !Self.standard.contains(scope) && !scope.hasSuffix("/.default") && !granted.contains(Self.permission(scope))
        }
        isFinal = tokens.refreshToken == nil
        expires = tokens.expiresAt
        asksForRefresh = request.scopes.contains("offline_access")
        self.name = name
    }

    /// Microsoft's directory puts the resource before the permission, and compares without case.
    private static func permission(_ scope: String) -> String {
        (scope.split(separator: "/").last.map(String.init) ?? scope).lowercased()
    }

    func show() {
        if !missing.isEmpty {
            let scopes = Console.printable(missing.joined(separator: " "))
            Console.warning(
                "the provider has not granted \(scopes): sites that require it refuse the access token",
                hint: "ask the organisation's administrators for it, and run `countersign enroll \(name)` again")
        }
        guard isFinal else { return }
        let end = expires.map { "ends at \(WallClock.rfc3339($0))" } ?? "cannot be renewed"
        Console.warning(
            "the provider sent no refresh token: the sign-in \(end)",
            hint: asksForRefresh
                ? "run `countersign enroll \(name)` again then; the provider may issue none to this client"
                : "run `countersign enroll \(name) --scope offline_access`, which asks for one")
    }
}
