// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents
import CountersignJSON
import Dispatch

/// The page in the browser, what it shows, the metrics, and health: HTTP on the control socket of a running server, to
/// which the proxy leads requests for ``ownHost``.
///
/// The page itself is the same for everyone. What it shows needs a session (``PageTokens``). Each connection has a
/// thread and serves one request.
package final class PageServer: Sendable {
    /// A connection from which the request line was read. The closures block.
    package struct Connection: Sendable {
        /// The next line without its line feed; nil at the end.
        let readLine: @Sendable () -> [UInt8]?
        let readContent: @Sendable (_ byteCount: Int) -> [UInt8]?
        /// False if the peer is gone.
        let write: @Sendable ([UInt8]) -> Bool
        /// Whether the peer is gone. Does not block.
        let isClosed: @Sendable () -> Bool
        /// From any thread: the other closures return, and do nothing more.
        let end: @Sendable () -> Void

        package init(
            readLine: @escaping @Sendable () -> [UInt8]?, readContent: @escaping @Sendable (Int) -> [UInt8]?,
            write: @escaping @Sendable ([UInt8]) -> Bool, isClosed: @escaping @Sendable () -> Bool,
            end: @escaping @Sendable () -> Void
        ) {
            self.readLine = readLine
            self.readContent = readContent
            self.write = write
            self.isClosed = isClosed
            self.end = end
        }
    }

    /// What the page shows and does.
    package struct Services: Sendable {
        /// A JSON object.
        let state: @Sendable () -> [UInt8]
        /// In the text format of Prometheus; nil without metrics.
        let metrics: @Sendable () -> [UInt8]?
        /// The proxy auto-configuration script for browsers; nil if the proxy has no address for them.
        let browserScript: @Sendable () -> (type: String, text: [UInt8])?
        /// Why challenges cannot be answered now; nil if they can.
        let unreadiness: @Sendable () -> String?
        /// Permits a certificate. Returns the error and a hint, if it cannot.
        let permit: @Sendable (TrustRequest) -> (error: String, hint: String?)?
        /// Answers a question that waits. False if it does not wait any more.
        let approve: @Sendable (_ id: UInt64, _ answer: String) -> Bool

        package init(
            state: @escaping @Sendable () -> [UInt8], metrics: @escaping @Sendable () -> [UInt8]?,
            browserScript: @escaping @Sendable () -> (type: String, text: [UInt8])? = { nil },
            unreadiness: @escaping @Sendable () -> String?,
            permit: @escaping @Sendable (TrustRequest) -> (error: String, hint: String?)?,
            approve: @escaping @Sendable (_ id: UInt64, _ answer: String) -> Bool
        ) {
            self.state = state
            self.metrics = metrics
            self.browserScript = browserScript
            self.unreadiness = unreadiness
            self.permit = permit
            self.approve = approve
        }
    }

    /// The person permits the certificate with this fingerprint at a site that cannot be verified.
    package struct TrustRequest: Equatable, Sendable {
        package let host: String
        package let port: UInt16
        /// `sha256:…`
        package let fingerprint: String
    }

    /// The name under which browsers reach the page. Names below `localhost` lead to this machine (RFC 6761 §6.3).
    package static let ownHost = "countersign.localhost"

    /// Between two comment lines of an event stream without events.
    private static let silence: Int64 = 15
    /// Between two looks at whether the reader of a stream is still there.
    private static let lookInterval = DispatchTimeInterval.seconds(1)

    private let document: PageDocument
    private let streams: PageStreams
    private let services: Services
    private let tokens = PageTokens()
    private let random: @Sendable (Int) -> [UInt8]
    /// Monotonic, in seconds.
    private let now: @Sendable () -> Int64

    /// `document` is the HTML, with one style and one script.
    package init(
        document: [UInt8], events: EventBoard, services: Services, random: @escaping @Sendable (Int) -> [UInt8],
        now: @escaping @Sendable () -> Int64
    ) {
        self.document = PageDocument(document)
        streams = PageStreams(events)
        self.services = services
        self.random = random
        self.now = now
    }

    /// A token with which a browser can open the page once, within two minutes.
    package func makeToken() -> String { tokens.makeToken(random: random(PageTokens.randomBytes), now: now()) }

    /// Whether a line begins a request to the page.
    package static func isRequestLine(_ line: [UInt8]) -> Bool { PageRequest.isRequestLine(line) }

    /// Answers a request, which was not read, that there is no room for it.
    package func refuse(_ reason: String, on connection: Connection) { send(.error(503, reason), on: connection) }

    /// Serves the request that begins with `line`.
    package func serve(_ line: [UInt8], on connection: Connection) {
        guard let request = PageRequest(line, nextLine: connection.readLine), let count = request.contentBytes,
            let content = count == 0 ? [] : connection.readContent(count)
        else {
            return send(.error(400, "the request is malformed"), on: connection)
        }
        guard !request.isOfAnotherOrigin else {
            return send(.error(403, "a page of another origin has caused this request"), on: connection)
        }
        switch (request.method, request.path) {
        case ("GET", "/events"):
            if let refusal = refusal(of: request) { return send(refusal, on: connection) }
            stream(on: connection)
        case ("HEAD", _):
            let response = response(to: request, "GET", content)
            _ = connection.write(response.head(byteCount: response.content.count))
        default:
            send(response(to: request, request.method, content), on: connection)
        }
    }

    private func send(_ response: PageResponse, on connection: Connection) {
        _ = connection.write(response.head(byteCount: response.content.count) + response.content)
    }

    private func response(to request: PageRequest, _ method: String, _ content: [UInt8]) -> PageResponse {
        switch (method, request.path) {
        case ("GET", "/"), ("GET", "/index.html"): return document.response
        case ("GET", "/metrics"):
            guard let text = services.metrics() else { return .text(404, "this program has no metrics") }
            return PageResponse(200, "text/plain; version=0.0.4; charset=utf-8", text)
        case ("GET", "/proxy.pac"):
            guard let script = services.browserScript() else {
                return .text(404, "the proxy has no loopback address of TCP, which a browser needs")
            }
            return PageResponse(200, script.type, script.text)
        case ("GET", "/healthz"): return .text(200, "ok")
        case ("GET", "/readyz"): return services.unreadiness().map { .text(503, $0) } ?? .text(200, "ok")
        case ("POST", "/session"): return session(for: content)
        case ("GET", "/state"):
            return refusal(of: request) ?? PageResponse(200, "application/json", services.state())
        case ("POST", "/trust"): return refusal(of: request) ?? permit(content)
        case ("POST", "/approve"): return refusal(of: request) ?? approve(content)
        case (_, "/"), (_, "/metrics"), (_, "/proxy.pac"), (_, "/healthz"), (_, "/readyz"), (_, "/session"),
            (_, "/state"), (_, "/trust"), (_, "/approve"):
            return .error(405, "\(request.path) has no \(PrintableText.quoteASCII(request.method))")
        default:
            return .error(404, "there is no such page", hint: "run `countersign ui`")
        }
    }

    // MARK: Sessions

    private func session(for content: [UInt8]) -> PageResponse {
        let token = String(decoding: content, as: UTF8.self)
        guard let session = tokens.session(for: token, random: random(PageTokens.randomBytes), now: now()) else {
            return .error(403, "this link was used before, or is older than two minutes", hint: Self.hint)
        }
        var object = JSONObject()
        object.add("session", session)
        return .json(object)
    }

    private static let hint = "run `countersign ui`"

    /// Nil for a request with a session. A field that only scripts of the page can add, and no cookie: so no page of
    /// another origin can make a browser send such a request.
    private func refusal(of request: PageRequest) -> PageResponse? {
        guard let session = request.session, tokens.accepts(session: session, now: now()) else {
            return .error(401, "this page's session has ended", hint: Self.hint)
        }
        return nil
    }

    // MARK: Trust

    private func permit(_ content: [UInt8]) -> PageResponse {
        guard let object = try? JSONParser.parse(content), case .string(let host)? = object["host"]?.content,
            case .integer(let port)? = object["port"]?.content, let port = UInt16(exactly: port),
            case .string(let fingerprint)? = object["fingerprint"]?.content,
            case .bool(true)? = object["allow"]?.content
        else { return .error(400, "the request is malformed") }
        let request = TrustRequest(host: host, port: port, fingerprint: fingerprint)
        if let (error, hint) = services.permit(request) { return .error(409, error, hint: hint) }
        return .json(JSONObject())
    }

    private func approve(_ content: [UInt8]) -> PageResponse {
        guard let object = try? JSONParser.parse(content), case .integer(let id)? = object["id"]?.content, id > 0,
            case .string(let answer)? = object["answer"]?.content
        else { return .error(400, "the request is malformed") }
        guard services.approve(UInt64(id), answer) else {
            return .error(409, "nobody waits for this answer any more")
        }
        return .json(JSONObject())
    }

    // MARK: Events

    /// Server-sent events (HTML, section 9.2) until the reader is gone.
    private func stream(on connection: Connection) {
        let stream = streams.begin(end: connection.end)
        defer { streams.end(stream) }
        guard connection.write(PageResponse(200, "text/event-stream", []).head(byteCount: nil)),
            connection.write(Array(": \(Self.ownHost)\n\n".utf8))
        else { return }
        var lastWritten = now()
        while let batch = stream.reader.next(timeout: Self.lookInterval), !connection.isClosed() {
            guard !batch.isEmpty || now() - lastWritten >= Self.silence else { continue }
            guard connection.write(batch.isEmpty ? Array(":\n\n".utf8) : Self.lines(batch)) else { return }
            lastWritten = now()
        }
    }

    private static func lines(_ batch: [Event]) -> [UInt8] {
        var bytes: [UInt8] = []
        for event in batch {
            bytes.append(contentsOf: "id: ".utf8)
            JSONObject.append(event.number, to: &bytes)
            bytes.append(contentsOf: "\nevent: ".utf8)
            bytes.append(contentsOf: event.name.utf8)
            bytes.append(contentsOf: "\ndata: ".utf8)
            bytes.append(contentsOf: event.line)
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }
}
