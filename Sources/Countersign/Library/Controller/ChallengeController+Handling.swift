// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignSitePolicy

extension ChallengeController {
    /// Returns whether a challenge of this kind would be answered. Runs the three checks in order: is the site on the
    /// list, does its line permit this kind of challenge, is there a credential or an identity to answer with.
    ///
    /// Returns false while ``isIntegratedAuthenticationEnabled`` is false, and for server trust, which is the caller's
    /// decision. The request is not known here, so no line counts that is for some requests only (`methods=`,
    /// `paths=`). Throws the ``ChallengeError`` of the first check that fails, with the line of the list and how to
    /// correct it, or `invalidProtectionSpace` if the space does not identify a site. Reads changed files of the home
    /// on the calling thread.
    @discardableResult
    public func canHandle(_ space: ProtectionSpace) throws(ChallengeError) -> Bool {
        guard isOurs(space) else { return false }
        _ = try answer(to: space, of: nil, under: currentPolicy())
        return true
    }

    /// Answers a challenge: returns `useCredential` and the credential, or `performDefaultHandling`.
    ///
    /// A challenge is not answered if a check fails, if it is about server trust, while
    /// ``isIntegratedAuthenticationEnabled`` is false, or if it has a previous failure: no answer is repeated, and a
    /// credential that failed at a site is not used there again until it changes. If the task is cancelled, returns
    /// `cancelAuthenticationChallenge`.
    ///
    /// The access token of a sign-in is renewed in the background before it expires. If it has expired, or has failed
    /// once, the call waits for the provider, for at most 20 seconds, and returns the new token. Without a new token,
    /// the challenge is handed back.
    ///
    /// When a credential is used at a site for the first time, it is given to one caller. Others wait for up to 30
    /// seconds until ``answerAccepted(_:)``, or a challenge with a previous failure, reports the outcome. If nothing is
    /// reported, the credential counts as accepted, and is given to all callers. A ``ChallengeExchange`` and a
    /// `ChallengeProxy` report the outcome automatically.
    public func handle(_ challenge: AuthenticationChallenge) async -> (ChallengeDisposition, Credential?) {
        let space = challenge.protectionSpace
        let permit = challenge.permit ?? newPermit(for: .unknown, nil)
        var hasFailed = challenge.previousFailureCount > 0
        var hasRenewed = false
        while !Task.isCancelled {
            let policy = await policyNow()
            guard isOurs(space) else { return handBack(challenge, nil, permit) }
            signInRenewals.renewAhead()
            if hasFailed, let lack = challenge.permit?.lack {
                hasFailed = false
                if await obtainsClaims(lack, at: space) { continue }
                let isObtained = await scopeQuestions.ask(lack, at: space)
                let present = await policyNow().token(of: lack, at: space)
                guard isObtained, present != lack.token else {
                    return handBack(challenge, .lacking(lack), permit)
                }
                continue
            }
            if hasFailed {
                guard !hasRenewed, let token = failedToken(challenge, policy) else {
                    return handBackAfterFailure(challenge, policy)
                }
                hasRenewed = true
                switch await signInRenewals.renewer.renew(token, .invalid) {
                case .renewed:
                    hasFailed = false
                    endLoans(of: token, in: space, policy)
                    continue
                case .unchanged: return handBackAfterFailure(challenge, policy)
                case .unavailable(let reason):
                    guard challenge.permit != nil else { return handBackAfterFailure(challenge, policy) }
                    return handBack(challenge, .notRenewed(reason), permit)
                }
            }
            let answer: Answer
            do throws(ChallengeError) {
                answer = try self.answer(to: space, of: challenge.permit?.siteRequest, under: policy)
            } catch {
                guard !hasRenewed, let token = refusedToken(for: challenge, policy) else {
                    return handBack(challenge, error, permit)
                }
                hasRenewed = true
                guard case .renewed = await signInRenewals.renewer.renew(token, .invalid) else {
                    return handBack(challenge, error, permit)
                }
                continue
            }
            if !hasRenewed, let token = answer.key?.credential, policy.hasExpired(token, now: Self.now) {
                hasRenewed = true
                switch await signInRenewals.renewer.renew(token, .expired) {
                case .renewed: continue
                case .unchanged: break
                case .unavailable(let reason): return handBack(challenge, .notRenewed(reason), permit)
                }
            }
            guard let key = answer.key else { return give(answer, for: challenge, permit) }
            let permission = await permit.request(key, of: breaker) {
                challenge.permit == nil && answersInUse.isUnopposed(key)
            }
            switch permission {
            case .go: return give(answer, for: challenge, permit)
            // The answer was computed before the wait and may be outdated.
            case .goAfterWaiting, .cancelled: continue
            case .refused(let reason):
                let line = policy.sites.line(for: key.space.origin, request: challenge.permit?.siteRequest)
                return handBack(challenge, nothing(reason, for: key, at: line, under: policy), permit)
            }
        }
        permit.end(.inconclusive)
        return (.cancelAuthenticationChallenge, nil)
    }

