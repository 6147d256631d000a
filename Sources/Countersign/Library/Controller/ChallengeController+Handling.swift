// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignProxy
import CountersignSitePolicy

extension ChallengeController {
    /// Whether a challenge of this kind will be answered, by the three checks in their order: is the site on the list,
    /// may this kind of challenge be answered there, is there a credential or an identity to answer with.
    ///
    /// False, without an error, is the answer to everything while ``isIntegratedAuthenticationEnabled`` is false, and
    /// to server trust always, which is the caller's to decide. Throws the ``ChallengeError`` of the first check that
    /// fails: it names the line of the list and says what would mend it; `invalidProtectionSpace` for a space that
    /// names no site. Reads the home's changed files on the calling thread.
    @discardableResult
    public func canHandle(_ space: ProtectionSpace) throws(ChallengeError) -> Bool {
        guard isOurs(space) else { return false }
        _ = try answer(to: space, under: currentPolicy())
        return true
    }

    /// Answers a challenge: `useCredential` with what to use, or `performDefaultHandling`.
    ///
    /// Not answered is what a check refuses, server trust, everything while ``isIntegratedAuthenticationEnabled`` is
    /// false, and a challenge with a previous failure: nothing is tried twice, and a credential that was given out for
    /// the site and failed stays unused there until it changes. `cancelAuthenticationChallenge` is the answer when the
    /// task is cancelled.
    ///
    /// The first time that a credential is used at a site it is given to one caller: others wait until
    /// ``answerAccepted(_:)`` or a challenge with a previous failure tells what became of it, for 30 seconds at most.
    /// When nothing has been told by then, it counts as not refused, and is given to all that ask. A
    /// ``ChallengeExchange`` and ``ChallengeProxy`` tell by themselves.
    public func handle(_ challenge: AuthenticationChallenge) async -> (ChallengeDisposition, Credential?) {
        let space = challenge.protectionSpace
        let attempt = challenge.attempt ?? newPermit()
        while !Task.isCancelled {
            let policy = await policyNow()
            guard isOurs(space) else { return handBack(challenge, nil, attempt) }
            guard challenge.previousFailureCount <= 0 else { return handBackAfterFailure(challenge, policy) }
            let answer: Answer
            do throws(ChallengeError) {
                answer = try self.answer(to: space, under: policy)
            } catch {
                return handBack(challenge, error, attempt)
            }
            guard let key = answer.key else { return give(answer, for: challenge, attempt) }
            let permission = await attempt.request(key, of: breaker) {
                challenge.attempt == nil && handedOut.isUnopposed(key)
            }
            switch permission {
            case .go: return give(answer, for: challenge, attempt)
            // The answer is as old as the wait is long.
            case .goAfterWaiting, .cancelled: continue
            case .refused(let reason):
                return handBack(
                    challenge, .nothing(reason, listLine: answer.line, key.credential), attempt)
            }
        }
        attempt.end(.inconclusive)
        return (.cancelAuthenticationChallenge, nil)
    }

    /// The server took what ``handle(_:)`` gave for `challenge`. Whoever waits to use the same credential there need not
    /// any more.
    ///
    /// To be told for challenges of a client of one's own, and of no ``ChallengeExchange``.
    public func answerAccepted(_ challenge: AuthenticationChallenge) {
        guard let origin = try? challenge.protectionSpace.origin() else { return }
        if let attempt = challenge.attempt { return attempt.end(.accepted) }
        var key: Breaker.Key?
        if let proposed = challenge.proposedCredential {
            guard let reference = proposed.reference else { return }
            key = Breaker.Key(origin: origin, credential: reference.name, generation: reference.generation)
        }
        for attempt in handedOut.attempts(at: origin, of: key) { attempt.end(.accepted) }
    }

