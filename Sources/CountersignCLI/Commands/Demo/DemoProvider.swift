// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignIssuer
import CountersignJSON
import CountersignOAuth

/// The demo's provider, and the profile with which `countersign enroll` signs in there.
enum DemoProvider {
    /// The name of the sign-in. It differs from that of the demo's other credentials.
    static let name = "demo-sign-in"

    private static let client = "countersign-demo"

    /// The login page has the account's name and password filled in.
    static func settings(_ account: PasswordCredential) throws -> IssuerSettings {
        IssuerSettings(
            clientIdentifier: client, redirects: [try RedirectURI("http://127.0.0.1/")],
            account: .init(subject: "demo-1", name: account.user, password: account.password),
            interaction: .page(isFilledIn: true))
    }

    /// The profile's document. `site` wants the provider's token.
    static func profile(issuer: String, site: String) -> String {
        func text(_ text: String) -> String { JSONValue(.string(text)).serialized }
        return """
            {
              "name": \(text(name)),
              "issuer": \(text(issuer)),
              "client_id": \(text(client)),
              "scopes": ["openid", "offline_access", "api"],
              "sites": [\(text(site))]
            }

            """
    }
}
