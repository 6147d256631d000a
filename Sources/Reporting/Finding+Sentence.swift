// SPDX-License-Identifier: Apache-2.0

package import CountersignChallenges

extension Breaker.Finding {
    /// A sentence for the log; nil if there is nothing to say.
    package func sentence(_ key: Breaker.Key) -> String? {
        let credential = "credential \"\(key.credential.name)\""
        let realm = key.space.realm.map { ", realm \($0.debugDescription)" } ?? ""
        let place = "\(key.space.place) (\(key.space.scheme.rawValue)\(realm))"
        switch self {
        case .unremarkable: return nil
        case .unanswered: return "\(place) closed the connection instead of answering \(credential)"
        case .paused(let seconds):
            return "\(place) did not answer \(credential), which is not sent there again for "
                + "\(Breaker.duration(seconds)); \(Self.retry(key))"
        case .handedBack: return "\(place) accepts \(credential), but not for every request: a 401 was handed back"
        case .rejected(let cause, let everywhere):
            let what =
                cause == .challenge
                ? "\(place) rejected \(credential)"
                : "\(place) closed the connection twice instead of answering \(credential)"
            let sentence = "\(what), which is not sent \(everywhere ? "anywhere" : "there again") until it changes"
            return cause == .silence ? "\(sentence); \(Self.retry(key))" : sentence
        }
    }

    private static func retry(_ key: Breaker.Key) -> String {
        Remedy.permitRetry(name: Breaker.retriedName(key)).sentence
    }
}
