// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignOAuth
package import CountersignProxy
package import CountersignSignIn
import CountersignVault
import Dispatch
package import Logging
import Synchronization

/// Signs a person in again when a site requires a scope that the access token of a sign-in does not have. The request
/// that has shown it is not held up: its response goes to the client, and the next request gets the new token.
///
/// One request to a provider at a time for each sign-in, and one for the same scopes in the life of the process,
/// however it ends: a page that opens again and again trains people to agree to anything.
package final class ScopeRequests: Sendable {
    private let keeper: PolicyKeeper
    private let logger: Logger
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64
    private let environment: [String: String]
    private let agent: Agent
    private let report: @Sendable (UserAgentKind, SignInEvent) -> Void
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "countersign.scopes")

    /// A user agent of that kind; nil if it cannot be used now.
    package typealias Agent = @Sendable (UserAgentKind) -> SignInFlow.Agent?

    private struct Wish: Hashable {
        let name: String
        let scopes: Set<String>
    }

    private struct State {
        var running: [String: Task<Void, Never>] = [:]
        var asked: Set<Wish> = []
        var isStopped = false
    }

    /// How long a person has to sign in.
    private static let patience = Duration.seconds(600)
    /// How many different wishes are remembered. After that, nothing is asked for any more.
    private static let capacity = 256
    /// How many scopes are asked for because the metadata of a resource lists them.
    private static let maximumListedScopes = 16

    package init(
        keeper: PolicyKeeper, logger: Logger, environment: [String: String], now: @escaping @Sendable () -> Int64,
        agent: @escaping Agent, report: @escaping @Sendable (UserAgentKind, SignInEvent) -> Void
    ) {
        self.keeper = keeper
        self.logger = logger
        self.environment = environment
        self.now = now
        self.agent = agent
        self.report = report
    }

    package var asker: ScopeAsker { ScopeAsker { [self] in begin($0) } }

    /// Cancels the requests, and waits for their end.
    func stop() async {
        let running = state.withLock { state in
            state.isStopped = true
            return Array(state.running.values)
        }
        for task in running { task.cancel() }
        for task in running { await task.value }
    }

    /// Reads no file.
    private func begin(_ lack: ScopeAsker.Lack) -> String? {
        let name = lack.token.name
        guard !lack.scopes.isEmpty || lack.metadata != nil, let record = keeper.vault?.contents.signIns[name],
            record.ended.isEmpty, !record.isFromBroker
        else { return nil }
        let wish = Wish(name: name, scopes: Set(lack.scopes))
        return state.withLock { state in
            if state.running[name] != nil { return "you are being asked for a scope of \"\(name)\"" }
            guard !state.isStopped, state.asked.count < Self.capacity, state.asked.insert(wish).inserted else {
                return nil
            }
            state.running[name] = Task.detached { [self] in
                await ask(lack, record)
                self.state.withLock { $0.running[name] = nil }
            }
            return "you are being asked for it; the next request gets the new token"
        }
    }

    private func ask(_ lack: ScopeAsker.Lack, _ record: SignInRecord) async {
        let name = record.name
        do {
            let missing = try await obtain(lack, record)
            logger.notice("the access token of \"\(name)\" has the scope \(missing.joined(separator: " ")) now")
        } catch is CancellationError {
            // The proxy is stopping.
        } catch {
            for diagnostic in Diagnostic.all(in: error) {
                logger.warning(
                    "the scope that \(lack.origin) requires was not obtained: \(diagnostic.message)",
                    metadata: ["hint": "ask for it with `countersign enroll \(name) --scope SCOPE`"])
            }
        }
    }

    /// Returns the scopes that were obtained.
    private func obtain(_ lack: ScopeAsker.Lack, _ record: SignInRecord) async throws -> [String] {
        // What the person has agreed to; the document at its source may be another one by now.
        var profile = try SignInProfile(Array(record.profile.utf8))
        let kind = profile.userAgent ?? UserAgentKind.preferred(in: environment)
        guard let agent = agent(kind) else {
            throw CountersignError(.refused, "the user agent \(kind.rawValue) cannot be used by a server")
        }
        try profile.check(kind)
        let client = try keeper.home.providerClient(now: now)
        let granted = record.scope.split(separator: " ").map(String.init)
        var missing = lack.scopes
        if let parameter = lack.metadata {
            do {
                let metadata = try await client.resourceMetadata(
                    parameter, for: lack.origin, lack.target, issuer: profile.issuer)
                if missing.isEmpty {
                    missing = Array(metadata.scopes.filter { !granted.contains($0) }.prefix(Self.maximumListedScopes))
                }
                profile = try profile.adding(resource: metadata.resource)
            } catch let error as ProtectedResourceError where !error.endsRequest && !missing.isEmpty {
                logger.info("\(error.detail)")
            }
        }
        guard !missing.isEmpty else {
            throw CountersignError(.refused, "neither the challenge nor the site's metadata names a scope")
        }
        profile = try profile.adding(scopes: granted + missing)
        logger.notice(
            "\(lack.origin) requires the scope \(missing.joined(separator: " ")): asking \(profile.issuer) for it")
        let flow = SignInFlow(
            profile, client: client, agent: agent, limit: Self.patience, now: now,
            report: { [report] in report(kind, $0) })
        let result = try await flow.run()
        try await store(result, profile, record, missing, client)
        return missing
    }

    private func store(
        _ result: SignInResult, _ profile: SignInProfile, _ record: SignInRecord, _ missing: [String],
        _ client: ProviderClient
    ) async throws {
        let subject = result.idToken?.subject ?? ""
        guard subject == record.subject else {
            _ = await client.revoke(result.tokens, of: profile)
            throw CountersignError(
                .refused, "another person has signed in than \(record.account.debugDescription); nothing was changed")
        }
        if let scope = result.tokens.scope {
            let granted = Set(scope.split(separator: " ").map(String.init))
            guard missing.allSatisfy(granted.contains) else {
                // Not revoked: that could end the sign-in itself.
                throw CountersignError(.refused, "the provider has not granted it; nothing was changed")
            }
        }
        let plan = try SignInPlan(profile, from: record.source, name: record.name)
        do {
            try await onQueue { [self] in
                guard let vault = keeper.vault else {
                    throw CountersignError(.environment, HomeSnapshot.vaultIsLocked)
                }
                let operations = VaultOperations(home: keeper.home, vault: vault, now: now)
                try vault.reload()
                let former = try plan.former { operation, secret in
                    try operations.perform(operation, secret: secret)
                }
                // The person may have signed out meanwhile, or as somebody else.
                guard let former, former.identifier == record.identifier, former.ended.isEmpty else {
                    throw CountersignError(.refused, "the sign-in \"\(record.name)\" was changed meanwhile")
                }
                var new = plan.signIn(result, replacing: former, at: now())
                new.keepsCertificate = true
                try plan.store(new, result) { try operations.perform($0, secret: $1) }
                keeper.refresh(force: true)
            }
        } catch {
            _ = await client.revoke(result.tokens, of: profile)
            throw error
        }
    }

    private func onQueue<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}

extension ProtectedResourceError {
    /// The site says that a token of the provider is of no use, so that nobody is asked for one.
    fileprivate var endsRequest: Bool { code == .otherIssuer || code == .noField }
}
