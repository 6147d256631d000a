// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The tokens of one sign-in. Times are seconds since 1970.
package struct TokenSet: Sendable, Equatable {
    /// As it is stored: a ``BoundToken`` if it is bound to a key.
    package let accessToken: Secret
    /// When the access token expires; nil if the provider does not say.
    package let expiresAt: Int64?
    /// When the access token was obtained.
    package let obtainedAt: Int64
    package let refreshToken: Secret?
    /// The granted scope; nil if none was requested.
    package let scope: String?
    /// The last ID token that was verified.
    package let idToken: Secret?
    package let clientInfo: ClientInfo?

    package init(
        accessToken: Secret, expiresAt: Int64?, obtainedAt: Int64, refreshToken: Secret?, scope: String?,
        idToken: Secret?, clientInfo: ClientInfo?
    ) {
        self.accessToken = accessToken
        self.expiresAt = expiresAt
        self.obtainedAt = obtainedAt
        self.refreshToken = refreshToken
        self.scope = scope
        self.idToken = idToken
        self.clientInfo = clientInfo
    }

    /// The first tokens. `requestedScope` is the granted one if the response does not say another (RFC 6749 §5.1).
    init(_ response: TokenResponse, requestedScope: String?, now: Int64) {
        self.init(
            accessToken: response.storedToken, expiresAt: response.lifetime.map { now + $0 }, obtainedAt: now,
            refreshToken: response.refreshToken, scope: response.scope(for: requestedScope) ?? requestedScope,
            idToken: response.idToken,
            clientInfo: response.clientInfo)
    }

    /// Whether the access token can be used for at least `margin` seconds more, or, if it was issued for a short time,
    /// for a quarter of that time. One that never says when it expires is always fresh.
    package func isFresh(now: Int64, margin: Int64 = 60) -> Bool {
        guard let expiresAt else { return true }
        return expiresAt - min(margin, max(0, expiresAt - obtainedAt) / 4) > now
    }

    /// Without an ID token that was not asked for, and is not verified.
    var withoutIDToken: TokenSet {
        TokenSet(
            accessToken: accessToken, expiresAt: expiresAt, obtainedAt: obtainedAt, refreshToken: refreshToken,
            scope: scope, idToken: nil, clientInfo: clientInfo)
    }

    /// The tokens after a refresh. Keeps the values that the response omits (RFC 6749 §6); `idToken` is the verified
    /// one.
    func refreshed(_ response: TokenResponse, idToken: Secret?, now: Int64) -> TokenSet {
        TokenSet(
            accessToken: response.storedToken, expiresAt: response.lifetime.map { now + $0 }, obtainedAt: now,
            refreshToken: response.refreshToken ?? refreshToken, scope: response.scope(for: scope) ?? scope,
            idToken: idToken ?? self.idToken, clientInfo: response.clientInfo ?? clientInfo)
    }

    /// The same tokens with a new refresh token.
    func rotated(to refreshToken: Secret) -> TokenSet {
        TokenSet(
            accessToken: accessToken, expiresAt: expiresAt, obtainedAt: obtainedAt, refreshToken: refreshToken,
            scope: scope, idToken: idToken, clientInfo: clientInfo)
    }
}
