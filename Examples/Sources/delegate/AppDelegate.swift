// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignURLSession
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Answers challenges from a home, and collects the responses.
final class AppDelegate: NSObject, URLSessionDataDelegate {
    private let controller: ChallengeController
    private let open = Mutex<[Int: AuthenticationChallenge]>([:])
    private let received = Mutex(Data())
    private let end: AsyncStream<URLError?>.Continuation
    /// The error of each task that ends, or nil.
    let ends: AsyncStream<URLError?>

    init(_ controller: ChallengeController) {
        self.controller = controller
        (ends, end) = AsyncStream.makeStream(of: URLError?.self)
    }

    /// The bytes received.
    var data: Data { received.withLock { $0 } }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let asked = AuthenticationChallenge(challenge)
        let hasProposal = challenge.proposedCredential != nil
        open.withLock { $0[task.taskIdentifier] = asked }
        // URLSession on Linux has passed on the page of the challenge.
        received.withLock { $0 = Data() }
        Task {
            let (disposition, credential) = await controller.answer(asked, hasProposal: hasProposal)
            completionHandler(disposition, credential)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let asked = open.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) {
            if error == nil, (task.response as? HTTPURLResponse)?.statusCode != 401 {
                controller.answerAccepted(asked)
            }
        }
        end.yield(error as? URLError)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        received.withLock { $0 += data }
    }
}
