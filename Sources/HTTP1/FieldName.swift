// SPDX-License-Identifier: Apache-2.0

/// The field names that the proxy interprets. Every other name is `other`.
package enum FieldName: UInt8, CaseIterable, Hashable, Sendable {
    case other
    case authenticationInfo
    case authorization
    case connection
    case contentLength
    case cookie
    case countersignTrust
    case date
    case expect
    /// A name that CGI reads as Content-Length or Transfer-Encoding: the hyphen is replaced by another character that
    /// is not a letter or digit (RFC 3875 §4.1.18).
    case foldedFraming
    case host
    case keepAlive
    case maxForwards
    case proxyAuthenticate
    case proxyAuthenticationInfo
    case proxyAuthorization
    case proxyConnection
    case proxyStatus
    case setCookie
    case te
    case trailer
    case transferEncoding
    case upgrade
    case via
    case wwwAuthenticate

    /// The name in lower case; empty for `other` and `foldedFraming`.
    package var text: String { "\(literal)" }

    private var literal: StaticString {
        switch self {
        case .other, .foldedFraming: ""
        case .authenticationInfo: "authentication-info"
        case .authorization: "authorization"
        case .connection: "connection"
        case .contentLength: "content-length"
        case .cookie: "cookie"
        case .countersignTrust: "countersign-trust"
        case .date: "date"
        case .expect: "expect"
        case .host: "host"
        case .keepAlive: "keep-alive"
        case .maxForwards: "max-forwards"
        case .proxyAuthenticate: "proxy-authenticate"
        case .proxyAuthenticationInfo: "proxy-authentication-info"
        case .proxyAuthorization: "proxy-authorization"
        case .proxyConnection: "proxy-connection"
        case .proxyStatus: "proxy-status"
        case .setCookie: "set-cookie"
        case .te: "te"
        case .trailer: "trailer"
        case .transferEncoding: "transfer-encoding"
        case .upgrade: "upgrade"
        case .via: "via"
        case .wwwAuthenticate: "www-authenticate"
        }
    }

    /// Whether the proxy passes the field on without interpreting it.
    var isOther: Bool { self == .other || self == .foldedFraming }

    /// The bit that represents the name in a set of names.
    var bit: UInt32 { 1 << UInt32(rawValue) }

    /// The name at `range`, compared case-insensitively (RFC 9110 §5.1).
    @inline(__always)
    init(in bytes: RawSpan, at range: Range<Int>) {
        let candidate = FieldName.candidate(length: range.count, first: bytes.byte(range.lowerBound) | 0x20)
        if candidate == .other {
            self = .other
        } else if bytes.isName(candidate.literal, at: range) {
            self = candidate
        } else {
            self = candidate.lookalike(in: bytes, at: range)
        }
    }

    /// `foldedFraming` if the name at `range` differs from this one only in the hyphen, and this is a framing field.
    private func lookalike(in bytes: RawSpan, at range: Range<Int>) -> FieldName {
        guard self == .contentLength || self == .transferEncoding else { return .other }
        let expected = UnsafeRawBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount)
        for (octet, offset) in zip(expected, range) {
            let octetThere = bytes.byte(offset)
            let isSame = octet == Octet.hyphen ? !Octet.isAlphanumeric(octetThere) : octetThere | 0x20 == octet
            guard isSame else { return .other }
        }
        return .foldedFraming
    }

    /// The only name with this length and first letter. The caller compares the rest.
    @inline(__always)
    private static func candidate(length: Int, first: UInt8) -> FieldName {
        switch (length, first) {
        case (2, 0x74): .te
        case (3, 0x76): .via
        case (4, 0x64): .date
        case (4, 0x68): .host
        case (6, 0x63): .cookie
        case (6, 0x65): .expect
        case (7, 0x74): .trailer
        case (7, 0x75): .upgrade
        case (10, 0x63): .connection
        case (10, 0x6B): .keepAlive
        case (10, 0x73): .setCookie
        case (12, 0x6D): .maxForwards
        case (12, 0x70): .proxyStatus
        case (13, 0x61): .authorization
        case (14, 0x63): .contentLength
        case (16, 0x70): .proxyConnection
        case (16, 0x77): .wwwAuthenticate
        case (17, 0x63): .countersignTrust
        case (17, 0x74): .transferEncoding
        case (18, 0x70): .proxyAuthenticate
        case (19, 0x61): .authenticationInfo
        case (19, 0x70): .proxyAuthorization
        case (25, 0x70): .proxyAuthenticationInfo
        default: .other
        }
    }
}
