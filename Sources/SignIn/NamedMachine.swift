// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// The profiles that are built in for machines which sign with a key of their own. They list no sites: the APIs of both
/// answer many requests without a token with no challenge, so that a line with `inject=` serves them better.
package enum NamedMachine: String, CaseIterable, Sendable {
    /// A service account of Google Cloud.
    case gcp
    case githubApp = "github-app"

    /// Whether a profile of that name is built in, for a person or a machine.
    package static func isBuiltIn(_ name: String) -> Bool {
        NamedProvider(rawValue: name) != nil || NamedMachine(rawValue: name) != nil
    }

    /// The profile of a service account. `subject` is the person in whose name it acts.
    package static func gcp(_ key: ServiceAccountKey, subject: String?) -> String {
        var members = [
            JSONMember("name", text(NamedMachine.gcp.rawValue)),
            JSONMember("grant_type", text(MachineGrant.Name.assertion.rawValue)),
            JSONMember("token_endpoint", text(key.tokenEndpoint)),
            JSONMember("assertion_issuer", text(key.account)), JSONMember("assertion_key_id", text(key.keyIdentifier)),
        ]
        if let subject { members.append(JSONMember("assertion_subject", text(subject))) }
        members.append(JSONMember("scopes", list(["https://www.googleapis.com/auth/cloud-platform"])))
        return JSONValue(.object(members)).serialized
    }

    /// The profile of an installation. `api` is the base address of the server's API. Throws `profile` for one that is
    /// none. `permissions` are such as `contents=read`.
    package static func githubApp(
        client: String, installation: String, api: String, repositories: [String], permissions: [String]
    ) throws(SignInError) -> String {
        guard api.hasPrefix("https://"), !api.utf8.contains(where: { "?#@".utf8.contains($0) }) else {
            throw SignInError(
                .profile, "--api is not the address of an API",
                hint: "for GitHub Enterprise Server, write https://HOST/api/v3")
        }
        var levels: [JSONMember] = []
        for permission in permissions {
            let halves = permission.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
            guard halves.count == 2, !levels.contains(where: { $0.name == halves[0] }) else {
                throw SignInError(
                    .profile, "--permission is not NAME=LEVEL, each name once", hint: "write --permission contents=read"
                )
            }
            levels.append(JSONMember(halves[0], text(halves[1])))
        }
        let base = api.hasSuffix("/") ? String(api.dropLast()) : api
        var members = [
            JSONMember("name", text(NamedMachine.githubApp.rawValue)),
            JSONMember("grant_type", text(MachineGrant.Name.installation.rawValue)),
            JSONMember("token_endpoint", text("\(base)/app/installations/\(installation)/access_tokens")),
            JSONMember("client_id", text(client)),
        ]
        if !repositories.isEmpty { members.append(JSONMember("repositories", list(repositories))) }
        if !levels.isEmpty { members.append(JSONMember("permissions", JSONValue(.object(levels)))) }
        return JSONValue(.object(members)).serialized
    }

    private static func text(_ text: String) -> JSONValue { JSONValue(.string(text)) }
    private static func list(_ texts: [String]) -> JSONValue { JSONValue(.array(texts.map(text))) }
}
