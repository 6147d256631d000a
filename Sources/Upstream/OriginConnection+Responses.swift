// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore

/// Reads responses and reports them to the delegate.
extension OriginConnection {
    func deliver() {
        guard !delivering else { return }
        delivering = true
        defer { delivering = false }
        var status: Int?
        do throws(HTTP1Error) {
            while !paused {
                switch phase {
                case .head:
                    guard let head = try nextHead() else { return }
                    status = head.status
                    let leavesHTTP = head.status == 101 || (method == .connect && head.status / 100 == 2)
                    // One without content may still contradict itself.
                    if head.repair != nil { _ = try head.framing(answering: method) }
                    let end = leavesHTTP || head.isInformational ? .none : try beginBody(of: head)
                    delegate?.originResponded(head, content: end)
                    if leavesHTTP { return }
                case .body:
                    guard try deliverBody() else { return }
                case .handshaking, .idle, .tunnel, .closed:
                    return
                }
            }
        } catch {
            fail(
                UpstreamError(
                    .malformedResponse, "\(place): \(error.detail)", status: statusOfUnreadHead ?? status))
        }
    }

    package var statusOfUnreadHead: Int? {
        guard case .head = phase else { return nil }
        return input.statusOfUnreadHead
    }

    private func nextHead() throws(HTTP1Error) -> ResponseHead? {
        guard input.byteCount > 0 else { return nil }
        bytesOfResponse = true
        guard let head = try input.nextResponse() else { return nil }
        if let repair = head.repair { noteRepair(repair) }
        return head
    }

    private func beginBody(of head: borrowing ResponseHead) throws(HTTP1Error) -> ContentEnd {
        let framing = try head.framing(answering: method)
        keepsAlive = (forwarder == nil ? head.keepsAlive : head.parentKeepsAlive) && !framing.endsConnection
        phase = .body
        input.beginBody(framing)
        closeDelimits = framing.endsConnection
        return ContentEnd(framing)
    }

    /// Reads the next part of the content. False if more input is needed.
    private func deliverBody() throws(HTTP1Error) -> Bool {
        switch try input.nextPiece() {
        case .content(let content):
            delegate?.originSent(content)
            return true
        case .needsMore:
            return false
        case .end(let trailers):
            if input.byteCount > 0 { keepsAlive = false }
            if let repair = input.repair { noteRepair(repair) }
            phase = .idle
            delegate?.originResponseEnded(trailers: trailers)
            return true
        }
    }

    func endOfInput() {
        switch phase {
        case .handshaking:
            fail(UpstreamError(.tlsFailed, "\(place): closed during the TLS handshake"))
        case .idle:
            phase = .closed
            leaveSlot()
            context?.close(promise: nil)
        case .head:
            let code: UpstreamError.Code = bytesOfResponse ? .closedInResponse : .closedBeforeResponse
            fail(
                UpstreamError(
                    code, "\(place): closed the connection without answering", status: statusOfUnreadHead))
        case .body:
            guard !(closeDelimits && inputWasCut), input.endsBody() else {
                return fail(UpstreamError(.closedInResponse, "\(place): closed the connection inside a response"))
            }
            keepsAlive = false
            phase = .idle
            delegate?.originResponseEnded(trailers: nil)
            close()
        case .tunnel, .closed:
            break
        }
    }

    func fail(_ error: UpstreamError) {
        if case .closed = phase { return }
        phase = .closed
        let listener = delegate
        delegate = nil
        leaveSlot()
        context?.close(promise: nil)
        finishEstablishing(error)
        listener?.originFailed(error)
    }
}

extension ContentEnd {
    init(_ framing: BodyFraming) {
        self =
            switch framing {
            case .none: .none
            case .length(let length): .length(length)
            case .chunked: .marked
            case .untilClose: .connectionClose
            }
    }
}
