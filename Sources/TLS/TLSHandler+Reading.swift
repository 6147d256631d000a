// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// From the network: the handshake, and what it asks; then plaintext.
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

    /// A verdict is told when it is the last, or when it is asked about.
    func reportTrust(_ context: ChannelHandlerContext) {
        guard engine.serverTrustIsFinal || engine.asksAboutTrust, let trust = engine.serverTrust,
            trust != reportedTrust
        else { return }
        reportedTrust = trust
        context.fireUserInboundEventTriggered(TLSEvent.serverTrustEvaluated(trust))
    }

    /// Delivers what can be decrypted, a buffer of it; true when there is more to be done.
    func decrypt(_ context: ChannelHandlerContext) throws(TLSError) -> Bool {
        // As much as came: what a record began with in an earlier read mostly leaves room for what this one begins
        // with.
        var plaintext = spare.take(room: max(ciphertext?.readableBytes ?? 0, engine.pendingPlaintextBytes))
        var result = Result<TLSEngine.Step, TLSError>.success(.wantsInput)
        var hasMore = false
        lendCiphertext { engine in
            repeat {
                hasMore = false
                plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: 1) { room in
                    do throws(TLSError) { result = .success(try engine.read(into: room)) } catch {
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

    /// Whoever reads behind it, and is being told that a read is over, wants another one.
    package func readOn() { readIsWanted = true }

    func lendCiphertext(_ body: (TLSEngine) -> Void) {
        let engine = engine
        guard var bytes = takeCiphertext() else {
            _ = engine.withInput(UnsafeRawBufferPointer(start: nil, count: 0)) { body(engine) }
            return
        }
        bytes.readWithUnsafeReadableBytes { bytes in engine.withInput(bytes) { body(engine) } }
        if bytes.readableBytes > 0 { ciphertext = bytes }
    }

    func takeCiphertext() -> ByteBuffer? {
        let bytes = ciphertext
        ciphertext = nil
        return bytes
    }

    /// Whoever was delivered plaintext before may have sent something, upon which it was asked, and has answered,
    /// already.
    func goesOnAfterAsking(_ context: ChannelHandlerContext) -> Bool {
        _ = ask(context)
        return !engine.isSuspended
    }

    /// Fires the question or request once; true when it has been answered.
    func ask(_ context: ChannelHandlerContext) -> Bool {
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
