// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import CountersignSitePolicy

/// Where a client's request is to go (RFC 9112 §3.2), read once.
struct RequestTarget {
    let origin: Origin
    /// What the origin is asked for: origin-form, its bytes as they came, or `*`.
    let path: ArraySlice<UInt8>
    /// What said which origin, as it came: the target's scheme and authority, or the value of Host. Empty: neither did.
    let spelling: ArraySlice<UInt8>

    struct Failure: Error {
        let status: Int
        let detail: String
    }

    /// A request on the proxy's own port: absolute-form. (CONNECT's authority-form is ``authority(of:)``.)
    init(absoluteFormOf head: RequestHead) throws(Failure) {
        let target = head.targetBytes
        guard let colon = target.prefix(6).firstIndex(of: UInt8(ascii: ":")),
            target[colon...].starts(with: "://".utf8)
        else {
            throw Failure(
                status: 400,
                detail: "this is a proxy: it takes CONNECT and absolute-form requests (RFC 9112 section 3.2)")
        }
        let name = String(decoding: target[..<colon], as: UTF8.self).lowercased()
        guard let scheme = Origin.Scheme(rawValue: name) else {
            throw Failure(status: 400, detail: "the scheme is neither http nor https")
        }
        let rest = target[(colon + 3)...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let authority = rest[..<(end ?? rest.endIndex)]
        spelling = target[..<authority.endIndex]
        origin = try Self.origin(scheme, authority: authority)
        let path = end.map { rest[$0...] } ?? []
        guard !path.contains(UInt8(ascii: "#")) else {
            throw Failure(status: 400, detail: "a request target has no fragment")
        }
        self.path =
            switch path.first {
            case nil: head.method == .options ? [UInt8(ascii: "*")] : [UInt8(ascii: "/")]
            case UInt8(ascii: "?"): [UInt8(ascii: "/")] + path
            default: path
            }
    }

    /// A request inside an intercepted CONNECT: origin-form (or `*`), and a Host that is the tunnel's.
    init(insideConnectTo origin: Origin, head: RequestHead) throws(Failure) {
        let target = head.targetBytes
        if target.first == UInt8(ascii: "/") || (head.method == .options && target.elementsEqual("*".utf8)) {
            path = target
        } else if target.starts(with: "https://".utf8) || target.starts(with: "HTTPS://".utf8) {
            let absolute = try RequestTarget(absoluteFormOf: head)
            guard absolute.origin == origin else {
                throw Failure(status: 400, detail: "the target names another origin than the CONNECT did")
            }
            path = absolute.path
        } else {
            throw Failure(status: 400, detail: "the request target is neither a path nor this origin's")
        }
        spelling = head.fields.valueBytes(of: .host) ?? []
        if let host = head.fields.value(of: .host) {
            let named = try Self.origin(.https, authority: Array(host.utf8)[...])
            guard named.host == origin.host, named.port == origin.port || !host.contains(":") else {
                throw Failure(status: 400, detail: "Host names another origin than the CONNECT did")
            }
        }
        self.origin = origin
    }

    // MARK: Once more

    /// What the origin is asked for, where it is spelled as another absolute-form target spelled it; nil: read the target.
    static func path(of head: RequestHead, after spelling: [UInt8]) -> ArraySlice<UInt8>? {
        guard !spelling.isEmpty, let path = head.target(after: spelling), path.first == UInt8(ascii: "/"),
            !path.contains(UInt8(ascii: "#"))
        else { return nil }
        return path
    }

    /// What the origin is asked for, where Host is what it was in another request of the same tunnel; nil: read the target.
    static func path(of head: RequestHead, host spelling: [UInt8]) -> ArraySlice<UInt8>? {
        let target = head.targetBytes
        guard !spelling.isEmpty, target.first == UInt8(ascii: "/"), head.fields.value(of: .host, equals: spelling)
        else {
            return nil
        }
        return target
    }

    // MARK: Parts

    /// The origin that a CONNECT asks for: host and port, both needed (RFC 9112 §3.2.3).
    static func authority(of head: RequestHead) throws(Failure) -> Origin {
        let target = head.targetBytes
        guard let colon = target.lastIndex(of: UInt8(ascii: ":")), target.index(after: colon) < target.endIndex,
            target[target.index(after: colon)...].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
        else {
            throw Failure(status: 400, detail: "CONNECT takes host:port")
        }
        return try origin(.https, authority: target)
    }

    private static func origin(_ scheme: Origin.Scheme, authority: ArraySlice<UInt8>) throws(Failure) -> Origin {
        do throws(HostNameError) {
            return try Origin(scheme: scheme, authority: String(decoding: authority, as: UTF8.self))
        } catch {
            // The words of a ``HostNameError`` quote the request, which a response of ours never does.
            let detail =
                error.code == .userInfo
                ? "the request target has user information" : "the request target has no usable host"
            throw Failure(status: 400, detail: detail)
        }
    }
}
