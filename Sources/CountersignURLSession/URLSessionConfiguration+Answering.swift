// SPDX-License-Identifier: Apache-2.0

import Countersign
import Foundation
import NIOCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// A copy of this configuration whose sessions send http and https requests through `proxy`, which answers
    /// challenges: NTLM, Negotiate, client certificates and Basic. Waits until the proxy listens. Throws what its
    /// `address` throws, and `URLError.unknown` where the configuration cannot be copied.
    ///
    /// URLSession on Linux heeds no proxy dictionary, and trusts no authority but the system's. So the copy brings a
    /// `URLProtocol` of its own, which asks the proxy for `https://…` inside this process: TLS is the proxy's, and neither
    /// the interception CA nor the process's environment has a part in it. Once the proxy has stopped, every task fails
    /// with `URLError.cannotConnectToHost`; none goes round it. Make one copy and keep it: each one takes a little memory
    /// for good.
    ///
    /// Data tasks work, with `httpBody` or `httpBodyStream`, redirects, cookies, time-outs and cancellation. Whole
    /// responses are held in memory. Upload tasks with a body of their own and download tasks fail with `URLError.unsupportedURL`;
    /// the session's delegate is not asked about redirects. A challenge that nobody answers is delivered as its 401,
    /// with the field `WWW-Authenticate` under the name `Countersign-WWW-Authenticate`, as URLSession would wait on it
    /// for ever. A server that is not trusted, or cannot be reached, is the `URLError` that it is without a proxy, such as
    /// `serverCertificateUntrusted` or `cannotFindHost`, with the reason as its `NSLocalizedDescriptionKey`.
    public func answering(through proxy: ChallengeProxy) async throws -> URLSessionConfiguration {
        _ = try await proxy.address
        guard let copy = copy() as? URLSessionConfiguration else {
            let reason = "the session configuration cannot be copied"
            throw URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: reason])
        }
        let route = Route(link: ProxyLink(to: proxy), configuration: copy)
        copy.protocolClasses = [Routes.protocolClass(for: route)] + (copy.protocolClasses ?? [])
        return copy
    }
}

/// What the tasks of one configuration's sessions have in common.
struct Route: Sendable {
    let link: ProxyLink
    /// Go with every request that has none of the name.
    let additionalFields: [String: String]
    let cookies: HTTPCookieStorage?
    /// Without a byte from the proxy, in seconds, where the request itself says nothing else.
    let requestSeconds: TimeInterval
    /// For a task as a whole.
    let patience: TimeAmount

    init(link: ProxyLink, configuration: URLSessionConfiguration) {
        self.link = link
        var fields: [String: String] = [:]
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] {
            if let name = name as? String { fields[name] = value as? String ?? "\(value)" }
        }
        additionalFields = fields
        cookies = configuration.httpShouldSetCookies ? configuration.httpCookieStorage : nil
        requestSeconds = configuration.timeoutIntervalForRequest
        patience = .seconds(upTo: configuration.timeoutIntervalForResource)
    }
}

extension TimeAmount {
    /// What Foundation gives in seconds: none at the least, thirty days at the most.
    static func seconds(upTo seconds: TimeInterval) -> TimeAmount {
        .milliseconds(Int64(max(0, min(seconds, 30 * 86_400)) * 1000))
    }
}

/// The routes, each with a `URLProtocol` class of its own: a class is all that a configuration takes, and all that a
/// task knows of its configuration.
enum Routes {
    private static let routes = Mutex<[Route]>([])

    static func protocolClass(for route: Route) -> URLProtocol.Type {
        let number = routes.withLock { routes in
            routes.append(route)
            return routes.count - 1
        }
        return classes(number, Zero.self)
    }

    static func route(_ number: Int) -> Route { routes.withLock { $0[number] } }

    /// The class of a number, written in binary.
    private static func classes<Low: RouteNumber>(_ rest: Int, _: Low.Type) -> URLProtocol.Type {
        guard rest > 0 else { return ProxiedLoading<Low>.self }
        return rest.isMultiple(of: 2) ? classes(rest / 2, Even<Low>.self) : classes(rest / 2, Odd<Low>.self)
    }
}

/// A number as a type.
protocol RouteNumber: SendableMetatype {
    static var value: Int { get }
    static var digits: Int { get }
}

enum Zero: RouteNumber {
    static var value: Int { 0 }
    static var digits: Int { 0 }
}

enum Even<Low: RouteNumber>: RouteNumber {
    static var value: Int { Low.value }
    static var digits: Int { Low.digits + 1 }
}

enum Odd<Low: RouteNumber>: RouteNumber {
    static var value: Int { Low.value + 1 << Low.digits }
    static var digits: Int { Low.digits + 1 }
}
