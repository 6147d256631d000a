// SPDX-License-Identifier: Apache-2.0

public import Countersign
import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Countersign.AuthenticationChallenge {
    /// Converts URLSession's challenge. Drops the proposed credential, because it is not one of the home's.
    public init(_ challenge: URLAuthenticationChallenge) {
        self.init(
            protectionSpace: Countersign.ProtectionSpace(challenge.protectionSpace),
            previousFailureCount: challenge.previousFailureCount)
    }
}

extension URLAuthenticationChallenge {
    /// Converts a challenge, for example to pass it to a delegate that was written for URLSession. `sender` receives
    /// the answer of delegates that use it. A proposed token or identity is lost.
    public convenience init(
        _ challenge: Countersign.AuthenticationChallenge, sender: any URLAuthenticationChallengeSender
    ) {
        self.init(
            protectionSpace: URLProtectionSpace(challenge.protectionSpace),
            proposedCredential: challenge.proposedCredential.flatMap { URLCredential($0) },
            previousFailureCount: challenge.previousFailureCount, failureResponse: nil, error: nil, sender: sender)
    }
}

extension ChallengeController {
    /// Answers a challenge for a delegate of URLSession, with the arguments of its completion handler. `asked` is the
    /// converted challenge; `hasProposal` says whether URLSession's has a proposed credential.
    ///
    /// On Linux, URLSession would wait forever after `performDefaultHandling` without a proposed credential, so the
    /// result is `cancelAuthenticationChallenge` then, and the task fails with `URLError.cancelled`. The same happens
    /// to a credential that URLSession cannot send.
    ///
    /// Report the outcome with `answerAccepted(_:)`, as after `handle(_:)`.
    public func answer(
        _ asked: Countersign.AuthenticationChallenge, hasProposal: Bool
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        let (disposition, credential) = await handle(asked)
        switch (disposition, credential.flatMap { URLCredential($0) }) {
        case (.useCredential, let credential?):
            return (.useCredential, credential)
        case (.useCredential, nil), (.performDefaultHandling, _):
            return (.defaultHandling(hasProposal: hasProposal), nil)
        case (.cancelAuthenticationChallenge, _), (.rejectProtectionSpace, _):
            return (URLSession.AuthChallengeDisposition(disposition), nil)
        }
    }
}

extension URLSession.AuthChallengeDisposition {
    /// Default handling, unless URLSession would wait forever.
    static func defaultHandling(hasProposal: Bool) -> URLSession.AuthChallengeDisposition {
        #if canImport(FoundationNetworking)
            hasProposal ? .performDefaultHandling : .cancelAuthenticationChallenge
        #else
            .performDefaultHandling
        #endif
    }
}
