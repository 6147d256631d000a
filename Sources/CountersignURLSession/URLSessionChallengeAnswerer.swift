// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Countersign
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session's delegate that answers what URLSession asks, with what the home of a `ChallengeController` has.
///
/// On Linux URLSession asks about Basic and about nothing else: a Digest, NTLM, Negotiate or Bearer challenge is
/// delivered as a plain 401, client certificates cannot be shown, and server trust is never put to a delegate. For all
/// of these there is `URLSessionConfiguration.answering(through:)`.
///
/// Where a server offers NTLM or Negotiate beside Basic, and the site's line permits that, Basic is not answered: the
/// password would go out although it need not. Proxies that ask are never answered.
///
/// On Linux a Basic challenge that is not answered ends its task with `URLError.cancelled`: default handling, as
/// URLSession has it there, leaves a task without a proposed credential waiting for ever.
///
/// Until a site has taken a credential, one task at a time tries it; the others wait for that task's response.
public final class URLSessionChallengeAnswerer: NSObject, URLSessionTaskDelegate {
    private let controller: ChallengeController
    /// What the tasks asked whose answers others wait for.
    private let open = Mutex<[ObjectIdentifier: Countersign.AuthenticationChallenge]>([:])

    /// Answers from the home of `controller`.
    public init(_ controller: ChallengeController) {
        self.controller = controller
    }

    /// Puts the challenge to `ChallengeController.handle`.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        var asked = Countersign.AuthenticationChallenge(challenge)
        let hasProposal = challenge.proposedCredential != nil
        guard !offersBetter(challenge, than: asked.protectionSpace) else {
            return completionHandler(Self.defaultHandling(hasProposal: hasProposal), nil)
        }
        let earlier = open.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) }
        asked.attempt = earlier?.attempt ?? controller.newPermit()
        Task { [asked] in
            let (disposition, credential) = await controller.handle(asked)
            if asked.attempt?.holdsOthersUp == true { watch(task, asked) }
            let (said, used) = Self.foundation(disposition, credential, hasProposal: hasProposal)
            completionHandler(said, used)
        }
    }

    /// The task is over: whoever waits for it may go on.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let asked = open.withLock({ $0.removeValue(forKey: ObjectIdentifier(task)) }) else { return }
        guard let response = task.response as? HTTPURLResponse, response.statusCode != 401 else { return }
        controller.answerAccepted(asked)
    }

    /// On Linux URLSession does not tell the delegate of the end of a task that has a completion handler, and
    /// `data(from:)` makes such ones.
    private func watch(_ task: URLSessionTask, _ asked: Countersign.AuthenticationChallenge) {
        open.withLock { $0[ObjectIdentifier(task)] = asked }
        Task { [weak self] in
            while asked.attempt?.holdsOthersUp == true, task.state != .completed {
                try? await Task.sleep(for: .milliseconds(20))
            }
            guard let self else { return }
            urlSession(.shared, task: task, didCompleteWithError: nil)
        }
    }

    /// The controller's answer in Foundation's words.
    static func foundation(
        _ disposition: Countersign.ChallengeDisposition, _ credential: Countersign.Credential?, hasProposal: Bool
    ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        switch (disposition, credential) {
        case (.useCredential, .password(let user, let password)?):
            // URLSession takes no password that is not text.
            guard let text = password.text else { return (defaultHandling(hasProposal: hasProposal), nil) }
            return (.useCredential, URLCredential(user: user, password: text, persistence: .none))
        case (.cancelAuthenticationChallenge, _):
            return (.cancelAuthenticationChallenge, nil)
        case (.rejectProtectionSpace, _):
            return (.rejectProtectionSpace, nil)
        case (.performDefaultHandling, _), (.useCredential, _):
            return (defaultHandling(hasProposal: hasProposal), nil)
        }
    }

    /// Whether the server asks for Basic beside what is answered too and does not give the password away, or so that it
    /// cannot be told.
    private func offersBetter(
        _ challenge: URLAuthenticationChallenge, than space: Countersign.ProtectionSpace
    ) -> Bool {
        guard space.authenticationMethod == .basic, let response = challenge.failureResponse as? HTTPURLResponse,
            let field = response.value(forHTTPHeaderField: "WWW-Authenticate")
        else { return false }
        guard let offers = try? ChallengeParser.parse(fields: [field]) else { return true }
        let schemes = Set(offers.map { $0.scheme.lowercased() })
        return [("ntlm", AuthenticationMethod.ntlm), ("negotiate", .negotiate)].contains { scheme, method in
            var better = space
            better.authenticationMethod = method
            return schemes.contains(scheme) && (try? controller.canHandle(better)) == true
        }
    }

    /// Default handling where it ends.
    private static func defaultHandling(hasProposal: Bool) -> URLSession.AuthChallengeDisposition {
        #if canImport(FoundationNetworking)
            hasProposal ? .performDefaultHandling : .cancelAuthenticationChallenge
        #else
            .performDefaultHandling
        #endif
    }
}

extension Countersign.AuthenticationChallenge {
    /// URLSession's challenge in the words of Countersign. The proposed credential stays behind: it is not one of the
    /// home's.
    init(_ challenge: URLAuthenticationChallenge) {
        self.init(
            protectionSpace: Countersign.ProtectionSpace(challenge.protectionSpace),
            previousFailureCount: challenge.previousFailureCount)
    }
}

extension Countersign.ProtectionSpace {
    /// URLSession's protection space in the words of Countersign. That of a proxy asks in no way that is answered, and one
    /// that says no protocol names no site.
    init(_ space: URLProtectionSpace) {
        let method = AuthenticationMethod(urlSession: space.authenticationMethod)
        self.init(
            scheme: space.protocol ?? "", host: space.host, port: space.port == 0 ? nil : space.port,
            realm: space.realm, authenticationMethod: space.isProxy() ? .other("\(method) of a proxy") : method)
    }
}

extension AuthenticationMethod {
    /// From the value of one of Foundation's `NSURLAuthenticationMethod…` constants.
    init(urlSession name: String) {
        switch name {
        case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodDefault: self = .basic
        case NSURLAuthenticationMethodHTTPDigest: self = .digest
        case "NSURLAuthenticationMethodNTLM": self = .ntlm
        case "NSURLAuthenticationMethodNegotiate": self = .negotiate
        case "NSURLAuthenticationMethodClientCertificate": self = .clientCertificate
        case "NSURLAuthenticationMethodServerTrust": self = .serverTrust
        default: self = .other(name)
        }
    }
}
