// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP2
import NIOCore

/// Gives up a connection whose network has lost it while requests wait for their responses.
extension HTTP2OriginConnection {
    /// Lets time pass for ``liveness`` as long as requests wait.
    func watch() {
        guard !isWatched, let context else { return }
        isWatched = true
        context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(HTTP2Liveness.tickSeconds)) { [weak self] in
            self?.tick()
        }
    }

    private func tick() {
        isWatched = false
        guard let session = link.session, !streams.isEmpty else { return }
        watch()
        // What waits for the network would delay a PING, too.
        guard link.isWritable else { return liveness.begin(lastRead: link.lastRead) }
        switch liveness.tick(lastRead: link.lastRead, messageFrames: session.messageFrames) {
        case .wait:
            break
        case .ping:
            session.ping()
            write()
        case .giveUp:
            fail(UpstreamError(.closedBeforeResponse, "\(place): answered neither the request nor a PING"))
        }
    }
}
