// SPDX-License-Identifier: Apache-2.0

import Countersign
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session's delegate that answers what URLSession asks, with what the home of a `ChallengeController` has.
///
/// On Linux URLSession asks about Basic and about nothing else: a Digest, NTLM, Negotiate or Bearer challenge is
/// delivered as a plain 401, client certificates cannot be shown, and server trust is never put to a delegate. For all
/// of these there is `URLSessionConfiguration.answering(through:)`.
///
/// On Linux a Basic challenge that is not answered ends its task with `URLError.cancelled`: default handling, as
/// URLSession has it there, leaves a task without a proposed credential waiting for ever.
public final class URLSessionChallengeAnswerer: NSObject, URLSessionTaskDelegate {
    private let controller: ChallengeController

    /// Answers from the home of `controller`.
    public init(_ controller: ChallengeController) {
        self.controller = controller
    }

    /// Puts the challenge to `ChallengeController.handle`.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let asked = AuthenticationChallenge(challenge)
        let hasProposal = challenge.proposedCredential != nil
        Task { [controller] in
            let (disposition, credential) = await controller.handle(asked)
            switch (disposition, credential) {
            case (.useCredential, .password(let user, let password)?):
                completionHandler(
                    .useCredential, URLCredential(user: user, password: password.text ?? "", persistence: .none))
            case (.cancelAuthenticationChallenge, _):
                completionHandler(.cancelAuthenticationChallenge, nil)
            case (.rejectProtectionSpace, _):
                completionHandler(.rejectProtectionSpace, nil)
            case (.performDefaultHandling, _), (.useCredential, _):
                completionHandler(Self.defaultHandling(hasProposal: hasProposal), nil)
            }
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

extension AuthenticationChallenge {
    /// URLSession's challenge in the words of Countersign. The proposed credential stays behind: it is not one of the
    /// home's.
    public init(_ challenge: URLAuthenticationChallenge) {
        self.init(
            protectionSpace: ProtectionSpace(challenge.protectionSpace),
            previousFailureCount: challenge.previousFailureCount)
    }
}

extension ProtectionSpace {
    /// URLSession's protection space in the words of Countersign.
    public init(_ space: URLProtectionSpace) {
        self.init(
            scheme: space.protocol ?? "https", host: space.host, port: space.port == 0 ? nil : space.port,
            realm: space.realm, authenticationMethod: AuthenticationMethod(urlSession: space.authenticationMethod))
    }
}

extension AuthenticationMethod {
    /// From the value of one of Foundation's `NSURLAuthenticationMethod…` constants.
    public init(urlSession name: String) {
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
