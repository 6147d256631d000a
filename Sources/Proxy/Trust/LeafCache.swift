// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import CountersignTLS

/// The TLS contexts for intercepted clients, one per host, and one per mirrored certificate. Leaf certificates are
/// minted on threads, not on the event loops, and cached.
///
/// All leaves share one P-256 key, which exists only in the memory of the process.
final class LeafCache: Sendable {
    private struct Key: Hashable {
        let host: String
        /// The fingerprint of the issuing certificates, so that new ones make new leaves; for a mirrored certificate
        /// that of the root, because clients remember that they have accepted it.
        let issuer: [UInt8]
        var mirrored: Mirrored?
    }

    /// Together with the host, this determines a mirrored certificate, which stays the same as long as they do.
    private struct Mirrored: Hashable {
        let port: UInt16
        let leaf: [UInt8]?
        let reasons: Set<ServerTrust.Reason>
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
        return make(key, now, loop) { try self.made(key, issuer, now) }
    }

    /// The context for `key`, from the cache or newly made on a thread. All callers share it.
    private func make(
        _ key: Key, _ now: Int64, _ loop: any EventLoop, _ made: @escaping @Sendable () throws -> TLSServerContext
    ) -> EventLoopFuture<TLSServerContext> {
        let promise = loop.makePromise(of: TLSServerContext.self)
        let (context, isFirst) = state.withLockedValue { state -> (TLSServerContext?, Bool) in
            if let context = state.context(for: key, now: now) { return (context, false) }
            state.waiting[key, default: []].append(promise)
            return (nil, state.waiting[key]?.count == 1)
        }
        if let context { promise.succeed(context) }
        guard isFirst else { return promise.futureResult }
        onThread {
            try made()
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

    /// A leaf that fails verification like an origin's untrusted certificate. For wrong dates and another host it is
    /// from `issuer`. For any other reason it has the names and dates of the origin's certificate, and an untrusted
    /// issuer whose name gives the reason.
    ///
    /// The same host, port, certificate and reasons get the same leaf, so that a client's decision to continue holds
    /// for its next connection.
    func mirror(
        of trust: ServerTrust, host: String, port: UInt16, issuer: InterceptionAuthority, now: Int64,
        loop: any EventLoop
    ) -> EventLoopFuture<TLSServerContext> {
        let mirrored = Mirrored(port: port, leaf: trust.leaf?.sha256Fingerprint, reasons: Set(trust.reasons))
        let key = Key(host: host, issuer: issuer.root.sha256Fingerprint, mirrored: mirrored)
        return make(key, now, loop) {
            let leafKey = try self.leafKey()
            let chain: [Certificate]
            let expires: Int64
            if let own = try issuer.mirror(trust, host: host, key: leafKey, at: now) {
                chain = own
                expires = min(own[1].notAfter, own[0].isValid(at: now) ? own[0].notAfter : .max)
            } else {
                let reason = trust.texts.first ?? "certificate not verified"
                chain = try InterceptionAuthority.throwaway(
                    mirroring: trust.leaf, host: host, key: leafKey,
                    issuerName: "Not trusted by Countersign: \(reason)", at: now)
                expires = chain[0].isValid(at: now) ? chain[0].notAfter : .max
            }
            let context = try TLSServerContext(chain: chain, key: leafKey, host: host)
            self.keep(context, key, expires: expires)
            return context
        }
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
