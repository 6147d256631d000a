// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
package import CountersignOAuth
package import CountersignSignIn
import CountersignVault

/// Runs one grant without a person: reads the file that it needs, or signs an assertion, and sends the requests of the
/// ``MachineSignIn``.
package struct GrantFlow: Sendable {
    private let profile: SignInProfile
    private let client: ProviderClient
    private let now: @Sendable () -> Int64

    /// The longest token in a file, in bytes.
    private static let maximumTokenBytes = 64 << 10

    /// The profile has a grant, and the secret or the key of its client.
    package init(_ profile: SignInProfile, client: ProviderClient, now: @escaping @Sendable () -> Int64) {
        self.profile = profile
        self.client = client
        self.now = now
    }

    /// Returns an access token alone. Tokens of another type than the profile demands are revoked, if the provider can
    /// do that. Throws ``OAuthError`` and ``CountersignError``.
    package func run() async throws -> TokenSet {
        guard let grant = profile.grant else { throw CountersignError(.refused, "the profile has no \"grant_type\"") }
        let wanted = profile.bound(to: profile.request.proofKey).request
        var machine = MachineSignIn(
            issuer: profile.issuer, wanted, by: grant,
            with: try grant.file.map { try token(in: $0, grant) } ?? assertion(grant),
            metadata: profile.metadata, transport: profile.transport)
        var action = machine.start()
        while true {
            switch action {
            case .send(let request):
                try Task.checkCancellation()
                let outcome = await client.send(request)
                action = machine.received(outcome, now: now())
                outcome.wipe()
            case .finish(let tokens): return tokens
            case .fail(let error):
                if let tokens = machine.tokensToRevoke {
                    _ = await Task.detached { [client, profile] in await client.revoke(tokens, of: profile) }.value
                }
                throw error
            }
        }
    }

    /// What the client's key signs; nil for a grant without a key.
    private func assertion(_ grant: MachineGrant) throws -> Secret? {
        guard let endpoint = profile.metadata?.tokenEndpoint,
            let assertion = grant.assertion(of: profile.request, for: endpoint)
        else { return nil }
        guard case .grantKey(let key) = profile.request.client.authentication else {
            throw CountersignError(
                .configuration, "the private key of \(profile.clientName.debugDescription) is not stored",
                hint: "give it with `countersign enroll NAME --key FILE`")
        }
        return Secret(utf8: try assertion.signed(at: now()) { GrantKey.signature(of: $0, with: key) })
    }

    /// The file's only line. Reads nothing that is not shaped like a token: a profile must not be able to send another
    /// file of the person to its provider.
    private func token(in path: String, _ grant: MachineGrant) throws -> Secret {
        let what = grant.readsJWT ? "JWT" : "token"
        var bytes: [UInt8]
        do {
            bytes = try HomeFile(path: path, name: "the profile's file \(path)").read(upTo: Self.maximumTokenBytes)
        } catch {
            throw CountersignError(
                error.code, error.detail, hint: "another program has to write the \(what) there before it is used")
        }
        defer { bytes.wipe() }
        while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        let isToken = !bytes.isEmpty && bytes.allSatisfy { (0x21...0x7E).contains($0) }
        guard isToken, !grant.readsJWT || Self.isJWT(bytes) else {
            throw CountersignError(
                .configuration, "the profile's file \(path) has no \(what) on its only line",
                hint: "it was not sent; check what writes it, and \"grant_type\" in the profile")
        }
        return Secret(bytes)
    }

    /// Three parts of base64url, the first of which is a JSON object (RFC 7515 §3.1).
    private static func isJWT(_ bytes: [UInt8]) -> Bool {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 3 && parts[0].starts(with: "ey".utf8) && !parts[1].isEmpty
            && parts.allSatisfy { part in
                part.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || "-_".utf8.contains($0) }
            }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }
}

extension SignInRecord {
    /// The profile that the person has agreed to, with the secret of its client; without the client's key. Throws as
    /// ``SignInProfile/init(_:)`` does.
    func signInProfile() throws -> SignInProfile {
        let profile = try SignInProfile(Array(profile.utf8))
        return try clientSecret.map { try profile.authenticated(with: $0) } ?? profile
    }
}

extension SignInProfile {
    /// Whom a sign-in without a person is for: the client, or the file that stands for it.
    var clientName: String {
        request.client.identifier.isEmpty ? grant?.file ?? "" : request.client.identifier
    }
}
