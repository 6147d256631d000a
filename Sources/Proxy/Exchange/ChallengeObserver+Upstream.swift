// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignUpstream

extension ChallengeObserver {
    /// Reports why there is no response, and a rejected identity if the origin closed the connection for that reason.
    func ended(_ error: UpstreamError, at origin: Origin) {
        if let identity = error.rejectedIdentity { rejected(identity, at: origin) }
        tell(.unreached(origin, Self.obstacle(error, HostText.joined(origin.host, origin.port))))
    }

    /// `site` is the origin's `host:port`. Another place is that of a parent.
    private static func obstacle(_ error: UpstreamError, _ site: String) -> Obstacle {
        let parent = error.place.flatMap { $0 == site ? nil : $0 }
        switch error.code {
        case .nameNotFound: return parent.map { .parent($0, status: nil) } ?? .unknownName
        case .connectFailed, .connectTimedOut, .networkGone:
            return parent.map { .parent($0, status: nil) } ?? .network
        case .tunnelFailed, .tunnelRefused, .tunnelInterrupted, .tunnelTimedOut, .parentNotTrusted:
            return .parent(error.place ?? "", status: error.parentResponse?.status)
        case .tlsFailed, .tlsAlert, .tlsTimedOut:
            return error.step == .parentTLS ? .parent(error.place ?? "", status: nil) : .tls
        case .noRoute: return .noRoute
        case .closedBeforeResponse, .closedInResponse, .notProcessed: return .closed
        case .timedOut: return .tooSlow
        case .localAddress: return .thisMachine
        case .loop, .malformedResponse, .needsHTTP1, .notTrusted, .trustChanged, .ownFault: return .other
        }
    }
}
