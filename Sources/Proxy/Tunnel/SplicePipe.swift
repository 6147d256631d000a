// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import Glibc
import NIOCore

/// Moves bytes from one socket to another without copying them (splice(2)), through a pipe that all tunnels of an event loop
/// share: between two calls it is empty.
final class SplicePipe {
    /// What became of a call.
    struct Round {
        /// Taken from the source: out at the sink, or in ``rest``.
        var bytes = 0
        /// What the sink had no room for. To be written before anything else is.
        var rest = ByteBuffer()
        /// Why the source gives no more, where that is not because it has none.
        var failure: Failure?
    }

    enum Failure {
        /// This system, or its sandbox, does not splice that. Nothing is lost.
        case notSupported
        /// The connection is broken.
        case broken
    }

    /// What is taken at a time, at the most: so much may have to be copied where the sink has no room.
    private static let stepBytes = 256 * 1024
    /// What one call takes, at the most: others want their turn.
    private static let roundBytes = 1024 * 1024

    /// What is written to `entry` comes out at `exit`.
    private let entry: Int32
    private let exit: Int32
    /// Something may be left in it, that must not come out in another tunnel.
    private var isSpoilt = false

    /// Nil where the system has no pipe to give.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard csn_pipe2(&ends) == 0 else { return nil }
        exit = ends[0]
        entry = ends[1]
        // Where it stays small, less goes through it at a time.
        _ = csn_set_pipe_size(entry, Int32(Self.roundBytes))
    }

    deinit {
        close(entry)
        close(exit)
    }

    /// Moves what is there. Neither socket may block, and nothing may be waiting to be written to `sink`. SIGPIPE is ignored: NIO
    /// sees to that with its first socket.
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

    /// Gives how many of the `count` bytes in the pipe the sink did not take. Why, whoever writes them finds out.
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