    /// Reports that the server accepted the credential that ``handle(_:)`` returned for `challenge`. Callers that wait
    /// to use the same credential at the site continue.
    ///
    /// Call this from your own HTTP client, but not for challenges of a ``ChallengeExchange``.
    public func answerAccepted(_ challenge: AuthenticationChallenge) {
        guard let space = space(of: challenge) else { return }
        if let permit = challenge.permit { return permit.end(.accepted) }
        var key: Breaker.Key?
        if let proposed = challenge.proposedCredential {
            guard let reference = proposed.reference else { return }
            key = Breaker.Key(space: space, credential: reference)
        }
        for permit in answersInUse.permits(in: space, of: key) { permit.end(.accepted) }
    }

    /// Waits until the outcomes that were reported so far are stored. A program that exits earlier leaves an answer
    /// without an outcome, and after two of these the credential is not sent to the site for half an hour.
    ///
    /// Call this before a short program exits, if it answered challenges without a `ChallengeProxy`.
    public func storeOutcomes() async { await breaker.flush() }

    /// Answers a challenge through a completion handler, and returns whether the handler will be called.
    ///
    /// If true, the handler is called once, on any thread, with the result of ``handle(_:)``: after at most 20 seconds
    /// for a new access token and a minute for other callers that try the credential. If false, it is never called, and
    /// the caller must handle the challenge. Reads changed files of the home on the calling thread before it returns.
    public func handleChallenge(
        _ challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) -> Bool {
        let space = challenge.protectionSpace
        guard isOurs(space) else {
            _ = handBack(challenge, nil, challenge.permit)
            return false
        }
        let policy = currentPolicy()
        guard challenge.previousFailureCount <= 0 else {
            _ = handBackAfterFailure(challenge, policy)
            return false
        }
        do throws(ChallengeError) {
            _ = try answer(to: space, of: challenge.permit?.siteRequest, under: policy)
        } catch {
            _ = handBack(challenge, error, challenge.permit)
            return false
        }
        Task {
            let (disposition, credential) = await handle(challenge)
            completionHandler(disposition, credential)
        }
        return true
    }

    /// A permit for a request that has not been requested from the breaker yet. `url` is absolute; without one, the
    /// request cannot be distinguished from others. `offer` is the value of the response's challenge field, if it is
    /// known.
    package func newPermit(method: String?, url: String?, offer: String? = nil) -> BreakerPermit {
        guard let url, let parsed = try? AbsoluteURL(parsing: url) else { return newPermit(for: .unknown, nil) }
        let siteRequest = method.map { SiteRequest(method: $0, target: ArraySlice(parsed.path.utf8)) }
        let permit = newPermit(
            for: Breaker.RequestTag(method: method ?? "GET", target: parsed.path), siteRequest)
        if let offer, let challenges = try? ChallengeParser.parse(fields: [offer]),
            let rule = currentPolicy().sites.line(for: parsed.origin, request: siteRequest)
        {
            permit.offered = AuthenticatorTable.supported.offered(in: challenges, permitted: rule.answer)
        }
        return permit
    }

