// SPDX-License-Identifier: Apache-2.0

import CountersignAWSSignature
import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCookies
import CountersignCryptography
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream
import Glibc
import NIOConcurrencyHelpers

/// A route's use of the token that its site's line adds to each request. An object, so that a route without one pays
/// for a comparison with nil only.
final class InjectionUse {
    let rule: SecretInjection
    /// The token, or why there is none.
    let decision: CredentialDecision
    /// This event loop has reported that the site accepts the token.
    var hasReported = false
    private let origin: Origin

    /// Nil if the line injects nothing.
    init?(of rule: SiteRule, at origin: Origin, _ policy: Policy) {
        guard let injection = rule.injection else { return nil }
        self.rule = injection
        self.origin = origin
        decision = policy.injectionDecision(for: rule, at: origin)
    }

    /// To the breaker, the token counts as one that answers a challenge without a realm.
    func key(of token: CredentialReference) -> Breaker.Key {
        Breaker.Key(space: AuthenticationSpace(origin: origin, realm: nil, scheme: .bearer), credential: token)
    }

    /// Whether the client's Authorization only stands for the token.
    func stands(for head: RequestHead) -> Bool {
        switch rule.place {
        case .header(let name, _, _): guard name.lowercased() == FieldName.authorization.text else { return false }
        case .basic, .aws: break
        case .query, .cookie: return false
        }
        let values = head.fields.values(named: "Authorization")
        guard values.count == 1 else { return false }
        guard case .aws = rule.place else { return rule.isPlaceholder(values[0].utf8) }
        return ClientSignature.accessKeyID(inField: values[0]).map { rule.isPlaceholder($0.utf8) } == true
    }
}

/// The injected tokens that their sites have accepted: a 401 is then about the request, and no server locks an account
/// for a token.
final class AcceptedTokens: Sendable {
    private static let capacity = 1024
    private let keys = NIOLockedValueBox<Set<Breaker.Key>>([])

    func add(_ key: Breaker.Key) {
        keys.withLockedValue { keys in
            if keys.count >= Self.capacity { keys = [] }
            keys.insert(key)
        }
    }

    func contains(_ key: Breaker.Key) -> Bool { keys.withLockedValue { $0.contains(key) } }
}

extension ExchangeDriver {
    /// The request's changes for the token of the site's line; none if the request must not have it.
    func injected(_ use: InjectionUse) -> Injected {
        dialogue?.injection = nil
        dialogue?.chunkSigner = nil
        do throws(WithheldInjection) {
            let secret = try permittedSecret(use)
            var injected: Injected
            switch secret {
            case .token(let token): injected = try changes(for: use.rule, token.token)
            case .keys(let keys): injected = try signedAgain(use.rule, keys)
            }
            beginDialogue().injection = SentInjection(secret, isRedacted: use.rule.isRedacted)
            record.answered("injected", with: secret.reference)
            foreignCause?.addedSecret = true
            if use.rule.isRedacted {
                // A part of the token, or its compressed form, would not be recognised.
                injected.fields.append(AddedField("Accept-Encoding", AcceptedCodings(), replaces: true))
                // Request-Range is a draft's name for Range, which old servers read.
                injected.omitted += ["Range", "If-Range", "Request-Range"]
            }
            return injected
        } catch {
            beginDialogue().withheldInjection = error.reason
            record.explain("not injected: \(error.reason.text)")
            return Injected()
        }
    }

