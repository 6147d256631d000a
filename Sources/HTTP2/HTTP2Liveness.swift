// SPDX-License-Identifier: Apache-2.0

/// Notices that an origin has gone while requests wait for it. Its network may have lost the connection without a sign.
///
/// Time counts in ticks of ``tickSeconds``. After two silent ticks the origin gets a PING (RFC 9113 §6.7), and after
/// one more the connection is given up. A response may take longer than that: an origin that answers the PING but sends
/// nothing else gets the next one after ``patientTicks``. Servers of gRPC end a connection with more than two PING in
/// less than five minutes each, unless they have sent HEADERS or DATA in between.
package struct HTTP2Liveness: Hashable, Sendable {
    package enum Action: Hashable, Sendable { case wait, ping, giveUp }

    package static let tickSeconds: Int64 = 15
    static let ticks = 2
    static let patientTicks = 21

    private var lastRead: UInt64 = 0
    private var messageFrames: UInt64 = 0
    private var silentTicks = 0
    private var isAsked = false
    /// The origin has answered a PING and has sent nothing else since.
    private var isPatient = false

    package init() {}

    /// A request is sent while no other one waits.
    package mutating func begin(lastRead: UInt64) {
        self.lastRead = lastRead
        silentTicks = 0
        isAsked = false
    }

    /// A tick has passed while requests wait. `lastRead` is different after each read, and `messageFrames` after each
    /// frame with a head or content.
    package mutating func tick(lastRead: UInt64, messageFrames: UInt64) -> Action {
        if messageFrames != self.messageFrames {
            self.messageFrames = messageFrames
            isPatient = false
        } else if isAsked, lastRead != self.lastRead {
            isPatient = true
        }
        if lastRead != self.lastRead {
            begin(lastRead: lastRead)
            return .wait
        }
        if isAsked { return .giveUp }
        silentTicks += 1
        guard silentTicks >= (isPatient ? Self.patientTicks : Self.ticks) else { return .wait }
        isAsked = true
        return .ping
    }
}
