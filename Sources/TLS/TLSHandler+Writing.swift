// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Towards the network: what is written becomes ciphertext, and how the output ends.
extension TLSHandler {
    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosed, outputClose == nil else {
            promise?.fail(isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
            return
        }
        append(unwrapOutboundIn(data), promise)
    }

    func append(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?) {
        pending.append(bytes, promise)
        hasPending = true
    }

    package func flush(context: ChannelHandlerContext) {
        if hasPending { pending.mark() }
        do throws(TLSError) {
            if !isClosed { try encrypt(context) }
        } catch {
            return fail(context, error)
        }
        emit(context)
    }

    /// What ``write(context:data:promise:)`` and ``flush(context:)`` do, without the way through the pipeline.
    package func send(_ bytes: ByteBuffer) {
        guard let context, !isClosed, outputClose == nil else { return }
        do throws(TLSError) {
            let isEncrypted = if hasPending { false } else { try encrypts(bytes) }
            if !isEncrypted {
                append(bytes, nil)
                pending.mark()
                if !engine.isSuspended || ask(context) { try encrypt(context) }
            }
        } catch {
            return fail(context, error)
        }
        emit(context)
    }

    package func read(context: ChannelHandlerContext) {
        readIsWanted = true
        if engine.isSuspended { readIsHeld = true } else { context.read() }
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        switch mode {
        case .input:
            context.close(mode: .input, promise: promise)
        case .output:
            guard !isClosed, outputClose == nil else {
                promise?.fail(isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
                return
            }
            outputClose = .some(promise)
            closeOutputWhenWritten(context)
        case .all:
            if !isClosed {
                isClosed = true
                engine.closeOutput()
                emit(context)
                failPending(ChannelError.ioOnClosedChannel)
                failOutputClose(ChannelError.ioOnClosedChannel)
            }
            context.close(mode: .all, promise: promise)
        }
    }

    /// Writes that were not flushed before `close(mode: .output)` are lost, as they are in a channel without TLS.
    func closeOutputWhenWritten(_ context: ChannelHandlerContext) {
        guard let promise = outputClose, !isClosed, engine.isEstablished, !engine.isOutputClosed, !pending.isMarked
        else { return }
        engine.closeOutput()
        failPending(ChannelError.outputClosed)
        emit(context)
        context.close(mode: .output, promise: promise)
    }

    /// Whoever is told may write or close in answer.
    func failPending(_ error: any Error) {
        var failed = pending
        pending = PendingWrites()
        hasPending = false
        failed.fail(error)
    }

    func failOutputClose(_ error: any Error) {
        guard let promise = outputClose, !engine.isOutputClosed else { return }
        promise?.fail(error)
        outputClose = .some(nil)
    }

    // MARK: Records

    func encrypt(_ context: ChannelHandlerContext) throws(TLSError) {
        guard hasPending, pending.isMarked, engine.isEstablished, !engine.isSuspended else { return }
        if let only = pending.takeOnly() {
            if try encrypts(only) {
                hasPending = false
                return
            }
            pending.putBack(only)
            guard engine.isSuspended, ask(context) else { return }
        }
        while let piece = pending.nextPiece(spare) {
            makeRoom(pending.ciphertextEstimateBytes)
            let step = try piece.withUnsafeReadableBytes { bytes throws(TLSError) in try engine.write(bytes) }
            guard case .done = step else {
                if step == .suspended, ask(context) { continue }
                return
            }
            pending.pieceWritten()
            // Flushed here: what comes behind may be nothing, and then nobody flushes.
            if let outbound, outbound.readableBytes >= PendingWrites.burstBytes { emit(context) }
        }
        hasPending = !pending.isEmpty
    }

    /// False: not now.
    func encrypts(_ bytes: ByteBuffer) throws(TLSError) -> Bool {
        guard engine.isEstablished, !engine.isSuspended, bytes.readableBytes <= PendingWrites.pieceBytes else {
            return false
        }
        makeRoom(PendingWrites.ciphertextBytes(of: bytes))
        let step = try bytes.withUnsafeReadableBytes { bytes throws(TLSError) in try engine.write(bytes) }
        if case .done = step { return true } else { return false }
    }

    func makeRoom(_ bytes: Int) {
        if outbound == nil { outbound = spare.take(room: bytes) }
    }

    func takeOutbound() -> ByteBuffer? {
        let bytes = outbound
        outbound = nil
        return bytes
    }

    func takeOutbound(withRoom room: Int) -> ByteBuffer { takeOutbound() ?? spare.take(room: room) }

    /// Passes what was encrypted to the network, in one write.
    func emit(_ context: ChannelHandlerContext) {
        var promise: EventLoopPromise<Void>?
        if hasPending {
            promise = pending.takeWrittenPromise()
            hasPending = !pending.isEmpty
        }
        var bytes = takeOutbound() ?? ByteBuffer()
        guard bytes.readableBytes > 0 || promise != nil else { return }
        if promise == nil, sendStraight(&bytes, context) { return spare.giveBack(bytes) }
        if var socket = output {
            socket.channelWrites()
            output = socket
        }
        // May tell of writability, upon which more is written.
        context.write(wrapOutboundOut(bytes), promise: promise)
        spare.giveBack(bytes)
        context.flush()
    }

    func sendStraight(_ bytes: inout ByteBuffer, _ context: ChannelHandlerContext) -> Bool {
        guard var socket = output else { return false }
        let isOut = socket.send(&bytes, in: context)
        output = socket
        return isOut
    }
}
