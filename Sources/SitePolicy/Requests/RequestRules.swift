// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// The lines of one site, if at least one of them is for some requests only: finds the line for a request.
///
/// The most specific line counts: the one whose path begins with more literal segments; then the one with more literal
/// octets, fewer `**` and fewer `*`; then the one that names methods, and fewer of them; then the first. The beginnings
/// are looked up by hash, so that the time depends on the length of the path and not on the number of lines. Only
/// patterns with the same beginning and different wildcards are compared one by one.
package final class RequestRules: Sendable {
    /// The lines in the order of the list.
    package let rules: [SiteRule]
    private let exact: PathTable
    private let folded: PathTable
    /// The lines that do not depend on the path, the most specific first.
    private let others: [PathTable.Entry]
    /// The methods of the lines that depend on the path; nil if one of them is for all methods.
    private let methodsWithPaths: Set<String>?
    private let refusing: SiteRule?
    /// The line without limits.
    let ruleForAll: SiteRule?

    init(_ rules: [SiteRule]) {
        self.rules = rules
        var (exact, folded, others) = ([PathTable.Entry](), [PathTable.Entry](), [PathTable.Entry]())
        var methods: Set<String>? = []
        for (index, rule) in rules.enumerated() {
            let limits = rule.limits ?? RequestLimits()
            guard limits.comparesPaths else {
                others.append(PathTable.Entry(line: index, limits, .everything))
                continue
            }
            methods = limits.methods.isEmpty ? nil : methods?.union(limits.methods)
            for path in limits.paths.isEmpty ? [.everything] : limits.paths {
                let entry = PathTable.Entry(line: index, limits, path)
                if limits.ignoresCase { folded.append(entry) } else { exact.append(entry) }
            }
        }
        self.exact = PathTable(exact)
        self.folded = PathTable(folded)
        self.others = others.sorted(by: <)
        methodsWithPaths = methods
        ruleForAll = rules.first { $0.limits == nil }
        refusing = rules.first { $0.limits?.refusesOthers == true }
    }

    /// Whether a line says `deny=yes`.
    package var refusesOthers: Bool { refusing != nil }

    /// What happens to a request.
    package enum Decision: Hashable, Sendable {
        /// Its challenges may be answered according to the line with this index in ``RequestRules/rules``.
        case line(Int)
        /// No line is for it. It is forwarded, and nothing is answered.
        case unanswered(Mismatch)
        /// No line is for it, and one says `deny=yes`.
        case denied(Mismatch)
        /// Its path cannot be compared, and a line depends on the path.
        case faulty(CanonicalPath.Fault)
    }

    /// What no line permits.
    package enum Mismatch: Hashable, Sendable {
        case method
        /// The path, for the request's method.
        case path
        /// Method and path are not known.
        case unknown
    }

    /// The decision about a request. Nil for one that is not known: no line is for it, because it may be one that a
    /// more specific line excludes.
    package func decision(on request: SiteRequest?) -> Decision {
        guard let request else { return .unanswered(.unknown) }
        // Some servers take `delete` for DELETE, which another line may be for.
        guard !request.method.utf8.contains(where: { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }) else {
            return mismatch(.method)
        }
        let other = others.first { $0.limits.permits(method: request.method) }
        let dependsOnPath = methodsWithPaths?.contains(request.method) ?? true
        // `*` is the server as a whole (RFC 9110 §9.3.7), which lies in no path.
        guard dependsOnPath, !request.target.elementsEqual("*".utf8) else {
            if let other { return .line(other.line) }
            return mismatch(dependsOnPath ? .path : .method)
        }
        do throws(CanonicalPath.Fault) {
            let path = try CanonicalPath(request.target)
            var best = exact.entry(for: path, method: request.method)
            if !folded.isEmpty {
                let other = folded.entry(for: try path.ignoringCase(), method: request.method)
                best = [best, other].compactMap(\.self).min()
            }
            if let best = best ?? other { return .line(best.line) }
        } catch {
            return .faulty(error)
        }
        return mismatch(.path)
    }

    private func mismatch(_ mismatch: Mismatch) -> Decision {
        refusing == nil ? .unanswered(mismatch) : .denied(mismatch)
    }

    /// `decision` with its reason.
    package func verdict(of decision: Decision) -> SiteVerdict {
        switch decision {
        case .line(let index): .answer(rules[index])
        case .unanswered(let mismatch): .tunnel(reason: refusal(sentence(mismatch)))
        case .denied(let mismatch):
            .refuse(
                reason: refusal(
                    "\(sentence(mismatch)), and \(rules.count == 1 ? "it" : refusing?.location ?? "") says deny=yes"))
        case .faulty(let fault):
            .refuse(
                reason: refusal(
                    "the path of the request \(fault.rawValue), so it cannot be compared with paths= of "
                        + "\(rules.first { $0.limits?.comparesPaths == true }?.location ?? "")"))
        }
    }

    private func refusal(_ sentence: String) -> Refusal {
        Refusal(.notPermittedRequest(line: rules[0].location), sentence)
    }

    /// Without anything of the request, because responses of the proxy contain this.
    private func sentence(_ mismatch: Mismatch) -> String {
        let part: String
        switch mismatch {
        case .method: part = "method"
        case .path: part = "path"
        case .unknown: return "\(rules[0].location) is for some requests only, and which one this is, is not known"
        }
        guard rules.count > 1 else { return "\(rules[0].location) is not for requests with this \(part)" }
        return "none of the site's \(rules.count) lines, the first at \(rules[0].location), is for requests with this "
            + part
    }
}
