// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignOAuth
package import CountersignSignIn
import CountersignVault

/// The tokens of a sign-in as one secret: for each of access, refresh and ID token, four bytes length and the token;
/// and then the client's secret in the same form, if the client has one.
package struct SignInTokens: Equatable, Sendable {
    package let access: Secret
    package let refresh: Secret?
    package let identity: Secret?
    package var client: Secret?

    package init(access: Secret, refresh: Secret?, identity: Secret?, client: Secret? = nil) {
        self.access = access
        self.refresh = refresh
        self.identity = identity
        self.client = client
    }

    /// With the secret of the profile's client.
    package init(_ tokens: TokenSet, of profile: SignInProfile) {
        self.init(tokens)
        client = profile.request.client.authentication.secret
    }

    /// Omits an ID token that is too long for the vault: nothing depends on it.
    package init(_ tokens: TokenSet) {
        let identity = tokens.idToken.flatMap { $0.count <= VaultLimits.passwordBytes ? $0 : nil }
        self.init(access: tokens.accessToken, refresh: tokens.refreshToken, identity: identity)
    }

    package var encoded: Secret {
        // Earlier versions read three.
        let all = [access, refresh, identity] + (client.map { [$0] } ?? [])
        return Secret(count: all.reduce(0) { $0 + 4 + ($1?.count ?? 0) }) { room in
            var offset = 0
            for token in all {
                let count = token?.count ?? 0
                for shift in [24, 16, 8, 0] {
                    room[offset] = UInt8(truncatingIfNeeded: count >> shift)
                    offset += 1
                }
                token?.withBytes {
                    UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: $0)
                }
                offset += count
            }
        }
    }

    /// Nil for other bytes.
    package init?(decoding secret: Secret) {
        let tokens: [Secret?]? = secret.withBytes { bytes in
            var rest = bytes[...]
            var tokens: [Secret?] = []
            while tokens.count < 3 || tokens.count == 3 && !rest.isEmpty {
                guard rest.count >= 4 else { return nil }
                let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(4)
                guard rest.count >= count else { return nil }
                tokens.append(count == 0 ? nil : Secret(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            return rest.isEmpty ? tokens : nil
        }
        guard let tokens, let access = tokens[0] else { return nil }
        self.init(access: access, refresh: tokens[1], identity: tokens[2], client: tokens.count > 3 ? tokens[3] : nil)
    }
}
