// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import FoundationEssentials

/// The end of something in a home that the person has to replace, because nothing renews it by itself: for `status`,
/// and for the warnings of `serve` and `exec`.
///
/// An identity that is enrolled counts only when its renewal is due and has not happened.
struct Ending: Hashable, Sendable {
    enum Thing: Hashable, Sendable {
        /// A client identity; `isEnrolled`: an EST server can renew it.
        case identity(String, isEnrolled: Bool)
        /// `file` is such as `Certs/anchors/corp.pem`.
        case anchor(subject: String, file: String)
        /// The root of the local CA.
        case root
        /// The access token of the sign-in of this name, which cannot be renewed.
        case accessToken(String)
    }

    let thing: Thing
    /// The last second of its validity, in seconds since 1970.
    let time: Int64

    /// What ends within this time is shown, in seconds.
    static let noticeSeconds = 30 * Day.seconds

    func hasPassed(at now: Int64) -> Bool { time < now }

    /// It ends within ``noticeSeconds``, and has not ended yet.
    func isNear(at now: Int64) -> Bool { !hasPassed(at: now) && time - now <= Self.noticeSeconds }

    /// `client identity "laptop"`.
    var name: String {
        switch thing {
        case .identity(let name, _): "client identity \"\(name)\""
        case .anchor(let subject, let file): "trust anchor \"\(subject)\" in \(file)"
        case .root: "the root certificate of the local CA"
        case .accessToken(let name): "access token of sign-in \"\(name)\""
        }
    }

    /// `client identity "laptop" ends 2026-12-10, 12 days left`, or `… expired 2026-01-01`.
    func sentence(at now: Int64) -> String {
        let left = Day.left(until: time, now: now)
        return hasPassed(at: now) ? "\(name) \(left)" : "\(name) ends \(Day.text(time)), \(left)"
    }

    /// The command that helps, between backquotes, with its effect.
    var advice: String {
        switch thing {
        case .identity(let name, isEnrolled: true): Remedy.renewIdentity(name: name).sentence
        case .identity(let name, isEnrolled: false): Remedy.importIdentity(name: name, replaces: true).sentence
        case .anchor: "\(Remedy.addTrustAnchor.sentence) adds its successor"
        case .root: "`countersign ca rotate` makes a new one"
        case .accessToken(let name): Remedy.signIn(name: name, stepUp: nil).sentence
        }
    }
}

extension Ending {
    /// Nil if the identity has no certificate, or if its server renews it in time.
    init?(_ state: RenewalState, at now: Int64) {
        guard let notAfter = state.notAfter, !state.isEnrolled || state.due <= now else { return nil }
        self.init(thing: .identity(state.name, isEnrolled: state.isEnrolled), time: notAfter)
    }

    /// Nil if the access token is renewed, if its end is not known, or if the sign-in has ended anyway.
    init?(_ signIn: ListedSignIn) {
        guard !signIn.isRenewable, signIn.expires != 0, signIn.ended.isEmpty else { return nil }
        self.init(thing: .accessToken(signIn.name), time: signIn.expires)
    }

    /// The trust anchors and the local CA's root. Throws if one of their files is faulty.
    static func ofCertificates(in home: Home) throws -> [Ending] {
        let anchors = try AnchorStore(home: home).entries().map { entry in
            Ending(
                thing: .anchor(subject: entry.certificate.subject, file: entry.file), time: entry.certificate.notAfter)
        }
        let root = try InterceptionStore(home: home).root().map { Ending(thing: .root, time: $0.notAfter) }
        return anchors + [root].compactMap(\.self)
    }
}

extension Ending: Encodable {
    private enum CodingKeys: String, CodingKey { case kind, name, file, ends, advice }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch thing {
        case .identity(let name, _):
            try container.encode("identity", forKey: .kind)
            try container.encode(name, forKey: .name)
        case .anchor(let subject, let file):
            try container.encode("anchor", forKey: .kind)
            try container.encode(subject, forKey: .name)
            try container.encode(file, forKey: .file)
        case .root: try container.encode("root", forKey: .kind)
        case .accessToken(let name):
            try container.encode("accessToken", forKey: .kind)
            try container.encode(name, forKey: .name)
        }
        try container.encode(WallClock.rfc3339(time), forKey: .ends)
        try container.encode(advice, forKey: .advice)
    }
}
