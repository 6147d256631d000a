// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

extension EnrollmentProfile {
    /// A profile from values, without a document. ``source`` is `the program`.
    ///
    /// - `issuer`: the provider's issuer identifier, an https URL.
    /// - `clientID`: the client identifier of the program at the provider (RFC 6749 §2.2).
    /// - `redirectURI`: the registered one; any port of a loopback address fits.
    /// - `scopes`: `openid` asks for an ID token, and `offline_access` usually for a token that renews the others.
    /// - `sites`: those whose Bearer challenges are answered with the access token, as the list of sites writes them.
    /// - `parameters`: further ones of the authorization request.
    /// - `name`: that of the sign-in; nil for the issuer's host.
    ///
    /// Throws ``ChallengeError`` with the code `profileFaulty` for a value that is not valid. A document can contain
    /// more: `Documentation/profile.schema.json`.
    public init(
        issuer: String, clientID: String, redirectURI: String = "http://127.0.0.1/",
        scopes: [String] = ["openid", "offline_access"], sites: [String] = [], parameters: [String: String] = [:],
        name: String? = nil
    ) throws(ChallengeError) {
        func string(_ text: String) -> JSONValue { JSONValue(.string(text)) }
        func array(_ texts: [String]) -> JSONValue { JSONValue(.array(texts.map(string))) }
        var members = [
            JSONMember("issuer", string(issuer)), JSONMember("client_id", string(clientID)),
            JSONMember("redirect_uri", string(redirectURI)), JSONMember("scopes", array(scopes)),
            JSONMember("sites", array(sites)),
        ]
        if let name { members.append(JSONMember("name", string(name))) }
        if !parameters.isEmpty {
            let sorted = parameters.sorted { $0.key < $1.key }
            members.append(
                JSONMember("parameters", JSONValue(.object(sorted.map { JSONMember($0.key, string($0.value)) }))))
        }
        try self.init(Array(JSONValue(.object(members)).serialized.utf8), source: "the program")
    }
}
