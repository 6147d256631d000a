// SPDX-License-Identifier: Apache-2.0

import Challenges

extension ChallengeController {
    /// Whether a challenge of this kind will be answered, by the three checks in their order: is the site on the list,
    /// may this kind of challenge be answered there, is there a credential or an identity to answer with.
    ///
    /// False, without an error, is the answer to everything while ``isIntegratedAuthenticationEnabled`` is false, and
    /// to server trust always, which is the caller's to decide. Throws the ``ChallengeError`` of the first check that
    /// fails: it names the line of the list and says what would mend it; `invalidProtectionSpace` for a space that
    /// names no site.
    @discardableResult
    public func canHandle(_ space: ProtectionSpace) throws(ChallengeError) -> Bool {
        guard isOurs(space) else { return false }
        _ = try answer(to: space)
        return true
    }

    /// Answers a challenge: `useCredential` with what to use, or `performDefaultHandling`.
    ///
    /// Not answered is what a check refuses, server trust, everything while ``isIntegratedAuthenticationEnabled`` is
    /// false, and a challenge with a previous failure: nothing is tried twice, and a credential that was given out for
    /// the site and failed stays unused there until it changes. `cancelAuthenticationChallenge` is the answer when the
    /// task is cancelled.
    public func handle(_ challenge: AuthenticationChallenge) async -> (ChallengeDisposition, Credential?) {
        guard !Task.isCancelled else { return (.cancelAuthenticationChallenge, nil) }
        let space = challenge.protectionSpace
        guard isOurs(space) else { return handBack(space, nil) }
        guard challenge.previousFailureCount <= 0 else { return handBackAfterFailure(challenge) }
        let answer: Answer
        do throws(ChallengeError) {
            answer = try self.answer(to: space)
        } catch {
            return handBack(space, error)
        }
        guard let key = answer.key else { return give(answer, for: space) }
        guard let attempt = challenge.attempt else {
            handedOut.note(key)
            return give(answer, for: space)
        }
        switch await attempt.request(key, of: breaker) {
        case .go: return give(answer, for: space)
        case .cancelled: return (.cancelAuthenticationChallenge, nil)
        case .refused(let reason): return handBack(space, ChallengeError(.nothingToAnswerWith, reason))
        }
    }

    /// Answers a challenge through a completion handler, and says at once whether it will.
    ///
    /// True: the handler will be called once, on no particular thread, with what ``handle(_:)`` gives. False: it is
    /// never called, and the challenge remains the caller's.
    public func handleChallenge(
        _ challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) -> Bool {
        let space = challenge.protectionSpace
        guard isOurs(space) else {
            _ = handBack(space, nil)
            return false
        }
        guard challenge.previousFailureCount <= 0 else {
            _ = handBackAfterFailure(challenge)
            return false
        }
        do throws(ChallengeError) {
            _ = try answer(to: space)
        } catch {
            _ = handBack(space, error)
            return false
        }
        Task {
            let (disposition, credential) = await handle(challenge)
            completionHandler(disposition, credential)
        }
        return true
    }

    // MARK: Answers

    /// Whether anything of this kind is ever answered here.
    private func isOurs(_ space: ProtectionSpace) -> Bool {
        isIntegratedAuthenticationEnabled && space.authenticationMethod != .serverTrust
    }

    private func give(_ answer: Answer, for space: ProtectionSpace) -> (ChallengeDisposition, Credential?) {
        listeners.tell(.answered(space, with: answer.name))
        return (.useCredential, answer.credential)
    }

    private func handBack(_ space: ProtectionSpace, _ error: ChallengeError?) -> (ChallengeDisposition, Credential?) {
        listeners.tell(.handedBack(space, error))
        return (.performDefaultHandling, nil)
    }

    /// What was tried has failed. If it was the enrolled credential, it is not tried at that site again.
    private func handBackAfterFailure(_ challenge: AuthenticationChallenge) -> (ChallengeDisposition, Credential?) {
        let space = challenge.protectionSpace
        guard let key = failed(challenge) else {
            return handBack(space, ChallengeError(.nothingToAnswerWith, "an answer to this request has failed already"))
        }
        rejected(key, at: space)
        return handBack(space, ChallengeError(.nothingToAnswerWith, Self.rejection(of: key.credential)))
    }

    /// The enrolled credential that failed, if it was one: the proposed one, else what was given out for the site.
    private func failed(_ challenge: AuthenticationChallenge) -> Breaker.Key? {
        guard let origin = try? challenge.protectionSpace.origin() else { return nil }
        if let proposed = challenge.proposedCredential {
            guard case .password(_, let password) = proposed, let reference = password.reference else { return nil }
            return Breaker.Key(origin: origin, credential: reference.name, generation: reference.generation)
        }
        guard let key = (try? answer(to: challenge.protectionSpace))?.key, handedOut.contains(key) else { return nil }
        return key
    }

    /// The site did not take the credential: it is not tried there again until it changes.
    func rejected(_ key: Breaker.Key, at space: ProtectionSpace) {
        breaker.ended(key, .rejected)
        listeners.tell(.rejected(space, credential: key.credential))
    }
}
