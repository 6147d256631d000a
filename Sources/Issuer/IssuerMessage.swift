// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// A request to an ``LocalIssuer``.
package struct IssuerRequest: Sendable, Equatable {
    /// `GET`.
    package var method: String
    /// Without the query.
    package var path: String
    /// Encoded, without the question mark.
    package var query: String
    /// The content: an encoded form, or empty.
    package var body: [UInt8]

    package init(method: String = "GET", path: String, query: String = "", body: [UInt8] = []) {
        self.method = method
        self.path = path
        self.query = query
        self.body = body
    }

    /// The parameters of the query or, in a POST, of the form. Nil if they cannot be decoded or one occurs twice (RFC
    /// 6749 §3.1).
    var parameters: [String: String]? {
        guard let pairs = FormEncoding.decode(method == "POST" ? body : Array(query.utf8)) else { return nil }
        var parameters: [String: String] = [:]
        for pair in pairs where parameters.updateValue(pair.value, forKey: pair.name) != nil { return nil }
        return parameters
    }
}

/// An issuer's response.
package struct IssuerResponse: Sendable, Equatable {
    package var status: Int
    package var contentType: String?
    /// Where a redirect leads.
    package var location: String?
    package var body: [UInt8]

    package init(status: Int, contentType: String? = nil, location: String? = nil, body: [UInt8] = []) {
        self.status = status
        self.contentType = contentType
        self.location = location
        self.body = body
    }

    package static func json(_ members: [(String, JSONValue.Content)], status: Int = 200) -> IssuerResponse {
        let value = JSONValue(.object(members.map { JSONMember($0, JSONValue($1)) }))
        return IssuerResponse(status: status, contentType: "application/json", body: Array(value.serialized.utf8))
    }

    /// RFC 6749 §5.2.
    package static func error(_ code: String, _ description: String, status: Int = 400) -> IssuerResponse {
        json([("error", .string(code)), ("error_description", .string(description))], status: status)
    }

    static func html(_ text: String, status: Int = 200) -> IssuerResponse {
        IssuerResponse(status: status, contentType: "text/html; charset=utf-8", body: Array(text.utf8))
    }

    /// To `target` with more parameters in its query; nil values are omitted.
    static func redirect(to target: String, _ parameters: [(String, String?)]) -> IssuerResponse {
        let pairs = parameters.compactMap { name, value in
            value.map { "\(name)=\(FormEncoding.encode(Array($0.utf8)))" }
        }
        return IssuerResponse(status: 303, location: target + "?" + pairs.joined(separator: "&"))
    }
}