    /// A permit for one request that has not been requested from the breaker yet. `siteRequest` is nil if it is not
    /// known.
    func newPermit(for request: Breaker.RequestTag, _ siteRequest: SiteRequest?) -> BreakerPermit {
        BreakerPermit(
            limit: firstTryLimit.withLock { $0 }, patience: patience.withLock { $0 }, for: request, siteRequest
        ) { [answersInUse] in
            answersInUse.wentUnopposed($0)
        }
    }

    // MARK: Access tokens

    /// Whether the provider has issued a token with the claims that the server requires, without the person.
    private func obtainsClaims(_ lack: ScopeQuestions.Lack, at space: ProtectionSpace) async -> Bool {
        guard lack.stepUp.claims != nil, let origin = try? space.origin(),
            case .renewed = await signInRenewals.renewer.renew(lack.token, .lacks(lack.stepUp, origin))
        else { return false }
        return true
    }

    /// The access token that the server has rejected, if it may be renewed: it is a sign-in's, and this is its first
    /// failure.
    private func failedToken(_ challenge: AuthenticationChallenge, _ policy: Policy) -> CredentialReference? {
        if let permit = challenge.permit { return permit.invalidToken }
        guard challenge.previousFailureCount == 1, let token = failed(challenge, policy)?.credential,
            policy.isAccessToken(token)
        else { return nil }
        return token
    }

    /// The access token for the challenge that the breaker refuses, because it was called invalid when it could not be
    /// renewed.
    private func refusedToken(for challenge: AuthenticationChallenge, _ policy: Policy) -> CredentialReference? {
        let space = challenge.protectionSpace
        guard let origin = try? space.origin(),
            let rule = try? listed(origin, for: challenge.permit?.siteRequest, in: policy),
            let scheme = try? permitted(space, by: rule, policy),
            let token = policy.credential(named: rule.credential, at: origin)?.reference, policy.isAccessToken(token),
            breaker.isRejected(Breaker.Key(space: space.authenticationSpace(scheme, at: origin), credential: token))
        else { return nil }
        return token
    }

    /// A renewed token is not a reason to refuse its sign-in.
    private func endLoans(of token: CredentialReference, in space: ProtectionSpace, _ policy: Policy) {
        guard let space = self.space(of: AuthenticationChallenge(protectionSpace: space)) else { return }
        for permit in answersInUse.permits(in: space, of: Breaker.Key(space: space, credential: token)) {
            permit.end(.inconclusive)
        }
    }

    // MARK: Answers

    /// Whether this kind of challenge is answered at all.
    func isOurs(_ space: ProtectionSpace) -> Bool {
        isIntegratedAuthenticationEnabled && space.authenticationMethod != .serverTrust
    }

    private func give(
        _ answer: Answer, for challenge: AuthenticationChallenge, _ permit: BreakerPermit
    ) -> (ChallengeDisposition, Credential?) {
        if let key = answer.key { answersInUse.note(key, challenge.permit == nil ? permit : nil) }
        listeners.tell(.answered(challenge.protectionSpace, with: answer.name))
        return (.useCredential, answer.credential)
    }

    private func handBack(
        _ challenge: AuthenticationChallenge, _ error: ChallengeError?, _ permit: BreakerPermit?
    ) -> (ChallengeDisposition, Credential?) {
        permit?.end(.inconclusive)
        challenge.permit?.refusal = error
        listeners.tell(.handedBack(challenge.protectionSpace, error))
        return (.performDefaultHandling, nil)
    }

