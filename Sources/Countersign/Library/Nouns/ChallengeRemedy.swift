// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignSitePolicy

/// The remedy for a ``ChallengeError``, as a value: for the button that a program shows beside the error's texts. Later
/// versions may add kinds, so include a `default` in a `switch`.
public enum ChallengeRemedy: Hashable, Sendable {
    /// List the site: pass this line to ``HomeManager/addSite(_:file:)``.
    case addSite(String)
    /// Change this line of the list, such as `AllowedSites/work.sites:3`. ``ChallengeError/hint`` says how.
    case changeLine(String)
    /// Open the site with https instead.
    case useHTTPS(host: String)
    /// Store the password: ``HomeManager/setPassword(_:user:name:)``. `user` is nil if none is stored yet.
    case setPassword(name: String, user: String?)
    /// Store the token: ``HomeManager/setToken(_:name:)``.
    case setToken(name: String)
    /// Store the Kerberos principal's password or keys: ``HomeManager/setPrincipal(_:password:name:)`` and
    /// ``HomeManager/setPrincipal(_:keytab:name:)``.
    case setPrincipal(name: String, principal: String)
    /// Permit one more attempt: ``HomeManager/permitRetry(ofCredential:)``. Nil means all that are blocked.
    case permitRetry(ofCredential: String?)
    /// Unlock the vault: ``ChallengeController/unlockVault(passphrase:)``.
    case unlockVault
    /// Set ``ChallengeController/isIntegratedAuthenticationEnabled``.
    case enableController
    /// Switch the whole home on: ``HomeManager/setIntegratedAuthenticationEnabled(_:)``.
    case enableHome
    /// Sign in again with the sign-in of this name, and ask for these scopes, too: ``SignIns``.
    case signIn(name: String, scopes: [String])
    /// Make the device comply with the policy of the sign-in of this name: ``ComplianceManager``.
    case remediate(signIn: String)
    /// Import a client identity of this name, or of any: ``HomeManager/importIdentity(_:password:name:replacing:)``.
    case importIdentity(name: String?)
    /// Renew the client identity: ``HomeManager/refreshIdentity(_:waitingFor:progress:)``.
    case renewIdentity(name: String)
    /// Trust the authority of the server's certificate: ``HomeManager/addTrustAnchors(_:name:)``.
    case addTrustAnchor
    /// Obtain a Kerberos ticket, for example with `kinit`.
    case obtainTicket
}

extension ChallengeRemedy {
    /// Nil if a program can do nothing.
    init?(_ remedy: Remedy) {
        switch remedy {
        case .addSite(let line): self = .addSite(line)
        case .changeLine(_, let line): self = .changeLine(line)
        case .useHTTPS(let host): self = .useHTTPS(host: host)
        case .setCredential(let name, .password(let user), _): self = .setPassword(name: name, user: user)
        case .setCredential(let name, .token, _): self = .setToken(name: name)
        case .setCredential(let name, .principal(let principal), _), .setCredential(let name, .keys(let principal), _):
            self = .setPrincipal(name: name, principal: principal)
        case .permitRetry(let name): self = .permitRetry(ofCredential: name)
        case .unlockVault: self = .unlockVault
        case .resume: self = .enableHome
        case .signIn(let name, let stepUp, _): self = .signIn(name: name, scopes: stepUp?.scopes ?? [])
        case .remediate(let name): self = .remediate(signIn: name)
        case .importIdentity(let name, _): self = .importIdentity(name: name)
        case .renewIdentity(let name): self = .renewIdentity(name: name)
        case .addTrustAnchor: self = .addTrustAnchor
        case .obtainTicket: self = .obtainTicket
        case .setCredential(_, .awsKeys, _), .completeWipe, .inspectIdentity, .listIdentities, .allowCertificate,
            .clientObtainsToken:
            return nil
        }
    }
}

extension ChallengeError {
    /// The error for `refusal`. Without a `hint`, the remedy's hint is used.
    init(
        _ code: Code, _ refusal: Refusal, of request: UnansweredRequest, under policy: Policy, hint: String? = nil
    ) {
        let remedies = policy.remedies(for: refusal, of: request)
        // A sentence that already contains the remedy has no hint that repeats it.
        let sentence = refusal.cause.isSaidWithRemedy && refusal.bareText == nil ? nil : Remedy.sentence(remedies)
        self.init(
            code, refusal.bareText ?? refusal.text, listLine: request.rule?.location, hint: hint ?? sentence)
        remedy = remedies.lazy.compactMap { ChallengeRemedy($0) }.first
    }
}
