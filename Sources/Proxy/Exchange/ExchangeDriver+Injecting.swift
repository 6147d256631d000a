// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCookies
import CountersignCryptography
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream

/// A route's use of the token that its site's line adds to each request. An object, so that a route without one pays
/// for a comparison with nil only.
final class InjectionUse {
    let rule: SecretInjection
    /// The token, or why there is none.
    let decision: CredentialDecision
    private let origin: Origin

    /// Nil if the line injects nothing.
    init?(of rule: SiteRule, at origin: Origin, _ policy: Policy) {
        guard let injection = rule.injection else { return nil }
        self.rule = injection
        self.origin = origin
        decision = policy.injectionDecision(for: rule, at: origin)
    }

    /// To the breaker, the token counts as one that answers a challenge without a realm.
    func key(of token: TokenCredential) -> Breaker.Key {
        Breaker.Key(
            space: AuthenticationSpace(origin: origin, realm: nil, scheme: .bearer), credential: token.reference)
    }

    /// Whether the client's Authorization only stands for the token.
    func stands(for head: RequestHead) -> Bool {
        guard case .header(let name, _, _) = rule.place, name.lowercased() == FieldName.authorization.text else {
            return false
        }
        let values = head.fields.values(named: name)
        return values.count == 1 && rule.isPlaceholder(values[0].utf8)
    }
}

/// The part of a request that the token changes.
struct Injected {
    var fields: [AddedField] = []
    var cookie: (any SecretFieldValue)?
    /// The whole target.
    var target: ArraySlice<UInt8>?
    /// The names of the client's fields that are left out.
    var omitted: [String] = []
}

/// Why a token is not sent.
private struct Withheld: Error {
    let reason: Refusal

    init(_ reason: Refusal) { self.reason = reason }

    init(_ cause: Refusal.Cause, _ text: String) { reason = Refusal(cause, text) }
}

/// A field value with a token in it.
private struct InjectedField: SecretFieldValue {
    let prefix: String
    let secret: Secret
    let suffix: String

    var byteCount: Int { prefix.utf8.count + secret.count + suffix.utf8.count }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        var prefix = prefix
        var suffix = suffix
        prefix.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        secret.withBytes { write($0) }
        suffix.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }
}

private struct AcceptedCodings: SecretFieldValue {
    private static let value: StaticString = "identity"

    var byteCount: Int { Self.value.utf8CodeUnitCount }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        Self.value.withUTF8Buffer { write(UnsafeRawBufferPointer($0)) }
    }
}

extension ExchangeDriver {
    /// The request's changes for the token of the site's line; none if the request must not have it.
    func injected(_ use: InjectionUse) -> Injected {
        hasInjected = false
        do throws(Withheld) {
            let token = try permittedToken(use)
            var injected = try changes(for: use.rule, token.token)
            hasInjected = true
            record.answered("injected", with: token.name)
            foreignCause?.addedSecret = true
            if use.rule.isRedacted {
                // A part of the token, or its compressed form, would not be recognised.
                injected.fields.append(AddedField("Accept-Encoding", AcceptedCodings(), replaces: true))
                injected.omitted += ["Range", "If-Range"]
                redactor = SecretRedactor(token.token)
            }
            return injected
        } catch {
            record.explain("not injected: \(error.reason.text)")
            return Injected()
        }
    }

