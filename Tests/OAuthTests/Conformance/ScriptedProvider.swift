// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

@testable import CountersignOAuth

/// A provider that does what it should, except for the switches that a case has turned, and what its client wants.
struct ScriptedProvider: Sendable {
    struct Reply: Sendable {
        var status = 200
        var type: String? = "application/json"
        var body = "{}"
        var nonce: String?
    }

    /// Members or parameters with other values; nil leaves one out. Values of members are in JSON.
    struct Changes: Sendable {
        private(set) var values: [String: String?] = [:]

        subscript(name: String) -> String? {
            get { values[name] ?? nil }
            set { values[name] = .some(newValue) }
        }
    }

    /// Whose signature an ID token has.
    enum Signer: Sendable {
        case published, stranger, nobody
        /// RS256, with another key of the provider.
        case rsa
        /// HS256 in the header.
        case shared
    }

    /// One response of the token endpoint.
    struct Tokens: Sendable {
        var header = Changes()
        var claims = Changes()
        var members = Changes()
        var signer = Signer.published
        /// Changes the ID token after it is signed.
        var damage: @Sendable (String) -> String = { $0 }
        /// In place of tokens.
        var reply: Reply?
        var type: String? = "application/json"
    }

    // MARK: The client

    var client = Provider.client
    var authentication = Client.Authentication.none
    var scopes = ["openid", "offline_access"]
    var resources: [String] = []
    var acrValues: [String] = []
    var maxAge: Int64?
    var algorithms = Set(SignatureAlgorithm.allCases)
    var isOnDevice = false
    var usesFormPost = false
    /// The keys that the client has from earlier.
    var known: (@Sendable () throws -> String)?
    var issuer = Provider.issuerText
    /// The key to which the tokens are bound.
    var proofKey: ES256Key?
    /// Its tokens are refreshed, too.
    var refreshes = false

    // MARK: The provider

    /// The number of the place that has the metadata; see ``Issuer/metadataLocations``.
    var place = 0
    /// What the other places say.
    var elsewhere = Reply(status: 404, type: nil, body: "")
    var metadata = Changes()
    var metadataReply: Reply?
    /// The key set that it publishes.
    var keys: @Sendable () throws -> String = { KeySet.text([ScriptedKeys.main.key()]) }
    /// The one at the time of the refresh; nil for the same.
    var laterKeys: (@Sendable () throws -> String)?
    /// The parameters of the redirect.
    var answer = Changes()
    /// The whole query of the redirect.
    var query: String?
    var push = Reply(status: 201, body: #"{"request_uri":"urn:example:1","expires_in":60}"#)
    var device = Changes()
    /// The answers to polls before the tokens.
    var polls: [Reply] = []
    var tokens = Tokens()
    var refreshed = Tokens()
    /// What a proof has to contain.
    var nonce: String?
    /// Its answer to the registration of a client; nil if nobody registers.
    var registration: Changes?
    var registrationReply: Reply?
}

/// The keys of the scripted provider, and of one who is not it.
enum ScriptedKeys {
    static let main = Key("key-1")
    static let second = Key("key-2")
    static let stranger = Key("key-1")
    static let rsa = Result { try SigningKey("rsa-1", SigningKey.rsa) }

    struct Key: Sendable {
        let identifier: String
        let pair = ES256Key.random()

        init(_ identifier: String) { self.identifier = identifier }

        /// As a JSON Web Key. `more` begins with a comma.
        func key(_ more: String = #","use":"sig""#, named name: String? = nil) -> String {
            "{\"kid\":\"\(name ?? identifier)\",\(members)\(more)}"
        }

        /// Without `kid`.
        var nameless: String { "{\(members)}" }

        var members: String {
            #""kty":"EC","crv":"P-256","x":"\#(Base64URL.encode(pair.x))","y":"\#(Base64URL.encode(pair.y))""#
        }
    }
}

extension ScriptedProvider.Tokens {
    /// The compact serialisation of an ID token with these claims, unless the case says others.
    func idToken(_ usual: [String: String?]) throws -> String {
        var header: [String: String?] = ["alg": #""ES256""#, "kid": #""key-1""#, "typ": #""JWT""#]
        switch signer {
        case .nobody: header["alg"] = #""none""#
        case .rsa: (header["alg"], header["kid"]) = (#""RS256""#, #""rsa-1""#)
        case .shared: header["alg"] = #""HS256""#
        case .published, .stranger: break
        }
        let top = Self.object(header, self.header)
        let payload = Self.object(usual, claims)
        let input = [top, payload].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
        switch signer {
        case .nobody: return damage(input + ".")
        case .rsa: return damage(try ScriptedKeys.rsa.get().sign(top, payload, as: .rs256))
        case .published, .shared: return damage(input + "." + Self.signature(ScriptedKeys.main, input))
        case .stranger: return damage(input + "." + Self.signature(ScriptedKeys.stranger, input))
        }
    }

    private static func signature(_ key: ScriptedKeys.Key, _ input: String) -> String {
        Base64URL.encode(key.pair.signature(of: Array(input.utf8)) ?? [])
    }

    /// A JSON object with `usual` members and the changes to them.
    static func object(_ usual: [String: String?], _ changes: ScriptedProvider.Changes = .init()) -> String {
        let members = usual.merging(changes.values) { $1 }
        let texts = members.keys.sorted().compactMap { name in
            members[name].flatMap { $0 }.map { "\"\(name)\":\($0)" }
        }
        return "{\(texts.joined(separator: ","))}"
    }
}
