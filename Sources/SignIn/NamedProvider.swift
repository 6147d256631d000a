// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

/// The profiles that are built in, for providers that many people use. The client is the person's own: each of them
/// registers one with the provider.
package enum NamedProvider: String, CaseIterable, Sendable {
    case google
    case github
    case gitlab
    case bitbucket
    case azureDevOps = "azure-devops"
    case entra

    /// Where the person registers a client, and as what.
    package var registration: String {
        switch self {
        case .google: "https://console.cloud.google.com/apis/credentials, as a desktop app"
        case .github: "https://github.com/settings/developers, with the callback URL http://127.0.0.1/"
        case .gitlab: "https://gitlab.com/-/user_settings/applications, with the redirect URI http://127.0.0.1:8765/"
        case .bitbucket: "your workspace's OAuth consumers, with the callback URL http://127.0.0.1:8765/"
        case .azureDevOps, .entra:
            "https://entra.microsoft.com, App registrations, as a mobile and desktop application with the redirect URI "
                + "http://localhost"
        }
    }

    /// Whether the provider has a directory for each organisation.
    package var hasTenants: Bool { self == .entra || self == .azureDevOps }

    /// What a client of this provider needs to prove who it is.
    package enum ClientSecret: Sendable {
        case none
        /// For clients that have one.
        case optional
        case required
        /// Except with the user agent `device`.
        case exceptOnDevice
    }

    package var clientSecret: ClientSecret {
        switch self {
        case .google, .bitbucket: .required
        case .github: .exceptOnDevice
        case .gitlab: .optional
        case .azureDevOps, .entra: .none
        }
    }

    /// The profile as a document. `tenant` is the identifier of the directory, for a provider that has tenants. Throws
    /// `profile` for a value that cannot be one.
    package func document(
        client: String, tenant: String?, usesClientSecret: Bool
    ) throws(SignInError) -> String {
        guard !client.isEmpty, client.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }) else {
            throw SignInError(
                .profile, "--client-id is not the identifier of a client: it is empty or has a space or quote",
                hint: "copy it from the provider's page, \(registration)")
        }
        var members = ["\"name\": \"\(rawValue)\"", "\"client_id\": \"\(client)\""]
        if usesClientSecret { members.append("\"token_endpoint_auth_method\": \"client_secret\"") }
        members += try ownMembers(tenant)
        return "{\n  \(members.joined(separator: ",\n  "))\n}\n"
    }

    private func ownMembers(_ tenant: String?) throws(SignInError) -> [String] {
        switch self {
        case .google:
            [
                #""issuer": "https://accounts.google.com""#, #""scopes": ["openid", "email"]"#,
                #""parameters": {"access_type": "offline"}"#, #""sites": ["https://www.googleapis.com"]"#,
            ]
        case .github:
            [
                #""authorization_endpoint": "https://github.com/login/oauth/authorize""#,
                #""token_endpoint": "https://github.com/login/oauth/access_token""#,
                #""device_authorization_endpoint": "https://github.com/login/device/code""#,
                #""scopes": ["read:user"]"#, #""sites": ["https://api.github.com"]"#,
            ]
        case .gitlab:
            [
                #""issuer": "https://gitlab.com""#, #""redirect_uri": "http://127.0.0.1:8765/""#,
                #""scopes": ["openid", "read_api"]"#, #""sites": ["https://gitlab.com"]"#,
            ]
        case .bitbucket:
            [
                #""authorization_endpoint": "https://bitbucket.org/site/oauth2/authorize""#,
                #""token_endpoint": "https://bitbucket.org/site/oauth2/access_token""#,
                #""redirect_uri": "http://127.0.0.1:8765/""#, #""sites": ["https://api.bitbucket.org"]"#,
            ]
        case .azureDevOps:
            try entra(tenant) + [
                // The application that is Azure DevOps, in every tenant.
                #""scopes": ["499b84ac-1321-427f-aa17-267ca6975798/.default", "openid", "offline_access"]"#,
                #""sites": ["https://dev.azure.com"]"#,
            ]
        case .entra:
            try entra(tenant) + [
                #""scopes": ["openid", "offline_access", "User.Read"]"#, #""sites": ["https://graph.microsoft.com"]"#,
            ]
        }
    }

    /// The metadata names the tenant by its identifier only.
    private func entra(_ tenant: String?) throws(SignInError) -> [String] {
        let parts = (tenant ?? "").split(separator: "-", omittingEmptySubsequences: false)
        let isIdentifier =
            parts.map(\.utf8.count) == [8, 4, 4, 4, 12] && parts.joined().allSatisfy { $0.isHexDigit && $0.isASCII }
        guard let tenant, isIdentifier else {
            let given = tenant == nil ? "needs --tenant" : "needs the identifier of a directory as --tenant"
            throw SignInError(
                .profile, "\(rawValue) \(given), such as 72f988bf-86f1-41af-91ab-2d7cd011db47",
                hint: "it is the \"Directory (tenant) ID\" of the app registration at https://entra.microsoft.com")
        }
        return [
            "\"issuer\": \"https://login.microsoftonline.com/\(tenant.lowercased())/v2.0\"",
            #""redirect_uri": "http://localhost""#,
        ]
    }
}