    /// Answers a challenge through a completion handler, and says at once whether it will.
    ///
    /// True: the handler will be called once, on no particular thread, with what ``handle(_:)`` gives, after a minute at
    /// the latest. False: it is never called, and the challenge remains the caller's. At once is as soon as the home's
    /// changed files have been read, on the calling thread.
    public func handleChallenge(
        _ challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) -> Bool {
        let space = challenge.protectionSpace
        guard isOurs(space) else {
            _ = handBack(challenge, nil, challenge.attempt)
            return false
        }
        let policy = currentPolicy()
        guard challenge.previousFailureCount <= 0 else {
            _ = handBackAfterFailure(challenge, policy)
            return false
        }
        do throws(ChallengeError) {
            _ = try answer(to: space, under: policy)
        } catch {
            _ = handBack(challenge, error, challenge.attempt)
            return false
        }
        Task {
            let (disposition, credential) = await handle(challenge)
            completionHandler(disposition, credential)
        }
        return true
    }

    /// A permission that is not asked for yet.
    package func newPermit() -> BreakerPermit {
        BreakerPermit(limit: firstTryLimit.withLockedValue { $0 }, patience: patience.withLockedValue { $0 }) { [handedOut] in
            handedOut.wentUnopposed($0)
        }
    }

    // MARK: Answers

    /// Whether anything of this kind is ever answered here.
    private func isOurs(_ space: ProtectionSpace) -> Bool {
        isIntegratedAuthenticationEnabled && space.authenticationMethod != .serverTrust
    }

    private func give(
        _ answer: Answer, for challenge: AuthenticationChallenge, _ attempt: BreakerPermit
    ) -> (ChallengeDisposition, Credential?) {
        if let key = answer.key { handedOut.note(key, challenge.attempt == nil ? attempt : nil) }
        listeners.tell(.answered(challenge.protectionSpace, with: answer.name))
        return (.useCredential, answer.credential)
    }

    private func handBack(
        _ challenge: AuthenticationChallenge, _ error: ChallengeError?, _ attempt: BreakerPermit?
    ) -> (ChallengeDisposition, Credential?) {
        attempt?.end(.inconclusive)
        challenge.attempt?.refusal = error
        listeners.tell(.handedBack(challenge.protectionSpace, error))
        return (.performDefaultHandling, nil)
    }

    /// What was tried has failed. If it was the enrolled credential, it is not tried at that site again.
    private func handBackAfterFailure(
        _ challenge: AuthenticationChallenge, _ policy: Policy
    ) -> (ChallengeDisposition, Credential?) {
        let space = challenge.protectionSpace
        let rule: SiteRule
        do throws(ChallengeError) {
            rule = try listed(try space.origin(), in: policy)
            _ = try permitted(space, by: rule)
        } catch {
            return handBack(challenge, error, challenge.attempt)
        }
        guard let key = failed(challenge, policy) else {
            let error = ChallengeError(
                .nothingToAnswerWith, "an answer to this request has failed already", listLine: rule.location,
                hint: "nothing is tried twice: make another request")
            return handBack(challenge, error, challenge.attempt)
        }
        rejected(key, at: space)
        return handBack(
            challenge, .nothing(BreakerPermit.rejection(of: key), listLine: rule.location, key.credential),
            challenge.attempt)
    }

    /// The enrolled credential that failed, if it was one that was given out for the site: the proposed one, else that of
    /// the dialogue, else what is enrolled now.
    private func failed(_ challenge: AuthenticationChallenge, _ policy: Policy) -> Breaker.Key? {
        guard let origin = try? challenge.protectionSpace.origin() else { return nil }
        let key: Breaker.Key?
        if let proposed = challenge.proposedCredential {
            key = proposed.reference.map {
                Breaker.Key(origin: origin, credential: $0.name, generation: $0.generation)
            }
        } else {
            key = challenge.attempt?.key ?? (try? answer(to: challenge.protectionSpace, under: policy))?.key
        }
        guard let key, handedOut.contains(key) else { return nil }
        return key
    }

    /// The site did not take the credential: it is not tried there again until it changes.
    func rejected(_ key: Breaker.Key, at space: ProtectionSpace) {
        breaker.ended(key, .rejected)
        listeners.tell(.rejected(space, credential: key.credential))
    }
}
