// SPDX-License-Identifier: Apache-2.0

import NIOCore
import CountersignTLS

/// Output to the network: encryption, and how the output ends.
extension TLSHandler {
    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosed, outputClose == nil else {
            promise?.fail(isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
            return
        }
        pending.append(unwrapOutboundIn(data), promise)
    }

    package func flush(context: ChannelHandlerContext) {
        if !pending.isEmpty { pending.mark() }
        do throws(TLSError) {
            if !isClosed { try encrypt(context) }
        } catch {
            return fail(context, error)
        }
        emit(context)
    }

    /// From now on, received bytes may contain secrets, and this handler keeps no copy of them.
    package func cleansePlaintext() { engine.cleansePlaintext() }

    /// Writes and flushes `bytes` without the round trip through the pipeline. Secret bytes are overwritten once they
    /// are encrypted, and if they never will be.
    package func send(_ bytes: ByteBuffer, isSecret: Bool = false) {
        guard let context, !isClosed, outputClose == nil else {
            if isSecret { bytes.wipe() }
            return
        }
        do throws(TLSError) {
            let isEncrypted = pending.isEmpty ? try encrypts(bytes) : false
            if isEncrypted {
                if isSecret { bytes.wipe() }
            } else {
                pending.append(bytes, nil, isSecret: isSecret)
                pending.mark()
                if !engine.isSuspended || ask(context) { try encrypt(context) }
            }
        } catch {
            if isSecret { bytes.wipe() }
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

    /// Writes that were not flushed before `close(mode: .output)` are dropped, as in a channel without TLS.
    func closeOutputWhenWritten(_ context: ChannelHandlerContext) {
        guard let promise = outputClose, !isClosed, engine.isEstablished, !engine.isOutputClosed, !pending.isMarked
        else { return }
        engine.closeOutput()
        failPending(ChannelError.outputClosed)
        emit(context)
        context.close(mode: .output, promise: promise)
    }

    func failPending(_ error: any Error) {
        // Taken out, because the promises' callbacks may write or close.
        var failed = pending
        pending = PendingWrites()
        failed.fail(error)
    }

    func failOutputClose(_ error: any Error) {
        guard let promise = outputClose, !engine.isOutputClosed else { return }
        promise?.fail(error)
        outputClose = .some(nil)
    }

    // MARK: Records

    func encrypt(_ context: ChannelHandlerContext) throws(TLSError) {
        guard pending.isMarked, engine.isEstablished, !engine.isSuspended else { return }
        while let piece = pending.nextPiece(spare) {
            makeRoom(pending.ciphertextEstimateBytes)
            let step = try piece.withUnsafeReadableBytes { bytes throws(TLSError) in try engine.write(bytes) }
            guard case .done = step else {
                if step == .suspended, ask(context) { continue }
                return
            }
            pending.pieceWritten()
            // Flushed here, because nothing may follow that would flush it.
            if let outbound, outbound.readableBytes >= PendingWrites.burstBytes { emit(context) }
        }
    }

    /// Encrypts `bytes`; false if that is not possible now.
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

    /// Passes the ciphertext to the network, in one write.
    func emit(_ context: ChannelHandlerContext) {
        let promise = pending.takeWrittenPromise()
        var bytes = outbound.take() ?? ByteBuffer()
        guard bytes.readableBytes > 0 || promise != nil else { return }
        if promise == nil, output?.send(&bytes, in: context) == true { return spare.giveBack(bytes) }
        output?.channelWrites()
        // This may change the writability, in response to which handlers write more.
        context.write(wrapOutboundOut(bytes), promise: promise)
        spare.giveBack(bytes)
        context.flush()
    }
}
