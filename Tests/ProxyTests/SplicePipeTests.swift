// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import Testing

@testable import CountersignProxy

@Suite struct SplicePipeTests {
    /// Two connected non-blocking sockets.
    private final class Pair {
        let outer: Int32
        let inner: Int32

        init() {
            var ends: [Int32] = [-1, -1]
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            #expect(socketpair(AF_UNIX, kind, 0, &ends) == 0)
            (outer, inner) = (ends[0], ends[1])
        }

        deinit {
            close(outer)
            close(inner)
        }

        /// Writes as many bytes as fit, counting up from `first`.
        func fill(from first: Int) -> [UInt8] {
            let bytes = (first..<first + 1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
            var sent = 0
            while true {
                let count = bytes.withUnsafeBytes { send(outer, $0.baseAddress?.advanced(by: sent), 4096, 0) }
                guard count > 0 else { return Array(bytes[..<sent]) }
                sent += count
            }
        }

        func read() -> [UInt8] {
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = recv(outer, &buffer, buffer.count, 0)
                guard count > 0 else { return all }
                all += buffer[..<count]
            }
        }
    }

    private let pipe: SplicePipe

    init() throws {
        pipe = try #require(SplicePipe())
    }

    @Test func everythingAvailableIsSpliced() {
        let (source, sink) = (Pair(), Pair())
        let sent = source.fill(from: 0)
        let round = pipe.move(from: source.inner, to: sink.inner)
        #expect(round.bytes == sent.count && round.failure == nil && round.rest.readableBytes == 0)
        #expect(sink.read() == sent)
        let nothing = pipe.move(from: source.inner, to: sink.inner)
        #expect(nothing.bytes == 0 && nothing.failure == nil)
    }

    @Test func bytesTheSinkHasNoRoomForAreReturnedAndReachNobodyElse() {
        let (source, sink, other) = (Pair(), Pair(), Pair())
        var sent: [UInt8] = []
        var rest: [UInt8] = []
        for _ in 0..<10 where rest.isEmpty {
            sent += source.fill(from: sent.count)
            let round = pipe.move(from: source.inner, to: sink.inner)
            #expect(round.failure == nil)
            rest = Array(round.rest.readableBytesView)
        }
        #expect(!rest.isEmpty)
        let taken = sink.read() + rest
        #expect(taken == Array(sent[..<taken.count]))
        let next = Pair()
        let words = next.fill(from: 3)
        _ = pipe.move(from: next.inner, to: other.inner)
        #expect(other.read() == words)
    }

    @Test func theEndOfTheSourceIsNotAFailure() {
        let (source, sink) = (Pair(), Pair())
        let sent = source.fill(from: 0)
        shutdown(source.outer, Int32(SHUT_WR))
        let round = pipe.move(from: source.inner, to: sink.inner)
        #expect(round.bytes == sent.count && round.failure == nil)
    }

    @Test func aResetSourceIsBroken() {
        let (source, sink) = (Pair(), Pair())
        // Closing a Unix socket with unread input resets its peer.
        #expect(send(source.inner, "x", 1, 0) == 1)
        let null = open("/dev/null", O_RDWR)
        dup2(null, source.outer)
        close(null)
        #expect(pipe.move(from: source.inner, to: sink.inner).failure == .broken)
    }

    @Test func aClosedSinkReturnsEverything() {
        signal(SIGPIPE, SIG_IGN)
        let (source, sink) = (Pair(), Pair())
        let sent = source.fill(from: 0)
        shutdown(sink.inner, Int32(SHUT_WR))
        let round = pipe.move(from: source.inner, to: sink.inner)
        #expect(round.failure == nil)
        #expect(!sent.isEmpty && Array(round.rest.readableBytesView) == Array(sent[..<round.bytes]))
    }

    @Test func descriptorsThatCannotBeSplicedAreRecognised() {
        let sink = Pair()
        let folder = open("/", O_RDONLY)
        defer { close(folder) }
        #expect(pipe.move(from: folder, to: sink.inner).failure == .notSupported)
    }
}
