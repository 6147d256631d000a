// SPDX-License-Identifier: Apache-2.0

public import Countersign
public import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A URLSession delegate that answers challenges from the home of a `ChallengeController`.
///
/// On Linux, URLSession passes only Basic challenges to its delegate: it delivers Digest, NTLM, Negotiate and Bearer
/// challenges as a 401, cannot present client certificates, and does not ask about server trust. For these, use
/// `URLSessionConfiguration.answering(through:)`.
///
/// If a server also offers a stronger scheme, such as NTLM, and the site's line permits it, the delegate does not
/// answer Basic, which would reveal the password needlessly. It never answers challenges from proxies.
///
/// On Linux, a task whose Basic challenge is not answered fails with `URLError.cancelled`: with default handling,
/// URLSession would wait forever if it has no proposed credential.
///
/// Until a site has accepted a credential, one task at a time tries it, and the others wait for its response.
public final class URLSessionChallengeAnswerer: NSObject, URLSessionTaskDelegate {
    private let controller: ChallengeController
    /// The challenges whose outcome other tasks are waiting for, by task.
    private let open = Mutex<[ObjectIdentifier: Countersign.AuthenticationChallenge]>([:])

    /// Creates a delegate that answers from the home of `controller`.
    public init(_ controller: ChallengeController) {
        self.controller = controller
    }

    /// Answers the challenge with `ChallengeController.handle`.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        var asked = Countersign.AuthenticationChallenge(challenge)
        let hasProposal = challenge.proposedCredential != nil
        let request = task.currentRequest ?? task.originalRequest
        let permit = controller.newPermit(
            method: request?.httpMethod, url: request?.url?.absoluteString, offer: Self.offer(of: challenge))
        guard !offersBetter(challenge, than: asked.protectionSpace, permit) else {
            return completionHandler(.defaultHandling(hasProposal: hasProposal), nil)
        }
        let earlier = open.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) }
        // After a redirect, the task has another request, which another line may be for.
        asked.permit = earlier?.permit.flatMap { $0.siteRequest == permit.siteRequest ? $0 : nil } ?? permit
        Task { [asked] in
            let (disposition, credential) = await controller.answer(asked, hasProposal: hasProposal)
            if asked.permit?.holdsOthersUp == true { watch(task, asked) }
            completionHandler(disposition, credential)
        }
    }

    /// Reports the outcome of the task's challenge, so that waiting tasks can continue.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let asked = open.withLock({ $0.removeValue(forKey: ObjectIdentifier(task)) }) else { return }
        guard let response = task.response as? HTTPURLResponse, response.statusCode != 401 else { return }
        controller.answerAccepted(asked)
    }

    /// Polls until the task ends. On Linux, URLSession does not notify the delegate when a task with a completion
    /// handler ends, and `data(from:)` creates such tasks.
    private func watch(_ task: URLSessionTask, _ asked: Countersign.AuthenticationChallenge) {
        open.withLock { $0[ObjectIdentifier(task)] = asked }
        Task { [weak self] in
            while asked.permit?.holdsOthersUp == true, task.state != .completed {
                try? await Task.sleep(for: .milliseconds(20))
            }
            guard let self else { return }
            urlSession(.shared, task: task, didCompleteWithError: nil)
        }
    }

    /// The challenges of the response, if there is one.
    private static func offer(of challenge: URLAuthenticationChallenge) -> String? {
        (challenge.failureResponse as? HTTPURLResponse)?.value(forHTTPHeaderField: "WWW-Authenticate")
    }

    /// Whether the server offers, besides Basic, a stronger scheme that can be answered. True also if its challenges
    /// cannot be parsed.
    private func offersBetter(
        _ challenge: URLAuthenticationChallenge, than space: Countersign.ProtectionSpace, _ permit: BreakerPermit
    ) -> Bool {
        guard space.authenticationMethod == .basic, let field = Self.offer(of: challenge) else { return false }
        return controller.canAnswer(strongerThan: space, offeredIn: field, to: permit)
    }
}
