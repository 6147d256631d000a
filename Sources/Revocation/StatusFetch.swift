// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCCurl
import CountersignCryptography
import CountersignParents
import CountersignRouting
import Glibc
import Synchronization

/// One fetch of an OCSP response (POST, RFC 6960 appendix A) or a revocation list (GET) with libcurl. Blocks.
///
/// http only, by the route of ``ControlRoutes``; no redirects, credentials, `.netrc`, cookies or content codings. A
/// direct connection is to an address that ``AddressRule`` permits, checked when libcurl opens the socket, so later
/// resolutions of a name have no effect. A parent's resolution of a name is unknown, so through a parent, only an
/// address in the URL is checked.
package struct StatusFetch: Sendable {
    let target: FetchTarget
    /// The OCSP request in DER; nil for a list.
    let request: [UInt8]?
    /// Whether loopback, private and link-local addresses are permitted.
    let mayBeLocal: Bool
    /// The ports on which this process listens.
    let ownPorts: Set<UInt16>
    /// The hops of its route; nil for those of ``ControlRoutes``.
    var route: CurlRoute?

    /// The largest list. One of 20 MiB has about half a million entries.
    package static let listLimitBytes = 20 << 20
    private static let responseLimitBytes = 64 << 10
    var limitBytes: Int { request == nil ? Self.listLimitBytes : Self.responseLimitBytes }
    /// The time for the whole fetch.
    var limitSeconds: Int { request == nil ? 30 : 5 }
    private static let connectSeconds = 4

    package func run() -> Result<[UInt8], FetchFault> {
        guard Self.setUp(), let handle = csn_curl_easy_init() else {
            return .failure(.failed("\(MissingLibrary.curl.detail); \(MissingLibrary.curl.hint)"))
        }
        defer { csn_curl_easy_cleanup(handle) }
        let received = Received(self)
        let route: CurlRoute
        do throws(ParentsError) {
            if let given = self.route { route = given } else { route = try CurlRoute(to: target.origin, path: "/") }
        } catch {
            return .failure(.failed(error.detail))
        }
        if route.hops != [.direct], let refusal = refusalByParent { return .failure(refusal) }
        var fields: UnsafeMutablePointer<curl_slist>?
        defer { csn_curl_slist_free_all(fields) }
        let body = request ?? []
        let outcome = body.withUnsafeBytes { body -> Result<CURLcode, ParentsError> in
            var code = configure(handle, received)
            if request != nil {
                fields = csn_curl_slist_append(fields, "Content-Type: application/ocsp-request")
                fields = csn_curl_slist_append(fields, "Accept: application/ocsp-response")
                if code == CURLE_OK { code = csn_curl_set_post(handle, body.baseAddress, body.count) }
                if code == CURLE_OK { code = csn_curl_set_list(handle, CURLOPT_HTTPHEADER, fields) }
            }
            guard code == CURLE_OK else { return .success(code) }
            defer { withExtendedLifetime(received) {} }
            return Result { () throws(ParentsError) in
                try route.perform(handle) { received.begins(isDirect: $0 == .direct) }
            }
        }
        let code: CURLcode
        switch outcome {
        case .success(let performed): code = performed
        case .failure(let error): return .failure(.failed(error.detail))
        }
        var status = 0
        _ = csn_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return result(code, status, received)
    }

    private func result(_ code: CURLcode, _ status: Int, _ received: Received) -> Result<[UInt8], FetchFault> {
        if received.isTooLarge || code == CURLE_FILESIZE_EXCEEDED {
            return .failure(.tooLarge(limitBytes: limitBytes))
        }
        switch code {
        case CURLE_OK: return status == 200 ? .success(received.bytes) : .failure(.status(status))
        case CURLE_OPERATION_TIMEDOUT: return .failure(.timedOut(seconds: limitSeconds))
        default:
            if let refusal = received.refusal { return .failure(refusal) }
            return .failure(.failed(String(cString: csn_curl_easy_strerror(code)).lowercased()))
        }
    }

    /// Why there is no connection to the address, which is this machine's if `isOwn`; nil if it is permitted.
    func refusal(of address: [UInt8], _ port: UInt16, isOwn: Bool) -> FetchFault? {
        guard AddressRule(mayBeLocal: mayBeLocal).permits(address), mayBeLocal || !isOwn else {
            return .addressRefused(LocalAddress.text(address))
        }
        return isOwn && ownPorts.contains(port) ? .ownPort(port) : nil
    }

    /// Why the URL, which names an address, must not be fetched through a parent; nil if it may.
    private var refusalByParent: FetchFault? {
        guard !mayBeLocal else { return nil }
        if HostText.isLoopbackName(target.origin.host) { return .addressRefused(target.origin.host) }
        guard let host = try? HostName(canonicalizing: target.origin.host, for: .forwarded), !host.addressBytes.isEmpty,
            !AddressRule(mayBeLocal: false).permits(host.addressBytes)
        else { return nil }
        return .addressRefused(host.text)
    }

    private func configure(_ handle: UnsafeMutableRawPointer, _ received: Received) -> CURLcode {
        let context = Unmanaged.passUnretained(received).toOpaque()
        let texts = [
            (CURLOPT_URL, target.url), (CURLOPT_PROTOCOLS_STR, "http"), (CURLOPT_USERAGENT, "countersign"),
        ]
        let numbers = [
            (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_NETRC, 0), (CURLOPT_NOSIGNAL, 1), (CURLOPT_FORBID_REUSE, 1),
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_TIMEOUT_MS, limitSeconds * 1000),
            (CURLOPT_CONNECTTIMEOUT_MS, Self.connectSeconds * 1000), (CURLOPT_MAXFILESIZE, limitBytes),
        ]
        for (option, value) in texts {
            let code = csn_curl_set_string(handle, option, value)
            if code != CURLE_OK { return code }
        }
        for (option, value) in numbers {
            let code = csn_curl_set_long(handle, option, value)
            if code != CURLE_OK { return code }
        }
        let code = csn_curl_set_open_socket(
            handle,
            { context, _, address in
                guard let context, let address else { return CURL_SOCKET_BAD }
                return Unmanaged<Received>.fromOpaque(context).takeUnretainedValue().open(address)
            }, context)
        guard code == CURLE_OK else { return code }
        return csn_curl_set_write(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
                return Unmanaged<Received>.fromOpaque(context).takeUnretainedValue().take(piece) ? size * count : 0
            }, context)
    }

    /// Initialises libcurl once, in the way that enrolment does: whichever is first decides for the process. Since
    /// libcurl 7.84, two modules may do it at the same time.
    private static func setUp() -> Bool {
        isSetUp.withLock { isSetUp in
            if !isSetUp { isSetUp = csn_curl_global_init_wiping() == CURLE_OK }
            return isSetUp
        }
    }

    private static let isSetUp = Mutex(false)

    /// The state of the transfer, for libcurl's callbacks.
    private final class Received {
        private let fetch: StatusFetch
        private(set) var bytes: [UInt8] = []
        private(set) var isTooLarge = false
        /// Why the last address was not permitted.
        private(set) var refusal: FetchFault?
        /// Whether the connection is to the origin rather than to a parent, which the user's settings name.
        private var isDirect = true

        init(_ fetch: StatusFetch) { self.fetch = fetch }

        /// The request is sent by another way: the response so far does not count.
        func begins(isDirect: Bool) {
            self.isDirect = isDirect
            (bytes, isTooLarge, refusal) = ([], false, nil)
        }

        func take(_ piece: UnsafeRawBufferPointer) -> Bool {
            guard piece.count <= fetch.limitBytes - bytes.count else {
                isTooLarge = true
                return false
            }
            bytes += piece
            return true
        }

        /// A socket for the address, if it is permitted.
        func open(_ address: UnsafePointer<curl_sockaddr>) -> Int32 {
            var bytes = [UInt8](repeating: 0, count: 16)
            var port: UInt16 = 0
            let count = Int(csn_curl_ip_address(address, &bytes, &port))
            bytes.removeLast(16 - count)
            refusal =
                isDirect ? fetch.refusal(of: bytes, port, isOwn: LocalAddress.isOfThisMachine(bytes)) : nil
            guard refusal == nil else { return CURL_SOCKET_BAD }
            let made = address.pointee
            return socket(made.family, made.socktype | Int32(SOCK_CLOEXEC.rawValue), made.protocol)
        }
    }
}

/// Addresses as the kernel sees them.
enum LocalAddress {
    /// Whether an interface of this machine has the address: the kernel lets a socket bind to it.
    static func isOfThisMachine(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 4 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: bytes) }
            return canBind(AF_INET, &address)
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        guard bytes.count == 16 else { return true }
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes) }
        return canBind(AF_INET6, &address)
    }

    private static func canBind<Address>(_ family: Int32, _ address: inout Address) -> Bool {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0
            }
        }
    }

    static func text(_ bytes: [UInt8]) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard bytes.count == 4 || bytes.count == 16,
            inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &buffer, socklen_t(buffer.count)) != nil
        else { return "the address" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
