// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import CountersignOAuth
import CountersignSignIn

extension EnrollCommand {
    /// Gets the token of a sign-in without a person, and stores it.
    func enroll(
        granting plan: SignInPlan, _ former: ListedSignIn?, in vault: VaultSession, _ client: ProviderClient,
        _ reporter: SignInReporter, _ interrupts: Interrupts
    ) async throws {
        reporter.report(.started(issuer: plan.profile.issuer.text))
        let flow = GrantFlow(plan.profile, client: client, now: Self.now)
        let tokens = try await interrupts.cancelling { try await flow.run() }
        reporter.report(.finished)
        let new = plan.signIn(SignInResult(tokens: tokens, idToken: nil), replacing: former, at: Self.now())
        do {
            try Self.store(new, tokens, of: plan, in: vault, interrupts)
        } catch {
            await Self.discard(new, tokens, of: plan.profile, client, vault)
            throw interrupts.exitCode ?? error
        }
        vault.refreshServer()
        reporter.stored(new, try? vault.perform(ListSignIns()).first { $0.name == new.name }?.certificate)
    }

    /// Whether a browser elsewhere takes the place of the device flow: the machine has no display, nobody has chosen
    /// the device flow, the provider does not have it, and there is a terminal to paste an address into.
    func lacksDeviceFlow(_ plan: SignInPlan, _ kind: UserAgentKind, _ client: ProviderClient) async -> Bool {
        guard kind == .device, userAgent == nil, plan.profile.userAgent == nil, Confirmation.hasTerminal,
            let metadata = try? await client.metadata(of: plan.profile)
        else { return false }
        return metadata.deviceAuthorizationEndpoint == nil && metadata.authorizationEndpoint != nil
    }

    /// After a refusal of a client whose secret was stored earlier.
    static func explaining(_ error: any Error, isStored: Bool, _ name: String) -> any Error {
        guard isStored, let refusal = error as? OAuthError, refusal.code == .invalidClient else { return error }
        return OAuthError(
            refusal.code, refusal.fault, "\(refusal.detail); the client secret was the stored one of \"\(name)\"",
            hint: "if the provider has a newer one, give it with --client-secret-stdin",
            providerCode: refusal.providerCode)
    }
}
