// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges

/// Which sites may open a page that asks a person to sign in again, and when: a site decides what it requires and how
/// often, and a page that keeps opening trains people to agree to anything.
///
/// Times are since some moment in the life of the process, and monotonic.
struct ScopeLimits: Sendable {
    /// What a site requires of a sign-in.
    struct Wish: Hashable, Sendable {
        /// Of the sign-in.
        let name: String
        let origin: Origin
        /// As the challenge says it; empty if it names nothing.
        let stepUp: StepUp
    }

    enum Answer: Equatable, Sendable {
        /// The caller asks, and reports the end with ``ended(_:at:)``.
        case begins
        /// Another wish about the same sign-in is being asked for, or this one.
        case isRunning
        case refused
    }

    private struct Site: Hashable {
        let name: String
        let origin: Origin
    }

    /// How many pages one site opens for a sign-in.
    static let pagesOfSite = 3
    /// How many pages all sites open for a sign-in.
    static let pagesOfSignIn = 16
    /// From the end of a page to the next one for the same sign-in.
    static let pause = Duration.seconds(300)
    /// After an attempt that has opened no page, for the same sign-in and site.
    static let pauseWithoutPage = Duration.seconds(60)
    /// How many sites may be paused at a time.
    static let pausedSites = 256

    /// By sign-in.
    private var running: [String: Wish] = [:]
    /// Those that have opened a page, by sign-in.
    private var shown: [String: Set<Wish>] = [:]
    /// The ends of pauses.
    private var signInPauses: [String: Duration] = [:]
    private var sitePauses: [Site: Duration] = [:]

    mutating func wished(_ wish: Wish, at time: Duration) -> Answer {
        if running[wish.name] != nil { return .isRunning }
        let shown = shown[wish.name] ?? []
        sitePauses = sitePauses.filter { $0.value > time }
        guard !shown.contains(wish), shown.count < Self.pagesOfSignIn,
            shown.count(where: { $0.origin == wish.origin }) < Self.pagesOfSite,
            signInPauses[wish.name].map({ $0 <= time }) ?? true,
            sitePauses[Site(name: wish.name, origin: wish.origin)] == nil, sitePauses.count < Self.pausedSites
        else { return .refused }
        running[wish.name] = wish
        return .begins
    }

    mutating func pageOpened(_ wish: Wish) { shown[wish.name, default: []].insert(wish) }

    mutating func ended(_ wish: Wish, at time: Duration) {
        running[wish.name] = nil
        if shown[wish.name]?.contains(wish) == true {
            signInPauses[wish.name] = time + Self.pause
        } else {
            sitePauses[Site(name: wish.name, origin: wish.origin)] = time + Self.pauseWithoutPage
        }
    }
}
