// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import CountersignUpstream

/// The connections to a listed parent that NTLM authenticates, over which plain requests go.
///
/// The parent authenticates the user of such a connection, and not a client of this proxy. So the connection serves all
/// client connections of one user, one request after the other. Nothing else is shared: not with another user, not for
/// another credential, not under another policy, and not once a client may have authenticated itself on the connection
/// to an origin, which some parents bind to it (RFC 4559 §6).
extension ExchangeDriver {
    /// An idle one for `step`, if that is the exchange's first request and carries no answer.
    func parentConnection(for step: Step) -> (any OriginLease)? {
        guard route.challenger != nil, isFresh, mayBeAnswered, !isElsewhere, !clientBindsConnection,
            case .transmit(nil, isOpening: false) = step
        else { return nil }
        return route.parentConnection(for: session, services)
    }

    /// The parent has accepted `answer`.
    func noteParentAuthentication(by answer: AcceptedAnswer) {
        let authenticator = answer.offer.authenticator
        guard let challenger = route.challenger, let connection, !isElsewhere, connection.isAuthenticated,
            authenticator.bindsConnection, !authenticator.answersEachRequest,
            answer.credential == route.parentSlot?.key.credential, challenger.isReached(by: connection)
        else { return }
        connection.authenticatedToParent()
    }

    /// A response has arrived from the parent, or through it.
    func noteParentResponse(_ response: ResponseHead) {
        guard let connection else { return }
        switch response.status {
        case 407 where connection.parentAuthentication == .shared: connection.becomesPersonal()
        case 401 where ResponseDelivery.offersConnectionBoundScheme(response): connection.becomesPersonal()
        default: break
        }
    }

    /// A challenge of the parent goes to the client, so the connections that it accepted before may be obsolete.
    func endParentSharing() {
        if route.challenger != nil { route.parentSlot?.closeAll() }
    }

    /// Where to keep `connection` for the next request, if that may be another client's.
    func parentSlot(for connection: any OriginLease) -> UpstreamPool.Slot? {
        guard connection.parentAuthentication == .shared, !connection.hasShownIdentity, !clientBindsConnection,
            !isElsewhere, route.challenger?.isReached(by: connection) == true
        else { return nil }
        return route.parentSlot
    }
}

extension Route {
    /// Whether a connection that is authenticated to the ``challenger`` may be idle.
    var hasParentConnection: Bool { challenger != nil && parentSlot?.isEmpty == false }

    /// Takes one of them for a client, after the checks that precede the use of a credential.
    fileprivate func parentConnection(for session: ClientSession, _ services: LoopServices) -> (any OriginLease)? {
        guard let challenger, let slot = parentSlot, !slot.isEmpty, let credential = slot.key.credential,
            isInTable, policy.generation == services.shared.policy.current.generation,
            !policy.hasExpired(credential, now: services.shared.wallClock), session.isStillSameUser()
        else { return nil }
        while let connection = slot.lease(now: services.now) {
            if challenger.isReached(by: connection), connection.parentAuthentication == .shared { return connection }
            connection.close()
        }
        return nil
    }
}
