// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// Everything that the user has set about parents: `--parent`, `--no-proxy` and the environment.
package struct ParentSettings: Hashable, Sendable {
    package let sources: [ParentSource]
    package let noProxy: NoProxyList
    /// `--no-proxy`, or its variable.
    private let noProxySetting: String
    private let environment: EnvironmentProxies?

    /// Without `noProxy`, the exceptions are those of the environment's `no_proxy` or `NO_PROXY`. The desktop's
    /// settings, and then the environment's proxies, are read only if `parents` contains `system`, so that nothing in
    /// them can be at fault otherwise. `desktop` returns the output of ``DesktopProxies/command``.
    package init(
        parents: [String] = [], noProxy: String? = nil, environment: [String: String] = [:],
        desktop: () -> String = { "" }
    ) throws(ParentsError) {
        let sources = try ParentSource.parse(parents)
        if let noProxy {
            self.noProxy = try NoProxyList(flag: noProxy)
            noProxySetting = "--no-proxy"
        } else {
            let (list, variable) = NoProxyList.inEnvironment(environment)
            (self.noProxy, noProxySetting) = (list, variable)
        }
        switch sources.contains(.system) ? try DesktopProxies(output: desktop()) : nil {
        case .script(let script):
            self.sources = sources.map { $0 == .system ? .script(script) : $0 }
            self.environment = nil
        case .proxies(let proxies):
            self.sources = sources
            self.environment = proxies
        case nil:
            self.sources = sources
            self.environment = sources.contains(.system) ? try EnvironmentProxies(environment) : nil
        }
    }

    /// Whether a request can need a parent.
    package var hasParents: Bool { sources.contains { $0 != .hop(.direct) } }

    /// The steps to the next hops for an origin, in order. Throws only for a host that is not canonical.
    package func plan(for origin: Origin) throws(HostNameError) -> RoutePlan {
        guard !sources.isEmpty else { return RoutePlan([.candidate(Route.Candidate(.direct, .noParent))]) }
        let host = try HostName(canonicalizing: origin.host, for: .forwarded)
        if let element = noProxy.element(containing: host, port: origin.port) {
            let reason = Route.Reason.exception(setting: noProxySetting, element: element)
            return RoutePlan([.candidate(Route.Candidate(.direct, reason))])
        }
        if host.isLoopback, !noProxy.sendsLoopback {
            // Only a script may know a proxy for requests to this machine.
            let scripts = sources.compactMap { source -> RoutePlan.Step? in
                if case .script(let script) = source { .script(script) } else { nil }
            }
            return RoutePlan(scripts, otherwise: Route.Candidate(.direct, .thisMachine))
        }
        return RoutePlan(
            sources.map { source in
                switch source {
                case .hop(let hop): .candidate(Route.Candidate(hop, .setting))
                case .script(let script): .script(script)
                case .system:
                    .candidate(environment?.candidate(for: origin, host) ?? Route.Candidate(.direct, .noParent))
                }
            })
    }
}

/// The steps to a route: known candidates, and scripts to run.
package struct RoutePlan: Hashable, Sendable {
    package enum Step: Hashable, Sendable {
        case candidate(Route.Candidate)
        case script(ScriptSource)
    }

    package let steps: [Step]
    /// The route if the steps lead to none.
    private let otherwise: Route.Candidate?

    init(_ steps: [Step], otherwise: Route.Candidate? = nil) {
        self.steps = steps
        self.otherwise = otherwise
    }

    /// The scripts to run, in order.
    package var scripts: [ScriptSource] {
        steps.compactMap { step in
            if case .script(let source) = step { source } else { nil }
        }
    }

    /// The route with the scripts' results in the places of the scripts. A script that failed has no result; if
    /// nothing else remains, that is an error, because a direct connection was not permitted.
    package func route(_ results: [ScriptSource: ScriptResult] = [:]) throws(ParentsError) -> Route {
        var candidates: [Route.Candidate] = []
        for step in steps {
            switch step {
            case .candidate(let candidate): candidates.append(candidate)
            case .script(let source):
                for hop in results[source]?.hops ?? [] { candidates.append(Route.Candidate(hop, .script(source))) }
            }
        }
        if candidates.isEmpty, let otherwise { candidates = [otherwise] }
        guard let route = Route(candidates) else {
            let names = scripts.map(\.description).joined(separator: ", ")
            throw ParentsError(
                .noHop, "--parent: no next hop, because the script has no result: \(names)",
                hint: "to connect directly then, add --parent direct")
        }
        return route
    }
}
