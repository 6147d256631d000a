// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// An account that the broker knows.
package struct BrokerAccount: Equatable, Sendable {
    /// The whole object, which requests send back.
    package let object: JSONValue
    /// `jdoe@corp.example`.
    package let username: String
    /// `uid.utid`; nil if the broker does not say.
    package let homeAccountIdentifier: String?
    /// The person's name, for display.
    package let name: String?
    /// The identifier of the account. The same user name can exist in two tenants.
    package var subject: String { homeAccountIdentifier ?? username }

    /// `what` names the object in errors. Throws ``JSONError`` for an object without a user name.
    init(_ value: JSONValue, _ what: String = "an account") throws(JSONError) {
        var reader = try JSONReader(value, what, .lenient)
        object = value
        username = try reader.string("username")
        homeAccountIdentifier = value.string("homeAccountId")
        name = value.string("name") ?? value.string("givenName")
    }

    /// From ``object`` as text. Throws ``JSONError``.
    package init(parsing text: String) throws(JSONError) {
        try self.init(try JSONParser.parse(Array(text.utf8)))
    }
}

extension BrokerAccount {
    /// The account with this user name, compared without case; without a name, the only one. Throws `noAccount` without
    /// one, or if there are several and `username` is nil.
    package static func choose(
        among accounts: [BrokerAccount], named username: String?
    ) throws(BrokerError) -> BrokerAccount {
        guard let first = accounts.first else {
            throw BrokerError(
                .noAccount, "the identity broker has no account", hint: "sign in to the identity broker first")
        }
        guard let username else {
            guard accounts.count == 1 else {
                let names = accounts.prefix(5).map { PrintableText.plain($0.username) }.joined(separator: ", ")
                throw BrokerError(
                    .noAccount,
                    "the identity broker has \(accounts.count) accounts, and none of them was chosen: \(names)",
                    summary: "the identity broker has \(accounts.count) accounts, and none of them was chosen",
                    hint:
                        "choose one with `countersign enroll PROFILE --account USER`, and name that sign-in with credential="
                )
            }
            return first
        }
        let wanted = username.lowercased()
        guard let account = accounts.first(where: { $0.username.lowercased() == wanted }) else {
            throw BrokerError(
                .noAccount, "the identity broker has no account \(PrintableText.quote(username))",
                summary: "the identity broker does not have the account", hint: "sign in to the identity broker with it"
            )
        }
        return account
    }

    /// The account of the sign-in called `name`, whose ``subject`` is this. Throws `noAccount` without one.
    package static func find(
        _ subject: String, of name: String, among accounts: [BrokerAccount]
    ) throws(BrokerError) -> BrokerAccount {
        guard let account = accounts.first(where: { $0.subject == subject }) else {
            throw BrokerError(
                .noAccount,
                "the identity broker does not have the account of the sign-in \(PrintableText.quote(name)) any more",
                hint: "sign in to the identity broker with it")
        }
        return account
    }
}

/// Tokens from the broker. There is never a refresh token: the broker keeps it.
package struct BrokerToken: Equatable, Sendable {
    package let accessToken: Secret
    /// In seconds since 1970; nil if the broker does not say. The token's own claim counts, if it can be read: some
    /// brokers add seconds to a time in milliseconds.
    package let expiresAt: Int64?
    /// Nil if the broker does not say.
    package let scopes: [String]?
    package let idToken: Secret?
    /// `client_info` (base64url), which names the account.
    package let clientInfo: String?
    /// Nil if the reply names none.
    package let account: BrokerAccount?
}

/// A header that proves the broker's primary refresh token to the sign-in page.
package struct BrokerCookie: Equatable, Sendable {
    /// The only permitted name: otherwise the broker could choose any header to send.
    package static let name = "x-ms-RefreshTokenCredential"

    /// Visible ASCII characters.
    package let content: Secret

    package init(content: Secret) { self.content = content }

    /// The longest content, in bytes. A request's head has to fit into the server's limits.
    package static let maximumBytes = 16 * 1024
}