    /// Handles a challenge with a previous failure. If an enrolled credential failed, it is not used at the site again.
    private func handBackAfterFailure(
        _ challenge: AuthenticationChallenge, _ policy: Policy
    ) -> (ChallengeDisposition, Credential?) {
        let space = challenge.protectionSpace
        let rule: SiteRule
        do throws(ChallengeError) {
            rule = try listed(try space.origin(), for: challenge.permit?.siteRequest, in: policy)
            _ = try permitted(space, by: rule, policy)
        } catch {
            return handBack(challenge, error, challenge.permit)
        }
        guard let key = failed(challenge, policy) else {
            let error = ChallengeError(
                .nothingToAnswerWith, "an answer to this request has failed already", listLine: rule.location,
                hint: "an answer is not repeated; send a new request")
            return handBack(challenge, error, challenge.permit)
        }
        let error = rejected(key, for: challenge.permit?.request ?? .unknown, at: space, line: rule)
        return handBack(challenge, error, challenge.permit)
    }

    /// The enrolled credential that failed, if it was given out for the site: the proposed one, else that of the
    /// exchange, else the one that is enrolled now.
    private func failed(_ challenge: AuthenticationChallenge, _ policy: Policy) -> Breaker.Key? {
        guard let space = space(of: challenge) else { return nil }
        let key: Breaker.Key?
        if let proposed = challenge.proposedCredential {
            key = proposed.reference.map { Breaker.Key(space: space, credential: $0) }
        } else {
            key =
                challenge.permit?.key
                ?? (try? answer(to: challenge.protectionSpace, of: challenge.permit?.siteRequest, under: policy))?.key
        }
        guard let key, answersInUse.contains(key) else { return nil }
        return key
    }

    /// The space in which an answer to `challenge` is valid; nil if no password or token answers it.
    private func space(of challenge: AuthenticationChallenge) -> AuthenticationSpace? {
        let space = challenge.protectionSpace
        guard let origin = try? space.origin(),
            let scheme = space.authenticationMethod.schemes.first(where: AuthenticationScheme.supported.contains)
        else { return nil }
        return space.authenticationSpace(scheme, at: origin)
    }

    /// Records that the site challenged again, or with `.invalid`, that it called the credential wrong. Unless the site
    /// has accepted the credential before, and `request` may need a permission that the user does not have, the
    /// credential is not used there again until it changes. Returns the error that says which.
    func rejected(
        _ key: Breaker.Key, for request: Breaker.RequestTag, _ result: Breaker.Result = .rejected,
        at space: ProtectionSpace, line: SiteRule?
    ) -> ChallengeError {
        guard breaker.ended(key, for: request, result) != .handedBack else {
            return ChallengeError(
                .nothingToAnswerWith, BreakerPermit.unsuitability(of: key), listLine: line?.location,
                hint: "ask the site's administrator for the permission")
        }
        listeners.tell(.rejected(space, credential: key.credential.name))
        return nothing(BreakerPermit.rejection(of: key), for: key, at: line, under: keeper.policy.current)
    }

    /// The error if the third check fails because of the credential of `key`, which `line` names.
    func nothing(
        _ refusal: Refusal, for key: Breaker.Key, at line: SiteRule?, under policy: Policy
    ) -> ChallengeError {
        ChallengeError(
            .nothingToAnswerWith, refusal, of: UnansweredRequest(key.space.origin, line, key.space.scheme),
            under: policy, hint: refusal == BreakerPermit.isBeingTried ? "try again later" : nil)
    }
}

extension ChallengeError {
    /// The third check fails because an access token cannot be renewed.
    fileprivate static func notRenewed(_ reason: String) -> ChallengeError {
        ChallengeError(.nothingToAnswerWith, reason, hint: "sign in again if the sign-in has ended")
    }

    /// The site requires more than the access token permits, and the person has not agreed to that.
    fileprivate static func lacking(_ lack: ScopeQuestions.Lack) -> ChallengeError {
        ChallengeError(.nothingToAnswerWith, lack.reason, hint: "sign in again with these scopes")
    }
}

extension Policy {
    /// The present access token of the sign-in whose token lacks something at a site.
    fileprivate func token(of lack: ScopeQuestions.Lack, at space: ProtectionSpace) -> CredentialReference? {
        guard let origin = try? space.origin() else { return nil }
        return credential(named: lack.token.name, at: origin)?.reference
    }
}
