// SPDX-License-Identifier: Apache-2.0

import NIOCore
import CountersignTLS

/// Input from the network: the handshake with its questions, then plaintext.
extension TLSHandler {
    func handshake(_ context: ChannelHandlerContext) throws(TLSError) -> Bool {
        var result = Result<TLSEngine.Step, TLSError>.success(.wantsInput)
        lendCiphertext { engine in
            do throws(TLSError) { result = .success(try engine.handshake()) } catch { result = .failure(error) }
        }
        reportTrust(context)
        switch try result.get() {
        case .done:
            if !isClient, engine.version == "TLSv1.3" { ticketBytes = outbound?.readableBytes ?? 0 }
            if let summary = engine.summary {
                context.fireUserInboundEventTriggered(TLSEvent.handshakeCompleted(summary))
            }
            return ciphertext != nil
        case .suspended:
            return goesOnAfterAsking(context)
        case .wantsInput:
            return false
        case .inputClosed:
            throw TLSError(.handshakeFailed, "the peer closed the connection in the handshake")
        }
    }

    /// Fires the verdict once it is final or the caller must decide.
    func reportTrust(_ context: ChannelHandlerContext) {
        guard engine.serverTrustIsFinal || engine.asksAboutTrust, let trust = engine.serverTrust,
            trust != reportedTrust
        else { return }
        reportedTrust = trust
        context.fireUserInboundEventTriggered(TLSEvent.serverTrustEvaluated(trust))
    }

    /// Decrypts one buffer of plaintext and delivers it; true if there is more to do.
    func decrypt(_ context: ChannelHandlerContext) throws(TLSError) -> Bool {
        // Plaintext is shorter than its ciphertext, which usually leaves room for the part of a record from an earlier
        // read.
        var plaintext = spare.take(room: max(ciphertext?.readableBytes ?? 0, engine.pendingPlaintextBytes))
        var result = Result<TLSEngine.Step, TLSError>.success(.wantsInput)
        var hasMore = false
        lendCiphertext { engine in
            repeat {
                hasMore = false
                plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: 1) { space in
                    do throws(TLSError) { result = .success(try engine.read(into: space)) } catch {
                        result = .failure(error)
                    }
                    guard case .success(.done(let count)) = result else { return 0 }
                    return count
                }
                guard case .success(.done) = result else { return }
                hasMore = engine.unreadInputBytes > 0 || engine.pendingPlaintextBytes > 0
            } while hasMore && plaintext.writableBytes > 0
        }
        if case .failure(let error) = result { failure = error }
        if plaintext.readableBytes > 0 {
            hasDelivered = true
            context.fireChannelRead(wrapInboundOut(plaintext))
        }
        spare.giveBack(plaintext)
        switch try result.get() {
        case .done, .wantsInput:
            return hasMore || ciphertext != nil
        case .suspended:
            return goesOnAfterAsking(context)
        case .inputClosed:
            inputClosed(context)
            return false
        }
    }

    /// Requests another read. For a handler after this one that is handling the end of a read.
    package func readOn() { readIsWanted = true }

    func lendCiphertext(_ body: (TLSEngine) -> Void) {
        let engine = engine
        // Taken out, so that nothing can modify the bytes while OpenSSL reads them.
        guard var bytes = ciphertext.take() else {
            _ = engine.withInput(UnsafeRawBufferPointer(start: nil, count: 0)) { body(engine) }
            return
        }
        bytes.readWithUnsafeReadableBytes { bytes in engine.withInput(bytes) { body(engine) } }
        if bytes.readableBytes > 0 { ciphertext = bytes }
    }

    /// False while the engine waits for an answer. The question may already have been fired and answered: a handler
    /// that got plaintext may have written, which also runs the engine.
    func goesOnAfterAsking(_ context: ChannelHandlerContext) -> Bool {
        _ = ask(context)
        return !engine.isSuspended
    }

    /// Fires the question or request once; true if it has been answered at once.
    func ask(_ context: ChannelHandlerContext) -> Bool {
        if let wait = engine.statusWait {
            guard !statusesRequested else { return false }
            statusesRequested = true
            learn(wait, context)
            return false
        }
        if let trust = engine.unansweredTrust {
            guard !trustQuestionReported else { return false }
            trustQuestionReported = true
            context.fireUserInboundEventTriggered(TLSEvent.serverTrustAsked(trust))
            return engine.unansweredTrust == nil
        }
        guard let request = engine.certificateRequest, !requestReported else { return false }
        requestReported = true
        context.fireUserInboundEventTriggered(TLSEvent.certificateRequested(request))
        return engine.certificateRequest == nil
    }

    func inputClosed(_ context: ChannelHandlerContext) {
        ciphertext = nil
        guard !endReported else { return }
        endReported = true
        context.fireUserInboundEventTriggered(TLSEvent.inputClosed)
        let halfCloses = try? context.channel.syncOptions?.getOption(.allowRemoteHalfClosure)
        if halfCloses == true {
            if !isClosed { context.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        } else {
            closesAfterRead = true
        }
    }
}
