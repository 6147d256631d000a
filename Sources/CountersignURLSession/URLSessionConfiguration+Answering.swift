// SPDX-License-Identifier: Apache-2.0

public import CountersignNIO
import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// Returns a copy of this configuration whose sessions send http and https requests through `proxy`, which answers
    /// NTLM, Negotiate, client-certificate and Basic challenges. Waits until the proxy is listening. Throws the errors
    /// of the proxy's `address`, and `URLError.unknown` if the configuration cannot be copied.
    ///
    /// URLSession on Linux ignores proxy settings, and trusts only the system's certification authorities. The copy
    /// therefore installs a `URLProtocol` that sends absolute-form requests to the proxy inside this process. The proxy
    /// handles TLS, so neither the interception CA nor environment variables are involved. After the proxy has stopped,
    /// all tasks fail with `URLError.cannotConnectToHost`; none bypasses it. Create one copy and reuse it, because the
    /// memory of a copy is never released.
    ///
    /// Data tasks support `httpBody`, `httpBodyStream`, redirects, cookies, time-outs and cancellation. Upload tasks
    /// send the data or file that they were created with, or the stream of the session's delegate; files and streams
    /// are read while they are sent. A delegate receives a response in pieces as they arrive, however slowly it
    /// processes them; a completion handler receives it whole, from memory. Download tasks fail with
    /// `URLError.unsupportedURL`: use an ``AnsweringSession``.
    ///
    /// The session's delegate is not asked about redirects. If a challenge is not answered, the task receives the 401
    /// with `WWW-Authenticate` renamed to `Countersign-WWW-Authenticate`, because URLSession would otherwise wait
    /// forever. If a server is untrusted or unreachable, the task fails with the same `URLError` as without a proxy,
    /// such as `serverCertificateUntrusted` or `cannotFindHost`, and with the reason as its
    /// `NSLocalizedDescriptionKey`.
    public func answering(through proxy: ChallengeProxy) async throws -> URLSessionConfiguration {
        _ = try await proxy.address
        guard let copy = copy() as? URLSessionConfiguration else {
            let reason = "the session configuration cannot be copied"
            throw URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: reason])
        }
        let route = SessionRoute(link: ProxyLink(to: proxy), settings: SessionSettings(copy))
        copy.protocolClasses = [Self.protocolClass(for: route)] + (copy.protocolClasses ?? [])
        return copy
    }

    /// The `URLProtocol` class of a route: a specialisation of ``ProxiedLoading`` by the route's number.
    private static func protocolClass(for route: SessionRoute) -> URLProtocol.Type {
        protocolClass(SessionRoutes.add(route), Zero.self)
    }

    /// Encodes a number as a type, in binary from its lowest digit.
    private static func protocolClass<Low: RouteNumber>(_ rest: Int, _: Low.Type) -> URLProtocol.Type {
        guard rest > 0 else { return ProxiedLoading<Low>.self }
        return rest.isMultiple(of: 2)
            ? protocolClass(rest / 2, Even<Low>.self) : protocolClass(rest / 2, Odd<Low>.self)
    }
}
