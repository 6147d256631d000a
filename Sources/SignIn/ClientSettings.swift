// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// Who the client is, how it proves that, and which grant it uses if there is no person.
struct ClientSettings {
    /// Empty if the grant needs no client.
    let identifier: String
    let authentication: ClientAuthenticationMethod
    /// Whose key signs the client's assertions; nil unless the method is ``ClientAuthenticationMethod/privateKey``.
    let identity: ClientIdentity?
    /// Nil for the sign-in of a person.
    let grant: MachineGrant?

    /// The keys that only the sign-in of a person has.
    private static let personalKeys = [
        "authorization_endpoint", "device_authorization_endpoint", "end_session_endpoint", "redirect_uri", "user_agent",
        "navigation_hosts", "special_urls", "page_messages", "form_post", "prompt", "parameters", "broker", "session",
        "compliance_service",
    ]
    /// The keys of a grant, and the grants that have them.
    private static let grantKeys: [(key: String, grants: [MachineGrant.Name])] = [
        ("assertion_file", [.assertion]), ("assertion_issuer", [.assertion]), ("assertion_subject", [.assertion]),
        ("assertion_key_id", [.assertion]), ("repositories", [.installation]), ("permissions", [.installation]),
        ("subject_token_file", [.exchange]), ("subject_token_type", [.exchange]),
        ("requested_token_type", [.exchange]), ("audience", [.exchange, .assertion]),
    ]

    init(_ reader: inout JSONReader) throws {
        let method = try Self.authentication(&reader)
        grant = try Self.grant(&reader)
        let signs = grant?.signs == true
        if signs, method != .none {
            throw reader.invalid(
                "token_endpoint_auth_method", "has no effect: the client signs what it sends with its own key")
        }
        authentication = signs ? .grantKey : method
        // The issuer of its assertions is the client, and is not sent otherwise.
        let key = reader.valueIfPresent("assertion_issuer") == nil ? "client_id" : "assertion_issuer"
        let text = try reader.stringIfPresent(key)
        if let text {
            try reader.position(of: key).locating { () throws(OAuthError) in
                try SignInRequest.check(clientIdentifier: text)
            }
        }
        identifier = text ?? ""
        // After `client_id`, which a missing `client_identity` would otherwise take for a misspelling.
        identity = try ClientIdentity(&reader, for: authentication)
        // The grants with a file may come from anybody who has it (RFC 7523 §3.1, RFC 8693 §2.1).
        if text == nil, grant?.file == nil || authentication != .none { _ = try reader.string("client_id") }
        if grant == .clientCredentials, authentication == .none {
            throw reader.invalid(
                "grant_type",
                "needs a client that can prove who it is (RFC 6749 §4.4): add "
                    + "\"token_endpoint_auth_method\": \"client_secret\"")
        }
    }

    private static func authentication(_ reader: inout JSONReader) throws -> ClientAuthenticationMethod {
        let key = "token_endpoint_auth_method"
        // So that nobody hands out a secret in a profile.
        if reader.valueIfPresent("client_secret") != nil {
            throw reader.invalid(
                "client_secret",
                "must not be in a profile, which everybody gets; write \"\(key)\": \"client_secret\", "
                    + "and `countersign enroll PROFILE` asks for it")
        }
        guard let text = try reader.stringIfPresent(key) else { return .none }
        guard let method = ClientAuthenticationMethod.named.first(where: { $0.rawValue == text }) else {
            let known = ClientAuthenticationMethod.named.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw reader.invalid(key, "must be one of \(known)")
        }
        return method
    }

    private static func grant(_ reader: inout JSONReader) throws -> MachineGrant? {
        let text = try reader.stringIfPresent("grant_type")
        let name = text.flatMap(MachineGrant.Name.init)
        let isPersonal = text == nil || text == "authorization_code"
        guard name != nil || isPersonal else {
            let known = ["authorization_code"] + MachineGrant.Name.allCases.map(\.rawValue)
            throw reader.invalid("grant_type", "must be one of " + known.map { "\"\($0)\"" }.joined(separator: ", "))
        }
        for (key, grants) in grantKeys where reader.valueIfPresent(key) != nil {
            guard let name, grants.contains(name) else {
                throw reader.invalid(key, "is for \"grant_type\": \"\(grants[0].rawValue)\"")
            }
        }
        guard let name else { return nil }
        for key in personalKeys where reader.valueIfPresent(key) != nil {
            throw reader.invalid(key, "is for the sign-in of a person, and \"grant_type\" says that there is none")
        }
        switch name {
        case .clientCredentials: return .clientCredentials
        case .assertion: return try assertion(&reader)
        case .installation: return .installation(try MachineGrant.Installation(&reader))
        case .exchange:
            let type = try reader.stringIfPresent("subject_token_type") ?? MachineGrant.jwtType
            return .exchange(
                MachineGrant.Exchange(
                    file: try file("subject_token_file", &reader), subjectTokenType: type,
                    audience: try reader.stringIfPresent("audience"),
                    requestedTokenType: try reader.stringIfPresent("requested_token_type")))
        }
    }

    /// From a file, or signed by the client.
    private static func assertion(_ reader: inout JSONReader) throws -> MachineGrant {
        guard reader.valueIfPresent("assertion_issuer") != nil else {
            for key in ["assertion_subject", "assertion_key_id", "audience"] where reader.valueIfPresent(key) != nil {
                throw reader.invalid(key, "is for an assertion that is signed here: add \"assertion_issuer\"")
            }
            return .assertion(file: try file("assertion_file", &reader))
        }
        for key in ["assertion_file", "client_id"] where reader.valueIfPresent(key) != nil {
            throw reader.invalid(
                key, "has no effect with \"assertion_issuer\", with which the assertion is signed here")
        }
        return .signedAssertion(
            MachineGrant.SignedAssertion(
                subject: try reader.stringIfPresent("assertion_subject"),
                keyIdentifier: try reader.stringIfPresent("assertion_key_id"),
                audience: try reader.stringIfPresent("audience")))
    }

    private static func file(_ key: String, _ reader: inout JSONReader) throws -> String {
        let path = try reader.string(key)
        guard path.hasPrefix("/"), path.utf8.count <= 4096, !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { throw reader.invalid(key, "must be the absolute path of a file, such as /run/secrets/token") }
        return path
    }
}