    /// The token, if the origin's certificate verifies, no page of another origin has caused the request, the client
    /// does not authenticate itself and is still the same user's, and the site has not rejected the token.
    private func permittedToken(_ use: InjectionUse) throws(Withheld) -> TokenCredential {
        if let refusal = foreignCause?.refusal { throw Withheld(refusal.refusal) }
        // A certificate that somebody has accepted is no proof of who reads the token.
        guard acquisition.trust == .verified else { throw Withheld(.untrusted) }
        guard mayBeAnswered else { throw Withheld(.ownAuthorization, "the client authenticates itself") }
        guard session.isStillSameUser() else { throw Withheld("another user has the client's place") }
        if use.rule.isRedacted, head.upgrade != nil {
            throw Withheld("redact=yes cannot search what follows an upgrade")
        }
        switch use.decision {
        case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): throw Withheld(reason)
        case .useCredential(.token(let token)):
            if policy.hasExpired(token.reference, now: services.shared.wallClock) {
                throw Withheld(.noCredential, "the access token \"\(token.name)\" has expired")
            }
            if use.rule.isRedacted, token.token.count < SecretRedactor.minimumBytes {
                throw Withheld("redact=yes cannot find a token of fewer than \(SecretRedactor.minimumBytes) bytes")
            }
            guard !services.shared.breaker.isRejected(use.key(of: token)) else {
                throw Withheld(.blocked(token.name), "the site has rejected credential \"\(token.name)\"")
            }
            return token
        case .useCredential: throw Withheld(.noCredential, "only a token can be injected")
        }
    }

    private func changes(for rule: SecretInjection, _ token: Secret) throws(Withheld) -> Injected {
        var injected = Injected()
        switch rule.place {
        case .header(let name, let prefix, let suffix):
            let own = head.fields.values(named: name)
            guard own.isEmpty || own.count == 1 && rule.isPlaceholder(own[0].utf8) else {
                throw Withheld(.ownAuthorization, "the client sends a value of its own in \(rule.description)")
            }
            let value = InjectedField(prefix: prefix, secret: token, suffix: suffix)
            injected.fields.append(AddedField(name, value, replaces: !own.isEmpty))
        case .query(let name):
            guard path.first == UInt8(ascii: "/") else { throw Withheld("the request's target has no query") }
            guard case .changed(let before, let after) = rule.target(path, parameter: name) else {
                throw Withheld(.ownAuthorization, "the client sends a value of its own in \(rule.description)")
            }
            injected.target = (before + token.withBytes { Array($0).percentEncoded } + after)[...]
        case .cookie(let name):
            guard !SentCookies(sentCookies).contains(name) else {
                throw Withheld(.ownAuthorization, "the client sends a value of its own in \(rule.description)")
            }
            let own = Array(sentCookies.filter { !$0.isEmpty }.joined(separator: "; ".utf8))
            let prefix = String(decoding: own, as: UTF8.self) + (own.isEmpty ? "" : "; ") + "\(name)="
            injected.cookie = InjectedField(prefix: prefix, secret: token, suffix: "")
        }
        return injected
    }

    private var requestTag: Breaker.RequestTag { Breaker.RequestTag(method: method, target: target) }

    /// Reports the site's verdict about the token to the breaker.
    func noteInjection(_ use: InjectionUse, status: Int) {
        guard hasInjected, case .useCredential(.token(let token)) = use.decision else { return }
        let key = use.key(of: token)
        if status == 401 {
            services.shared.breaker.ended(key, for: requestTag, .rejected)
        } else {
            services.shared.breaker.acceptedUnasked(key, for: requestTag)
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

    /// Says that the site has rejected the token, in place of why its challenge was not answered.
    func explainRejection(status: Int) {
        guard hasInjected, status == 401, case .useCredential(.token(let token))? = route.injection?.decision else {
            return
        }
        record.explain("the site has rejected credential \"\(token.name)\", which was injected")
    }

    /// Takes the token out of the head of a response, which must not be compressed.
    func redact(_ head: ResponseHead) -> OwnResponse? {
        guard redactor != nil else { return nil }
        let codings = head.fields.values(named: "Content-Encoding").filter { $0.lowercased() != "identity" }
        guard codings.isEmpty else {
            return OwnResponse(
                status: 502, detail: "the response is compressed, so that redact=yes cannot search it for the token",
                proxyError: "http_response_content_coding")
        }
        redact(head.fields)
        return nil
    }

    /// Takes the token out of fields.
    func redact(_ fields: FieldLines) {
        guard hasInjected, case .useCredential(.token(let token))? = route.injection?.decision else { return }
        token.token.withBytes { fields.redact($0) }
    }
}

extension [UInt8] {
    /// With percent-encoding of all but unreserved characters (RFC 3986 §2.3).
    fileprivate var percentEncoded: [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return flatMap { octet -> [UInt8] in
            switch octet {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                [octet]
            default: [UInt8(ascii: "%"), digits[Int(octet >> 4)], digits[Int(octet & 15)]]
            }
        }
    }
}
