// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHTTP1
import NIOCore
import CountersignUpstream

extension ExchangeDriver {
    /// The held response goes to the client, as it came but for what belongs to the hop.
    func deliver() {
        guard let held = held.take() else {
            return respond(
                OwnResponse(status: 502, detail: "the origin's response was lost", proxyError: "connection_terminated"))
        }
        mode = .delivering
        if head.hasBody { replay.stopKeeping() }

        outgoingFraming = framingForClient(held.framing)
        if outgoingFraming.isChunked { responseFields = held.head.fields }
        // A body that is still coming cannot be told from the next request's head.
        keepsClient = head.keepsAlive && bodyHasEnded && !outgoingFraming.endsConnection && !services.isDraining
        var forwarding = ResponseForwarding(
            framing: outgoingFraming, connection: keepsClient ? .keepAlive : .close, via: services.shared.via)
        forwarding.dropsAuthentication = wasAccepted && held.head.status != 401
        if !held.head.fields.contains(.date) { forwarding.extraFields.append(("Date", WallClock.httpDate())) }
        if let reason = entry.reason, route.isListed || trust.decider != nil {
            let text = held.head.status == 401 ? "not answered: \(reason)" : reason
            forwarding.extraFields.append(("Proxy-Status", ProxyStatus.value(error: nil, details: text)))
        }
        if held.head.status == 401, case .proxy = client.role, offersConnectionBoundScheme(held.head) {
            // RFC 4559 §6: the client may speak NTLM or Negotiate through us, on a connection of its own.
            forwarding.extraFields.append(("Proxy-Support", "Session-Based-Authentication"))
            connection?.isAuthenticated = true
        } else if clientBindsConnection {
            connection?.isAuthenticated = true
        }
        client.write(held, as: forwarding)
        for piece in held.pieces { writeContent(piece) }
        if held.ended {
            guard !held.wasCut else { return abort() }
            finishDelivery(trailers: held.trailers)
        } else {
            connection?.resumeReading()
        }
    }

    private func framingForClient(_ framing: BodyFraming) -> BodyFraming {
        framing.isChunked && head.version == .http10 ? .untilClose : framing
    }

    private func offersConnectionBoundScheme(_ response: ResponseHead) -> Bool {
        response.fields.values(of: .wwwAuthenticate).contains {
            let scheme = $0.prefix { $0 != " " && $0 != "," }.lowercased()
            return scheme == "ntlm" || scheme == "negotiate"
        }
    }

    func writeContent(_ content: ByteBuffer) {
        entry.bytes += content.readableBytes
        if outgoingFraming.isChunked {
            client.output.write(ChunkedEncoding.header(byteCount: content.readableBytes))
            client.output.write(content)
            client.output.write(ChunkedEncoding.lineEnd)
        } else {
            client.output.write(content)
        }
        if !client.isWritable {
            client.output.flush()
            if !client.isWritable { connection?.pauseReading() }
        }
    }

    func clientWritabilityChanged(_ isWritable: Bool) {
        guard case .delivering = mode else { return }
        if isWritable { connection?.resumeReading() } else { connection?.pauseReading() }
    }

    func finishDelivery(trailers: FieldLines?) {
        guard case .delivering = mode else { return }
        mode = .done
        if outgoingFraming.isChunked {
            client.output.write(ChunkedEncoding.end(trailers: trailers, head: responseFields))
        }
        returnConnection()
        client.output.flush()
        log(status: entry.status)
        client.responseFinished(keepAlive: keepsClient && bodyHasEnded)
    }

    /// The connection goes back to the pool, or, once it stands for a person, stays with this client.
    private func returnConnection() {
        guard let connection else { return }
        self.connection = nil
        let isPersonal = connection.isAuthenticated || connection.hasShownIdentity || !trust.isShared
        if isPersonal {
            client.bind(connection, for: slot.key)
        } else {
            slot.giveBack(connection, now: services.now)
        }
    }
}
