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
        let covered = paths.filter { path in exceptions.contains { $0.covers(path) } }
        if let first = covered.first, covered.count == paths.count {
            return (
                "no request is one of these: the path \(PrintableText.quoteASCII(first.text)) is excepted with !",
                "remove the line, or the exception"
            )
        }
        let unused = exceptions.first { exception in
            !paths.isEmpty && !paths.contains { $0.mayMeet(exception) }
        }
        return unused.map {
            (
                "the exception !\($0.text) has no effect: it is in none of the line's paths",
                "remove it, or correct the path"
            )
        }
    }
}

extension PathPattern {
    /// Whether all paths of `other` are among those of this pattern. False if that is not easy to see.
    fileprivate func covers(_ other: PathPattern) -> Bool {
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
    /// Remarks about the requests that the lines are for.
    var remarks: [SiteRemark] { rules.flatMap(remarks) }

    private func remarks(on rule: SiteRule) -> [SiteRemark] {
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
