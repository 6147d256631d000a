// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// An access token or a refresh token.
struct IssuedToken: Sendable {
    /// The name of the sign-in that it belongs to.
    let family: String
    let scopes: [String]
    var isUsed = false
}

/// The token endpoint and revocation.
extension IssuerMachine {
    mutating func token(_ form: [String: String], now: Int64) -> IssuerResponse {
        guard form["client_id"] == settings.clientIdentifier else { return Self.unknownClient }
        switch form["grant_type"] {
        case "authorization_code": return redeem(form, now: now)
        case "refresh_token": return refresh(form, now: now)
        case "urn:ietf:params:oauth:grant-type:device_code": return poll(form, now: now)
        case nil: return .error("invalid_request", "grant_type is missing")
        default: return .error("unsupported_grant_type", "the grant type is not supported")
        }
    }

    /// RFC 6749 §4.1.3. A second use of a code ends the sign-in (§4.1.2).
    private mutating func redeem(_ form: [String: String], now: Int64) -> IssuerResponse {
        guard let name = form["code"], let code = codes.value(name, now: now) else {
            return .error("invalid_grant", "the code is not known, or has expired")
        }
        guard !code.isUsed else {
            end(family: code.family)
            return .error("invalid_grant", "the code was used before")
        }
        codes.update(name) { $0.isUsed = true }
        guard form["redirect_uri"] == code.parameters.redirect else {
            return .error("invalid_grant", "the redirect URI is not that of the authorization request")
        }
        let verifier = form["code_verifier"] ?? ""
        guard Base64URL.encode(Digest.sha256.hash(verifier.utf8)) == code.parameters.challenge else {
            return .error("invalid_grant", "the code verifier does not fit the challenge")
        }
        return issue(code.parameters.scopes, family: code.family, nonce: code.parameters.nonce, now: now)
    }

    /// RFC 6749 §6. A second use of a refresh token ends the sign-in (RFC 9700 §4.14.2).
    private mutating func refresh(_ form: [String: String], now: Int64) -> IssuerResponse {
        guard let name = form["refresh_token"], let token = refreshTokens.value(name, now: now) else {
            return .error("invalid_grant", "the refresh token is not known, or not any more")
        }
        guard !token.isUsed else {
            end(family: token.family)
            return .error("invalid_grant", "the refresh token was used before")
        }
        var scopes = token.scopes
        if let scope = form["scope"] {
            let wanted = supported(scope)
            guard !wanted.isEmpty, wanted.allSatisfy(scopes.contains) else {
                return .error("invalid_scope", "the sign-in does not have this scope")
            }
            scopes = wanted
        }
        refreshTokens.update(name) { $0.isUsed = true }
        return issue(scopes, family: token.family, nonce: nil, now: now)
    }

    /// RFC 6749 §5.1, with an ID token for `openid` (OpenID Connect Core §3.1.3.3).
    mutating func issue(_ scopes: [String], family: String, nonce: String?, now: Int64) -> IssuerResponse {
        let access = newName()
        accessTokens.insert(
            IssuedToken(family: family, scopes: scopes), access, expires: now + settings.accessTokenSeconds, now: now)
        var members: [(String, JSONValue.Content)] = [
            ("access_token", .string(access)), ("token_type", .string("Bearer")),
            ("expires_in", .integer(settings.accessTokenSeconds)), ("scope", .string(scopes.joined(separator: " "))),
        ]
        if scopes.contains("offline_access") {
            let refresh = newName()
            refreshTokens.insert(
                IssuedToken(family: family, scopes: scopes), refresh, expires: now + Self.refreshSeconds, now: now)
            members.append(("refresh_token", .string(refresh)))
        }
        if scopes.contains("openid") {
            guard let identity = try? key.sign(claims(access: access, nonce: nonce, now: now)) else {
                return .error("server_error", "the ID token could not be signed", status: 500)
            }
            members.append(("id_token", .string(identity)))
        }
        return .json(members)
    }

    /// OpenID Connect Core §2, §3.1.3.6.
    private func claims(access: String, nonce: String?, now: Int64) -> JSONValue {
        var members: [(String, JSONValue.Content)] = [
            ("iss", .string(url)), ("sub", .string(settings.account.subject)),
            ("aud", .string(settings.clientIdentifier)), ("iat", .integer(now)), ("exp", .integer(now + 300)),
            ("preferred_username", .string(settings.account.name)),
            ("at_hash", .string(Base64URL.encode(Digest.sha256.hash(access.utf8).prefix(16)))),
        ]
        if let nonce { members.append(("nonce", .string(nonce))) }
        return JSONValue(.object(members.map { JSONMember($0, JSONValue($1)) }))
    }

    /// RFC 7009 §2. A token that is not known is revoked already.
    mutating func revoke(_ form: [String: String]) -> IssuerResponse {
        guard form["client_id"] == settings.clientIdentifier else { return Self.unknownClient }
        guard let token = form["token"] else { return .error("invalid_request", "token is missing") }
        if let family = refreshTokens.value(token, now: 0)?.family { end(family: family) }
        accessTokens.remove(token)
        return IssuerResponse(status: 200)
    }

    /// Ends a sign-in with all its tokens.
    private mutating func end(family: String) {
        accessTokens.removeAll { $0.family == family }
        refreshTokens.removeAll { $0.family == family }
    }
}