    /// The token, if the origin's certificate verifies, no page of another origin has caused the request, the client
    /// does not authenticate itself and is still the same user's, and the site has not rejected the token.
    private func permittedSecret(_ use: InjectionUse) throws(WithheldInjection) -> InjectedSecret {
        if let refusal = foreignCause?.refusal { throw WithheldInjection(refusal.refusal) }
        // A person who follows a link wants a page. No API is used so, and the link may be any page's.
        if case .navigation? = foreignCause?.verdict {
            throw WithheldInjection("a page of another origin has led there")
        }
        // A certificate that somebody has accepted is no proof of who reads the token.
        guard acquisition.trust == .verified else { throw WithheldInjection(.untrusted) }
        guard mayBeAnswered else {
            guard use.rule.hasPlaceholder(inAuthorization: head.fields.values(named: "Authorization")) else {
                throw WithheldInjection(.ownAuthorization, "the client authenticates itself")
            }
            throw WithheldInjection("the placeholder is in Authorization, and the line names \(use.rule.description)")
        }
        guard session.isStillSameUser() else { throw WithheldInjection("another user has the client's place") }
        if use.rule.isRedacted, head.upgrade != nil {
            throw WithheldInjection("redact=yes cannot search what follows an upgrade")
        }
        switch use.decision {
        case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): throw WithheldInjection(reason)
        case .useCredential(.token(let token)):
            if policy.hasExpired(token.reference, now: services.shared.wallClock) {
                renew(token.reference)
                throw WithheldInjection(.noCredential, "the access token \"\(token.name)\" has expired")
            }
            if use.rule.isRedacted, token.token.count < SecretRedactor.minimumBytes {
                throw WithheldInjection(
                    "redact=yes cannot find a token of fewer than \(SecretRedactor.minimumBytes) bytes")
            }
            if use.rule.isRedacted, case .query = use.rule.place,
                !token.token.withBytes({ $0.allSatisfy(PercentEncoding.isUnreserved) })
            {
                throw WithheldInjection("redact=yes cannot find a token that is percent-encoded")
            }
            if let refusal = services.shared.breaker.refusal(of: use.key(of: token.reference)) {
                throw WithheldInjection(refusal)
            }
            return .token(token)
        case .useCredential(.aws(let credential)):
            if let expires = credential.keys.expires, credential.keys.haveExpired(at: services.shared.wallClock()) {
                throw WithheldInjection(
                    .noCredential, "the keys \"\(credential.name)\" have expired at \(WallClock.rfc3339(expires))")
            }
            return .keys(EnrolledKeys(credential))
        case .useCredential(.password(let keys)) where use.rule.place == .aws: return .keys(EnrolledKeys(keys))
        case .useCredential: throw WithheldInjection(.noCredential, "only a token can be injected")
        }
    }

    /// Has a token renewed for later requests.
    private func renew(_ token: CredentialReference) {
        guard let renewer = answerServices.renewer else { return }
        Task { _ = await renewer.renew(token, .expired) }
    }

    private func changes(for rule: SecretInjection, _ token: Secret) throws(WithheldInjection) -> Injected {
        var injected = Injected()
        switch rule.place {
        case .header(let name, let prefix, let suffix):
            injected.fields.append(
                try field(name, InjectedField(prefix: prefix, secret: token, suffix: suffix), rule))
        case .basic(let prefix, let suffix):
            injected.fields.append(
                try field("Authorization", InjectedBasic(prefix: prefix, token, suffix: suffix), rule))
        case .query(let name):
            guard path.first == UInt8(ascii: "/"), !path.contains(UInt8(ascii: "#")) else {
                throw WithheldInjection("the request's target has no query")
            }
            guard case .changed(let before, let after) = rule.target(path, parameter: name) else {
                throw WithheldInjection(.ownAuthorization, "the client sends a value of its own in \(rule.description)")
            }
            injected.target = Self.joined(before, token, after)[...]
        case .aws: throw WithheldInjection(.noCredential, "a token cannot sign requests to AWS")
        case .cookie(let name):
            guard !SentCookies(sentCookies).contains(name) else {
                throw WithheldInjection(.ownAuthorization, "the client sends a value of its own in \(rule.description)")
            }
            injected.cookie = InjectedCookie(others: CookieField(own: sentCookies, []), name: name, secret: token)
        }
        return injected
    }

    /// A field in place of the client's, if that is the placeholder or missing.
    private func field(
        _ name: String, _ value: some SecretFieldValue, _ rule: SecretInjection
    ) throws(WithheldInjection) -> AddedField {
        let own = head.fields.values(named: name)
        guard own.isEmpty || own.count == 1 && rule.isPlaceholder(own[0].utf8) else {
            throw WithheldInjection(.ownAuthorization, "the client sends a value of its own in \(rule.description)")
        }
        return AddedField(name, value, replaces: !own.isEmpty)
    }

    private var requestTag: Breaker.RequestTag { Breaker.RequestTag(method: method, target: target) }

    /// Reports the site's verdict about the token to the breaker.
    func noteInjection(_ use: InjectionUse, status: Int) {
        // AWS locks nobody out, and its reasons to refuse a signature are many.
        guard let credential = dialogue?.injection?.credential, use.rule.place != .aws else { return }
        let key = use.key(of: credential)
        guard status == 401 else {
            if status < 400, !use.hasReported {
                use.hasReported = true
                services.shared.acceptedTokens.add(key)
            }
            return
        }
        // The challenge of this response, if it has one, is not the reason why the client is refused.
        services.shared.observer?.tell(.rejected(key.space, credential: credential.name, path: observedPath))
        if !services.shared.acceptedTokens.contains(key) {
            services.shared.breaker.ended(key, for: requestTag, .rejected)
        }
    }
}

