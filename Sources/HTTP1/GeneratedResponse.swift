// SPDX-License-Identifier: Apache-2.0

/// A response that the proxy generates itself. It contains nothing of the request; in field values everything but
/// printable ASCII is replaced.
package struct GeneratedResponse: Sendable {
    /// The response to CONNECT, which has no framing field (RFC 9110 §9.3.6).
    package static let tunnelEstablished: [UInt8] = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)
    /// Tells a waiting client to send its body (RFC 9110 §15.2.1).
    package static let interimContinue: [UInt8] = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// 200–599.
    package var status: Int
    /// Names must be tokens other than Content-Length and Connection.
    package var fields: [(String, String)]
    package var body: [UInt8]
    /// Whether the connection is closed after the response.
    package var closes: Bool
    /// Whether it is a response to HEAD: it has the Content-Length of the body but not the body.
    package var answersHead: Bool

    package init(
        status: Int, fields: [(String, String)] = [], body: [UInt8] = [], closes: Bool = true, answersHead: Bool = false
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.closes = closes
        self.answersHead = answersHead
    }

    /// The whole message.
    package func serialized() -> [UInt8] {
        precondition((200..<600).contains(status), "the proxy generates final responses only")
        return HeadWriter.bytes(about: body.count + 512) { writer in
            writer.append("HTTP/1.1 ")
            writer.append(text: String(status))
            writer.append(" ")
            writer.append(text: GeneratedResponse.reason(of: status))
            writer.append("\r\n")
            for (name, value) in fields { writer.extraField(name, value) }
            let hasBody = status != 204 && status != 304
            if hasBody { writer.framing(.length(UInt64(body.count))) }
            writer.connection(closes ? .close : .keepAlive, upgrade: nil)
            writer.append("\r\n")
            if hasBody, !answersHead { writer.append(body) }
        }
    }

    /// Writes the fields as lines with CRLF, without an empty line, for a version of HTTP whose heads are not lines,
    /// and returns their length. If that is more than `space` has, the contents of `space` are incomplete. The content
    /// is `contentLength` octets long; nil writes no length.
    package func writeFields(contentLength: Int?, into space: UnsafeMutableRawBufferPointer) -> Int {
        HeadWriter.write(into: space) { writer in
            for (name, value) in fields { writer.extraField(name, value) }
            if let contentLength { writer.framing(.length(UInt64(contentLength))) }
        }
    }

    /// The reason phrase of RFC 9110 §15 or RFC 6585, or that of the status class.
    package static func reason(of status: Int) -> String {
        switch status {
        case 200: "OK"
        case 204: "No Content"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 411: "Length Required"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 508: "Loop Detected"
        case 511: "Network Authentication Required"
        case 100..<200: "Informational"
        case 200..<300: "Success"
        case 300..<400: "Redirection"
        case 400..<500: "Client Error"
        default: "Server Error"
        }
    }
}
