// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Synchronization

/// Caches verdicts on servers, so that the next connection to the same server does not verify the same signatures
/// again.
///
/// A verdict applies to exactly one chain and stapled response, and one way to treat revocation statuses. A negative
/// one applies to one host, a positive one to every host that the leaf names. It is valid for ten minutes from the time
/// for which it was found, but not beyond any date in a certificate, revocation list, response or status. If a status
/// is unknown, it is valid until another one is learned.
final class VerdictCache: Sendable {
    private struct Key: Hashable {
        /// SHA-256 of chain and response.
        let evidence: [UInt8]
        /// Nil for a positive verdict.
        let host: String?
        let statuses: StatusUse
    }

    /// How a verdict treats revocation statuses.
    enum StatusUse: Hashable {
        case ignored
        case known
        case required
    }

    private struct Entry {
        let appraisal: ChainVerifier.Appraisal
        /// The version of the learned statuses; nil if the verdict does not change with them.
        let version: UInt64?
        let foundAt: Int64
        let lastSecond: Int64
        /// The host for which it was used last.
        var host: String
        var used: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var uses: UInt64 = 0
    }

    /// In seconds.
    static let lifetime: Int64 = 600
    /// A chain and response that are longer together are not cached.
    static let longestInputBytes = 32 * 1024

    private let state = Mutex(State())
    private let limit: Int

    /// Keeps the `limit` verdicts used last.
    init(limit: Int = 512) { self.limit = limit }

    /// The cached verdict, or the one that `find` returns, at `time` in seconds since 1970. `isNamed` returns whether
    /// the leaf names `host`. `version` is that of the learned statuses, before `find` reads them.
    func verdict(
        on chain: [Certificate], host: String, staple: ChainVerifier.Staple, statuses: StatusUse = .ignored,
        version: UInt64 = 0, at time: Int64, isNamed: () -> Bool, _ find: () -> ChainVerifier.Appraisal
    ) -> ChainVerifier.Appraisal {
        guard let evidence = Self.evidence(chain, staple) else { return find() }
        let trusted = Key(evidence: evidence, host: nil, statuses: statuses)
        let own = Key(evidence: evidence, host: host, statuses: statuses)
        if let kept = kept(trusted, version, at: time), kept.host == host || isNamed() {
            use(trusted, for: host)
            return kept.appraisal
        }
        if let kept = kept(own, version, at: time) {
            use(own, for: host)
            return kept.appraisal
        }
        let found = find()
        keep(found, found.trust.isTrusted ? trusted : own, version, host: host, at: time)
        return found
    }

    private func kept(_ key: Key, _ version: UInt64, at time: Int64) -> Entry? {
        state.withLock { state in
            guard let entry = state.entries[key], entry.foundAt <= time, time <= entry.lastSecond,
                entry.version == nil || entry.version == version
            else { return nil }
            return entry
        }
    }

    private func use(_ key: Key, for host: String) {
        state.withLock { state in
            state.uses += 1
            state.entries[key]?.used = state.uses
            state.entries[key]?.host = host
        }
    }

    private func keep(
        _ found: ChainVerifier.Appraisal, _ key: Key, _ version: UInt64, host: String, at time: Int64
    ) {
        let (end, overflow) = time.addingReportingOverflow(Self.lifetime)
        guard !overflow else { return }
        state.withLock { state in
            if state.entries[key] == nil, state.entries.count >= limit,
                let oldest = state.entries.min(by: { $0.value.used < $1.value.used })
            {
                state.entries[oldest.key] = nil
            }
            state.uses += 1
            state.entries[key] = Entry(
                appraisal: found, version: found.dependsOnStatuses ? version : nil, foundAt: time,
                lastSecond: min(end, found.holdsUntil), host: host, used: state.uses)
        }
    }

    /// SHA-256 over chain and response, each part after its length; nil if they are too long.
    private static func evidence(_ chain: [Certificate], _ staple: ChainVerifier.Staple) -> [UInt8]? {
        var parts = chain.map(\.der)
        switch staple {
        case .absent: parts.append([0])
        case .awaited: parts.append([1])
        case .received(let response): parts.append([2] + response)
        }
        let count = parts.reduce(0) { $0 + $1.count }
        guard count <= longestInputBytes else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8 * parts.count)
        for part in parts {
            withUnsafeBytes(of: UInt64(part.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes += part
        }
        return Digest.sha256.hash(bytes)
    }
}

extension ChainVerifier.Appraisal {
    /// Whether a status that is learned later may change the verdict.
    fileprivate var dependsOnStatuses: Bool {
        if case .unknown = trust.revocation { true } else { !questions.isEmpty }
    }
}
