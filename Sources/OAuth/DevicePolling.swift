// SPDX-License-Identifier: Apache-2.0

/// When to ask the token endpoint next, and when to give up (RFC 8628 §3.5). Times are seconds since 1970.
struct DevicePolling: Sendable, Equatable {
    enum Answer: Equatable {
        /// Ask again after so many seconds.
        case wait(seconds: Int64)
        case fail(OAuthError)
    }

    private var interval: Int64
    private let expiresAt: Int64

    init(_ authorization: DeviceAuthorization) {
        interval = authorization.interval
        expiresAt = authorization.expiresAt
    }

    /// Before the first poll.
    func start(now: Int64) -> Answer { next(now: now) }

    /// After a poll without tokens.
    mutating func failed(_ error: OAuthError, timedOut: Bool, now: Int64) -> Answer {
        switch error.providerCode?.error {
        case "authorization_pending": break
        case "slow_down": interval += 5
        default:
            guard error.isTransient else { return .fail(error) }
            // Also after other faults than a time-out, so that a provider in trouble is not asked at full speed.
            interval = timedOut ? interval * 2 : interval + 5
        }
        interval = min(max(interval, error.retryAfter ?? 0), DeviceAuthorization.longestInterval)
        return next(now: now)
    }

    private func next(now: Int64) -> Answer {
        guard now < expiresAt else {
            return .fail(
                OAuthError(.expired, .person, "the code was not confirmed in time", hint: "start again"))
        }
        return .wait(seconds: interval)
    }
}