// MARK: Responses

extension ExchangeDriver {
    /// The challenges of a response: its own, or the one that a 401 without any stands for.
    func challenges(in fields: FieldLines, status: Int) -> [ChallengeField] {
        let all = fields.challengeFields(of: route.challenger == nil ? .origin : .parentProxy)
        guard status == 401, all.isEmpty, route.challenger == nil, let assumed = rule?.assumedChallenge else {
            return all
        }
        return [ChallengeField(octets: Array(assumed.utf8))]
    }

    /// Says of a 401 what became of the token, in place of why the challenge was not answered.
    func explainInjection(status: Int) {
        let isAWS = if case .aws? = route.injection?.rule.place { true } else { false }
        guard status == 401 || isAWS && (status == 400 || status == 403) else { return }
        if let credential = dialogue?.injection?.credential {
            // AWS says only in the content whether it refuses the signature or the request.
            guard !isAWS else { return }
            record.rejected()
            record.explain("the site has rejected credential \"\(credential.name)\", which was injected")
        } else if let reason = dialogue?.withheldInjection {
            record.explain("not injected: \(reason.text)")
        }
    }

    /// The response to a request with a token that cannot be looked for in the response.
    func redactionFault(_ head: ResponseHead) -> OwnResponse? {
        guard dialogue?.injection?.redactor != nil else { return nil }
        guard head.status != 206 else {
            return OwnResponse(
                status: 502, detail: "the response is partial, so that redact=yes cannot search it for the token",
                proxyError: "http_protocol_error")
        }
        let codings = head.fields.values(named: "Content-Encoding").filter { $0.lowercased() != "identity" }
        guard !codings.isEmpty else { return nil }
        return OwnResponse(
            status: 502, detail: "the response is compressed, so that redact=yes cannot search it for the token",
            proxyError: "http_response_content_coding")
    }

    /// Takes the token out of fields.
    func redact(_ fields: FieldLines) {
        guard let token = dialogue?.injection?.redacted else { return }
        token.withBytes { fields.redact($0) }
    }

    /// With the token percent-encoded, in one array that can be overwritten.
    private static func joined(_ before: [UInt8], _ token: Secret, _ after: [UInt8]) -> [UInt8] {
        var target: [UInt8] = []
        target.reserveCapacity(before.count + 3 * token.count + after.count)
        target += before
        token.withBytes { PercentEncoding.append($0, to: &target) }
        target += after
        return target
    }
}
