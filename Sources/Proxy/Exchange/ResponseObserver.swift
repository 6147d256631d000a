// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHTTP1

/// Receives the heads of the responses to requests for the pages of a browser's windows, redirects included, just
/// before the client gets them. It is called on the event loops and must not block.
package struct ResponseObserver: Sendable {
    package struct Response: Sendable {
        package let origin: Origin
        package let status: Int
        /// In the order of the response.
        package let fields: [(name: String, value: String)]
    }

    private let tell: @Sendable (Response) -> Void

    package init(tell: @escaping @Sendable (Response) -> Void) { self.tell = tell }

    /// Browsers mark the requests for the page of a window (Fetch Metadata). Those for frames, scripts and images have
    /// other marks, and their responses are not reported.
    func delivered(_ head: ResponseHead, to request: FieldLines, from origin: Origin) {
        guard request.values(named: "sec-fetch-dest") == ["document"] else { return }
        tell(
            Response(
                origin: origin, status: head.status,
                fields: head.fields.lines.map { (name: head.fields.name(of: $0), value: head.fields.value(of: $0)) }))
    }
}
