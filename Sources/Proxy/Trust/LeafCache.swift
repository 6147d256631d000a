// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import CountersignTLS

/// The TLS contexts for intercepted clients, one per host. Leaf certificates are minted on threads, not on the event
/// loops, and cached.
///
/// All leaves share one P-256 key, which exists only in the memory of the process.
final class LeafCache: Sendable {
    private struct Key: Hashable {
        let host: String
        /// The fingerprint of the issuing certificates, so that new ones make new leaves.
        let issuer: [UInt8]
    }

    private struct Entry {
        let context: TLSServerContext
        let expires: Int64
        var used: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var uses: UInt64 = 0
        var key: PrivateKey?
        /// The callers that wait for a leaf that is being minted.
        var waiting: [Key: [EventLoopPromise<TLSServerContext>]] = [:]
        /// How many leaves are being minted, and the callers of ``LeafCache/finish()``.
        var running = 0
        var finishers: [CheckedContinuation<Void, Never>] = []

        mutating func context(for key: Key, now: Int64) -> TLSServerContext? {
            guard let entry = entries[key], entry.expires > now else { return nil }
            uses += 1
            entries[key]?.used = uses
            return entry.context
        }
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int
    private let threads: NIOThreadPool

    init(limit: Int = 1024, threads: NIOThreadPool = .singleton) {
        self.limit = limit
        self.threads = threads
    }

    /// The context for `host`, if it is cached.
    func cached(host: String, issuer: InterceptionAuthority, now: Int64) -> TLSServerContext? {
        state.withLockedValue { $0.context(for: Key(host: host, issuer: issuer.issuingFingerprint), now: now) }
    }

    /// Mints a leaf for `host` on a thread. All callers before its expiry share one leaf.
    func mint(
        host: String, issuer: InterceptionAuthority, now: Int64, loop: any EventLoop
    ) -> EventLoopFuture<TLSServerContext> {
        let key = Key(host: host, issuer: issuer.issuingFingerprint)
        let promise = loop.makePromise(of: TLSServerContext.self)
        let (context, isFirst) = state.withLockedValue { state -> (TLSServerContext?, Bool) in
            if let context = state.context(for: key, now: now) { return (context, false) }
            state.waiting[key, default: []].append(promise)
            return (nil, state.waiting[key]?.count == 1)
        }
        if let context { promise.succeed(context) }
        guard isFirst else { return promise.futureResult }
        onThread {
            try self.made(key, issuer, now)
        } done: { result in
            for promise in self.state.withLockedValue({ $0.waiting.removeValue(forKey: key) }) ?? [] {
                promise.completeWith(result)
            }
        }
        return promise.futureResult
    }

    /// Returns when no leaf is being minted and every caller has its result.
    func finish() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLockedValue { state in
                if state.running > 0 { state.finishers.append(continuation) }
                return state.running == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func onThread(
        _ make: @escaping @Sendable () throws -> TLSServerContext,
        done: @escaping @Sendable (Result<TLSServerContext, any Error>) -> Void
    ) {
        state.withLockedValue { $0.running += 1 }
        threads.submit { poolState in
            done(
                Result {
                    guard case .active = poolState else { throw ChannelError.ioOnClosedChannel }
                    return try make()
                })
            let finishers = self.state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
                state.running -= 1
                guard state.running == 0 else { return [] }
                defer { state.finishers = [] }
                return state.finishers
            }
            for finisher in finishers { finisher.resume() }
        }
    }

    private func made(_ key: Key, _ issuer: InterceptionAuthority, _ now: Int64) throws -> TLSServerContext {
        let leafKey = try leafKey()
        let chain = try issuer.mintLeaf(host: key.host, key: leafKey, at: now)
        let context = try TLSServerContext(chain: chain, key: leafKey, host: key.host)
        // An hour before its expiry, so that no client sees it expire during a session.
        keep(context, key, expires: (chain.first?.notAfter ?? now) - 3600)
        return context
    }

    /// A leaf with the names and dates of an origin's untrusted certificate, from an issuer that nobody trusts and
    /// whose name gives the reason. Never cached.
    func mirror(
        of trust: ServerTrust, host: String, now: Int64, loop: any EventLoop
    ) -> EventLoopFuture<TLSServerContext> {
        let promise = loop.makePromise(of: TLSServerContext.self)
        onThread {
            let leafKey = try self.leafKey()
            let reason = trust.reasons.first.map(String.init(describing:)) ?? "certificate not verified"
            let chain = try InterceptionAuthority.throwaway(
                mirroring: trust.chain.first, host: host, key: leafKey,
                issuerName: "Not trusted by Countersign: \(reason)",
                at: now)
            return try TLSServerContext(chain: chain, key: leafKey, host: host)
        } done: {
            promise.completeWith($0)
        }
        return promise.futureResult
    }

    private func leafKey() throws -> PrivateKey {
        if let key = state.withLockedValue({ $0.key }) { return key }
        let made = try PrivateKey.generateP256()
        return state.withLockedValue { state in
            if let key = state.key { return key }
            state.key = made
            return made
        }
    }

    private func keep(_ context: TLSServerContext, _ key: Key, expires: Int64) {
        state.withLockedValue { state in
            if state.entries.count >= limit, let oldest = state.entries.min(by: { $0.value.used < $1.value.used })?.key
            {
                state.entries[oldest] = nil
            }
            state.uses += 1
            state.entries[key] = Entry(context: context, expires: expires, used: state.uses)
        }
    }
}
