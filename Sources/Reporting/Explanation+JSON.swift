// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignSitePolicy

extension Explanation: Encodable {
    private enum Key: String, CodingKey {
        case site, handling, listed, reason, rule, schemes
        case scheme, answered, challenge, credential, passed
        case location, text
        case trust, fingerprint, answers, until
        case blocked, revocation, next
        case session, group, cookies
        case broker, injected, approve
        case route, anchors
        case crossSite = "cross-site"
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(origin.description, forKey: .site)
        try container.encode(handling, forKey: .handling)
        try container.encode(site.passed, forKey: .listed)
        try container.encode(site.reason, forKey: .reason)
        if let rule {
            var nested = container.nestedContainer(keyedBy: Key.self, forKey: .rule)
            try nested.encode(rule.location, forKey: .location)
            try nested.encode(rule.text, forKey: .text)
            if handling == .intercept { try nested.encode(rule.revocation.rawValue, forKey: .revocation) }
            if approvalText != nil { try nested.encode(rule.approval?.rawValue, forKey: .approve) }
            if !rule.crossSite.isEmpty { try nested.encode(rule.crossSite.map(\.description), forKey: .crossSite) }
            if let session = rule.session, handling == .intercept {
                var own = nested.nestedContainer(keyedBy: Key.self, forKey: .session)
                try own.encode(session.group, forKey: .group)
                try own.encode(session.cookies, forKey: .cookies)
            }
        }
        if !trustExceptions.isEmpty {
            var list = container.nestedUnkeyedContainer(forKey: .trust)
            for exception in trustExceptions {
                var nested = list.nestedContainer(keyedBy: Key.self)
                try nested.encode(CertificateFingerprint.text(exception.leaf), forKey: .fingerprint)
                try nested.encode(exception.answers, forKey: .answers)
                try nested.encodeIfPresent(exception.until.map(WallClock.rfc3339), forKey: .until)
            }
        }
        if let broker {
            var nested = container.nestedContainer(keyedBy: Key.self, forKey: .broker)
            try nested.encode(broker.passed, forKey: .passed)
            try nested.encode(broker.reason, forKey: .reason)
        }
        if let injection {
            var nested = container.nestedContainer(keyedBy: Key.self, forKey: .injected)
            try nested.encode(injection.passed, forKey: .passed)
            try nested.encode(injection.reason, forKey: .reason)
        }
        if !route.isEmpty { try container.encode(route, forKey: .route) }
        if interceptionText != nil { try container.encode(anchors, forKey: .anchors) }
        if !blocked.isEmpty { try container.encode(blocked, forKey: .blocked) }
        try container.encodeIfPresent(Remedy.sentence(remedies), forKey: .next)
        var list = container.nestedUnkeyedContainer(forKey: .schemes)
        for scheme in schemes {
            var nested = list.nestedContainer(keyedBy: Key.self)
            try nested.encode(scheme.scheme.rawValue, forKey: .scheme)
            try nested.encode(scheme.checks.answers, forKey: .answered)
            for (key, check) in [(Key.challenge, scheme.checks.challenge), (.credential, scheme.checks.credential)] {
                guard let check else { continue }
                var one = nested.nestedContainer(keyedBy: Key.self, forKey: key)
                try one.encode(check.passed, forKey: .passed)
                try one.encode(check.reason, forKey: .reason)
            }
        }
    }
}
