// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import CountersignOAuth
import CountersignSignIn

/// Tokens on their way into the vault.
extension EnrollCommand {
    /// Waits for the renewal of a former sign-in until the person interrupts it.
    static func store(
        _ new: NewSignIn, _ tokens: TokenSet, of plan: SignInPlan, in session: VaultSession, _ interrupts: Interrupts
    ) throws {
        guard !interrupts.haveArrived else { throw CountersignError(.refused, "the command was interrupted") }
        let dialogue = OperationDialogue(
            report: { progress in
                if case .asking(let server) = progress {
                    Console.log("info", "asking \(server) for the certificate")
                }
                if let warning = progress.warning { Console.warning(warning) }
                guard progress == .waitingForOtherProcess else { return }
                Console.log(
                    "info",
                    "another process is renewing the access token or the certificate of "
                        + "\(new.name.debugDescription): waiting for it; Ctrl-C revokes the new tokens")
            }, isAbandoned: { interrupts.haveArrived })
        let secret = SignInTokens(tokens, of: plan.profile).encoded
        if let demand = plan.demand {
            _ = try session.perform(plan.storing(new, for: demand), secret: secret, dialogue)
        } else {
            _ = try session.perform(StoreSignIn(new), secret: secret, dialogue)
        }
    }

    /// Revokes tokens that were not stored: no process could use or revoke them later.
    static func discard(
        _ new: NewSignIn, _ tokens: TokenSet, of profile: SignInProfile, _ client: ProviderClient,
        _ session: VaultSession
    ) async {
        // If the vault cannot be read, they may be stored.
        guard let signIns = try? session.perform(ListSignIns()) else { return }
        guard !signIns.contains(where: { $0.identifier == new.identifier }) else {
            return Console.warning(
                "the sign-in is stored, but not complete; `countersign enroll \(new.name)` completes it")
        }
        if let warning = await client.revoke(tokens, of: profile).warning {
            Console.warning("the new tokens are not stored, and the provider has not revoked them: \(warning)")
        } else {
            Console.warning("the new tokens are not stored; the provider has revoked them")
        }
    }

    /// Stores the session that the person has now at the provider. The sign-in is complete without it.
    static func store(_ cookies: SharedCookies, in session: VaultSession) {
        do {
            try session.store(cookies)
        } catch {
            let reason = Diagnostic.all(in: error).map(\.message).joined(separator: "; ")
            Console.warning("the cookies of \(cookies.key.host) are not stored: \(reason)")
        }
    }
}
