// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension SiteRule {
    /// The first of the options that are about connections in which the lines differ.
    func connectionOption(differingFrom other: SiteRule) -> String? {
        if intercepts != other.intercepts { return "intercept" }
        if speaksHTTP2 != other.speaksHTTP2 { return "http2" }
        if revocation != other.revocation { return "revocation" }
        if session?.group != other.session?.group { return "session" }
        if session?.cookies != other.session?.cookies { return "cookies" }
        if crossSite != other.crossSite { return "cross-site" }
        return nil
    }
}

extension RequestLimits {
    /// Why no request can be one that the line is for, or an option of it has no effect; nil if there is no reason.
    fileprivate var remark: (message: String, hint: String)? {
        if methods == ["TRACE"] {
            return ("TRACE is never forwarded to a listed site", "remove the line, or add other methods")
        }
        let own = (paths.isEmpty ? [.everything] : paths).map(compared)
        let excepted = exceptions.map(compared)
        if own.allSatisfy({ path in excepted.contains { $0.covers(path) } }) {
            let first = paths.first.map { "the path \(PrintableText.quoteASCII($0.text))" } ?? "every path"
            return (
                "no request is one of these: \(first) is excepted with !", "remove the line, or the exception"
            )
        }
        if ignoresCase, let first = paths.first, own.allSatisfy(\.endsAsServersDrop) {
            return (
                "no request is one of these: with case=ignore, requests with a segment that ends with a dot or a "
                    + "space, as in \(PrintableText.quoteASCII(first.text)), are refused",
                "remove the end of the segment, or case=ignore"
            )
        }
        let unused = exceptions.first { exception in
            !own.contains { $0.mayMeet(compared(exception)) }
        }
        return unused.map {
            (
                "the exception !\($0.text) has no effect: it is in none of the line's paths",
                "remove it, or correct the path"
            )
        }
    }
}

extension RequestLimits {
    /// `path` as it is compared.
    private func compared(_ path: PathPattern) -> PathPattern { ignoresCase ? path.ignoringCase() : path }
}

extension PathPattern {
    /// Whether a segment ends so that a path with it has a fault where case is ignored.
    fileprivate var endsAsServersDrop: Bool {
        segments.contains { segment in
            let end: UInt8? =
                switch segment {
                case .literal(let octets): octets.last
                case .wildcard(let pieces): pieces.last?.last
                case .anything: nil
                }
            return end == UInt8(ascii: ".") || end == UInt8(ascii: " ")
        }
    }

    /// Whether all paths of `other` are among those of this pattern. False if that is not easy to see.
    func covers(_ other: PathPattern) -> Bool {
        if segments == other.segments { return true }
        guard segments.last == .anything, case let start = segments.dropLast(), !start.contains(.anything) else {
            return false
        }
        return other.segments.starts(with: start)
    }

    /// False only if no path is in both: their literal beginnings differ.
    fileprivate func mayMeet(_ other: PathPattern) -> Bool {
        for (one, two) in zip(segments, other.segments) {
            guard case .literal(let first) = one, case .literal(let second) = two else { return true }
            if first != second { return false }
        }
        if segments.count == other.segments.count { return true }
        let rest =
            segments.count < other.segments.count
            ? other.segments[segments.count...] : segments[other.segments.count...]
        return rest.first == .anything
    }
}

extension RequestRules {
    /// Remarks about the requests that the line `rule` is for.
    func remarks(on rule: SiteRule) -> [SiteRemark] {
        guard let limits = rule.limits else { return [] }
        if let remark = limits.remark {
            return [SiteRemark(message: "\(rule.location): \(remark.message)", hint: remark.hint)]
        }
        if limits.refusesOthers, let all = ruleForAll {
            return [
                SiteRemark(
                    message: "\(rule.location): deny=yes has no effect: \(all.location) is for all other requests",
                    hint: "remove the option, or the other line")
            ]
        }
        return []
    }
}
