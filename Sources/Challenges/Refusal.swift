// SPDX-License-Identifier: Apache-2.0

/// Why a challenge is not answered: a cause to decide by, and a sentence for people.
///
/// `Proxy-Status`, the access log, `explain`, `test`, the last lines of `exec`, and the errors and events of the
/// library print the sentence; nothing reads it back. A string literal is a refusal whose cause nothing depends on.
package struct Refusal: Sendable {
    package enum Cause: Equatable, Sendable {
        /// The message or the exchange itself is at fault, such as a challenge that cannot be parsed. Nothing helps
        /// that this program knows.
        case other
        /// The list has no line for the site.
        case notListed
        /// The site's line says `intercept=no`.
        case notIntercepted
        /// The site's line is for other clients.
        case otherClient
        /// The site's certificate was not verified.
        case untrusted
        /// The client sent an authorization field of its own.
        case ownAuthorization
        /// A page of another origin asks; nil if it does not reveal its name.
        case foreignPage(String?)
        /// The credential would be sent in plaintext, and the site's line does not say `plaintext=yes`.
        case plaintext
        /// The scheme is answered over https only.
        case requiresTLS
        /// The schemes, strongest first, are not among the `answer=` of the site's line.
        case notPermitted([AuthenticationScheme])
        /// The site's lines, the first of them at `line`, are for other requests.
        case notPermittedRequest(line: String)
        /// There is no credential, or none of the kind that the scheme needs.
        case noCredential
        /// There is no client identity, or none of this name.
        case noIdentity(named: String?)
        /// The client identity of this name has expired.
        case expiredIdentity(String)
        /// There are client identities, but the server accepts none of them.
        case unsuitableIdentities
        /// The vault is locked.
        case locked
        /// The home is paused.
        case paused
        /// All checks have passed, but nothing is answered in a dry run.
        case dryRun
        /// The device does not comply with the policy of the sign-in of this name.
        case notCompliant(String)
        /// The enrolment of this name is being wiped.
        case wiped(String)
        /// The server has rejected the credential of this name, which has not changed since.
        case blocked(String)
        /// The breaker permits the credential of this name later, or after `credential retry`; nil for a Kerberos
        /// ticket, which has no name of its own.
        case heldBack(String?)
        /// The server has not accepted the credential.
        case rejected
        /// The server requires this of the access token, which does not have it. Everything in it is empty if the
        /// server does not say which scopes (RFC 6750 §3.1).
        case insufficientToken(StepUp)
        /// The input for a token is missing: no Kerberos ticket can be had.
        case noTicket
        /// The server refuses NTLM in Negotiate, so that only a Kerberos ticket can answer.
        case wantsTicket
        /// The server did not continue the dialogue of the scheme.
        case notContinued(String)
    }

    /// By reference, because every request copies the results of its checks, and hardly any has a refusal.
    private final class Content: Sendable {
        let cause: Cause
        let text: String
        let bareText: String?

        init(_ cause: Cause, _ text: String, _ bareText: String?) {
            self.cause = cause
            self.text = text
            self.bareText = bareText
        }
    }

    private let content: Content

    /// `text` is a short sentence without a full stop and without a secret. If ``Cause/isSaidWithRemedy``, the sentence
    /// also contains the remedy.
    package init(_ cause: Cause, _ text: String) { content = Content(cause, text, nil) }

    /// The same with the remedy after `text`.
    package init(_ cause: Cause, _ text: String, _ remedy: Remedy, of verb: String = "") {
        content = Content(cause, "\(text); \(verb)\(remedy.sentence)", text)
    }

    private init(content: Content) { self.content = content }

    /// With a cause that nothing depends on.
    package init(_ text: String) { self.init(.other, text) }

    package var cause: Cause { content.cause }
    package var text: String { content.text }
    /// ``text`` without the remedy, if it ends with one; otherwise nil.
    package var bareText: String? { content.bareText }

    /// What the server requires of the access token. Nil if that is not the cause.
    package var stepUp: StepUp? {
        if case .insufficientToken(let stepUp) = cause { stepUp } else { nil }
    }

    /// The credential exists, but is not used before the device complies, or at all.
    package var isWithheld: Bool {
        switch cause {
        case .notCompliant, .wiped: true
        default: false
        }
    }

    /// The same cause after `prefix`, as in `the KDC: …`.
    package func after(_ prefix: String) -> Refusal {
        Refusal(content: Content(cause, prefix + text, bareText.map { prefix + $0 }))
    }

    /// Several on one line. The last one has ended the exchange, so its cause counts.
    static func joined(_ refusals: [Refusal]) -> Refusal {
        Refusal(refusals.last?.cause ?? .other, refusals.map(\.text).joined(separator: "; "))
    }
}

extension Refusal.Cause {
    /// Whether the sentences of refusals with this cause contain the remedy, everywhere they are shown.
    package var isSaidWithRemedy: Bool {
        switch self {
        case .otherClient, .foreignPage, .locked, .paused, .dryRun, .notCompliant, .wiped, .heldBack, .noTicket: true
        case .other, .notListed, .notIntercepted, .untrusted, .ownAuthorization, .plaintext, .requiresTLS,
            .notPermitted, .notPermittedRequest, .noCredential, .noIdentity, .expiredIdentity, .unsuitableIdentities,
            .blocked, .rejected,
            .insufficientToken, .wantsTicket, .notContinued:
            false
        }
    }
}

extension Refusal {
    package static let locked = Refusal(.locked, "the vault is locked", .unlockVault, of: "run ")
    package static let paused = Refusal(.paused, "integrated authentication is switched off", .resume, of: "run ")
    /// `answer` is what would have been sent, such as `credential "enrollment"`.
    package static func dryRun(_ answer: String) -> Refusal {
        Refusal(.dryRun, "dry run: would be answered with \(answer)")
    }

    package static let unlisted = Refusal(.notListed, "not on the list")
    package static let plaintext = Refusal(.plaintext, "site is http and its line does not say plaintext=yes")
    package static let untrusted = Refusal(.untrusted, "the origin's certificate is not trusted")

    static func rejected(_ name: String, by source: ChallengeSource) -> Refusal {
        Refusal(.rejected, "credential \"\(name)\" was rejected by the \(source.name)")
    }
}

extension Refusal: Equatable {
    package static func == (left: Refusal, right: Refusal) -> Bool {
        left.content === right.content || (left.cause == right.cause && left.text == right.text)
    }
}

extension Refusal: CustomStringConvertible {
    /// ``text``.
    package var description: String { text }
}

extension Refusal: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) { self.init(.other, text) }
}
