// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHTTP1

/// The origin and path of a client's request (RFC 9112 §3.2).
struct RequestTarget {
    let origin: Origin
    /// The target for the origin: the received bytes in origin-form, or `*`.
    let path: ArraySlice<UInt8>
    /// The received bytes that named the origin: the target's scheme and authority, or the value of Host; empty if
    /// neither did.
    let spelling: ArraySlice<UInt8>

    struct Failure: Error {
        let status: Int
        let detail: String
    }

    /// The target of a request on the proxy's own port, in absolute-form. For CONNECT see ``authority(of:)``.
    init(absoluteFormOf head: RequestHead) throws(Failure) {
        let target = head.targetBytes
        guard let colon = target.prefix(6).firstIndex(of: UInt8(ascii: ":")),
            target[colon...].starts(with: "://".utf8)
        else {
            throw Failure(
                status: 400,
                detail: "this is a proxy: it accepts CONNECT and absolute-form requests (RFC 9112 section 3.2)")
        }
        let scheme = try Self.scheme(target[..<colon])
        let rest = target[(colon + 3)...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let authority = rest[..<(end ?? rest.endIndex)]
        spelling = target[..<authority.endIndex]
        origin = try Self.origin(scheme, authority: authority)
        let path = end.map { rest[$0...] } ?? []
        guard !path.contains(UInt8(ascii: "#")) else {
            throw Failure(status: 400, detail: "the request target has a fragment")
        }
        self.path =
            switch path.first {
            case nil: head.method == .options ? [UInt8(ascii: "*")] : [UInt8(ascii: "/")]
            case UInt8(ascii: "?"): [UInt8(ascii: "/")] + path
            default: path
            }
    }

    /// The target of a request that is for `own`, the page of the proxy itself, and was sent to the proxy's own port as
    /// to any server: browsers do so, because they use no proxy for names below `localhost`. Nil for any other request.
    ///
    /// A page of the Internet whose name leads to this machine (DNS rebinding) has another name in Host.
    ///
    /// `port` is that of the connection's own end, which a Host that is an address must have.
    init?(originFormOf head: RequestHead, to own: Origin, port: Int?) {
        guard head.targetBytes.first == UInt8(ascii: "/"), let host = head.fields.value(of: .host),
            let named = try? Origin(scheme: .http, authority: host),
            named.host == own.host
                || Int(named.port) == port
                    && (named.host == "localhost" || IPAddress(named.host)?.isLoopback == true)
        else { return nil }
        origin = own
        path = head.targetBytes
        spelling = []
    }

    /// The target of a request inside a CONNECT: origin-form or `*`, with a Host that matches the CONNECT. The scheme
    /// of `origin` is https if the request was sent in TLS.
    init(insideConnectTo origin: Origin, head: RequestHead) throws(Failure) {
        let target = head.targetBytes
        if target.first == UInt8(ascii: "/") || (head.method == .options && target.elementsEqual("*".utf8)) {
            path = target
        } else if Self.begins(target, with: origin.scheme) {
            let absolute = try RequestTarget(absoluteFormOf: head)
            guard absolute.origin == origin else {
                throw Failure(status: 400, detail: "the request target's origin differs from the CONNECT's")
            }
            path = absolute.path
        } else {
            throw Failure(status: 400, detail: "the request target is neither a path nor a URL of this origin")
        }
        spelling = head.fields.valueBytes(of: .host) ?? []
        if let host = head.fields.value(of: .host) {
            let named = try Self.origin(origin.scheme, authority: Array(host.utf8)[...])
            guard named.host == origin.host, named.port == origin.port || !host.contains(":") else {
                throw Failure(status: 400, detail: "Host differs from the CONNECT's origin")
            }
        }
        self.origin = origin
    }

    // MARK: Repeated spellings

    /// The target for the origin if `head` has an absolute-form target that begins with `spelling`; nil if the target
    /// must be parsed.
    static func path(of head: RequestHead, after spelling: [UInt8]) -> ArraySlice<UInt8>? {
        guard !spelling.isEmpty, let path = head.target(after: spelling), path.first == UInt8(ascii: "/"),
            !path.contains(UInt8(ascii: "#"))
        else { return nil }
        return path
    }

    /// The target for the origin if the Host of `head` is `spelling`, as in an earlier request of the same tunnel; nil
    /// if the target must be parsed.
    static func path(of head: RequestHead, host spelling: [UInt8]) -> ArraySlice<UInt8>? {
        let target = head.targetBytes
        guard !spelling.isEmpty, target.first == UInt8(ascii: "/"), head.fields.value(of: .host, equals: spelling)
        else {
            return nil
        }
        return target
    }

    // MARK: Parts

    /// The scheme of a target in absolute-form. The handshake of a WebSocket is an http or https request (RFC 6455
    /// §4.1).
    private static func scheme(_ name: ArraySlice<UInt8>) throws(Failure) -> Origin.Scheme {
        switch String(decoding: name, as: UTF8.self).lowercased() {
        case "http", "ws": .http
        case "https", "wss": .https
        default: throw Failure(status: 400, detail: "the scheme is not one of http, https, ws and wss")
        }
    }

    /// Whether `target` is in absolute-form, with this scheme.
    private static func begins(_ target: ArraySlice<UInt8>, with scheme: Origin.Scheme) -> Bool {
        let start = "\(scheme.rawValue)://"
        return target.starts(with: start.utf8) || target.starts(with: start.uppercased().utf8)
    }

    /// The origin that a CONNECT names, as if for https: the tunnel's content shows the protocol later. Both host and
    /// port are required (RFC 9112 §3.2.3).
    static func authority(of head: RequestHead) throws(Failure) -> Origin {
        let target = head.targetBytes
        guard let colon = target.lastIndex(of: UInt8(ascii: ":")), target.index(after: colon) < target.endIndex,
            target[target.index(after: colon)...].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
        else {
            throw Failure(status: 400, detail: "the target of CONNECT must be host:port")
        }
        return try origin(.https, authority: target)
    }

    private static func origin(_ scheme: Origin.Scheme, authority: ArraySlice<UInt8>) throws(Failure) -> Origin {
        do throws(HostNameError) {
            return try Origin(scheme: scheme, authority: String(decoding: authority, as: UTF8.self))
        } catch {
            // The text of a `HostNameError` quotes the request. Responses made by the proxy never do.
            let detail =
                error.code == .userInfo
                ? "the request target has user information" : "the request target has no usable host"
            throw Failure(status: 400, detail: detail)
        }
    }
}
