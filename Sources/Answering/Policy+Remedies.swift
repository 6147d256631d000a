// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignSitePolicy

/// A challenge that was not answered.
package struct UnansweredRequest: Sendable {
    package let origin: Origin
    /// The line that lists the site or parent, if there is one.
    package let rule: SiteRule?
    /// The scheme of the challenge, if it is a supported one.
    package let scheme: AuthenticationScheme?
    /// The token server of a container registry, if the challenge names it: `https://auth.example`.
    package let tokenServer: String?
    /// Whether there is TLS to the parent; meaningless for a site.
    package let hasTLS: Bool

    package init(_ origin: Origin, _ rule: SiteRule?, _ scheme: AuthenticationScheme?, hasTLS: Bool = false) {
        self.origin = origin
        self.rule = rule
        self.scheme = scheme
        self.hasTLS = hasTLS
        tokenServer = nil
    }

    /// `challenge` is nil for the request for a client certificate.
    package init(_ origin: Origin, _ rule: SiteRule?, _ challenge: Challenge?, hasTLS: Bool = false) {
        self.origin = origin
        self.rule = rule
        self.hasTLS = hasTLS
        scheme =
            challenge.map { challenge in
                AuthenticatorTable.supported.authenticators.first { challenge.isOf($0.schemeName) }?.scheme
            } ?? .certificate
        tokenServer = challenge.flatMap(Self.tokenServer)
    }

    /// In the Bearer challenge of a container registry, the realm is the URL of the server that issues the tokens.
    private static func tokenServer(_ challenge: Challenge) -> String? {
        guard challenge.isOf("Bearer"), challenge.parameter("service") != nil,
            let realm = challenge.parameter("realm"), let url = try? AbsoluteURL(parsing: realm),
            url.origin.scheme == .https
        else { return nil }
        return url.origin.shortText
    }
}

// MARK: From the cause to the remedy

extension Policy {
    /// The remedies for `refusal`, best first; may be empty. All advice to a person is derived here.
    package func remedies(for refusal: Refusal, of request: UnansweredRequest) -> [Remedy] {
        let line = request.rule?.location
        func change(_ change: Remedy.LineChange) -> [Remedy] { line.map { [.changeLine(change, line: $0)] } ?? [] }
        switch refusal.cause {
        case .other, .otherClient, .ownAuthorization: return []
        case .notListed: return listing(request)
        case .notIntercepted: return change(.intercept)
        case .untrusted: return [.addTrustAnchor]
        case .foreignPage(let page): return page.map { change(.permitPage($0)) } ?? []
        case .plaintext: return change(.permitPlaintext)
        case .requiresTLS: return [.useHTTPS(host: request.origin.host)]
        case .notPermitted(let schemes):
            let scheme = request.scheme.flatMap { schemes.contains($0) ? $0 : nil } ?? schemes.first
            return scheme.map { change(.permitScheme($0)) } ?? []
        case .notPermittedRequest(let line): return [.changeLine(.permitRequest, line: line)]
        case .noCredential: return storing(request)
        case .noIdentity(let name): return [.importIdentity(name: name, replaces: false)]
        case .expiredIdentity(let name):
            return [.renewIdentity(name: name), .importIdentity(name: name, replaces: true)]
        case .unsuitableIdentities: return [.listIdentities, .importIdentity(name: nil, replaces: false)]
        case .locked: return [.unlockVault]
        case .paused: return [.resume]
        case .dryRun: return []
        case .notCompliant(let name): return [.remediate(name: name)]
        case .wiped(let name): return [.completeWipe(name: name)]
        case .blocked(let name):
            let replacing = replacing(name, request.scheme)
            return replacing + [.permitRetry(name: replacing.isEmpty ? nil : name)]
        case .heldBack(let name): return [.permitRetry(name: name)]
        case .rejected: return replacing(request.rule?.credential ?? Remedy.assumedName, request.scheme)
        case .insufficientToken(let stepUp):
            let name = request.rule?.credential ?? Remedy.assumedName
            guard isAccessToken(named: name) else { return [] }
            return [
                .signIn(name: name, stepUp: stepUp, site: stepUp.isForOneSite ? request.origin.shortText : nil)
            ]
        case .noTicket, .wantsTicket: return [.obtainTicket]
        case .notContinued(let scheme): return scheme == "NTLM" && request.scheme == .negotiate ? [.obtainTicket] : []
        }
    }

    /// The remedies after a server has rejected the credential or identity of that name.
    package func remedies(afterRejectionOf name: String, in space: AuthenticationSpace) -> [Remedy] {
        space.scheme == .certificate ? [.inspectIdentity(name: name)] : replacing(name, space.scheme)
    }

    private func listing(_ request: UnansweredRequest) -> [Remedy] {
        let origin = request.origin
        if let server = request.tokenServer { return [.clientObtainsToken(from: server)] }
        let authenticators = request.scheme.map(AuthenticatorTable.supported.authenticators(of:)) ?? []
        if origin.scheme == .http, authenticators.contains(where: \.requiresTLS) {
            return [.useHTTPS(host: origin.host)]
        }
        let isPlain = origin.scheme == .http || origin.scheme == .proxy && !request.hasTLS
        return [.addSite(origin.shortText + (isPlain ? " plaintext=yes" : ""))]
    }

    /// There is no credential that the scheme can use.
    private func storing(_ request: UnansweredRequest) -> [Remedy] {
        if let server = request.tokenServer { return [.clientObtainsToken(from: server)] }
        let name = request.rule?.credential ?? Remedy.assumedName
        let scheme = request.scheme ?? .basic
        guard case .open = enrolled else { return [] }
        let contents: Remedy.Contents = scheme.credentialKind == .token ? .token : .password(user: nil)
        let storing = Remedy.setCredential(name: name, contents, replaces: false)
        guard let enrolled = credential(named: name) else { return [storing] }
        // It has expired and cannot be renewed, or the scheme cannot carry it.
        guard let kind = scheme.credentialKind, !scheme.uses(enrolled) else {
            return [isAccessToken(named: name) ? .signIn(name: name, stepUp: nil) : storing]
        }
        return request.rule.map { [.changeLine(.nameCredential(kind), line: $0.location)] } ?? []
    }

    /// Empty if the vault has no credential of that name, as for a Kerberos ticket of the user's own.
    private func replacing(_ name: String, _ scheme: AuthenticationScheme?) -> [Remedy] {
        switch credential(named: name) {
        case .password(let credential):
            [.setCredential(name: name, .password(user: credential.user), replaces: true)]
        case .token:
            [
                isAccessToken(named: name)
                    ? .signIn(name: name, stepUp: nil) : .setCredential(name: name, .token, replaces: true)
            ]
        case .principal(let credential):
            if case .password = credential.proof {
                [.setCredential(name: name, .principal(credential.principal), replaces: true)]
            } else {
                [.setCredential(name: name, .keys(principal: credential.principal), replaces: true)]
            }
        case .aws: [.setCredential(name: name, .awsKeys, replaces: true)]
        case .identity, .device, .ticket, nil: []
        }
    }
}

extension Remedy {
    /// The remedy if a server's certificate does not verify.
    package init?(_ trust: ServerTrust, at origin: Origin) {
        if trust.missingIssuer != nil {
            self = .addTrustAnchor
        } else if let leaf = trust.leaf {
            self = .allowCertificate(
                server: HostText.joined(origin.host, origin.port), fingerprint: leaf.fingerprintText)
        } else {
            return nil
        }
    }
}