/// The text of a reply, and the values in it.
///
/// A failure comes in one of four forms, which all throw: the member `error`, the member `error` of
/// `brokerTokenResponse`, a D-Bus error, which ``BrokerError/init(named:_:in:)`` reads, and an empty string.
package struct BrokerReply: Sendable {
    private let method: BrokerCall.Method
    private let value: JSONValue

    /// The longest reply, in bytes.
    package static let maximumBytes = 1 << 20
    /// The members whose values must not get into ordinary memory.
    private static let secrets: Set<String> = ["accessToken", "idToken", "refreshToken", "cookieContent"]

    /// Throws `failed` for the broker's own error and `malformedReply` for anything but an object.
    package init(_ bytes: [UInt8], to method: BrokerCall.Method) throws(BrokerError) {
        self.method = method
        guard !bytes.isEmpty else { throw .failed(method, "the reply is empty") }
        do throws(JSONError) {
            value = try JSONParser.parse(
                bytes, limits: JSONLimits(bytes: Self.maximumBytes), secrets: Self.secrets)
        } catch {
            throw .malformed(method, error.detail)
        }
        guard case .object = value.content else { throw .malformed(method, "it is \(value.kind)") }
        if let error = value.present("error") { throw Self.failure(error, method) }
        if let error = value["brokerTokenResponse"]?.present("error") { throw Self.failure(error, method) }
    }

    /// The known texts of the error: the broker's object differs from version to version.
    private static func failure(_ error: JSONValue, _ method: BrokerCall.Method) -> BrokerError {
        if case .string(let text) = error.content { return .failed(method, PrintableText.longer(text)) }
        let texts = ["errorDescription", "error_description", "message", "context"].compactMap { error.string($0) }
        let codes = ["error", "code", "errorCode", "subError", "status", "tag"].compactMap { error.scalar($0) }
        let text = (codes + texts.prefix(1)).joined(separator: ", ")
        return .failed(method, text.isEmpty ? "it does not say why" : PrintableText.longer(text))
    }

    // MARK: Values

    /// All accounts; may be empty.
    package func accounts() throws(BrokerError) -> [BrokerAccount] {
        try reading { reader throws(JSONError) in
            var accounts: [BrokerAccount] = []
            for value in try reader.array("accounts") { accounts.append(try BrokerAccount(value)) }
            return accounts
        }
    }

    /// Bearer tokens. Throws `failed` for a token of another type, which is bound to a key that only the broker has.
    package func token() throws(BrokerError) -> BrokerToken {
        let method = method
        let read = try reading { reader throws(JSONError) -> (type: Int64?, token: BrokerToken) in
            var response = try reader.object("brokerTokenResponse")
            let object = value["brokerTokenResponse"] ?? value
            let type = try response.integerIfPresent("accessTokenType")
            let token = try response.secret("accessToken")
            guard token.isVisible, (1...BrokerCookie.maximumBytes * 4).contains(token.count) else {
                throw response.invalid("accessToken", "is empty, too long or has a forbidden character")
            }
            let milliseconds = try response.integerIfPresent("expiresOn")
            return (
                type,
                BrokerToken(
                    accessToken: token, expiresAt: Self.expiry(of: token) ?? milliseconds.map { $0 / 1000 },
                    scopes: object.scopes,
                    idToken: object.secret("idToken"), clientInfo: object.string("clientInfo"),
                    account: object["account"].flatMap { try? BrokerAccount($0) })
            )
        }
        // 1 is a proof-of-possession token.
        guard read.type == nil || read.type == 0 else { throw .failed(method, "the token is not a bearer token") }
        return read.token
    }

    /// The claim `exp` of a JSON Web Token (RFC 7519 §4.1.4); nil for any other token.
    private static func expiry(of token: Secret) -> Int64? {
        let payload = token.withBytes { bytes -> [UInt8]? in
            let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            return Base64URL.decode(String(decoding: parts[1], as: UTF8.self))
        }
        guard let payload, let claims = try? JSONParser.parse(payload),
            case .integer(let expiry)? = claims["exp"]?.content, expiry > 0
        else { return nil }
        return expiry
    }

    /// The cookie, in the form of versions up to 2.0.1 (`cookieName`, `cookieContent`) or in that of later ones (the
    /// first of `cookieItems` that has the right name). Throws `failed` if none has that name.
    package func cookie() throws(BrokerError) -> BrokerCookie {
        var contents: [Secret?] = []
        if case .array(let items)? = value["cookieItems"]?.content {
            contents = items.map { $0.cookieContent }
        } else {
            contents = [value.cookieContent]
        }
        guard let content = contents.compactMap(\.self).first else {
            throw .failed(method, "the reply has no cookie called \(BrokerCookie.name)")
        }
        guard content.isVisible, (1...BrokerCookie.maximumBytes).contains(content.count) else {
            throw .malformed(method, "the cookie is empty, too long or has a forbidden character")
        }
        return BrokerCookie(content: content)
    }

    /// `2.0.1`, in printable characters.
    package func version() throws(BrokerError) -> String {
        try reading { reader throws(JSONError) in
            PrintableText.plain(try reader.string("linuxBrokerVersion"))
        }
    }

    private func reading<Value>(
        _ body: (inout JSONReader) throws(JSONError) -> Value
    ) throws(BrokerError) -> Value {
        do throws(JSONError) {
            var reader = try JSONReader(value, "the reply", .lenient)
            return try body(&reader)
        } catch {
            throw .malformed(method, error.detail)
        }
    }
}

extension JSONValue {
    fileprivate func present(_ name: String) -> JSONValue? {
        self[name].flatMap { $0.content == .null ? nil : $0 }
    }

    fileprivate func string(_ name: String) -> String? {
        if case .string(let text)? = self[name]?.content { text } else { nil }
    }

    fileprivate func secret(_ name: String) -> Secret? {
        if case .secret(let secret)? = self[name]?.content, secret.count > 0 { secret } else { nil }
    }

    /// A string or a whole number.
    fileprivate func scalar(_ name: String) -> String? {
        switch self[name]?.content {
        case .string(let text)?: text
        case .integer(let number)?: String(number)
        default: nil
        }
    }

    /// `grantedScopes`, which brokers write as an array or as a list with spaces.
    fileprivate var scopes: [String]? {
        switch self["grantedScopes"]?.content {
        case .string(let text)?: text.split(separator: " ").map(String.init)
        case .array(let values)?:
            values.compactMap { value -> String? in if case .string(let text) = value.content { text } else { nil } }
        default: nil
        }
    }

    /// The content of a cookie with the name that is used. Field names are compared without case.
    fileprivate var cookieContent: Secret? {
        guard let name = string("cookieName"), name.lowercased() == BrokerCookie.name.lowercased() else { return nil }
        return secret("cookieContent")
    }
}

extension Secret {
    /// Whether all bytes are visible ASCII, so that it can be sent in a field.
    fileprivate var isVisible: Bool { withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) } } }
}
