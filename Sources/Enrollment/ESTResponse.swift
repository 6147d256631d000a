// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
import CountersignCertificates
import CountersignCryptography

/// An HTTP response of an EST server, and its interpretation under RFC 7030.
struct ESTResponse {
    var status = 0
    /// Names in lower case.
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// The credential with which the request answered a challenge; nil without one.
    var answered: EnrollmentError.Object?

    /// The first value of a field.
    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    /// Type and subtype in lower case, without parameters.
    var mediaType: String? {
        guard let value = field("content-type") else { return nil }
        let type = value.prefix { $0 != ";" }
        return String(type.filter { $0 != " " && $0 != "\t" }).lowercased()
    }

    /// Status, type and beginning, for error texts: `200 text/html: an HTML page, "<html>..."`.
    var summary: String {
        var text = "\(status)"
        if let type = field("content-type") { text += " \(PrintableText.plain(type))" }
        return body.isEmpty ? text + " without a body" : text + ": " + bodySummary
    }

    private var bodySummary: String {
        if looksLikeHTML { return "an HTML page, " + PrintableText.quote(body) }
        if body.starts(with: "-----BEGIN ".utf8) { return "PEM, " + PrintableText.quote(body) }
        if body.first == 0x30, body.contains(where: { $0 >= 0x80 }) { return "DER without base64, \(body.count) bytes" }
        return PrintableText.quote(body)
    }

    /// Judged by the media type or the first tag.
    var looksLikeHTML: Bool {
        if mediaType == "text/html" || mediaType == "application/xhtml+xml" { return true }
        let start = String(decoding: body.prefix(200), as: UTF8.self).lowercased().drop { $0.isWhitespace }
        return start.hasPrefix("<!doctype html") || start.hasPrefix("<html")
    }

    /// The decoded body of a 200 response in base64. Ignores white space (RFC 8951 §3.1), and NUL because libest ends
    /// its CSR attributes with one. Throws `malformedResponse` for another media type or malformed base64; `what` names
    /// the content in the error.
    func payload(_ type: String, _ what: String) throws(EnrollmentError) -> [UInt8] {
        guard mediaType == type else {
            throw malformed("\(what): expected \(type), the server sent \(summary)")
        }
        let text = body.filter { $0 != 0 && $0 != 0x20 && !(0x09...0x0D).contains($0) }
        guard let bytes = Base64.decode(String(decoding: text, as: UTF8.self)) else {
            throw malformed("\(what): expected base64, the server sent \(summary)")
        }
        return bytes
    }

    /// The certificates of a certs-only PKCS#7 (RFC 7030 §4.1.3, §4.2.3).
    func certificates(_ what: String) throws(EnrollmentError) -> [Certificate] {
        let bytes = try payload("application/pkcs7-mime", what)
        do {
            return try PKCS7Message.certificates(inPKCS7: bytes)
        } catch {
            throw malformed("\(what) cannot be read: \(error.detail); the server sent \(summary)")
        }
    }

    /// The attributes that the server wants in requests (RFC 7030 §4.5.2).
    func requestAttributes() throws(EnrollmentError) -> CSRAttributes {
        let bytes = try payload("application/csrattrs", "CSR attributes")
        do {
            return try CSRAttributes(der: bytes)
        } catch {
            throw malformed("\(error.detail); the server sent \(summary)")
        }
    }

    func malformed(_ detail: String) -> EnrollmentError {
        EnrollmentError(.malformedResponse, detail, statusCode: status)
    }

    /// The seconds to wait (RFC 9110 §10.2.3), from 1 to ``ESTClient/longestRetryAfter``; nil without a valid
    /// Retry-After.
    func retryAfter(now: Int64) -> Int64? {
        guard let value = field("retry-after") else { return nil }
        let seconds: Int64
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            seconds = Int64(value) ?? .max
        } else {
            let date = csn_curl_getdate(value)
            guard date >= 0 else { return nil }
            seconds = Int64(date).subtractingReportingOverflow(now).partialValue
        }
        return min(max(1, seconds), ESTClient.longestRetryAfter)
    }
}
