// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHTTP1

/// A response of the proxy's own: short, plain, and without anything of the request in it.
struct OwnResponse {
    var status: Int
    /// A sentence for a person, which is also `Proxy-Status`'s details.
    var detail: String
    /// An error of RFC 9209 §2.3, such as `connection_refused`.
    var proxyError: String?
    var extraFields: [(String, String)] = []
    var contentType = "text/plain; charset=utf-8"
    /// In place of the sentence.
    var body: String?

    init(status: Int, detail: String, proxyError: String? = nil) {
        self.status = status
        self.detail = detail
        self.proxyError = proxyError
    }

    /// The whole response. `method`: a HEAD gets the head alone.
    func bytes(keepAlive: Bool, to method: Method) -> [UInt8] {
        var fields = extraFields
        fields.append(("Proxy-Status", ProxyStatus.value(error: proxyError, details: detail)))
        let text = body ?? "countersign: \(detail)\n"
        fields.append(("Content-Type", contentType))
        return GeneratedResponse(
            status: status, fields: fields, body: Array(text.utf8), closes: !keepAlive, answersHead: method == .head
        ).serialized()
    }

    static var proxyAuthenticationRequired: OwnResponse {
        var response = OwnResponse(status: 407, detail: "the client token is missing or wrong")
        response.extraFields = [("Proxy-Authenticate", "Basic realm=\"countersign\", charset=\"UTF-8\"")]
        return response
    }
}

/// The `Proxy-Status` field (RFC 9209).
enum ProxyStatus {
    /// `countersign; error=…; details="…"`.
    static func value(error: String?, details: String?) -> String {
        var value = "countersign"
        if let error { value += "; error=\(error)" }
        if let details { value += "; details=\(quoted(details))" }
        return value
    }

    /// An sf-string (RFC 8941 §3.3.3): visible ASCII and spaces; the rest becomes `?`.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                result += "\\"
                result.unicodeScalars.append(scalar)
            case " "..."~":
                result.unicodeScalars.append(scalar)
            default:
                result += "?"
            }
        }
        return result + "\""
    }
}

/// The `--client-token-file` check.
enum ClientToken {
    /// `Basic` with the token as its password, whatever the user name, or `Bearer` with the token.
    static func matches(_ values: [String], _ token: Secret) -> Bool {
        guard values.count == 1, let space = values[0].firstIndex(of: " ") else { return false }
        let credentials = values[0][values[0].index(after: space)...].drop { $0 == " " }
        switch values[0][..<space].lowercased() {
        case "basic":
            guard let decoded = Base64.decode(credentials), let colon = decoded.firstIndex(of: UInt8(ascii: ":")) else {
                return false
            }
            return Secret(decoded[(colon + 1)...]) == token
        case "bearer":
            return Secret(utf8: credentials) == token
        default:
            return false
        }
    }
}
