// SPDX-License-Identifier: Apache-2.0

// The ends of an exchange, and the new beginnings after a lost connection.
extension ExchangeMachine {
    /// Restarts once on a new connection: from the opening if the dialogue binds its connection or `answer` is nil,
    /// otherwise with `answer`.
    mutating func restart(_ pending: PendingAnswer, sending answer: Answer? = nil) -> Action {
        holdsChallenge = false
        requiresSameConnection = false
        guard !hasRestarted else {
            return fail(.connectionLost, "the \(context.source.name) closed the connection twice before a response")
        }
        hasRestarted = true
        guard let answer, !pending.offer.authenticator.bindsConnection else { return openDialogue(pending) }
        return send(pending, answer)
    }

    /// The connection was lost while a token for it was being computed. The dialogue restarts when the computation has
    /// ended.
    mutating func abandon(_ pending: PendingAnswer) -> Action {
        guard !hasRestarted else {
            return giveUp(challenge: .no("the \(context.source.name) closed the connection twice"))
        }
        hasRestarted = true
        requiresSameConnection = false
        state = .abandoningReply(pending)
        return .wait
    }

    /// Sends the request as the client sent it on a new connection. The opening's connection cannot carry it, for
    /// example because the response to the opening was too long to be read to its end.
    mutating func resend() -> Action {
        requiresSameConnection = false
        return .send(nil)
    }

    mutating func lost() -> Action {
        fail(.connectionLost, "the \(context.source.name) closed the connection before a response")
    }

    mutating func forged(_ reason: String) -> Action {
        fail(.forgedResponse, "the \(context.source.name)'s last authentication token is wrong: \(reason)")
    }

    /// Hands back a challenge that is not answered, and records its contents.
    mutating func handedBack(_ fields: [ChallengeField], credential: ThreeChecks.Check? = nil) -> Action {
        _ = try? parse(fields)
        return handBack(credential: credential)
    }

    mutating func handBack(unparsable error: AuthenticationError) -> Action {
        handBack(challenge: .no("unparsable challenge: \(error.detail)"))
    }

    mutating func handBack(challenge: ThreeChecks.Check? = nil, credential: ThreeChecks.Check? = nil) -> Action {
        if let challenge {
            checks.challenge = challenge
            checks.credential = nil
        }
        if let credential { checks.credential = credential }
        return finish(.handedBack(checks))
    }

    /// Hands back the held challenge; fails if there is no response to deliver.
    mutating func giveUp(challenge: ThreeChecks.Check? = nil, credential: ThreeChecks.Check? = nil) -> Action {
        guard holdsChallenge else {
            return fail(.connectionLost, challenge?.reason ?? credential?.reason ?? "not answered")
        }
        return handBack(challenge: challenge, credential: credential)
    }

    mutating func fail(_ cause: Failure.Cause, _ reason: String) -> Action {
        state = .finished
        return .fail(Failure(cause, reason))
    }

    mutating func finish(_ outcome: Outcome) -> Action {
        state = .finished
        return .deliver(outcome)
    }
}
