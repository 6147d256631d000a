// SPDX-License-Identifier: Apache-2.0

/// Signing out at the provider in the browser (OpenID Connect RP-Initiated Logout §2).
package enum EndSession {
    /// Where to send the person; nil if the provider has no such page. Without the ID token: users of the machine can
    /// see the address that a browser is started with. `logoutHint` is the account.
    package static func url(
        logoutHint: String?, client: Client, at metadata: ProviderMetadata
    ) -> EndpointURL? {
        guard let endpoint = metadata.endSessionEndpoint else { return nil }
        var parameters = FormParameters()
        parameters.append("logout_hint", ifPresent: logoutHint)
        parameters.append("client_id", client.identifier)
        return endpoint.adding(query: parameters.text)
    }
}
