// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// A response to a ``PageRequest``, after which the connection is closed.
struct PageResponse {
    let status: Int
    let type: String
    var fields: [(name: String, value: String)] = []
    let content: [UInt8]

    init(_ status: Int, _ type: String, _ content: [UInt8]) {
        self.status = status
        self.type = type
        self.content = content
    }

    static func text(_ status: Int, _ text: String) -> PageResponse {
        PageResponse(status, "text/plain; charset=utf-8", Array((text + "\n").utf8))
    }

    static func json(_ object: JSONObject) -> PageResponse { PageResponse(200, "application/json", object.utf8) }

    static func error(_ status: Int, _ error: String, hint: String? = nil) -> PageResponse {
        var object = JSONObject()
        object.add("error", error)
        object.add("hint", ifAny: hint)
        return PageResponse(status, "application/json", object.utf8)
    }

    /// The head. `byteCount`: of the content; nil for one that ends with the connection.
    func head(byteCount: Int?) -> [UInt8] {
        var lines = ["HTTP/1.1 \(status) \(Self.reason(status))", "Content-Type: \(type)"]
        if let byteCount { lines.append("Content-Length: \(byteCount)") }
        // No page of another origin may read, embed or keep anything.
        lines += [
            "Connection: close", "Cache-Control: no-store", "X-Content-Type-Options: nosniff",
            "Cross-Origin-Resource-Policy: same-origin", "Referrer-Policy: no-referrer", "X-Frame-Options: DENY",
        ]
        lines += fields.map { "\($0.name): \($0.value)" }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 409: "Conflict"
        case 503: "Service Unavailable"
        default: "Status"
        }
    }
}
