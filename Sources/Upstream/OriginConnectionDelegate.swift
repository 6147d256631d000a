// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHTTP1
import NIOCore
import CountersignTLS

/// What an exchange hears from the origin connection that it leased. Always on the connection's event loop.
package protocol OriginConnectionDelegate: AnyObject {
    /// A response head, 1xx ones included. ``OriginConnection/pauseReading()`` holds what follows it.
    func originResponded(_ head: consuming ResponseHead, framing: BodyFraming)
    /// Content of the response, transfer coding removed.
    func originSent(_ content: ByteBuffer)
    /// The response is whole; the connection may serve another request from here on.
    func originResponseEnded(trailers: FieldLines?)
    /// What came in one read has been told: a good moment to flush.
    func originReadCompleted()
    /// There will be no response, or no more of it. The connection is closed.
    func originFailed(_ error: UpstreamError)
    /// The origin takes more, or wants a pause.
    func originWritabilityChanged(_ isWritable: Bool)
    /// The origin asks who the client is; the answer may come later, on the event loop. Nil: nobody.
    func originAskedForCertificate(
        _ request: CertificateRequest, _ connection: OriginConnection, _ answer: @escaping (Identity?) -> Void)
}

extension OriginConnectionDelegate {
    /// Whoever has no identities shows none.
    package func originAskedForCertificate(
        _ request: CertificateRequest, _ connection: OriginConnection, _ answer: @escaping (Identity?) -> Void
    ) {
        answer(nil)
    }
}
