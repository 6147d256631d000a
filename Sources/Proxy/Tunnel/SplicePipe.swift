// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import Glibc
import NIOCore

/// Moves bytes from one socket to another without copying them to user space (splice(2)), through a pipe that all
/// tunnels of an event loop share. The pipe is empty between two calls.
final class SplicePipe {
    /// The result of a call.
    struct Round {
        /// How many bytes were taken from the source. They are written to the sink, except those in ``rest``.
        var bytes = 0
        /// The bytes that the sink did not accept. The caller writes them before anything else.
        var rest = ByteBuffer()
        /// Why nothing more was read, unless the source is empty or the round is over.
        var failure: Failure?
    }

    enum Failure {
        /// The system or its sandbox does not support splice(2) for these sockets. No bytes are lost.
        case notSupported
        /// The connection is broken.
        case broken
    }

    /// The most that one system call takes. That much may have to be copied if the sink accepts nothing.
    private static let stepBytes = 256 * 1024
    /// The most that one round takes, so that other tunnels get their turn.
    private static let roundBytes = 1024 * 1024

    /// The write end and the read end of the pipe.
    private let entry: Int32
    private let exit: Int32
    /// Bytes may remain in the pipe. It is not used again, because they must not appear in another tunnel.
    private var isSpoilt = false

    /// Nil if the system cannot create another pipe.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard csn_pipe2(&ends) == 0 else { return nil }
        exit = ends[0]
        entry = ends[1]
        // With a smaller pipe, each system call moves less.
        _ = csn_set_pipe_size(entry, Int32(Self.roundBytes))
    }

    deinit {
        close(entry)
        close(exit)
    }

    /// Moves the available bytes. Both sockets must be non-blocking, and no bytes may be waiting to be written to
    /// `sink`. NIO ignores SIGPIPE from its first socket on.
    func move(from source: Int32, to sink: Int32) -> Round {
        var round = Round()
        guard !isSpoilt else {
            round.failure = .notSupported
            return round
        }
        while round.bytes < Self.roundBytes, round.rest.readableBytes == 0 {
            let taken = csn_splice(source, entry, Self.stepBytes)
            if taken > 0 {
                round.bytes += taken
                let left = empty(into: sink, taken)
                guard left > 0 else { continue }
                guard let rest = takeBack(left) else {
                    isSpoilt = true
                    round.failure = .broken
                    return round
                }
                round.rest = rest
            } else if taken == 0 || errno == EAGAIN {
                break
            } else if errno != EINTR {
                let isUnwilling = [EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EACCES, ENOMEM].contains(errno)
                round.failure = isUnwilling ? .notSupported : .broken
                break
            }
        }
        return round
    }

    /// Moves the `count` bytes in the pipe to `sink` and returns how many it did not accept. Writing those through the
    /// channel reports the reason.
    private func empty(into sink: Int32, _ count: Int) -> Int {
        var left = count
        while left > 0 {
            let written = csn_splice(exit, sink, left)
            if written > 0 {
                left -= written
            } else if written == 0 || errno != EINTR {
                break
            }
        }
        return left
    }

    private func takeBack(_ count: Int) -> ByteBuffer? {
        var buffer = ByteBufferAllocator().buffer(capacity: count)
        while buffer.readableBytes < count {
            let left = count - buffer.readableBytes
            let read = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: left) {
                max(Glibc.read(exit, $0.baseAddress, left), 0)
            }
            guard read > 0 || errno == EINTR else { return nil }
        }
        return buffer
    }
}
