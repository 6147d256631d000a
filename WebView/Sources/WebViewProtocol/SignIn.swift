// SPDX-License-Identifier: Apache-2.0

/// An `OpenRequest` that has been checked as a whole.
package struct SignIn: Equatable, Sendable {
    package let first: PageRequest
    package let policy: NavigationPolicy
    package let timeLimit: Duration
    package let cookies: [Cookie]
    package let captureCookies: CookieSelection?
    package let reportsSession: Bool
    package let proxy: ProxyAddress?
    package let dataFolder: String?
    package let title: String
    package let userAgent: String?
    package let announcesDevice: Bool
    package let pageMessages: PageMessagePolicy?
    /// Nil if no profiles are delivered.
    package let profileFolder: String?

    /// - Parameter permitsLoopbackHTTP: Whether allowed origins may be `http://` on loopback.
    package init(_ request: OpenRequest, permitsLoopbackHTTP: Bool = false) throws(ProtocolError) {
        policy = try Self.policy(request, permitsLoopbackHTTP)
        first = PageRequest(url: request.url, headers: request.headers)
        try first.check(policy)
        guard Limits.timeLimit.contains(request.timeLimit) else {
            throw ProtocolError("'timeLimitSeconds' is not from 1 to 86400")
        }
        timeLimit = request.timeLimit
        let hosts = policy.allowedOrigins.map(\.host)
        try SessionCookies.check(request.cookies, for: hosts)
        cookies = request.cookies
        if let selection = request.captureCookies, !hosts.contains(selection.host) {
            throw ProtocolError("'captureCookies.host' is not the host of an allowed origin")
        }
        captureCookies = request.captureCookies
        reportsSession = request.reportsSession
        if let text = request.proxy { proxy = try ProxyAddress(text) } else { proxy = nil }
        for (name, folder) in [("dataFolder", request.dataFolder), ("profileFolder", request.profileFolder)] {
            guard let folder else { continue }
            guard folder.hasPrefix("/"), !folder.utf8.contains(0) else {
                throw ProtocolError("'\(name)' is not an absolute path")
            }
        }
        dataFolder = request.dataFolder
        for text in [request.title, request.userAgent] {
            guard (text ?? "").unicodeScalars.allSatisfy({ $0.value > 0x1f && $0.value != 0x7f }) else {
                throw ProtocolError("'title' or 'userAgent' has a control character")
            }
        }
        title = request.title ?? "Sign in"
        profileFolder = request.profileFolder
        userAgent = request.userAgent
        announcesDevice = request.announcesDevice
        if let rules = request.pageMessages {
            pageMessages = try PageMessagePolicy(rules, allowedOrigins: policy.allowedOrigins)
        } else {
            pageMessages = nil
        }
    }

    private static func policy(
        _ request: OpenRequest, _ permitsLoopbackHTTP: Bool
    ) throws(ProtocolError) -> NavigationPolicy {
        guard request.redirectURIs.count <= Limits.redirectURIs,
            (1...Limits.allowedOrigins).contains(request.allowedOrigins.count)
        else { throw ProtocolError("'redirectURIs' or 'allowedOrigins' has too many members, or none") }
        var redirects: [RedirectURI] = []
        for text in request.redirectURIs { redirects.append(try RedirectURI(text)) }
        var origins: [Origin] = []
        for text in request.allowedOrigins {
            guard let origin = Origin(text) else {
                throw ProtocolError("'allowedOrigins' has a member that is not https://host[:port]")
            }
            guard origin.scheme == "https" || (permitsLoopbackHTTP && origin.isLoopback) else {
                throw ProtocolError("'allowedOrigins' has a member without https")
            }
            origins.append(origin)
        }
        return NavigationPolicy(
            redirectURIs: redirects, allowedOrigins: origins, permitsSpecialURLs: request.specialURLs)
    }
}
