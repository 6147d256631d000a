// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The proxies in the environment, read as curl reads them. A variable that is empty counts as absent.
package struct EnvironmentProxies: Hashable, Sendable {
    /// A proxy and the variable that contains it.
    package struct Choice: Hashable, Sendable {
        package let variable: String
        package let parent: ParentProxy
    }

    package let http: Choice?
    package let https: Choice?
    package let noProxy: NoProxyList
    /// `no_proxy` or `NO_PROXY`.
    package let noProxyVariable: String

    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`. The lower-case name of a variable takes
    /// precedence over the upper-case one. `HTTP_PROXY` is not read: a web server sets it for a CGI program from the
    /// client's field Proxy.
    package init(_ environment: [String: String]) throws(ParentsError) {
        func first(of names: [String]) -> (name: String, value: String)? { Self.first(of: names, in: environment) }
        let all = ["all_proxy", "ALL_PROXY"]
        http = try first(of: ["http_proxy"] + all).map { (found) throws(ParentsError) in try Self.choice(found) }
        https = try first(of: ["https_proxy", "HTTPS_PROXY"] + all)
            .map { (found) throws(ParentsError) in try Self.choice(found) }
        (noProxy, noProxyVariable) = NoProxyList.inEnvironment(environment)
    }

    /// The first variable that is not empty.
    fileprivate static func first(
        of names: [String], in environment: [String: String]
    ) -> (name: String, value: String)? {
        for name in names {
            if let value = environment[name], !value.isEmpty { return (name, value) }
        }
        return nil
    }

    /// Those of ``DesktopProxies``, whose name is `name`.
    init(http: Choice?, https: Choice?, noProxy: String, named name: String) {
        self.http = http
        self.https = https
        self.noProxy = NoProxyList(environment: noProxy)
        noProxyVariable = name
    }

    private static func choice(_ found: (name: String, value: String)) throws(ParentsError) -> Choice {
        let parent = try ParentText(setting: found.name, defaultKind: .http).parse(found.value)
        return Choice(variable: found.name, parent: parent)
    }

    /// Nil if the environment names no proxy for this scheme.
    func candidate(for origin: Origin, _ host: HostName) -> Route.Candidate? {
        guard let choice = origin.scheme == .http ? http : https else { return nil }
        if let element = noProxy.element(containing: host, port: origin.port) {
            return Route.Candidate(.direct, .exception(setting: noProxyVariable, element: element))
        }
        return Route.Candidate(.parent(choice.parent), .variable(choice.variable))
    }
}

extension NoProxyList {
    /// The list in `no_proxy`, else in `NO_PROXY`, and the name of the variable.
    static func inEnvironment(_ environment: [String: String]) -> (list: NoProxyList, variable: String) {
        let found = EnvironmentProxies.first(of: ["no_proxy", "NO_PROXY"], in: environment)
        return (NoProxyList(environment: found?.value ?? ""), found?.name ?? "no_proxy")
    }
}
