// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Time limits, and the proxy's own end.
extension HTTP2ClientConnection {
    func secondPassed(now: UInt64) {
        let limits = services.configuration
        switch phase {
        case .open:
            if streams.isEmpty {
                admission.forgetOldPolicy()
                let limit = services.isHandedOver ? limits.headSeconds : limits.keepAliveSeconds
                if now > idleSince + limit || services.isDraining, !services.isHandedOver { http2?.refuseNewStreams() }
                if now > idleSince + limit { http2?.fail(.noError) }
            } else {
                for stream in Array(streams.values) { stream.secondPassed(now: now) }
            }
            write()
        case .discarding:
            if now > idleSince + (outputIsOut ? 2 : limits.bodyIdleSeconds) { close() }
        case .closed:
            break
        }
    }

    func drain() {
        http2?.announceEnd()
        write()
    }

    func abort() {
        gone()
        close()
    }
}
