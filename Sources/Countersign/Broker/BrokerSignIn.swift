// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
import CountersignChallenges
package import CountersignCryptography
package import CountersignOAuth
package import CountersignSignIn

/// Tokens of the identity broker, for a profile that names it as the source of accounts. The broker keeps the refresh
/// token, so that each renewal asks it again.
package struct BrokerSignIn: Sendable {
    /// The tokens that the broker issued, and the account that they are for.
    package struct Result: Sendable {
        package let tokens: TokenSet
        /// The user name.
        package let account: String
        /// The identifier of the account: `uid.utid`, else the user name.
        package let subject: String
        /// `uid.utid`, if the broker has said it.
        package var homeAccount: String?
    }

    private let app: BrokerClientApp
    private let prompt: String?
    private let broker: Broker
    private let now: @Sendable () -> Int64

    /// `environment` names the session bus. `now` is in seconds since 1970.
    package init(
        _ profile: SignInProfile, environment: [String: String], now: @escaping @Sendable () -> Int64
    ) {
        app = profile.brokerApp
        prompt = profile.request.prompt
        broker = Broker(SessionBus(environment: environment), random: Randomness.bytes(16))
        self.now = now
    }

    /// Whether the broker can show a window in a process with this environment.
    package static func isInteractive(_ environment: [String: String]) -> Bool {
        ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    }

    /// Tokens of the account called `wanted`; without a name, of the only one, or of the one whose index `choose`
    /// returns. If the broker wants the person to sign in, it may show a window if `isInteractive`, and is waited for
    /// until `limit`. Its window stays open after that, and if the task is cancelled. Throws ``BrokerError``,
    /// ``SignInError`` if nobody chooses or signs in, and `CancellationError` if the task is cancelled.
    package func run(
        account wanted: String?, isInteractive: Bool, limit: Duration, choose: (@Sendable ([String]) async -> Int?)?
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                try await Self.cancelling {
                    try await run(account: wanted, isInteractive: isInteractive, choose: choose)
                }
            }
            group.addTask {
                try await Task.sleep(for: limit)
                throw SignInError(
                    .timedOut, "nobody has signed in within \(limit.components.seconds) seconds",
                    hint: "sign in again, and complete that in the broker's window")
            }
            guard let result = try await group.next() else { throw CancellationError() }
            return result
        }
    }

    /// Runs `body`. A call to the broker that a cancellation has ended is a `CancellationError`.
    private static func cancelling<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as BrokerError where error.code == .cancelled {
            throw CancellationError()
        }
    }

    private func run(
        account wanted: String?, isInteractive: Bool, choose: (@Sendable ([String]) async -> Int?)?
    ) async throws -> Result {
        let accounts = try await broker.accounts(for: app)
        let account: BrokerAccount?
        if accounts.isEmpty, isInteractive, wanted == nil {
            account = nil
        } else if wanted == nil, accounts.count > 1, let choose {
            guard let index = await choose(accounts.map(\.username)), accounts.indices.contains(index) else {
                throw SignInError(.cancelled, "no account was chosen", hint: "choose one with --account")
            }
            account = accounts[index]
        } else {
            account = try BrokerAccount.choose(among: accounts, named: wanted)
        }
        try Task.checkCancellation()
        let token = try await token(of: account, isInteractive: isInteractive)
        if let account { return try result(token, for: account) }
        return try result(token, for: try Self.owner(of: token, among: try await broker.accounts(for: app)))
    }

    /// The account that a person has chosen in the broker's window.
    private static func owner(
        of token: BrokerToken, among accounts: [BrokerAccount]
    ) throws(BrokerError) -> BrokerAccount {
        let identifier = homeAccountIdentifier(of: token)
        let owners = accounts.filter { account in
            identifier.map { account.homeAccountIdentifier == $0 } ?? (account.username == token.account?.username)
        }
        if owners.count == 1 { return owners[0] }
        guard accounts.count == 1, identifier == nil, token.account == nil else {
            throw BrokerError(.failed, "the identity broker does not say whose token it has issued")
        }
        return accounts[0]
    }

    private static func homeAccountIdentifier(of token: BrokerToken) -> String? {
        token.clientInfo.flatMap { ClientInfo($0)?.homeAccountIdentifier } ?? token.account?.homeAccountIdentifier
    }

    private func token(of account: BrokerAccount?, isInteractive: Bool) async throws(BrokerError) -> BrokerToken {
        guard let account else { return try await broker.interactiveToken(for: app, of: nil, prompt: prompt) }
        do throws(BrokerError) {
            return try await broker.token(for: app, of: account)
        } catch {
            // Nothing else is cured by a person.
            guard error.code == .failed, isInteractive else { throw error }
            return try await broker.interactiveToken(for: app, of: account, prompt: prompt)
        }
    }

    /// New tokens of the account with this ``Result/subject``, in place of `former`. Never asks a person. `name` is the
    /// sign-in's.
    package func renew(_ name: String, subject: String, replacing former: Secret) async throws -> TokenSet {
        try await Self.cancelling {
            let accounts = try await broker.accounts(for: app)
            let account = try BrokerAccount.find(subject, of: name, among: accounts)
            return try result(try await broker.token(for: app, of: account, renewing: former), for: account).tokens
        }
    }

    private func result(_ token: BrokerToken, for account: BrokerAccount) throws(BrokerError) -> Result {
        let identifier = Self.homeAccountIdentifier(of: token)
        let isOther =
            if let identifier, let own = account.homeAccountIdentifier { identifier != own } else {
                token.account.map { $0.username.lowercased() != account.username.lowercased() } ?? false
            }
        guard !isOther else {
            throw BrokerError(
                .failed,
                "the identity broker has issued a token for another account than "
                    + PrintableText.quote(account.username))
        }
        guard TokenCredential.isToken(token.accessToken) else {
            throw BrokerError(.malformedReply, "the identity broker's token has a character that Bearer cannot send")
        }
        return Result(
            tokens: TokenSet(
                accessToken: token.accessToken, expiresAt: token.expiresAt, obtainedAt: now(), refreshToken: nil,
                scope: token.scopes?.joined(separator: " "), idToken: nil, clientInfo: nil),
            account: account.username, subject: account.subject,
            homeAccount: identifier ?? account.homeAccountIdentifier)
    }
}

extension SignInProfile {
    /// The client's registration with the broker. The authority is the issuer without the version that Microsoft writes
    /// at its end, and the redirect URI is that of the broker's native clients.
    var brokerApp: BrokerClientApp {
        let client = request.client.identifier
        let version = "/v2.0"
        let authority = issuer.text.hasSuffix(version) ? String(issuer.text.dropLast(version.count)) : issuer.text
        return BrokerClientApp(
            identifier: client, redirectURI: "ms-appx-web://Microsoft.AAD.BrokerPlugin/\(client)",
            // The broker adds `offline_access` itself.
            authority: authority, scopes: request.scopes.filter { $0 != "offline_access" },
            claims: request.claims?.serialized,
            parameters: Dictionary(request.parameters.map { ($0.name, $0.value) }) { first, _ in first })
    }
}
