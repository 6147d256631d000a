// SPDX-License-Identifier: Apache-2.0

import CountersignChannelTLS
import CountersignHTTP2
import NIOCore

/// A stream whose content waits until more may be queued.
package protocol HTTP2HeldBack: AnyObject {
    /// The connection has written content. False if the stream must still wait.
    func resumeIfWritable() -> Bool
}

/// Reads and writes of an `HTTP2Session` over a channel, for the handler that owns both: towards a client or an origin.
///
/// What one read causes is written when all of it has been handled. A peer that does not read is not read from, because
/// it may ask for replies without end, and the content queued for it is bounded.
package final class HTTP2Link {
    package let output: MessageOutput
    /// Nil before ``open(_:_:tls:)`` and after ``close()``.
    package private(set) var session: HTTP2Session?
    /// Content of all streams that has not been written, in octets.
    @exclusivity(unchecked) package var queuedBytes = 0
    /// The time of the last read, in nanoseconds of ``clock``.
    package private(set) var lastRead: UInt64 = 0

    /// The streams that wait until they are writable.
    @exclusivity(unchecked) package private(set) var heldBack: [any HTTP2HeldBack] = []
    /// What is being read. The session reports content as parts of it.
    @exclusivity(unchecked) private var received = ByteBuffer()
    /// The memory of ``received`` while the session reads it.
    @exclusivity(unchecked) private var receivedMemory: UnsafeRawPointer?
    /// Frames are being read. What they cause is written when all have been.
    private var isReceiving = false
    private var isWriting = false
    /// Whether the network takes more. Stored, because asking the channel is expensive.
    package private(set) var isWritable = true
    private var readingPaused = false
    private var loop: (any EventLoop)?
    /// A write follows in this turn of the event loop.
    private var isWriteDue = false

    package init(output: MessageOutput) {
        self.output = output
    }

    /// The time in nanoseconds of a monotonic clock, for the session.
    package static var clock: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// The handler of `context`, the session's owner, has been added to a pipeline. Writes go to `tls` past the
    /// pipeline, or through it without one.
    package func open(_ session: HTTP2Session, _ context: ChannelHandlerContext, tls: TLSHandler?) {
        self.session = session
        loop = context.eventLoop
        isWritable = context.channel.isWritable
        output.open(context, tls: tls, isNextToSocket: false)
    }

    /// Takes the session, whose streams end when its owner calls `connectionClosed()`.
    package func close() -> HTTP2Session? {
        let ending = session
        session = nil
        loop = nil
        return ending
    }

    // MARK: Reading

    package func read(_ buffer: ByteBuffer) {
        guard let session else { return }
        received = buffer
        isReceiving = true
        lastRead = Self.clock
        received.withUnsafeReadableBytes { octets in
            receivedMemory = octets.baseAddress
            session.receive(octets, at: lastRead)
        }
        receivedMemory = nil
        received = ByteBuffer()
        isReceiving = false
    }

    /// `content`, which the session reports during ``read(_:)``, without a copy.
    package func piece(of content: UnsafeRawBufferPointer) -> ByteBuffer? {
        guard let start = receivedMemory, let part = content.baseAddress else { return nil }
        return received.getSlice(at: received.readerIndex + (part - start), length: content.count)
    }

    /// Requests the next read, unless the peer does not read itself.
    package func readOn() {
        if !readingPaused { output.readOn() }
    }

    package func writabilityChanged(of channel: any Channel) {
        isWritable = channel.isWritable
        guard isWritable == readingPaused else { return }
        readingPaused = !isWritable
        try? channel.syncOptions?.setOption(.autoRead, value: isWritable)
    }

    // MARK: Writing

    /// Writes the frames that are queued. False if more frames are being read or written, after which it happens
    /// anyway.
    package func write() -> Bool {
        guard !isReceiving, !isWriting, let session else { return false }
        isWriting = true
        var isMore = true
        while isMore, isWritable {
            isMore = session.drain()
            output.flush()
        }
        isWriting = false
        resumeStreams()
        return true
    }

    /// Calls `write`, which calls ``write()``: at once if much is queued, and else when the event loop has handled what
    /// it has read, from this peer and from others. The frames of several streams then share a TLS record and a system
    /// call. With 16 streams, that halves the cost of a small response.
    package func writeSoon(_ write: @escaping () -> Void) {
        guard !isReceiving, !isWriting else { return }
        guard queuedBytes < Self.soonBytes, let loop else { return write() }
        guard !isWriteDue else { return }
        isWriteDue = true
        loop.assumeIsolated().execute {
            self.isWriteDue = false
            write()
        }
    }

    private static let soonBytes = 16 * 1024

    /// Collects what the session writes.
    package func append(_ octets: UnsafeRawBufferPointer) {
        output.write(about: octets.count) { space in
            guard octets.count <= space.count else { return octets.count }
            space.copyMemory(from: octets)
            return octets.count
        }
    }

    /// Whether a stream may queue content beside that of the others: a peer that does not read must not cost much.
    package var takesContent: Bool { queuedBytes < Self.maximumQueuedBytes }

    private static let maximumQueuedBytes = 512 * 1024

    /// `stream` is told when it may go on.
    package func holdBack(_ stream: any HTTP2HeldBack) { heldBack.append(stream) }

    /// Lets the streams go on that are writable again. They may send more before this returns.
    private func resumeStreams() {
        guard !heldBack.isEmpty else { return }
        let waiting = heldBack
        heldBack = []
        for stream in waiting where !stream.resumeIfWritable() { heldBack.append(stream) }
    }
}
